"""Policies and distributions whose runs cannot be repeated are refused."""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from random import random as draw_alike
from typing import Any, NamedTuple

import numpy as np
import pytest

import manyarms as ma
from manyarms.instances import draw_mean, reward
from manyarms.kit import Ints, Memory, kernel, plays

ARMS = ma.instances.planted(n=20, m=5)


class AnyState(NamedTuple):
    """Which rule to play, and a counter that `reset` may forget to clear."""

    time: Ints
    random: Ints  # fields may have the names of modules


class ClockState(NamedTuple):
    time: Ints


class NumpyState(NamedTuple):
    time: Ints


class HelperState(NamedTuple):
    time: Ints


class NameState(NamedTuple):
    time: Ints


class SecretState(NamedTuple):
    time: Ints


def any_reset(state: Any, key: int, horizon: int) -> None:
    state.time[0] = 0


def forgetful_reset(state: Any, key: int, horizon: int) -> None:
    pass


def any_tell(state: Any, slot: int, reward: float) -> None:
    pass


def counter_ask(state: AnyState) -> tuple[int, int]:
    state.time[0] += 1
    state.random[0] += 1
    return 0, state.time[0] % 20


def clock_ask(state: ClockState) -> tuple[int, int]:
    return 0, int(1e6 * time.time()) % 20


def numpy_ask(state: NumpyState) -> tuple[int, int]:
    return 0, int(20.0 * np.random.random())  # noqa: NPY002


@kernel
def helper() -> int:
    return random.randrange(20)


def helper_ask(state: HelperState) -> tuple[int, int]:
    return 0, helper()


def name_ask(state: NameState) -> tuple[int, int]:
    return 0, int(20.0 * draw_alike())


def secret_ask(state: SecretState) -> tuple[int, int]:
    return 0, secrets.randbelow(20)


ASKS: dict[type, tuple[Callable[..., Any], str]] = {
    ClockState: (clock_ask, "`time.time` in `clock_ask`"),
    NumpyState: (numpy_ask, "`numpy.random` in `numpy_ask`"),
    HelperState: (helper_ask, "`random.randrange` in `helper`"),
    NameState: (name_ask, "`draw_alike` in `name_ask`"),
    SecretState: (secret_ask, "`secrets.randbelow` in `secret_ask`"),
}
for kind, (ask, _) in ASKS.items():
    plays(kind, reset=any_reset, ask=ask, tell=any_tell)
plays(AnyState, reset=any_reset, ask=counter_ask, tell=any_tell)


class ForgetfulState(NamedTuple):
    time: Ints
    random: Ints


plays(ForgetfulState, reset=forgetful_reset, ask=counter_ask, tell=any_tell)


@dataclass(frozen=True, kw_only=True)
class Played(ma.Policy):
    name = "played"

    state: type

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> Any:
        return self.state(*(memory.ints(1) for _ in self.state._fields))  # type: ignore[attr-defined]


def _play(policy: Any, instance: Any = ARMS, horizon: int = 100) -> Any:
    return ma.simulate(policy, instance, horizon=horizon, replications=1, workers=1)


@pytest.mark.interpreted
@pytest.mark.parametrize("kind", ASKS)
def test_compiled_functions_must_not_draw_their_own_random_numbers(kind: type) -> None:
    use = ASKS[kind][1]
    match = f"must not use `random`, `numpy.random`, `time` or `secrets`, .* got {use}. Draw rand"
    for policy in (Played(state=kind), ma.Guarded(Played(state=kind))):
        with pytest.raises(ma.ParameterError, match=match):
            _play(policy)


class Noise(NamedTuple):
    width: float


@reward.register(Noise)
def noisy(law: Noise, arm: int, mean: float, word: int) -> float:
    return mean + law.width * (np.random.random() - 0.5)  # noqa: NPY002


class Scatter(NamedTuple):
    width: float

    @property
    def mean_range(self) -> tuple[float, float]:
        return 0.0, 1.0


@draw_mean.register(Scatter)
def scatter(law: Scatter, word: int) -> float:
    return law.width * random.random()


@pytest.mark.interpreted
def test_nor_must_distributions_of_rewards_and_means() -> None:
    with pytest.raises(ma.ParameterError, match="got `numpy.random` in `noisy`"):
        _play(ma.MOSS(sigma=0.1), ma.instances.from_means([0.5, 0.4], rewards=Noise(0.1)))
    with pytest.raises(ma.ParameterError, match=r"got `random.random` in `scatter`"):
        _play(ma.MOSS(), ma.instances.reservoir(Scatter(0.5)))


def test_policies_are_played_twice() -> None:  # compiled, and in CPython
    assert _play(Played(state=AnyState)).regret.shape == (1, 1, 100)
    match = (
        r"played.* must choose the same arms if a replication is played again, got arm 1 and then "
        r"arm 5 for pull 1 of the first replication. Clear everything that changes when a run st"
    )
    with pytest.raises(ma.ParameterError, match=match):  # 64 pulls are played twice
        _play(Played(state=ForgetfulState))


class Lucky:
    """Pulls a random arm, from the generator of the process."""

    def __init__(self, n_arms: int, seed: int) -> None:
        self.n_arms, self.own = n_arms, random.Random(seed)

    def ask(self) -> int:
        return random.randrange(self.n_arms)

    def tell(self, arm: int, reward: float) -> None:
        pass


class Seeded(Lucky):
    """Pulls a random arm, from its own generator."""

    def ask(self) -> int:
        return self.own.randrange(self.n_arms)


@pytest.mark.interpreted
def test_plain_classes_must_draw_from_their_seed() -> None:
    assert _play(Seeded).regret.shape == (1, 1, 100)
    for wrong in (Lucky, ma.Guarded(ma.plain_policy(Lucky))):
        with pytest.raises(ma.ParameterError, match="draw all random numbers from the `key` or `s"):
            _play(wrong)
