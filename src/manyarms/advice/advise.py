"""The one call: ask, play, choose. What it returns is a table that prints as advice."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from manyarms.advice.play import Game, choose, play
from manyarms.advice.question import Candidate, candidates, question
from manyarms.advice.reasons import caveats, problem_in_words, reasons
from manyarms.core.checks import check_int
from manyarms.core.statistics import Interval, mean_interval
from manyarms.errors import ParameterError
from manyarms.lab.progress import ProgressCallback
from manyarms.protocol import Policy
from manyarms.report.text import plain
from manyarms.theory import Problem

__all__ = ["BETAS", "Advice", "AdviceRow", "advise"]

BETAS = (0.5, 0.6, 0.75)
_WIDTH = 98  # of the text


@dataclass(frozen=True)
class AdviceRow:
    """One policy at one hardness.

    Attributes
    ----------
    policy, label, beta
        The policy, its name, and its beta if it has one.
    m, alpha
        The best arms that were planted, and the hardness that this makes.
    rate
        The regret grows as T^rate at most, up to logarithms; None if nothing is proven.
    mean, low, high
        The mean regret, with a 95 % interval that allows for costly runs that were not seen.
    median, miss_rate
        The median regret, and the share of runs that pulled no best arm.
    share, excess
        The mean regret as a share of the horizon, and that less the lowest share at this hardness.
    ratio
        The mean regret over the lowest one at this hardness; losses below one reward count as one.
    replications
        The number of runs; 0 where the mean is known without playing.
    """

    policy: Policy
    label: str
    beta: float | None
    m: int
    alpha: float
    rate: float | None
    mean: float
    low: float
    high: float
    median: float
    miss_rate: float
    share: float
    excess: float
    ratio: float
    replications: int


@dataclass(frozen=True, repr=False)
class Advice:
    """How hard a problem is, what each policy would lose, and which one to take.

    `print` shows it in words.

    Attributes
    ----------
    n, horizon, best_mean, others
        The problem, and the means that were planted.
    bounded
        Whether a bound on the hardness was given.
    alpha
        The largest hardness that was asked about.
    within_reach
        Whether a best arm can be expected to be met even then: hardness at most 1.
    rows
        One `AdviceRow` for each hardness and policy, the easiest first.
    recommended
        The policy to take.
    confidence
        The share of bootstrap samples of the runs that recommend the same policy.
    problem, reasons, caveats
        Sentences: how hard it is, why this policy, and what would change the choice.

    Examples
    --------
    >>> import manyarms as ma
    >>> advice = ma.advise(n=500, horizon=100, m_at_least=100, replications=2)
    >>> {row.alpha for row in advice.rows if row.policy == advice.recommended} == advice.alphas
    True
    """

    n: int
    horizon: int
    best_mean: float
    others: tuple[float, ...]
    bounded: bool
    alpha: float
    within_reach: bool
    rows: tuple[AdviceRow, ...]
    recommended: Policy
    confidence: float
    problem: tuple[str, ...]
    reasons: tuple[str, ...]
    caveats: tuple[str, ...]

    @property
    def alphas(self) -> set[float]:
        """The hardnesses that were played."""
        return {row.alpha for row in self.rows}

    @property
    def code(self) -> str:
        """What to type to use the recommended policy live."""
        return f"{_code(self.recommended)}.live(n_arms={self.n:_}, horizon={self.horizon:_})"

    def at(self, alpha: float) -> list[AdviceRow]:
        """Return the rows of the hardness nearest to `alpha`."""
        if not alpha >= 0.0:
            raise ParameterError(f"`alpha` must be a number >= 0, got {alpha!r}.")
        # an infinite hardness is at distance 0 from itself, which subtraction does not tell
        nearest = alpha if alpha in self.alphas else min(self.alphas, key=lambda a: abs(a - alpha))
        return [row for row in self.rows if row.alpha == nearest]

    def records(self) -> list[dict[str, Any]]:
        """Return the rows as dictionaries of plain values, ready for a data frame."""
        return [{**asdict(row), "policy": _code(row.policy)} for row in self.rows]

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain values; what is not finite becomes None."""
        whole = {key: value for key, value in vars(self).items() if key != "rows"}
        whole |= {"recommended": _code(self.recommended), "code": self.code}
        return dict(plain({**whole, "rows": self.records()}))

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        lines = [textwrap.fill(sentence, _WIDTH) for sentence in self.problem]
        if any(row.replications for row in self.rows):  # else there is nothing to compare
            lines += ["", *_curves(self), "", *_details(self)]
        lines += ["", "Take", f"  {self.code}", "because", *_listed(self.reasons)]
        if self.caveats:
            lines += ["What would change it", *_listed(self.caveats)]
        return "\n".join(lines)


def _code(policy: Policy) -> str:
    """Return what to type: `ma.MOSSPlusPlus(beta=0.5)`."""
    told = [
        f"{field.name}={getattr(policy, field.name)!r}"
        for field in fields(policy)
        if field.name == "beta" or getattr(policy, field.name) != field.default
    ]
    return f"ma.{type(policy).__name__}({', '.join(told)})"


def _listed(sentences: Iterable[str]) -> list[str]:
    return [textwrap.fill(f"- {one}", _WIDTH, subsequent_indent="  ") for one in sentences]


def _curves(advice: Advice) -> list[str]:
    """Show what is lost and what is proven: a line for each policy, a column for each hardness."""
    by_label: dict[str, list[AdviceRow]] = {}
    for row in advice.rows:
        by_label.setdefault(row.label, []).append(row)
    width = max(len("best arms"), *map(len, by_label))

    def line(name: str, cells: Iterable[str]) -> str:
        return f"  {name:<{width}} " + " ".join(f"{cell:>12}" for cell in cells)

    counted = {row.alpha: row.m for row in advice.rows}
    hardness = line("hardness", map(_alpha, counted))
    best_arms = line("best arms", (f"{m:,}" for m in counted.values()))
    lost = [
        "Regret, as % of the horizon (≤ the upper end of its 95 % interval)",
        f"{hardness}{'worst':>10} {'worst':>7}",
        f"{best_arms}{'excess':>10} {'ratio':>7}",
    ]
    proven = ["Regret grows at most as T to the power of (theory)", hardness]
    for label, rows in by_label.items():
        excess, ratio = max(row.excess for row in rows), max(row.ratio for row in rows)
        taken = "  <- take" if rows[0].policy == advice.recommended else ""
        shares = line(label, (_share(row, advice.horizon) for row in rows))
        lost.append(f"{shares}{100 * excess:>10.1f} {ratio:>7.2f}{taken}")
        rates = ("unproven" if row.rate is None else f"{row.rate:.3f}" for row in rows)
        proven.append(line(label, rates))
    return [*lost, "", *proven]


def _alpha(alpha: float) -> str:
    return "infinite" if alpha == math.inf else f"{alpha:.2f}"


def _share(row: AdviceRow, horizon: int) -> str:
    if row.replications == 0:
        return f"{100 * row.share:.1f} exact"
    return f"{100 * row.share:.1f} (≤{100 * row.high / horizon:.1f})"


def _details(advice: Advice) -> list[str]:
    """Show the regret: at the bound if there is one, else where the choice is least fitting."""
    own = [row for row in advice.rows if row.policy == advice.recommended]
    alpha = advice.alpha if advice.bounded else max(own, key=lambda row: row.excess).alpha
    rows = {_code(row.policy): row for row in advice.at(alpha)}
    width = max(map(len, rows))
    lines = [
        f"Regret at hardness {_alpha(alpha)}",
        f"  {'':<{width}} {'mean':>11} {'95 % interval':>24} {'median':>11} "
        f"{'missed':>7} {'runs':>5}",
    ]
    for name, row in rows.items():
        interval = f"[{row.low:,.1f}, {row.high:,.1f}]" if row.replications > 0 else "-"
        runs = "exact" if row.replications == 0 else f"{row.replications}"
        lines.append(
            f"  {name:<{width}} {row.mean:>11,.1f} {interval:>24} {row.median:>11,.1f} "
            f"{row.miss_rate:>7.1%} {runs:>5}"
        )
    return lines


def advise(
    *,
    n: int,
    horizon: int,
    m_at_least: int | None = None,
    alpha_at_most: float | None = None,
    best_mean: float | None = None,
    others: Sequence[float] | None = None,
    betas: Sequence[float] = BETAS,
    replications: int | None = None,
    seed: int = 0,
    workers: int | None = None,
    progress: bool | ProgressCallback | None = None,
) -> Advice:
    """Say how hard a problem is, what each policy would lose on it, and which one to take.

    Policies are played on planted instances of several hardnesses, up to the largest one that
    may be. Recommended is the policy with the smallest worst excess: what it loses beyond the best
    candidate at the same hardness. Of policies that do alike, within half a percent of the
    horizon, the simplest is taken.

    Parameters
    ----------
    n
        The number of arms.
    horizon
        The number of pulls, at most ten million.
    m_at_least
        How many arms are best, at least. Admits MOSS Oracle.
    alpha_at_most
        How hard the problem is, at most, instead of `m_at_least`.
    best_mean
        The best mean, if it is known; when in doubt round it down. Admits Parallel, and becomes
        the best mean of the planted instances, which is 0.9 unless given.
    others
        The means of the other planted arms, in equal parts; unless given, the paper's 0.1, 0.2,
        0.3, 0.4 and 0.5, in proportion to the best mean.
    betas
        Parameters of MOSS++ and empMOSS++ to try.
    replications
        Runs of each policy at each hardness. Unless given, as many as some ten seconds allow on
        two processors, but at least 4 (2 of MOSS on very many arms) and at most 200.
    seed, workers, progress
        As for `simulate`.

    Examples
    --------
    >>> import manyarms as ma
    >>> advice = ma.advise(n=1000, horizon=200, alpha_at_most=0.3, replications=5)
    >>> live = advice.recommended.live(n_arms=1000, horizon=200)
    >>> advice.within_reach
    True
    """
    asked = question(n, horizon, m_at_least, alpha_at_most, best_mean, others, betas)
    if replications is not None:
        replications = check_int("replications", replications, at_least=1)
    players = candidates(asked)
    games = play(asked, players, replications, seed=seed, workers=workers, progress=progress)
    made = choose(games, asked.horizon)
    rows = [
        _row(
            problem,
            player,
            game,
            lowest=min(float(g.regrets.mean()) for g in line),
            largest=asked.largest_regret,
        )
        for problem, line in zip(asked.problems(), games, strict=True)
        for player, game in zip(players, line, strict=True)
    ]
    return Advice(
        n=asked.n,
        horizon=asked.horizon,
        best_mean=asked.best,
        others=asked.others,
        bounded=asked.bounded,
        alpha=asked.hardest.alpha,
        within_reach=asked.hardest.within_reach,
        rows=tuple(rows),
        recommended=players[made.winner].policy,
        confidence=float(made.wins[made.winner]),
        problem=problem_in_words(asked, players),
        reasons=reasons(asked, players, made),
        caveats=caveats(asked, players, games, made),
    )


def _row(
    problem: Problem, player: Candidate, game: Game, *, lowest: float, largest: float
) -> AdviceRow:
    interval = mean_interval(game.regrets, bounds=(0.0, largest))
    mean = interval.estimate
    if game.exact:
        interval = Interval(mean, mean, mean)
    # beyond hardness 1 nothing can be promised: regret grows as the horizon does
    alpha = problem.alpha
    rate = None if player.rate is None else (player.rate(alpha) if alpha <= 1.0 else 1.0)
    return AdviceRow(
        policy=player.policy,
        label=player.label,
        beta=getattr(player.policy, "beta", None),
        m=int(problem.m),
        alpha=alpha,
        rate=rate,
        mean=mean,
        low=interval.low,
        high=interval.high,
        median=game.median,
        miss_rate=game.miss_rate,
        share=mean / problem.horizon,
        excess=(mean - lowest) / problem.horizon,
        ratio=max(mean, 1.0) / max(lowest, 1.0),
        replications=0 if game.exact else len(game.regrets),
    )
