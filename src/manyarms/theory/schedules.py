"""The sizes and lengths that the policies follow, as kernels: one source for all machines."""

from __future__ import annotations

import math

from manyarms.core.jit import kernel

__all__ = [
    "epoch_length",
    "guard_allowance",
    "guard_error",
    "guard_log",
    "guard_lower_level",
    "guard_stage",
    "guard_stages_planned",
    "guard_upper_level",
    "iteration_arms",
    "iteration_pulls",
    "iterations",
    "quantile_arms",
    "subroutines",
    "subset_size",
]


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
