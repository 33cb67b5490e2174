"""SiRI: simple regret with infinitely many arms (Carpentier & Valko 2015)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, NamedTuple

from manyarms.core.jit import kernel
from manyarms.core.memory import Ints, Memory, Record, Records, wipe
from manyarms.core.rng import Stream, stream
from manyarms.core.sampler import Sampler, sampler
from manyarms.core.tournament import Tournament, clear, leader, rekey, tournament
from manyarms.policies.parts.randomness import draw_fresh, reset_draws
from manyarms.protocol import About, Policy, plays
from manyarms.protocol.parameters import Positive, number

_DELTA = 0.01  # that of the authors' experiments
_UNSEEN = 1e300


class SiriArm(Record):
    """What is known of an arm."""

    arm: int
    pulls: int
    total: float
    late: int  # pulls whose reward is late: they count in the index as pulls


class SiriState(NamedTuple):
    """The arms drawn at the start, and the one that is pulled until its pulls have doubled."""

    beta: float
    constant: float  # A
    spread: float  # C
    arm: Records[SiriArm]
    run: Ints  # [arms, opened, the arm in play, its pulls to come, t_beta]
    sampler: Sampler
    words: Stream
    ties: Stream
    rank: Tournament


@kernel
def arms_for(horizon: int, beta: float, constant: float, n_arms: int) -> int:
    r"""Return :math:`\lceil A(T)\,T^{b/2} \rceil`, b = min(beta, 2); the paper's \bar T_beta."""
    factor, log = constant, max(1.0, math.log(horizon))
    if beta == 2.0:
        factor /= log * log
    elif beta > 2.0:
        factor /= log
    wanted = math.ceil(factor * math.pow(horizon, 0.5 * min(beta, 2.0)) * (1.0 - 1e-12))
    return max(1, min(wanted, n_arms, horizon))


def siri_reset(state: SiriState, key: int, horizon: int) -> None:
    reset_draws(state, key)
    clear(state.rank)
    arms = arms_for(horizon, state.beta, state.constant, state.sampler.n[0])
    state.run[0] = arms
    state.run[1] = 0
    state.run[2] = 0
    state.run[3] = 0
    state.run[4] = int(math.log2(arms))  # \bar t_beta


def siri_ask(state: SiriState) -> tuple[int, int]:
    run = state.run
    if run[1] < run[0]:
        slot = run[1]
        run[1] += 1
        wipe(state.arm, slot)
        state.arm[slot].arm = draw_fresh(state.sampler, state.words)
        rekey(state.rank, slot, index_of(state, slot))
    elif run[3] > 0:
        slot = run[2]
        run[3] -= 1
    else:
        slot = leader(state.rank, state.ties)
        run[2] = slot
        run[3] = max(1, state.arm[slot].pulls) - 1  # pulled as often as it was before
    return slot, state.arm[slot].arm


def siri_tell(state: SiriState, slot: int, reward: float) -> None:
    state.arm[slot].pulls += 1
    state.arm[slot].total += reward
    rekey(state.rank, slot, index_of(state, slot))


def siri_count_late(state: SiriState, slot: int, change: int) -> None:
    state.arm[slot].late += change
    rekey(state.rank, slot, index_of(state, slot))


@kernel
def index_of(state: SiriState, slot: int) -> float:
    r"""Return the index of the paper's Figure 1, equation (2).

    .. math:: \hat\mu + 2 \sqrt{\frac{C}{N} L} + \frac{2 C}{N} L, \qquad
        L = \log \frac{2^{2 \bar t_\beta / b}}{N \delta}

    A negative L counts as 0.
    """
    record = state.arm[slot]
    if record.pulls == 0:  # above all others, those with fewest pulls in flight first
        return _UNSEEN / (1 + record.late)
    pulls = record.pulls + record.late
    exponent = 2.0 * state.run[4] / min(state.beta, 2.0)
    level = max(0.0, exponent * math.log(2.0) - math.log(pulls * _DELTA))
    width = state.spread * level / pulls
    return record.total / record.pulls + 2.0 * math.sqrt(width) + 2.0 * width


def siri_recommend(state: SiriState) -> int:
    """Return the arm pulled most; of several the one of largest mean, then the first."""
    best = -1
    for slot in range(state.run[1]):
        record = state.arm[slot]
        if record.pulls > 0:
            rival = state.arm[max(0, best)]
            more = record.pulls > rival.pulls
            as_often = record.pulls == rival.pulls
            if best < 0 or more or (as_often and record.total > rival.total):
                best = slot
    return -1 if best < 0 else state.arm[best].arm


plays(
    SiriState,
    reset=siri_reset,
    ask=siri_ask,
    tell=siri_tell,
    count_late=siri_count_late,
    recommend=siri_recommend,
)


@dataclass(frozen=True, kw_only=True)
class SiRI(Policy):
    r"""Draw :math:`T^{b/2}` arms, b = min(β, 2); pull the largest index until its pulls double.

    Recommended is the arm pulled most.

    Parameters
    ----------
    beta
        How rare good arms are: the chance that an arm is within ε of the best is about
        :math:`\varepsilon^\beta`.
    constant, spread
        The paper's A and C; larger ones draw more arms, and explore more.

    Notes
    -----
    A. Carpentier, M. Valko, "Simple regret for infinitely many armed bandits", ICML 2015, Figure 1;
    A = 0.3 and δ = 0.01 are those of its experiments, C is ours. If β is known, the
    published policy has a simple regret of the order :math:`\max(T^{-1/2}, T^{-1/\beta})` up to
    logarithms (Theorem 1), and no policy has less. Needs β and T. The box was written
    down from memory, and not compared with the paper. Cost per pull: O(log) of the arms drawn.

    Examples
    --------
    >>> from manyarms.policies.field import SiRI
    >>> live = SiRI(beta=1.0).live(n_arms=1_000_000, horizon=1000, seed=1)
    >>> len({pull.arm for pull in live.ask(30)})  # ⌈0.3 √1000⌉
    10
    """

    name = "siri"
    about = About(
        needs="horizon, how rare good arms are",
        knowledge="m",
        guarantee="none checked: the constants are partly ours",
        nanoseconds=22,
        page="docs/policies/finders.md",
        scaling="log of arms drawn",
        good_at="keeping one arm, if you know how rare good ones are",
        source="Carpentier & Valko 2015",
        finds=True,
    )

    beta: Annotated[float, number(at_least=0.01, at_most=100.0)] = 1.0
    constant: Positive = 0.3
    spread: Positive = 0.25

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> SiriState:
        arms = arms_for(pulls, self.beta, self.constant, n_arms)
        return SiriState(
            beta=self.beta,
            constant=self.constant,
            spread=self.spread,
            arm=memory.records(arms, SiriArm),
            run=memory.ints(5),
            sampler=sampler(memory, n_arms, draws=arms),
            words=stream(memory),
            ties=stream(memory),
            rank=tournament(memory, arms),
        )
