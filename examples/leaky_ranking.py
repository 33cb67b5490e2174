"""How to be wrong by a factor of ten: break ties by position, on data that are sorted.

empMOSS++ goes on with the arms of highest empirical mean; arms never pulled count as mean 0, and
so do arms that failed. At hardness 0.8 most places of a set go to such ties. If ties are broken at
random, they say nothing. If they are broken by position, and the best arms stand together at one
end, they give the answer away. This policy does that on purpose. Never use it in a comparison.
docs/sort_story.md tells the story. Run it: `python examples/leaky_ranking.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import manyarms as ma
from manyarms.kit import (
    Ints,
    Memory,
    below,
    clear,
    enter,
    kernel,
    leader,
    next_word,
    plays,
    rare,
    reset,
    tell,
)
from manyarms.policies.emp_moss_plus_plus import (
    EmpMossPlusPlusState,
    close_iteration,
    next_emp_iteration,
)
from manyarms.policies.parts.best_means import choose_slot
from manyarms.policies.parts.fresh import draw_arm
from manyarms.policies.parts.mixtures import real_arm
from manyarms.policies.parts.moss_slots import open_slot, refresh, set_scale
from manyarms.theory.schedules import iteration_arms, iteration_pulls, iterations

_OUTSIDE = -1  # `asked` of a slot that is not in the set


class LeakyState(NamedTuple):
    n_arms: int
    emp: EmpMossPlusPlusState
    slot_of: Ints  # by arm: its slot + 1, or 0 if it was never pulled. This is O(n) memory.
    waiting: Ints  # arms of the set that were never pulled


def leaky_reset(state: LeakyState, key: int, horizon: int) -> None:
    reset(state.emp, key, horizon)
    for arm in range(state.n_arms):
        state.slot_of[arm] = 0


@rare
def next_leaky_iteration(state: LeakyState) -> None:
    """As empMOSS++'s, but the set is chosen by (mean, position)."""
    emp, slots, clock = state.emp, state.emp.arms.slots, state.emp.clock[0]
    clock.iteration += 1
    p = iterations(clock.horizon, emp.beta)
    real = iteration_arms(p, clock.iteration, state.n_arms)
    clock.left = iteration_pulls(p, clock.iteration, clock.horizon)
    clock.end = min(clock.end + clock.left, clock.horizon)
    close_iteration(emp)
    choose_by_position(state, real)
    clock.newest = 1
    clear(slots.rank)
    for number in range(slots.run[0].opened):
        enter(slots.rank, -math.inf)  # no member, unless it is chosen
        slots.slot[number].asked = _OUTSIDE
        if slots.slot[number].member < 0:
            choose_slot(emp.chosen, number)
    set_scale(slots, emp.chosen.size[0] + clock.fresh + 1, clock.end)
    for k in range(emp.chosen.size[0]):
        slots.slot[emp.chosen.slot[k]].asked = 0
        refresh(slots, emp.chosen.slot[k])


@rare
def choose_by_position(state: LeakyState, places: int) -> None:
    """Choose the highest means; among equal ones, the arms that stand first. This is the leak."""
    emp, slots = state.emp, state.emp.arms.slots
    emp.chosen.size[0] = 0
    emp.clock[0].fresh = 0
    for number in range(slots.run[0].opened):
        slots.slot[number].asked = _OUTSIDE
    best = best_left(state)
    while places > 0 and best >= 0:
        slots.slot[best].asked = 0
        choose_slot(emp.chosen, best)
        places -= 1
        best = best_left(state)
    for arm in range(state.n_arms):  # mean 0: failed and never pulled alike, the first ones first
        if places > 0 and state.slot_of[arm] == 0:
            state.waiting[emp.clock[0].fresh] = arm
            emp.clock[0].fresh += 1
            places -= 1
        elif places > 0 and slots.slot[state.slot_of[arm] - 1].total == 0.0:
            choose_slot(emp.chosen, state.slot_of[arm] - 1)
            places -= 1


@rare
def best_left(state: LeakyState) -> int:
    """Return the slot of highest positive mean that is not chosen yet, or -1."""
    best, best_mean, best_arm = -1, 0.0, 0
    for number in range(state.emp.arms.slots.run[0].opened):
        slot = state.emp.arms.slots.slot[number]
        if slot.member >= 0 and slot.asked == _OUTSIDE and slot.pulls > 0:
            mean = slot.total / slot.pulls
            if mean > best_mean or (mean == best_mean and best >= 0 and slot.member < best_arm):
                best, best_mean, best_arm = number, mean, slot.member
    return best


@kernel
def open_leaky_member(state: LeakyState) -> int:
    emp, clock = state.emp, state.emp.clock[0]
    if clock.newest == 1 and below(next_word(emp.order), clock.fresh + 1) == 0:
        clock.newest = 0
        slot = open_slot(emp.arms.slots, 1 - clock.iteration)
    else:
        clock.fresh -= 1
        arm = draw_arm(emp.arms) if clock.iteration == 1 else state.waiting[clock.fresh]
        slot = open_slot(emp.arms.slots, arm)
        state.slot_of[arm] = slot + 1
    choose_slot(emp.chosen, slot)
    return slot


def leaky_ask(state: LeakyState) -> tuple[int, int]:
    emp, clock = state.emp, state.emp.clock[0]
    if clock.left == 0 and clock.iteration == 0:
        next_emp_iteration(emp)  # the first set is random in both
    elif clock.left == 0:
        next_leaky_iteration(state)
    clock.left -= 1
    if clock.fresh + clock.newest > 0:
        number = open_leaky_member(state)
    else:
        number = leader(emp.arms.slots.rank, emp.arms.slots.ties)
    slot = emp.arms.slots.slot[number]
    slot.asked += 1
    return number, real_arm(emp.mixtures, slot.member)


def leaky_tell(state: LeakyState, slot: int, reward: float) -> None:
    tell(state.emp, slot, reward)


plays(LeakyState, reset=leaky_reset, ask=leaky_ask, tell=leaky_tell)


@dataclass(frozen=True, kw_only=True)
class LeakyEmpMOSSPlusPlus(ma.EmpMOSSPlusPlus):
    """empMOSS++ whose ranking breaks ties by arm number, the first arm first."""

    name = "leaky-empmoss++"

    def new_state(  # type: ignore[override]  # another state than its parent's
        self, memory: Memory, *, n_arms: int, pulls: int
    ) -> LeakyState:
        emp = super().new_state(memory, n_arms=n_arms, pulls=pulls)
        return LeakyState(n_arms, emp, memory.ints(n_arms), memory.ints(n_arms))


def shuffled(alpha: float, horizon: int, n: int = 20_000) -> tuple[ma.instances.Instance, ...]:
    """Return the paper's instance twice: best arms first, and best arms last."""
    sorted_one = ma.instances.planted(n=n, alpha=alpha, horizon=horizon)
    means = [sorted_one.mean(arm) for arm in range(n)]
    return sorted_one, ma.instances.from_means(means[::-1], label="best arms last")


def main(replications: int = 200) -> None:
    alpha, horizon = 0.8, 50_000
    best_first, best_last = shuffled(alpha, horizon)
    policies = [ma.EmpMOSSPlusPlus(), LeakyEmpMOSSPlusPlus()]
    for name, instance in (("first", best_first), ("last", best_last)):
        result = ma.simulate(
            policies, instance, horizon=horizon, replications=replications, checkpoints=1
        )
        for label in result.policies:
            mean, low, high = result.interval(label)
            print(f"best arms {name:5}  {label:16} {mean:7.0f} [{low:.0f}, {high:.0f}]")


if __name__ == "__main__":
    main()
