"""The catalogue: complete, and true as far as a program can tell."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

import manyarms as ma
from manyarms.policies.catalogue import CatalogueError, catalogue, entry, read_entry
from tests.helpers import run_python

NEEDED: dict[str, dict[str, Any]] = {  # parameters without which a policy cannot be made
    "moss-oracle": {"alpha": 0.3},
    "ss-greedy-oracle": {"m": 2},
    "qrm1": {"rho": 0.1},
    "best": {"arm": 0},
}
LINE = 60  # characters, so that tables stay readable


def test_every_policy_has_an_entry_and_every_entry_a_policy() -> None:
    # in a process of its own: other tests register policies too
    done = run_python("import json, manyarms as ma; print(json.dumps(ma.policy_names()))")
    assert set(json.loads(done.stdout)) == set(catalogue())


@pytest.mark.parametrize("name", list(catalogue()))
def test_entries_say_something_and_not_too_much(name: str) -> None:
    row = entry(name)
    for text in (row.needs, row.guarantee, row.scaling, row.good_at, row.source):
        assert 0 < len(text) <= LINE
        assert "|" not in text  # it would end a cell of a table
        assert not text.endswith(".")
    assert row.nanoseconds > 0


@pytest.mark.parametrize("name", list(catalogue()))
def test_what_an_entry_says_agrees_with_the_policy(name: str) -> None:
    policy, row = ma.policy(name, **NEEDED.get(name, {})), entry(name)
    assert policy.anytime == ("horizon" not in row.needs)
    told = policy.with_best_mean(0.625)
    if told != policy:
        assert row.knowledge == "mu*"
    if name in NEEDED:
        assert row.knowledge in ("m", "arm")
    if row.perfect_best:
        assert "μ* = 1" in row.needs
    assert (row.knowledge == "mu*") == ("μ*" in row.needs or "target" in row.needs)


def test_a_reader_sees_greek_letters() -> None:
    assert entry("parallel").knows == "μ*"
    assert entry("moss").knows == "none"


def test_mistakes_in_the_file_are_named() -> None:
    good = {k: v for k, v in vars(entry("moss")).items() if k != "name"}
    assert read_entry("moss", good) == entry("moss")
    assert read_entry("new", good) == replace(entry("moss"), name="new")
    with pytest.raises(CatalogueError, match="`colour` of 'moss' must be one of"):
        read_entry("moss", good | {"colour": "red"})
    with pytest.raises(CatalogueError, match="`knowledge` of 'moss' must be one of 'none'.*'all'"):
        read_entry("moss", good | {"knowledge": "all"})
    del good["source"]
    with pytest.raises(CatalogueError, match="must be complete.*source"):
        read_entry("moss", good)
    with pytest.raises(ma.UnknownNameError, match="mosss"):
        entry("mosss")
