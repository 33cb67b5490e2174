"""The loop of the simulator: ask, read the tape, tell, and add up the regret."""

from __future__ import annotations

from typing import Any, NamedTuple

from manyarms.core.jit import generic, kernel
from manyarms.core.memory import Floats, Ints, Memory, Records
from manyarms.core.rng import draw
from manyarms.core.scale import Scale
from manyarms.instances.tape import (
    Tape,
    arm_of,
    best_record,
    next_reward,
    pulled_record,
    record_of,
    rewind,
)
from manyarms.instances.world import World
from manyarms.protocol.pending import PendingRecord, ask_pull, tell_pull
from manyarms.protocol.policy import ask, recommend, reset, tell

NOT_PULLED = -2  # instead of a number of arms, if an arm is recommended that was not pulled


class Stretch(NamedTuple):
    """Which pulls to play: those from `start` + 1 to `stop` of the replications from `first` on."""

    key: Ints  # [of the run]: an array, because Numba treats a plain integer as signed
    first: int
    start: int
    stop: int
    scale: Scale  # of rewards


class Measured(NamedTuple):
    """The measurements, by replication.

    `regret` has a column for each of `times`, whose last one is the horizon, and one more, which
    carries the regret between the pieces of a replication. `arms` has a column for each pull whose
    arm is recorded.
    """

    times: Ints
    regret: Any
    best_pulls: Ints
    first_best: Ints  # the time of the first pull of a best arm; 0 if there is none
    distinct_arms: Ints  # NO_ARM if the policy chose an arm that does not exist; or NOT_PULLED
    recommended: Ints
    recommended_mean: Floats
    arms: Any


class InTurn(NamedTuple):
    """Every reward is told before the next pull is asked for."""

    size: int = 1


class Late(NamedTuple):
    """The pending pulls: pull t is kept at place t modulo `size` until its reward is told.

    A reward is told `delay` pulls later, or, if `batch` is above 1, when its batch is complete.
    """

    pending: Records[PendingRecord]
    reward: Floats
    size: int
    delay: int
    batch: int


def late(memory: Memory, *, delay: int, batch: int, pulls: int) -> Late:
    """Allocate memory for the pending pulls; `delay` is 0 or `batch` is 1."""
    size = min(max(delay + 1, batch), pulls)
    return Late(memory.records(size, PendingRecord), memory.floats(size), size, delay, batch)


@generic
def next_pull(rewards: Any, state: Any, time: int) -> tuple[int, int]:  # type: ignore[empty-body]
    """Tell the rewards due before pull `time` (from 0), then ask; return its place and arm."""


@generic
def receive(rewards: Any, state: Any, place: int, reward: float) -> None:
    """Tell the reward of the pull at `place` now, or keep it until it is due."""


@generic
def tell_rest(rewards: Any, state: Any, time: int) -> None:
    """Tell the rewards that are still pending after all `time` pulls."""


@next_pull.register(InTurn)
def ask_in_turn(rewards: InTurn, state: Any, time: int) -> tuple[int, int]:
    return ask(state)


@receive.register(InTurn)
def tell_in_turn(rewards: InTurn, state: Any, place: int, reward: float) -> None:
    tell(state, place, reward)


@tell_rest.register(InTurn)
def nothing_pending(rewards: InTurn, state: Any, time: int) -> None:
    pass


@next_pull.register(Late)
def ask_late(rewards: Late, state: Any, time: int) -> tuple[int, int]:
    for told in range(due(rewards, max(0, time - 1)), due(rewards, time)):
        place = told % rewards.size
        tell_pull(state, rewards.pending, place, rewards.reward[place])
    before = (time - 1) % rewards.size if due(rewards, time) < time else -1
    place = time % rewards.size
    return place, ask_pull(state, rewards.pending, place, before)


@receive.register(Late)
def keep_late(rewards: Late, state: Any, place: int, reward: float) -> None:
    rewards.reward[place] = reward


@tell_rest.register(Late)
def tell_the_rest(rewards: Late, state: Any, time: int) -> None:
    for told in range(due(rewards, max(0, time - 1)), time):
        place = told % rewards.size
        tell_pull(state, rewards.pending, place, rewards.reward[place])


@kernel
def due(rewards: Late, time: int) -> int:
    """Return how many rewards are told before pull `time` (from 0) is asked for."""
    if rewards.batch > 1:
        return time - time % rewards.batch
    return max(0, time - rewards.delay)


def play(
    state: Any, rewards: Any, world: World, tape: Tape, stretch: Stretch, measured: Measured
) -> None:
    """Play a stretch of pulls.

    A replication may be played in pieces. Then it is alone in the stretch, and the caller keeps the
    state, the tape, the pending pulls and the measurements between the pieces.
    """
    times, regret, best_pulls = measured.times, measured.regret, measured.best_pulls
    last = len(times) - 1
    for replication in range(len(best_pulls)):
        key = draw(stretch.key[0], stretch.first + replication)
        tape_key = draw(key, 1)
        if stretch.start == 0:
            rewind(tape)
            reset(state, draw(key, 0), int(times[last]))
            best_pulls[replication] = 0
            regret[replication, last + 1] = 0.0
        total = regret[replication, last + 1]
        best = best_pulls[replication]
        before = stretch.start if best == 0 else measured.first_best[replication] - 1
        checkpoint = 0
        while times[checkpoint] <= stretch.start:
            checkpoint += 1
        for time in range(stretch.start, stretch.stop):
            place, arm = next_pull(rewards, state, time)
            number = record_of(tape, world, tape_key, arm)
            if number < 0:  # kernels do not raise: the caller does
                measured.distinct_arms[replication] = number
                measured.recommended[replication] = arm
                return
            mean = tape.last[0].mean
            receive(rewards, state, place, next_reward(tape, world))
            total += world.best_mean - mean
            best += int(mean >= world.good_mean)
            before += int(best == 0)  # pulls before the first one of a best arm
            if time < measured.arms.shape[1]:
                measured.arms[replication, time] = arm
            if time + 1 == times[checkpoint]:
                regret[replication, checkpoint] = total
                checkpoint += 1
        regret[replication, last + 1] = total
        best_pulls[replication] = best
        measured.first_best[replication] = 0 if best == 0 else before + 1
        if stretch.stop == times[last]:
            measured.distinct_arms[replication] = tape.number.filled[0]
            tell_rest(rewards, state, stretch.stop)
            kept = recommend(state)
            number = best_record(tape, stretch.scale)
            if kept != -1:
                number = pulled_record(tape, world, kept)
            if number < 0:
                measured.distinct_arms[replication] = NOT_PULLED
                measured.recommended[replication] = kept
                return
            measured.recommended[replication] = arm_of(tape, number)
            measured.recommended_mean[replication] = tape.record[number].mean
