"""The leaderboard's suite, as data: problems near to the paper's, and far from them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from manyarms.experiments.leaderboard_players import Match, match
from manyarms.instances import (
    BetaMeans,
    Gaussian,
    Instance,
    UniformMeans,
    planted,
    reservoir,
)

__all__ = ["contest_matches", "leaderboard"]

N_ARMS, HORIZON, CONTEST_HORIZON = 20_000, 50_000, 100_000
ALPHAS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
EASY_AND_MIDDLE = (0.2, 0.4)
GAPS: tuple[tuple[float, tuple[float, ...]], ...] = (
    (0.5, (0.1, 0.2, 0.3)),
    (0.6, (0.5,)),
    (0.55, (0.5,)),
)
SHAPES = ((1.0, 1.0), (2.0, 0.5), (2.0, 2.0), (1.0, 3.0))  # of Beta-distributed means
LESS_THAN_PERFECT = 0.8  # the best mean of a reservoir that does not reach 1
MANY, SHORT = 1_000_000, 10_000  # T << n
FEW = 100  # n << T


def leaderboard(*, most_runs: int = 100) -> list[Match]:
    """Return the suite without contests.

    Parameters
    ----------
    most_runs
        The runs of a policy that is quick enough; slower ones get fewer.

    Examples
    --------
    >>> len({match.name for match in leaderboard()})
    26
    """
    problems = [*_paper(), *_gaps(), *_gaussian(), *_sizes()]
    matches = [
        match(name, family, instance, horizon, most_runs=most_runs)
        for family, name, instance, horizon in problems
    ]
    return [*matches, *_reservoirs(most_runs)]


def contest_matches(contests: Mapping[str, Instance], *, most_runs: int = 100) -> list[Match]:
    """Return a match for each contest, by the name it is to have.

    Parameters
    ----------
    contests
        Instances by name.
    most_runs
        As for `leaderboard`.

    Examples
    --------
    >>> from manyarms.instances import stand_in_652
    >>> contest_matches({"stand-in": stand_in_652()})[0].horizon
    100000
    """
    return [
        match(name, "caption contests", contest, CONTEST_HORIZON, most_runs=most_runs)
        for name, contest in contests.items()
    ]


def _problem(
    family: str, name: str, *, horizon: int = HORIZON, **parameters: Any
) -> tuple[str, str, Instance, int]:
    given = {"n": N_ARMS, **parameters}
    if "alpha" in given:
        given["horizon"] = horizon
    return family, name, planted(**given), horizon


def _paper() -> Iterator[tuple[str, str, Instance, int]]:
    for alpha in ALPHAS:
        yield _problem("Figure 2(a)", f"Fig. 2(a), alpha {alpha}", alpha=alpha)


def _gaps() -> Iterator[tuple[str, str, Instance, int]]:
    for best, others in GAPS:
        below = f"{others[0]}" if len(others) == 1 else f"{others[0]} to {others[-1]}"
        for alpha in EASY_AND_MIDDLE:
            name = f"{best} over {below}, alpha {alpha}"
            yield _problem("smaller gaps", name, alpha=alpha, best=best, others=others)


def _gaussian() -> Iterator[tuple[str, str, Instance, int]]:
    for alpha in EASY_AND_MIDDLE:
        name = f"Gaussian, alpha {alpha}"
        yield _problem("Gaussian rewards", name, alpha=alpha, rewards=Gaussian(0.5))


def _sizes() -> Iterator[tuple[str, str, Instance, int]]:
    for alpha in EASY_AND_MIDDLE:
        name = f"n = 1 000 000, T = 10 000, alpha {alpha}"
        yield _problem("extreme sizes", name, n=MANY, horizon=SHORT, alpha=alpha)
    for m in (10, 1):
        yield _problem("extreme sizes", f"n = {FEW}, T = 50 000, m = {m}", n=FEW, m=m)


def _reservoirs(most_runs: int) -> Iterator[Match]:
    drawn: list[tuple[str, Any, float, float]] = [
        # P(mean >= 1 - e) = e^b / (b B(a, b)), and lower order
        (f"Beta({a:g}, {b:g}) means", BetaMeans(a, b), b, 1 / (b * _beta(a, b)))
        for a, b in SHAPES
    ]
    top = LESS_THAN_PERFECT
    drawn.append((f"uniform means up to {top}", UniformMeans(0.0, top), 1.0, 1 / top))
    for name, means, b, weight in drawn:
        # Nearer than T^(-1/(b+1)) no policy can expect to come: such arms are rarer than the
        # pulls that it takes to tell them.
        epsilon = max(HORIZON**-0.5, HORIZON ** (-1 / (b + 1)))
        yield match(
            name,
            "infinitely many arms",
            reservoir(means, epsilon=epsilon),
            HORIZON,
            most_runs=most_runs,
            ratio=1 / min(1.0, weight * epsilon**b),
            shape=(b, weight),
        )


def _beta(a: float, b: float) -> float:
    return math.gamma(a) * math.gamma(b) / math.gamma(a + b)
