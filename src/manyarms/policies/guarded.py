"""Guarded: any policy under a guard, which makes it Pareto optimal."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from manyarms.core.hash_map import HashMap, add_name, clear_map, contains, find, hash_map, insert
from manyarms.core.jit import kernel, rare
from manyarms.core.memory import Ints, Memory, Record, Records, place_of_arm, wipe
from manyarms.core.rng import draw
from manyarms.errors import ParameterError
from manyarms.policies.parts.guard import (
    guard_arrive,
    guard_credit,
    guard_learn,
    guard_retire,
    guard_turn,
    reset_guard,
    stage_begins,
)
from manyarms.policies.parts.guard_slots import (
    Guard,
    can_open,
    count_guarded_late,
    is_gone,
    launch_pull,
    next_note,
    open_next,
    stage_words,
)
from manyarms.policies.parts.parameters import GuardPolicy, range_for_kl
from manyarms.policies.parts.randomness import GUARDED
from manyarms.protocol import Policy, Wrapper, arrive, credit_known, plays, reset, retire
from manyarms.protocol.pending import PendingRecord, abandon_pull, ask_pull, tell_pull
from manyarms.protocol.scales import given_sigma


class LabelClock(Record):
    asked: int  # pulls of the policy
    told: int  # rewards told to the policy
    bound: int  # slots below this have labels or are retired
    last: int  # the note of the policy's last pull while it is pending, else -1


class GuardedState(NamedTuple):
    """The state of the inner policy, the guard, and the slot of each of the policy's arms."""

    inner: Any  # the inner policy's state
    guard: Guard
    clock: Records[LabelClock]  # [clock]
    slot_of: HashMap  # label -> slot, for labels that the policy has used
    label_of: Ints  # by slot: label + 1, or 0
    gone: HashMap  # labels of retired arms
    pending: Records[PendingRecord]  # by note: the inner policy's own record of its pulls


def guarded_reset(state: GuardedState, key: int, horizon: int) -> None:
    clear_map(state.slot_of)
    for slot in range(state.guard.clock[0].opened):
        state.label_of[slot] = 0
    wipe(state.clock, 0)
    state.clock[0].last = -1
    reset_guard(state.guard, key, horizon)
    reset(state.inner, draw(key, GUARDED), horizon)


def guarded_ask(state: GuardedState) -> tuple[int, int]:
    stage_begins(state.guard)
    slot = guard_turn(state.guard)
    if slot >= 0:
        return launch_pull(state.guard, slot, 0), state.guard.slot[slot].arm
    note = next_note(state.guard)
    label = ask_pull(state.inner, state.pending, note, state.clock[0].last)
    if not 0 <= label < state.guard.sampler.n[0]:
        return note, label  # not an arm; the caller raises
    slot = slot_of(state, label)
    state.clock[0].asked += 1
    state.clock[0].last = note
    return launch_pull(state.guard, slot, 1), state.guard.slot[slot].arm


@kernel
def slot_of(state: GuardedState, label: int) -> int:
    """Return the slot of a label; a new label gets the next arm of the guard's order.

    So the policy and the guard open the same arms first, whichever labels the policy uses.
    """
    at = find(state.slot_of, label)
    if state.slot_of.cells[at] != 0:
        return state.slot_of.cells[at + 1]
    clock, opened = state.clock[0], state.guard.clock[0].opened
    while clock.bound < opened and has_label(state, clock.bound):
        clock.bound += 1
    slot = clock.bound if clock.bound < opened else open_next(state.guard)
    insert(state.slot_of, at, label, slot)
    state.label_of[slot] = label + 1
    clock.bound = slot + 1
    return slot


@kernel
def has_label(state: GuardedState, slot: int) -> bool:
    """Whether a slot has a label, or needs none because its arm is retired."""
    return state.label_of[slot] > 0 or is_gone(state.guard, slot)


def guarded_tell(state: GuardedState, note: int, reward: float) -> None:
    guard_learn(state.guard, note, reward)
    if state.guard.pending[note].by_rule == 1:
        tell_pull(state.inner, state.pending, note, reward)
        state.clock[0].told += 1
        forget_last(state, note)


def guarded_count_late(state: GuardedState, note: int, change: int) -> None:
    """Count a late or abandoned pull; `ask_pull` tells the inner policy which pulls are late."""
    by_rule = state.guard.pending[note].by_rule == 1
    if count_guarded_late(state.guard, note, change) and by_rule:
        abandon_pull(state.inner, state.pending, note)
        forget_last(state, note)


@kernel
def forget_last(state: GuardedState, note: int) -> None:
    if state.clock[0].last == note:
        state.clock[0].last = -1


def guarded_arrive(state: GuardedState, count: int) -> None:
    guard_arrive(state.guard, count)
    arrive(state.inner, count)


def guarded_retire(state: GuardedState, arm: int) -> None:
    """Retire the arm's label; if it has none, retire one that the policy has not used yet."""
    slot = guard_retire(state.guard, arm)
    label = state.label_of[slot] - 1 if slot >= 0 else -1
    if label < 0:
        label = unnamed(state)
    add_name(state.gone, label)
    retire(state.inner, label)


@rare
def unnamed(state: GuardedState) -> int:
    """Return the last label that has no slot and is not retired."""
    label = state.guard.sampler.n[0] - 1  # there are as many labels as arms
    while state.slot_of.cells[find(state.slot_of, label)] != 0 or contains(state.gone, label):
        label -= 1
    return label


def guarded_credit(state: GuardedState, arm: int, count: int, total: float, squares: float) -> int:
    """Credit known rewards to the policy, and to the guard's tests."""
    guard, slot = state.guard, -1
    if arm >= 0:
        slot = place_of_arm(guard.slot, arm, guard.clock[0].opened, 0)
        if slot >= 0 and state.label_of[slot] > 0:
            credit_known(state.inner, state.label_of[slot] - 1, count, total, squares)
    elif can_open(guard):
        label = credit_known(state.inner, -1, count, total, squares)
        if label >= 0:
            slot = open_next(guard)
            insert(state.slot_of, find(state.slot_of, label), label, slot)
            state.label_of[slot] = label + 1
    if slot < 0:
        return -1
    guard_credit(guard, slot, count, total)
    return guard.slot[slot].arm


plays(
    GuardedState,
    reset=guarded_reset,
    ask=guarded_ask,
    tell=guarded_tell,
    count_late=guarded_count_late,
    arrive=guarded_arrive,
    retire=guarded_retire,
    credit_known=guarded_credit,
)


@dataclass(frozen=True)
class Guarded(Wrapper, GuardPolicy):
    r"""Run a policy under a guard that tests arms, and drops the policy if it loses too much.

    The guard draws a random order of the arms. Whenever the policy pulls an arm for the first time,
    it gets the next arm of this order, so it does not choose which fresh arm comes next. In stage i
    the guard tests the first :math:`T^\beta / (2^i \log T)` arms; the largest lower bound of a mean
    is the *floor*. If the policy's pulls lose more than :math:`4 T^\beta \log T` against the floor,
    the policy is dropped, and the arm that gave the floor is pulled instead.

    Parameters
    ----------
    policy
        The policy to guard, such as `MOSS()`, or one of your own.
    beta
        Between 1/2 and 1 (default: 0.5): with many best arms the regret is about
        :math:`T^\beta`.
    bound
        "kl" for rewards in a known range (default for them); "mean" for rewards that are
        sigma-sub-Gaussian.
    sigma
        For "mean": rewards are sigma-sub-Gaussian (default: half the width of their range).
    bottom, top
        All means are between these (default: 0 and 1, or the ends of the rewards' range if it is
        not within). With "kl", rewards must be in [0, 1] if these are, and otherwise between them,
        too.

    Notes
    -----
    Ours. For *every* policy the regret is at most :math:`10 (\log T)^{5/2}\,
    T^{\min(\max(\beta, 1+\alpha-\beta), 1)}`, the rate of MOSS++: Pareto optimal for
    :math:`\beta < 1` (`theory.guarded_bound`, `theory.guarded_problem_bound`). For another range of
    rewards the bound is multiplied by its width, and with "mean" by the larger of `top` - `bottom`
    and 2 sigma. If the horizon is unknown, the guard guesses it and doubles the guess when needed;
    then `theory.anytime_guarded_bound` holds, and a policy that was dropped is used again with the
    next guess.

    The policy does not learn the rewards of the guard's pulls. So until it is dropped it behaves as
    it would alone, and a policy whose own regret is below :math:`2 T^\beta \log T` is hardly ever
    dropped. Arm numbers are permuted at random, so a policy cannot use them.

    Rewards may be late: the guard never has two pending pulls of an arm. Arms may be added and
    retired if the policy supports it; no guarantee is proved for that. Cost per pull: that of the
    policy, a lookup, and O(1).

    Its page is docs/policies/guarded.md.

    Examples
    --------
    >>> import manyarms as ma
    >>> policy = ma.Guarded(ma.EmpMOSSPlusPlus(), beta=0.6)
    >>> str(policy)
    'guarded(beta=0.6)-empmoss++'
    >>> live = policy.live(n_arms=1_000_000, horizon=20_000, seed=1)
    >>> live.tell(live.ask(), reward=1.0)
    """

    prefix = "guarded"

    def __post_init__(self) -> None:
        super().__post_init__()
        within: Any = self.policy
        while isinstance(within, Policy):
            if isinstance(within, GuardPolicy):
                raise ParameterError(
                    f"`policy` must not have a guard already, got {self.policy}. Use it directly."
                )
            within = getattr(within, "policy", None)

    @property
    def anytime(self) -> bool:  # type: ignore[override]  # as the inner policy
        """Whether it works without a horizon, as the inner policy does."""
        return self.policy.anytime

    @property
    def sized_by_horizon(self) -> bool:
        """Whether the inner policy depends on the horizon; `Doubling` refuses such policies."""
        return getattr(self.policy, "sized_by_horizon", False)

    def with_reward_range(
        self, reward_range: tuple[float, float] | None, sigma: float | None = None
    ) -> Guarded:
        resolved = self._for_rewards(reward_range, sigma)  # first: the other message would mislead
        inner = self.policy.with_reward_range(reward_range, sigma)
        if resolved["bound"] == "kl":
            least, largest = range_for_kl(resolved["bottom"], resolved["top"])
            if (given_sigma(inner) or 0.0) > (largest - least) / 2.0:
                raise ParameterError(
                    f"`bound` must be 'mean' if rewards may lie outside [{least:g}, {largest:g}], "
                    f"got 'kl' with {inner}. Give `sigma`, `bottom` and `top`, too."
                )
        return replace(self, policy=inner, **resolved)

    def stage(self, state: GuardedState) -> str:
        return ", ".join(filter(None, (self.policy.stage(state.inner), stage_words(state.guard))))

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> GuardedState:
        room = min(n_arms, pulls)
        return GuardedState(
            inner=self.policy.new_state(memory, n_arms=n_arms, pulls=pulls),
            guard=self._guard(memory, n_arms, pulls),
            clock=memory.records(1, LabelClock),
            slot_of=hash_map(memory, names=n_arms, entries=room),
            label_of=memory.ints(room),
            gone=hash_map(memory, names=n_arms, entries=memory.changes),
            pending=memory.records(pulls + 1, PendingRecord),
        )
