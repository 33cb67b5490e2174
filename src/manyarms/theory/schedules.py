"""The sizes and lengths that the policies follow: as kernels, and as tables of all of them."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from manyarms.core.checks import check_int
from manyarms.core.jit import kernel
from manyarms.theory.arrays import MOST, check_beta


@kernel
def iterations(horizon: int, beta: float) -> int:
    r"""Return p, the number of iterations of MOSS++ (Algorithm 1).

    .. math:: p = \lceil \log_2 T^\beta \rceil

    >>> iterations(50_000, 0.5), iterations(2**20, 0.55), iterations(1, 0.5)
    (8, 11, 0)
    """
    # 0.55 * 20 is 11.000000000000002 in floating point: the guard is wider than such errors,
    # and narrower than the step from T = 2^k to 2^k + 1 for every T below 2^38
    return math.ceil(beta * math.log2(horizon) - 1e-12)


@kernel
def iteration_arms(p: int, i: int, n_arms: int) -> int:
    r"""Return the number of real arms in iteration i of MOSS++.

    .. math:: \min(K_i, n), \quad K_i = 2^{p+2-i}

    >>> [iteration_arms(8, i, 20_000) for i in (1, 2, 8)]
    [512, 256, 4]
    """
    return min(1 << (p + 2 - i), n_arms)


@kernel
def iteration_pulls(p: int, i: int, horizon: int) -> int:
    r"""Return the length of iteration i of MOSS++.

    .. math:: \Delta T_i = \min(2^{p+i}, T)

    >>> [iteration_pulls(8, i, 50_000) for i in (1, 2, 8)]
    [512, 1024, 50000]
    """
    return horizon if p + i >= 62 else min(1 << (p + i), horizon)


@kernel
def subset_size(horizon: int, alpha: float, factor: float, n_arms: int) -> int:
    r"""Return the number of arms that the subroutine SR draws for hardness `alpha`.

    .. math:: \min(\lceil 2 T^\alpha \log\sqrt T \rceil, T)

    with 2 = `factor`; never more than there are arms, never none.

    >>> subset_size(50_000, 0.4, 2.0, 20_000)
    820
    """
    wanted = math.ceil(factor * math.pow(horizon, alpha) * 0.5 * math.log(horizon))
    return max(1, min(wanted, horizon, n_arms))


@kernel
def subroutines(horizon: int) -> int:
    r"""Return the number of subroutines of Parallel (Algorithm 3).

    .. math:: q = \max(1, \lceil \log T \rceil)

    >>> subroutines(50_000), subroutines(1)
    (11, 1)
    """
    return max(1, math.ceil(math.log(horizon)))


@kernel
def epoch_length(horizon: int) -> int:
    r"""Return the number of pulls in an epoch of Parallel.

    .. math:: \Delta = \lceil \sqrt T \rceil

    >>> epoch_length(50_000), epoch_length(49)
    (224, 7)
    """
    return math.ceil(math.sqrt(horizon))


@kernel
def quantile_arms(round_number: int, exponent: float, n_arms: int) -> int:
    r"""Return the size of QRM2's set in round l.

    .. math:: \min(\lceil 2^{0.347\,l} \rceil, n)

    >>> [quantile_arms(l, 0.347, 20_000) for l in (1, 2, 10, 16)]
    [2, 2, 12, 47]
    """
    return min(math.ceil(math.pow(2.0, exponent * round_number)), n_arms)


@kernel
def guard_log(horizon: int) -> float:
    r"""Return the logarithm that the guard reckons with.

    .. math:: L = \max(1, \log T)

    >>> guard_log(2), round(guard_log(50_000), 3)
    (1.0, 10.82)
    """
    return max(1.0, math.log(horizon))


@kernel
def guard_lower_level(horizon: int) -> float:
    r"""Return the level of the lower bounds that the guard's floor is made of.

    .. math:: x_{low} = \tfrac52 L

    >>> round(guard_lower_level(50_000), 3)
    27.049
    """
    return 2.5 * guard_log(horizon)


@kernel
def guard_upper_level(horizon: int) -> float:
    r"""Return the level of the upper bounds by which the guard rules arms out.

    The first x of 1, 1.25, 1.5, … with

    .. math:: 2 e \lceil x L \rceil e^{-x} \le 1

    >>> guard_upper_level(50_000), guard_upper_level(5_000_000)
    (6.0, 6.5)
    """
    level = 1.0
    while 2.0 * math.ceil(level * guard_log(horizon)) * math.exp(1.0 - level) > 1.0:
        level += 0.25
    return level


@kernel
def guard_stages_planned(horizon: int, beta: float) -> int:
    r"""Return the number of the guard's stages.

    These are 0, and every later i with

    .. math:: 2^{-i} \, T^\beta / L > \tfrac12

    >>> guard_stages_planned(50_000, 0.5), guard_stages_planned(2, 0.5)
    (6, 2)
    """
    size = math.pow(horizon, beta) / guard_log(horizon)
    stages = 1
    while size / (1 << stages) > 0.5:
        stages += 1
    return stages


@kernel
def guard_stage(horizon: int, beta: float, stage: int) -> tuple[int, int, int]:
    r"""Return how many arms stage i of the guard tests, up to how many pulls, and when it is due.

    .. math:: a_i = \lceil 2^{-i} S \rceil, \quad \lceil (S / a_i)^2 \rceil, \quad
              \lceil T^\beta S / a_i \rceil, \quad S = T^\beta / L

    There may be fewer arms. The pulls are those of an arm at the end of the stage. They and the
    start are never more than T: no pull is left for such a stage.

    >>> [guard_stage(50_000, 0.5, i) for i in (0, 1, 5)]
    [(21, 1, 221), (11, 4, 421), (1, 428, 4622)]
    """
    power = math.pow(horizon, beta)
    size = power / guard_log(horizon)
    arms = math.ceil(size / (1 << stage))
    share = size / arms
    pulls = math.ceil(min(share * share, float(horizon)))
    return arms, pulls, math.ceil(min(power * share, float(horizon)))


@kernel
def guard_error(upper_level: float, lower_level: float, pulls: int) -> float:
    r"""Return how far below the best mean the floor may be after a stage of the guard.

    .. math:: (\sqrt{x_i / 2} + \sqrt{x_{low} / 2}) / \sqrt{n_i}

    >>> guard_error(8.0, 18.0, 25)
    1.0
    """
    return (math.sqrt(upper_level / 2.0) + math.sqrt(lower_level / 2.0)) / math.sqrt(pulls)


@kernel
def guard_allowance(horizon: int, beta: float) -> float:
    r"""Return what a rule may lose against the guard's floor before it is dropped.

    .. math:: 4 \, T^\beta L

    >>> round(guard_allowance(50_000, 0.5), 1)
    9677.5
    """
    return 4.0 * math.pow(horizon, beta) * guard_log(horizon)


class Schedule(NamedTuple):
    """What `moss_plus_plus_schedule` returns.

    Attributes
    ----------
    iterations
        p.
    arms
        min(K_i, n) for i = 1, …, p: the real arms of each iteration.
    mixtures
        i - 1: the mixture-arms beside them.
    pulls
        ΔT_i. They reach the horizon together, and the game ends there: the last ones may be cut.

    Examples
    --------
    >>> from manyarms.theory import moss_plus_plus_schedule
    >>> moss_plus_plus_schedule(1000, beta=0.5, n=40).arms
    array([40, 32, 16,  8,  4])
    """

    iterations: int
    arms: NDArray[np.int64]
    mixtures: NDArray[np.int64]
    pulls: NDArray[np.int64]


def moss_plus_plus_schedule(horizon: int, *, beta: float, n: int = MOST) -> Schedule:
    r"""Return the schedule of MOSS++ (Algorithm 1).

    .. math:: p = \lceil \log_2 T^\beta \rceil, \quad K_i = 2^{p+2-i}, \quad
              \Delta T_i = \min(2^{p+i}, T)

    Parameters
    ----------
    horizon
        T.
    beta
        The parameter of MOSS++, between 1/2 and 1.
    n
        The number of arms (default: more than any set can hold).

    Notes
    -----
    :math:`K_i \Delta T_i = 2^{2p+2}` until the horizon cuts: every iteration has the same
    :math:`\sqrt{K_i \Delta T_i}`, and so the same learning error. Uncut lengths add up to
    :math:`2 (2^{2p} - 2^p) \ge T`.

    Examples
    --------
    >>> schedule = moss_plus_plus_schedule(256, beta=0.5)
    >>> schedule.iterations, schedule.arms.tolist(), schedule.pulls.tolist()
    (4, [32, 16, 8, 4], [32, 64, 128, 256])
    """
    t = check_int("horizon", horizon, at_least=1, at_most=MOST)
    n = check_int("n", n, at_least=1, at_most=MOST)
    p = iterations(t, check_beta(beta))
    numbers = range(1, p + 1)
    arms = [iteration_arms(p, i, n) for i in numbers]
    pulls = [iteration_pulls(p, i, t) for i in numbers]
    return Schedule(p, *(np.array(each, dtype=np.int64) for each in (arms, range(p), pulls)))


class GuardStages(NamedTuple):
    """What `guard_stages` returns: a number for each stage, and two for all of them.

    Attributes
    ----------
    arms
        k_i: the first k_i arms of the guard's order are tested.
    pulls
        n_i: an arm is tested until it has this many pulls in all, or is ruled out.
    starts
        τ_i: the pulls made when the stage is due. At T it never begins.
    levels
        x_i: the level of the upper bounds that rule arms out.
    errors
        ε_i: how far the floor may be below the best mean after the stage.
    floor_level
        The level of the lower bounds that the floor is made of.
    allowance
        What a rule may lose against the floor before it is dropped.

    Examples
    --------
    >>> from manyarms.theory import guard_stages
    >>> guard_stages(50_000, beta=0.5, n=7).arms
    array([7, 7, 6, 3, 2, 1])
    """

    arms: NDArray[np.int64]
    pulls: NDArray[np.int64]
    starts: NDArray[np.int64]
    levels: NDArray[np.float64]
    errors: NDArray[np.float64]
    floor_level: float
    allowance: float


def guard_stages(horizon: int, *, beta: float, n: int = MOST) -> GuardStages:
    r"""Return the timetable of the guard, under which any rule keeps the rate of MOSS++.

    .. math:: a_i = \lceil 2^{-i} S \rceil, \quad k_i = \min(a_i, n), \quad
              n_i = \lceil (S/a_i)^2 \rceil, \quad \tau_i = \lceil T^\beta S / a_i \rceil, \quad
              S = T^\beta / \max(1, \log T)

    Parameters
    ----------
    horizon
        T >= 2.
    beta
        Between 1/2 and 1.
    n
        The number of arms (default: more than any stage tests).

    Notes
    -----
    :math:`k_i \sqrt{n_i}` is about S in every stage, so all stages cost the same. Pulls and starts
    are cut at T; a stage that this affects never begins. docs/guard.md has the guard and the proof.

    Examples
    --------
    >>> stages = guard_stages(50_000, beta=0.5)
    >>> stages.arms.tolist(), stages.pulls.tolist()
    ([21, 11, 6, 3, 2, 1], [1, 4, 12, 48, 107, 428])
    >>> stages.starts.tolist()
    [221, 421, 771, 1541, 2311, 4622]
    """
    t = check_int("horizon", horizon, at_least=2, at_most=MOST)
    n = check_int("n", n, at_least=1, at_most=MOST)
    beta = check_beta(beta)
    low, up = guard_lower_level(t), guard_upper_level(t)
    stages = (guard_stage(t, beta, i) for i in range(guard_stages_planned(t, beta)))
    wanted, pulls, starts = zip(*stages, strict=True)
    arms = [min(k, n) for k in wanted]
    levels = [low if k == n else up for k in arms]
    errors = [guard_error(x, low, need) for x, need in zip(levels, pulls, strict=True)]
    return GuardStages(
        arms=np.array(arms, dtype=np.int64),
        pulls=np.array(pulls, dtype=np.int64),
        starts=np.array(starts, dtype=np.int64),
        levels=np.array(levels),
        errors=np.array(errors),
        floor_level=low,
        allowance=guard_allowance(t, beta),
    )
