"""How long pulls take: what is known, what is measured, and how small chunks are."""

from __future__ import annotations

import time
from typing import Any

import pytest

import manyarms as ma
from manyarms.instances import planted
from manyarms.lab import Experiment, cell, pace
from manyarms.lab.chunks import plan
from manyarms.lab.pace import estimated_seconds, known_nanoseconds, most_pulls, pull_nanoseconds


class Plain:
    """A user's own, in plain Python."""

    name = "plain"

    def __init__(self) -> None:
        self.pulls = 0

    def ask(self) -> int:
        return 0

    def tell(self, arm: int, reward: float) -> None:
        self.pulls += 1


class Own(ma.MOSS):
    """A user's own, compiled."""


def of(policy: Any, horizon: int = 1000, replications: int = 10, **given: Any) -> Experiment:
    coins = planted(n=50, m=5)
    made = cell(policy, coins, horizon=horizon, replications=replications, **given)
    return Experiment("paces", (made,))


def test_ours_are_known_and_users_own_are_not() -> None:
    assert known_nanoseconds(ma.MOSS()) == pull_nanoseconds(ma.MOSS.about)
    assert known_nanoseconds(ma.Doubling(ma.MOSSPlusPlus())) is not None
    assert known_nanoseconds(Own()) is None
    assert known_nanoseconds(ma.Doubling(Own())) is None
    assert known_nanoseconds(ma.plain_policy(Plain)) is None


def test_the_estimate_adds_what_is_known_and_what_is_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pace, "_measured", lambda *_: 1e6)  # a millisecond
    ours = estimated_seconds(of(ma.MOSS()))
    assert ours == pytest.approx(2 * pull_nanoseconds(ma.MOSS.about) * 1e-9 * 10_000)
    assert estimated_seconds(of(ma.MOSS(), batch=9)) == pytest.approx(2 * ours)
    assert estimated_seconds(of(ma.plain_policy(Plain))) == pytest.approx(10.0)
    assert estimated_seconds(of([ma.plain_policy(Plain), ma.MOSS()])) == pytest.approx(10.0 + ours)


def test_a_users_policy_is_measured_by_playing_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a clock that a pull moves by a thousandth: 10,000 pulls take 10 seconds."""
    now = [0.0]

    class Slow(Plain):
        def tell(self, arm: int, reward: float) -> None:
            now[0] += 1e-3

    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    assert estimated_seconds(of(ma.plain_policy(Slow))) == pytest.approx(10.0)
    assert now[0] < 3.0  # it is stopped soon after half a second


def test_chunks_of_slow_policies_are_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("manyarms.lab.chunks.CHUNK_PULLS", 20_000_000)
    assert most_pulls(ma.MOSS()) >= 20_000_000
    policies = (ma.MOSS(), ma.policy("thompson"), Own(), ma.plain_policy(Plain))
    sizes = [
        max(chunk.replications for chunk in plan(of(policy, 10_000, 4000, checkpoints=1)))
        for policy in policies
    ]
    assert sizes == [2000, 320, 500, 10]
