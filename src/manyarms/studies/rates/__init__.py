"""Measured exponents: Figure 1's rates, from problems of constant hardness and growing horizon."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from manyarms.core.checks import check_int
from manyarms.instances import Gaussian, Instance, grouped, planted
from manyarms.instances.means import lower_bound_instance
from manyarms.policies import MOSSOracle, MOSSPlusPlus, Quantile
from manyarms.protocol import Policy
from manyarms.report.drawing import save_figure
from manyarms.report.style import ALPHA, policy_title
from manyarms.report.text import write_json, write_text
from manyarms.simulation.experiment import Experiment, cell
from manyarms.simulation.players import Player
from manyarms.studies.rates.figures import exponent_fits, measured_rates
from manyarms.studies.rates.fit import MODEL, explain, measured_exponents, table_of
from manyarms.studies.study import Report, Results, Study
from manyarms.theory.hardness import best_arms
from manyarms.theory.lower_bound_family import LowerBoundFamily
from manyarms.theory.schedules import subset_size

__all__ = ["RATES", "experiments", "runs_at"]

ALPHAS = (0.1, 0.3, 0.5)
BETAS = (0.5, 0.6, 0.75)
N_ARMS = 2**40  # far more than any set: rounding of the number of best arms disappears

# log2 T, such that beta log2 T is whole: else the rounding of p bends the line
PLANTED = {0.5: range(10, 23, 2), 0.6: range(10, 26, 5), 0.75: range(12, 25, 4)}
# near ties make these games slow, a pull costs ten times as much for a large beta: shorter ones
LOWER_BOUND = {0.5: range(10, 23, 2), 0.6: range(10, 21, 5), 0.75: range(8, 21, 4)}
SUBSET = range(10, 23, 2)
LONGEST = 25

GAPS = (1.0, 2.0, 4.0)  # c, for the gap c sqrt(K/T); the worst is near 2
BUDGETS = (1.0, 4.0)  # multiples of the smallest c that the construction allows
PLANTED_GAP = 0.4  # from the best mean 0.9 to the next, 0.5
FULL_RUNS = 2**14  # up to this horizon all replications are played
FEWEST = 25  # from some horizon on, this part of them
APART = 1 << 20  # replications of one game; the next game's begin there, so they share no luck

COLUMNS = ("alpha", "kind", "factor", "horizon", "settled")
Game = tuple[Policy, Instance, tuple[float, str, float, int, float]]  # with values of the columns


def experiments(
    replications: int,
    seed: int,
    *,
    alphas: Sequence[float] = ALPHAS,
    betas: Sequence[float] = BETAS,
    longest: int = LONGEST,
) -> list[Experiment]:
    """Return all games: MOSS++ for each beta, MOSS Oracle and Quantile, at each hardness.

    Parameters
    ----------
    replications, seed
        How often short games are played (`runs_at` says it for longer ones), and the seed.
    alphas, betas, longest
        Hardnesses, parameters of MOSS++, and log2 of the longest horizon.

    Notes
    -----
    A cell's parameters are its number, the hardness alpha, the kind of problem ("planted",
    "shrinking gap" or "lower bound"), the factor c that scales the gap or the budget, the horizon
    and `settled`: T times the gap between the best mean and the next, which is the regret of
    never finding the best.

    A fixed gap makes regret instance-dependent: a subset policy's slope is then not its rate.
    So MOSS Oracle and Quantile play gaps that shrink as c sqrt(K/T), K being the size of their
    set, for several c. Quantile plays planted problems too, because on hard ones it loses by
    missing the best arms, and that costs most when the gap is wide. MOSS++ plays planted
    problems, which show the cost T^beta of its first iterations, and the lower bound's with
    alpha' = 0 and B = c T^beta, which show T^(1 + alpha - beta); the latter only where that
    exponent is not below beta, since elsewhere it cannot be the worse one.
    """
    check_int("replications", replications, at_least=1, at_most=APART // 4)
    cells = []
    for number, (policy, instance, values) in enumerate(_games(alphas, betas, longest)):
        _, kind, _, horizon, _ = values
        beta = policy.beta if isinstance(policy, MOSSPlusPlus) else None
        label = policy.name if beta is None else f"{policy.name}(beta={beta:g})"
        runs = runs_at(horizon, replications, kind=kind)
        cells.append(
            cell(
                [Player(policy, label, runs, {"beta": beta})],
                instance,
                horizon=horizon,
                checkpoints=1,
                first_replication=APART * number,
                parameters={"game": number, **dict(zip(COLUMNS, values, strict=True))},
            )
        )
    return [Experiment("rates", tuple(cells), seed)]


def runs_at(horizon: int, replications: int, *, kind: str) -> int:
    """Return how often a game of this horizon is played.

    Games up to T = 2^14 have all replications. Longer ones have as many as keep the pulls
    constant, but at least a twenty-fifth of all, and at least 2. Planted problems get four times
    that floor: their regret depends on whether a best arm was met, so it varies much.

    >>> [runs_at(2**k, 400, kind="planted") for k in (10, 16, 18, 22)]
    [1600, 400, 100, 16]
    """
    most = 4 * replications if kind == "planted" else replications
    return max(2, -(-replications // FEWEST), min(most, most * FULL_RUNS // horizon))


def _games(alphas: Iterable[float], betas: Sequence[float], longest: int) -> Iterator[Game]:
    def horizons(powers: Iterable[int]) -> list[int]:
        return [2**k for k in powers if k <= longest]

    subset = horizons(SUBSET)
    for alpha in alphas:
        for beta in betas:
            policy = MOSSPlusPlus(beta=beta)
            yield from _planted(policy, alpha, horizons(PLANTED[beta]))
            if 1 + alpha - beta >= beta:
                yield from _lower_bound(policy, alpha, horizons(LOWER_BOUND[beta]))
        sizes = {t: float(subset_size(t, alpha, 2.0, N_ARMS)) for t in subset}
        yield from _shrinking(MOSSOracle(alpha=alpha), alpha, sizes)
        sizes = {t: math.pow(t, Quantile().exponent) for t in subset}
        yield from _shrinking(Quantile(), alpha, sizes)
        yield from _planted(Quantile(), alpha, subset)


def _planted(policy: Policy, alpha: float, horizons: Iterable[int]) -> Iterator[Game]:
    """Play the paper's planted means, which do not change with the horizon."""
    for t in horizons:
        instance = planted(n=N_ARMS, alpha=alpha, horizon=t)
        yield policy, instance, (alpha, "planted", 1.0, t, PLANTED_GAP * t)


def _shrinking(policy: Policy, alpha: float, sizes: dict[int, float]) -> Iterator[Game]:
    """Play gaps c sqrt(K/T); a c whose gap is above 1 is left out at that horizon."""
    for t, size in sizes.items():
        best = best_arms(N_ARMS, t, alpha)
        for factor in GAPS:
            gap = factor * math.sqrt(size / t)
            if gap <= 1.0:
                instance = grouped(
                    sizes=[best, N_ARMS - best],
                    means=[gap, 0.0],
                    rewards=Gaussian(0.5),
                    label=f"shrinking gap(n={N_ARMS}, m={best}, gap={gap:.3g})",
                )
                yield policy, instance, (alpha, "shrinking gap", factor, t, gap * t)


def _lower_bound(policy: MOSSPlusPlus, alpha: float, horizons: Iterable[int]) -> Iterator[Game]:
    """Play instance 1 with alpha' = 0 and B = c T^beta.

    B is scaled by K/T^alpha, so that the gap is a power of T exactly: the rounding in K would
    bend the line. Horizons with T^alpha < 3, where the construction is not defined, are left out.
    """

    def family(horizon: int, budget: float) -> LowerBoundFamily:
        arms = N_ARMS // math.ceil(2 * horizon**alpha)
        return LowerBoundFamily(horizon=horizon, alpha=alpha, budget=budget, m=arms)

    scales = {  # B / c
        t: math.pow(t, policy.beta - alpha) * family(t, t).hidden_groups
        for t in horizons
        if math.log2(t) * alpha >= math.log2(3)
    }
    smallest = max(math.pow(t, alpha) / scale for t, scale in scales.items())
    for t, scale in scales.items():
        for factor in (smallest * multiple for multiple in BUDGETS):
            chosen = family(t, factor * scale)
            instance = lower_bound_instance(chosen, 1)
            yield policy, instance, (alpha, "lower bound", factor, t, chosen.settled)


def report(results: Results, out: Path) -> Report:
    """Fit the exponents, draw them, and say where they differ from the proven rates."""
    games = results["rates"].cells
    measured = measured_exponents(games)
    runs = max(game.replications for game in games if game.parameters["kind"] != "planted")
    rule = (
        f"Runs: {runs} (planted: {4 * runs}) up to T = 2^{FULL_RUNS.bit_length() - 1}, then fewer, "
        f"as 1/T, but at least {min(game.replications for game in games)}."
    )
    table = table_of(measured)
    notes = [f"{policy_title(m.policy)}, {ALPHA} = {m.alpha:g}: {explain(m)}" for m in measured]
    page = [
        "# Measured exponents of regret in the horizon",
        MODEL,
        rule,
        table.markdown(),
        "## What the numbers say",
        "\n".join(f"- {note}" for note in notes),
    ]
    provenance = results["rates"].provenance
    data = {"seed": provenance["seed"], "replications": runs, "versions": provenance["versions"]}
    files = [
        *save_figure(measured_rates(measured), out / "rates"),
        *save_figure(exponent_fits(measured), out / "rates_fits"),
        write_text(out / "rates.md", "\n\n".join(page)),
        write_json(out / "rates.json", data | {"results": [one.as_dict() for one in measured]}),
    ]
    return Report(files, [table, f"\n{MODEL}\n{rule}\n", *notes])


RATES = Study(300, experiments, report, fewest=2)
