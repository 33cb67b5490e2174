"""What is said about policies: complete, and true as far as a program can tell."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

import manyarms as ma
from manyarms.protocol import About, described
from tests.helpers import EVERY_POLICY, label, run_python

LINE = 60  # characters, so that tables stay readable


def test_something_is_said_about_every_policy() -> None:
    # in a process of its own: other tests register policies too
    code = "import json, manyarms as ma, manyarms.protocol as p; "
    code += "print(json.dumps([ma.policy_names(), list(p.described())]))"
    listed, said = json.loads(run_python(code).stdout)
    assert set(listed) == set(said)


@pytest.mark.parametrize("name", list(described()))
def test_it_is_something_and_not_too_much(name: str) -> None:
    about = described()[name]
    for text in (about.needs, about.guarantee, about.scaling, about.good_at, about.source):
        assert 0 < len(text) <= LINE
        assert "|" not in text  # it would end a cell of a table
        assert not text.endswith(".")


@pytest.mark.parametrize("policy", EVERY_POLICY, ids=label)
def test_it_agrees_with_the_policy(policy: ma.Policy) -> None:
    about = described()[policy.name]
    assert policy.anytime == ("horizon" not in about.needs)


@pytest.mark.parametrize("name", list(described()))
def test_what_a_policy_must_be_given_is_named(name: str) -> None:
    about = described()[name]
    try:
        policy = ma.policy(name)
    except ma.ParameterError:  # it cannot be made without
        assert about.needs.endswith("hardness or m")
    else:
        takes_best_mean = policy.with_best_mean(0.625) != policy
        assert takes_best_mean == about.needs.endswith("μ*")


def test_what_is_said_of_another_class_is_not_inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    class Mine(ma.MOSS):
        """A user's own."""

    monkeypatch.setattr("manyarms.protocol.registry._makers", {"moss": ma.MOSS, "mine": Mine})
    assert list(described()) == ["moss"]


def test_words_that_mean_nothing_are_refused() -> None:
    good = described()["moss"]
    wrong: dict[str, Any] = {"kind": "best", "rewards": "some"}
    for name, word in wrong.items():
        with pytest.raises(ma.ParameterError, match=f"`{name}` must be one of .* got '{word}'"):
            replace(good, **{name: word})
    assert isinstance(good, About)
