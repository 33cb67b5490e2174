"""Errors for bodies name the field, its rule and the likely meaning."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from manyarms.serve import messages as m
from manyarms.serve.errors import failure_of_body

SPEC = (
    "Known: control, epsilon, hold, horizon, missing, n_arms, policy, reward, reward_range, "
    "seed, share, target, window."
)


@pytest.mark.parametrize(
    ("kind", "body", "said"),
    [
        (m.Spec, b'{"n_arm": 9}', f"There is no field `n_arm`. Did you mean 'n_arms'? {SPEC}"),
        (m.Spec, b'{"seed": "x"}', "`seed` must be an integer or null, got a string."),
        (m.Spec, b'{"target": "x"}', "`target` must be 'control' or a number."),
        (m.Spec, b"[]", "The body must be an object, got a list."),
        (
            m.Tells,
            b'{"tells": [{"pull": 1, "reward": 1}, {"pull": 2}]}',
            "The field `reward` is missing in `tells[1]`. Known: pull, reward.",
        ),
        (m.Abandons, b'{"pulls": [1, -1]}', "`pulls[1]` must be an integer >= 0."),
    ],
)
def test_messages(kind: Any, body: bytes, said: str) -> None:
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.json.decode(body, type=kind)
    failure = failure_of_body(caught.value, kind)
    assert failure.message == said
    assert failure.status == 422
