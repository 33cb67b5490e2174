"""The sweeps of the figures, and those that three of the claims need."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from manyarms.instances import contest_652, planted
from manyarms.policies import MOSS, EmpMOSSPlusPlus, MOSSOracle, MOSSPlusPlus, Parallel, Quantile
from manyarms.policies.moss_oracle import subset_size
from manyarms.protocol import Policy
from manyarms.simulation import Cell, Player, Sweep, cell

ALPHAS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
BETA = 0.5
EASY_AND_HARD = (0.1, 0.6, 0.8)
OTHER_BETAS = (0.6, 0.75, 0.9)
REPLICATIONS = 500  # about a minute on two cores; the paper used 100

_CURVE = 100  # checkpoints of the figures over time


@dataclass(frozen=True)
class Size:
    """How large the problems are (default: as in the paper)."""

    n_arms: int = 20_000
    horizon: int = 50_000
    contest_horizon: int = 100_000


FULL = Size()


def six_policies(alpha: float) -> list[Policy]:
    """Return the paper's policies; MOSS Oracle is given the hardness."""
    return [
        MOSS(),
        MOSSOracle(alpha=alpha),
        Quantile(),
        Parallel(),
        MOSSPlusPlus(beta=BETA),
        EmpMOSSPlusPlus(beta=BETA),
    ]


def fig2a(replications: int, seed: int, size: Size = FULL) -> Sweep:
    """Return Figure 2(a): final regret against hardness.

    >>> [each.instance.n_best for each in fig2a(100, seed=0).cells][:3]
    [3390, 1149, 390]
    """
    return _planted("fig2a", ALPHAS, six_policies, replications, seed, size)


def fig2b(replications: int, seed: int, size: Size = FULL) -> Sweep:
    """Return Figure 2(b): regret over time at hardness 0.25."""
    return _planted("fig2b", [0.25], six_policies, replications, seed, size, _CURVE)


def fig3(replications: int, seed: int, size: Size = FULL) -> Sweep:
    """Return Figure 3: regret over time on contest 652, or on its stand-in."""
    contest, horizon = contest_652(), size.contest_horizon
    made = cell(
        six_policies(contest.problem(horizon).alpha),
        contest,
        horizon=horizon,
        replications=replications,
        checkpoints=_CURVE,
    )
    return Sweep("fig3", (made,), seed)


def larger_betas(replications: int, seed: int, size: Size = FULL) -> Sweep:
    """Return the sweep of claim 13: larger beta, on easy and on hard problems."""
    forms = (MOSSPlusPlus, EmpMOSSPlusPlus)
    players = [
        _player(form(beta=beta), replications, beta=beta) for form in forms for beta in OTHER_BETAS
    ]
    return _planted("larger_betas", EASY_AND_HARD, lambda _: players, replications, seed, size)


def oracle_sizes(replications: int, seed: int, size: Size = FULL) -> Sweep:
    """Return the sweep of claim 14: MOSS on smaller random sets than the Oracle's."""
    contest, horizon = contest_652(), size.contest_horizon
    whole = subset_size(horizon, contest.problem(horizon).alpha, 2.0, contest.n_arms)
    sizes = [max(1, round(whole / 2**halvings)) for halvings in range(6)]
    players = [_player(MOSSOracle(size=each), replications, size=each) for each in sizes]
    made = cell(players, contest, horizon=horizon, checkpoints=1)
    return Sweep("oracle_sizes", (made,), seed)


def quantile_as_moss(replications: int, seed: int, size: Size = FULL) -> Sweep:
    """Return the sweep of claim 15: MOSS on T^0.347 random arms."""
    few = math.ceil(size.horizon**0.347)
    players = [_player(MOSSOracle(size=few), replications, size=few)]
    return _planted("quantile_as_moss", ALPHAS, lambda _: players, replications, seed, size)


FIGURES = {"fig2a": fig2a, "fig2b": fig2b, "fig3": fig3}
OF_CLAIMS = {
    "larger_betas": larger_betas,
    "oracle_sizes": oracle_sizes,
    "quantile_as_moss": quantile_as_moss,
}


def _player(policy: Policy, replications: int, **parameters: float) -> Player:
    # the name, because a larger beta is compared with the same policy's default
    return Player(policy, str(policy), replications, {"name": policy.name, **parameters})


def _planted(
    name: str,
    alphas: Sequence[float],
    policies: Callable[[float], Sequence[Policy | Player]],
    replications: int,
    seed: int,
    size: Size,
    checkpoints: int = 1,
) -> Sweep:
    """Return a sweep on the paper's planted problems, with a cell for each hardness."""
    cells = [
        cell(
            policies(alpha),
            planted(n=size.n_arms, alpha=alpha, horizon=size.horizon),
            horizon=size.horizon,
            replications=replications,
            checkpoints=checkpoints,
            parameters={"alpha": alpha},
        )
        for alpha in alphas
    ]
    return Sweep(name, tuple(cells), seed)


# Replications of `--full`, by sweep, hardness and policy; all others have REPLICATIONS.
# A miss costs up to 40000 here. After n runs without one, the mean may be 40000 log(1/p) / n
# higher, where p is the error of a part. So a difference of 234 (claim 1) needs thousands of runs,
# and one of 10000 needs a hundred. Claims 1, 5, 6, 7, 9, 14 and 15 have such parts.
_WHEN_EASY = {
    "empmoss++": 4000,
    "moss-oracle": 3000,
    "moss++": 1500,
    "quantile": 1500,
    "parallel": 1000,
}
_OFTEN: Mapping[tuple[str, Any], Mapping[str, int]] = {
    ("fig2a", 0.1): _WHEN_EASY,
    ("fig2a", 0.2): _WHEN_EASY,
    ("fig2a", 0.3): _WHEN_EASY,
    ("fig2a", 0.4): _WHEN_EASY,
    ("fig2a", 0.5): {"empmoss++": 1500, "moss-oracle": 1500},
    ("fig2a", 0.6): {"empmoss++": 1500, "moss-oracle": 1500},
    ("fig2a", 0.9): {"parallel": 4000, "moss-oracle": 4000},
    ("fig2b", 0.25): {"empmoss++": 6000, "moss-oracle": 6000},
    ("quantile_as_moss", 0.1): {"moss-oracle": 1500},
    ("quantile_as_moss", 0.2): {"moss-oracle": 1500},
    ("oracle_sizes", None): {"moss-oracle": 1500},
}


def with_more_runs(sweep: Sweep) -> Sweep:
    """Return the sweep of `--full`, with more runs for close comparisons.

    The numbers of runs are fixed and do not depend on results, so intervals keep their confidence.
    """

    def often(one: Cell) -> Cell:
        runs = _OFTEN.get((sweep.name, one.parameters.get("alpha")), {})
        players = tuple(
            replace(player, replications=runs.get(player.policy.name, player.replications))
            for player in one.players
        )
        return replace(one, players=players)

    return replace(sweep, cells=tuple(map(often, sweep.cells)))
