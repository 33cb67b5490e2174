"""A policy of your own, in one file outside the package.

`Explore-then-commit`: try `arms` random arms `tries` times each, then stay with the best. Write a
state, functions on it, and a table that names them. CPython runs the functions live, and the
simulator compiles the very same ones. It counts pulls when they are asked for, and keeps each
reward with its candidate, so rewards may also come late. Run it: `python examples/own_policy.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import manyarms as ma
from manyarms.kit import (
    Memory,
    Record,
    Records,
    Sampler,
    Stream,
    clear_sampler,
    draw,
    next_word,
    pick,
    plays,
    restart,
    sampler,
    stream,
    whole,
)


class Candidate(Record):
    arm: int
    told: int  # rewards that count: those of its tries
    total: float


class Counter(Record):
    pulls: int  # pulls asked for
    best: int  # the candidate of largest total so far


class CommitState(NamedTuple):  # the name must be one that no other state has
    """What each candidate earned, and how many pulls there were."""

    arms: int
    tries: int
    candidate: Records[Candidate]
    counter: Records[Counter]  # [counter]: what changes lives in memory, not in the tuple
    sampler: Sampler
    fresh: Stream


def commit_reset(state: CommitState, key: int, horizon: int) -> None:
    clear_sampler(state.sampler)
    restart(state.fresh, draw(key, 1))
    state.counter[0].pulls = 0
    state.counter[0].best = 0


def commit_ask(state: CommitState) -> tuple[int, int]:
    counter = state.counter[0]
    slot = counter.pulls // state.tries
    if slot >= state.arms:
        slot = counter.best
    elif counter.pulls % state.tries == 0:
        state.candidate[slot].arm = pick(state.sampler, 0, next_word(state.fresh))
        state.candidate[slot].told = 0
        state.candidate[slot].total = 0.0
    counter.pulls += 1
    return slot, state.candidate[slot].arm


def commit_tell(state: CommitState, slot: int, reward: float) -> None:
    counter, candidate = state.counter[0], state.candidate[slot]
    if candidate.told < state.tries:
        candidate.told += 1
        candidate.total += reward
        if candidate.total > state.candidate[counter.best].total:
            counter.best = slot


plays(CommitState, reset=commit_reset, ask=commit_ask, tell=commit_tell)


@dataclass(frozen=True, kw_only=True)
class ExploreThenCommit(ma.Policy):
    name = "explore-then-commit"

    arms: Annotated[int, whole(at_least=1)] = 100
    tries: Annotated[int, whole(at_least=1)] = 20

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> CommitState:
        arms = min(self.arms, n_arms)
        return CommitState(
            arms=arms,
            tries=self.tries,
            candidate=memory.records(arms, Candidate),
            counter=memory.records(1, Counter),
            sampler=sampler(memory, n_arms, draws=arms),
            fresh=stream(memory),
        )


ma.register(ExploreThenCommit.name, ExploreThenCommit)


def main() -> None:
    live = ExploreThenCommit(arms=3, tries=1).live(n_arms=1_000_000, horizon=5, seed=1)
    for reward in (0.0, 1.0, 0.0, 1.0, 1.0):
        pull = live.ask()
        live.tell(pull, reward)
        print(f"pull {pull.id}: arm {pull.arm} paid {reward}")

    instance = ma.instances.planted(n=20_000, alpha=0.25, horizon=50_000)
    policies = [ExploreThenCommit(), ma.MOSSPlusPlus(), ma.EmpMOSSPlusPlus()]
    print(ma.simulate(policies, instance, horizon=50_000, replications=100).summary())


if __name__ == "__main__":
    main()
