"""m-run: stay with the arm that shows m straight successes (Berry et al. 1997)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from manyarms.core.jit import kernel, rare
from manyarms.core.memory import Memory, Record, Records
from manyarms.core.rng import Stream, draw, next_word, priority, restart, stream
from manyarms.policies.parts.one_by_one import (
    Length,
    OneByOne,
    arm_in_play,
    count,
    in_play,
    leave,
    one_by_one,
    reset_one_by_one,
)
from manyarms.policies.parts.parameters import about_perfect
from manyarms.policies.parts.randomness import TIES
from manyarms.protocol import Policy, plays
from manyarms.protocol.parameters import Flag
from manyarms.protocol.registry import Form
from manyarms.theory.schedules import epoch_length


class MRunChoice(Record):
    m: int  # the run that decides
    settled: int  # 1 once an arm is kept for good
    slot: int  # that arm's visit; before, that of the longest run so far
    arm: int
    run: int  # its successes before its failure
    tie: int


class MRunState(NamedTuple):
    """The arm in play and its run, and the longest run so far."""

    m: int  # 0 for the square root of the horizon
    recall: bool
    choice: Records[MRunChoice]  # [choice]
    arms: OneByOne
    ties: Stream


def m_run_reset(state: MRunState, key: int, horizon: int) -> None:
    reset_one_by_one(state.arms, key)
    restart(state.ties, draw(key, TIES))
    choice = state.choice[0]
    choice.m = state.m if state.m > 0 else epoch_length(horizon)
    choice.settled = 0
    choice.run = -1
    choice.tie = -1


@rare
def compare(state: MRunState) -> None:
    """Remember the arm that just failed if its share of successes is the highest so far.

    That share is run / (run + 1): the longest run has the highest.
    """
    visit, choice = state.arms.visit[0], state.choice[0]
    tie = priority(next_word(state.ties))
    if visit.successes > choice.run or (visit.successes == choice.run and tie > choice.tie):
        choice.slot = visit.number
        choice.arm = visit.arm
        choice.run = visit.successes
        choice.tie = tie
    if visit.number >= min(choice.m, state.arms.sampler.n[0]):
        choice.settled = 1


@kernel
def settle(state: MRunState) -> None:
    """Keep the arm in play for good."""
    visit, choice = state.arms.visit[0], state.choice[0]
    choice.settled = 1
    choice.slot = visit.number
    choice.arm = visit.arm


def m_run_ask(state: MRunState) -> tuple[int, int]:
    choice = state.choice[0]
    if choice.settled == 1:
        return choice.slot, choice.arm
    return arm_in_play(state.arms)


def m_run_tell(state: MRunState, slot: int, reward: float) -> None:
    choice, visit = state.choice[0], state.arms.visit[0]
    if choice.settled == 0 and in_play(state.arms, slot):
        count(state.arms, reward)
        if visit.failures > 0:
            if state.recall:
                compare(state)
            leave(state.arms)
        elif visit.successes >= choice.m:
            settle(state)


plays(MRunState, reset=m_run_reset, ask=m_run_ask, tell=m_run_tell)


@dataclass(frozen=True, kw_only=True)
class MRun(Policy):
    r"""Leave an arm at its first failure; keep for good the first one with m straight successes.

    By default :math:`m = \lceil \sqrt T \rceil`. When none of the first :math:`\min(m, n)` arms
    shows m straight successes, the one with the highest share of successes (equal ones at random)
    is kept for good.

    Parameters
    ----------
    m
        The run of successes that decides, and the number of arms that are tried; the square root
        of the horizon unless given.
    recall
        Whether it goes back to the best of the m arms (default). If not, it goes on with fresh
        arms: this is `ma.policy("non-recalling-m-run")`.

    Notes
    -----
    Source: Berry, Chen, Zame, Heath & Shepp, *Bandit problems with infinitely many arms*, Annals
    of Statistics 25 (1997). Made for rewards 0 and 1 and :math:`\mu^* = 1`; for means uniform on
    [0, 1] the expected number of failures is about :math:`2 \sqrt T`. With :math:`\mu^* < 1` a
    best arm is kept with probability :math:`(\mu^*)^m` only. Needs the horizon for the default m.
    The rule and its choice of m are from memory and from what later papers say of them; the
    source itself could not be read. Rewards between 0 and 1 are rounded at random, and when all n
    arms are left a new random order begins with fresh counts: both are ours. Each arm is left at
    its first failure, so the highest share is the longest run. A reward that comes after its arm
    was left does not change that arm's share.

    Cost per pull: O(1), and memory of two arms and of the order.

    Examples
    --------
    >>> from manyarms.policies.field import MRun
    >>> live = MRun(m=2).live(n_arms=1_000_000, horizon=20_000, seed=1)
    >>> first = live.ask()
    >>> live.tell(first, reward=1.0)
    >>> for _ in range(2):  # it fails, and the next one at once
    ...     live.tell(live.ask(), reward=0.0)
    >>> live.ask().arm == first.arm  # which has the better share
    True
    """

    in_name = ("recall",)
    about = about_perfect(
        needs="horizon, μ* = 1",
        guarantee="2√T failures, uniform means",
        only_if=("best mean 1", "uniform means"),
        nanoseconds=6,
        page="docs/policies/never_fail.md",
        good_at="best arms that never fail",
        source="Berry et al. 1997",
    )

    m: Length | None = None
    recall: Flag = True

    @property
    def name(self) -> str:  # type: ignore[override]  # it depends on `recall`
        """What the policy is called, with recall or without."""
        return "m-run" if self.recall else "non-recalling-m-run"

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> MRunState:
        return MRunState(
            m=0 if self.m is None else self.m,
            recall=self.recall,
            choice=memory.records(1, MRunChoice),
            arms=one_by_one(memory, n_arms, pulls=pulls),
            ties=stream(memory),
        )


def _without_recall(*, m: int | None = None) -> MRun:
    return MRun(m=m, recall=False)


NON_RECALLING = Form(replace(MRun.about, nanoseconds=32), _without_recall)
