"""Random calls over HTTP break no promise, also after the service was stopped or killed."""

from __future__ import annotations

import pytest

from tests.live.promises.search import check, commands_in
from tests.live.test_promises import nights_seeds
from tests.serve.machines import TOKEN
from tests.serve.served_home import Served


@pytest.fixture(autouse=True)
def _token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MANYARMS_TOKEN", TOKEN)


@pytest.mark.patient
def test_random_sequences() -> None:
    check(commands_in(Served), range(8))


@pytest.mark.long
@pytest.mark.slow
def test_many_random_sequences() -> None:
    check(commands_in(Served), nights_seeds(120))
