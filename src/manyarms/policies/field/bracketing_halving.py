"""Bracketing sequential halving, BSH: brackets of doubling size, anytime (Zhao et al. 2023)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from manyarms.core.jit import rare
from manyarms.core.memory import Floats, Ints, Memory
from manyarms.policies.parts.halving import (
    Halving,
    arm_of,
    ask_bracket,
    halving,
    open_bracket,
    reset_halving,
    rounds_of,
    start_run,
    tell_bracket,
)
from manyarms.protocol import About, Policy, plays

_BRACKETS = 48  # more than 2^50 pulls open


class BracketingState(NamedTuple):
    """The brackets with their runs, and whose turn it is."""

    clock: Ints  # [pulls asked for, the bracket whose turn it is]
    budget: Ints  # by bracket: of its run
    won: Ints  # by bracket: the arm that won its last run, plus 1; 0 before
    mean: Floats  # by bracket: that arm's mean in this run
    table: Halving


def bracketing_reset(state: BracketingState, key: int, horizon: int) -> None:
    reset_halving(state.table, key)
    state.clock[0] = 0
    state.clock[1] = -1


def bracketing_ask(state: BracketingState) -> tuple[int, int]:
    brackets = state.table.used[1]
    if state.clock[0] >= brackets << brackets and brackets < _BRACKETS:
        next_bracket(state, brackets)
        brackets += 1
    state.clock[0] += 1
    state.clock[1] = (state.clock[1] + 1) % brackets
    number = state.clock[1]
    if state.table.bracket[number].rounds == 0:
        run_again(state, number)
    return ask_bracket(state.table, number)


@rare
def next_bracket(state: BracketingState, number: int) -> None:
    """Open bracket B + 1, of 2^(B + 1) arms: at t = B 2^B there is time for another one."""
    size = min(2 << number, state.table.sampler.n[0])
    state.budget[number] = size * rounds_of(size)  # K log2 K: a pull of each arm left, and round
    state.won[number] = 0
    open_bracket(state.table, size, state.budget[number])


@rare
def run_again(state: BracketingState, number: int) -> None:
    """Begin a run of twice the budget."""
    state.budget[number] *= 2
    start_run(state.table, number, state.budget[number])


def bracketing_tell(state: BracketingState, slot: int, reward: float) -> None:
    number = state.table.arm[slot].bracket
    before = state.table.bracket[number].rounds
    tell_bracket(state.table, slot, reward)
    bracket = state.table.bracket[number]
    if before > 0 and bracket.rounds == 0:
        state.won[number] = 1 + arm_of(state.table, bracket.winner)
        state.mean[number] = bracket.mean


def bracketing_recommend(state: BracketingState) -> int:
    """Return the arm of largest mean among the winners of the brackets' last runs."""
    kept, largest = -1, 0.0
    for number in range(state.table.used[1]):
        if state.won[number] > 0 and (kept < 0 or state.mean[number] > largest):
            kept, largest = state.won[number] - 1, state.mean[number]
    return kept


plays(
    BracketingState,
    reset=bracketing_reset,
    ask=bracketing_ask,
    tell=bracketing_tell,
    recommend=bracketing_recommend,
)


@dataclass(frozen=True, kw_only=True)
class BracketingHalving(Policy):
    r"""Sequential halving on sets of 2, 4, 8, … random arms at once, each with growing budgets.

    Bracket B + 1, of :math:`\min(2^{B+1}, n)` random arms, opens at :math:`t = B\,2^B`. The
    brackets are pulled in turn. Each runs sequential halving with a budget of
    :math:`K \log_2 K`, then again with twice as much, and so on. Recommended is, of the winners of
    the last run of each bracket, the one of largest mean in that run.

    Notes
    -----
    Y. Zhao, C. Stephens, C. Szepesvári, K.-S. Jun, "Revisiting simple regret: fast rates for
    returning a good arm", ICML 2023: bracketing SH, with the doubling trick within brackets.
    It is anytime and needs to know nothing: its simple regret follows the number of good arms as if
    that were known, up to logarithms. The schedule of brackets and budgets is as another author of
    the field has implemented it; we read it so that winners are compared by their means. Runs begin
    without the pulls of earlier ones, as the analysis has it. Cost per pull: O(log) on average;
    memory of the arms drawn, which is O(T / log T).

    Examples
    --------
    >>> from manyarms.policies.field.bracketing_halving import BracketingHalving
    >>> live = BracketingHalving().live(n_arms=1_000_000, seed=1)  # no horizon needed
    >>> for _ in range(500):
    ...     pull = live.ask()
    ...     live.tell(pull, reward=float(pull.arm % 4 == 0))
    >>> live.recommend().arm % 4
    0
    """

    name = "bracketing-halving"
    anytime = True
    about = About(
        needs="nothing",
        guarantee="simple regret as if it knew how many are good, up to logs",
        nanoseconds=42,
        page="docs/policies/finders.md",
        scaling="log of arms drawn",
        good_at="keeping one arm, when the end is not known",
        source="Zhao et al. 2023",
        finds=True,
    )

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> BracketingState:
        brackets, slots, largest = 0, 0, 1
        while brackets << brackets < pulls and brackets < _BRACKETS:
            brackets += 1
            largest = min(1 << brackets, n_arms)
            slots += largest
        table = halving(memory, n_arms, slots=slots, brackets=brackets, largest=largest)
        budget, won, mean = memory.ints(brackets), memory.ints(brackets), memory.floats(brackets)
        return BracketingState(memory.ints(2), budget, won, mean, table)
