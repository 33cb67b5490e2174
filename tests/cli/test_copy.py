"""`manyarms copy` from one store to another, and its errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import manyarms as ma
from manyarms.cli.main import main
from tests.serve.machines import new_name, opened, row_of, shared_postgres

pytestmark = pytest.mark.interpreted
ARMS = ["red", "blue", "black"]


def played(store: str, name: str) -> list[Any]:
    """Play an experiment with a control, retired arms and late rewards; return its next arms."""
    given: dict[str, Any] = {"arms": ARMS, "control": "today", "share": 0.3, "seed": 4}
    with ma.Prospector().live(store=store, name=name, **given) as live:
        for pull in live.ask(20)[:15]:
            live.tell(pull, float(pull.arm == "blue"))
        live.observe("red", [1.0, 0.0])
        live.retire("black")
    with ma.Prospector().live(**given) as twin:
        for pull in twin.ask(20)[:15]:
            twin.tell(pull, float(pull.arm == "blue"))
        twin.observe("red", [1.0, 0.0])
        twin.retire("black")
        return twin.ask(20)


@pytest.mark.patient
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_copied_experiment_continues(
    tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = f"sqlite:///{tmp_path}/a.db", f"sqlite:///{tmp_path}/b.db"
    if kind == "postgres":
        target = shared_postgres()
    first, second = new_name(), new_name()
    expected = played(source, first)
    played(source, second)
    assert main(["copy", source, target, "--experiment", first]) == 0
    assert f"1 more: {first}" in capsys.readouterr().out.replace("\n", " ")
    assert main(["check", target]) == 0
    with opened(target) as store:
        assert store.find(second) is None
        seen = list(store.history(row_of(store, first).id))
    with opened(source) as store:
        assert list(store.history(row_of(store, first).id)) == seen
    with ma.load(target, name=first) as live:
        assert live.ask(20) == expected
        assert live.uplift().control == "today"
    for words, said in (
        (("--experiment", first), "has an experiment"),
        (("--experiment", "nothing"), "nknown experiment"),
    ):
        assert main(["copy", source, target, *words]) != 0
        assert said in capsys.readouterr().err
    assert main(["copy", f"sqlite:///{tmp_path}/none.db", target]) == 1
    assert "There is no store" in capsys.readouterr().err
