"""The one call: ask, play, choose. What it returns is a table that prints as advice."""

from __future__ import annotations

import math
import shlex
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

from manyarms.advice.candidates import candidates
from manyarms.advice.question import question
from manyarms.advice.race import Race, affordable, race
from manyarms.advice.reasons import caveats, in_short, problem_in_words, reasons
from manyarms.core.checks import check_int
from manyarms.core.statistics import mean_limits
from manyarms.errors import ParameterError
from manyarms.instances import Instance
from manyarms.protocol import Policy
from manyarms.report.text import for_json
from manyarms.simulation.experiment import Objective
from manyarms.simulation.progress import ProgressCallback

_WIDTH = 80  # of the text
_SHORT = 10  # lines of reasons, unless all are asked for


@dataclass(frozen=True)
class AdviceRow:
    """One policy in one case.

    Attributes
    ----------
    policy, label, code, guarantee
        The policy, its name, what to type to make it, and what is proved about it.
    best_mean, m, alpha
        The case: the best mean, how many arms have it, and the hardness that this makes. With
        means of one's own, arms within 1/sqrt(horizon) of the best count as best.
    mean, low, high
        The mean regret, or simple regret, with a 95 % interval that allows for costly runs that
        were not seen.
    miss_rate
        The share of runs that pulled no best arm, or recommend none.
    excess
        The mean regret less the lowest one in this case, as a share of the horizon; with
        `best_between`, of the most that can be lost. Of simple regrets, the difference itself.
    replications
        The number of runs.
    finalist
        Whether it played to the end.
    """

    policy: Policy
    label: str
    code: str
    guarantee: str
    best_mean: float
    m: int
    alpha: float
    mean: float
    low: float
    high: float
    miss_rate: float
    excess: float
    replications: int
    finalist: bool


@dataclass(frozen=True, repr=False)
class Advice:
    """How hard a problem is, what each policy would lose, and which one to take.

    `print` shows it in words.

    Attributes
    ----------
    n, horizon, in_flight
        The size of the problem, and how many pulls wait for their reward.
    objective
        "earn", for little regret on the way, or "find", for a good arm in the end.
    bounded
        Whether a bound on the hardness was given.
    alpha
        The largest hardness that was played.
    within_reach
        Whether a best arm can be expected to be met even then: hardness at most 1.
    rows
        One `AdviceRow` for each policy and case, the easiest case first; none where all policies
        are the same.
    recommended, name, code, word
        The policy to take, what tables call it, what to type in Python to make it, and what
        `--policy` of the command line takes; "" if it has no name there.
    not_told_apart
        The policies that may be as good in the usual run, by the medians of paired differences.
        `reasons` also says which may be as good on average, rare misses included.
    not_played
        The policies that were left out because a run takes too long.
    in_short, problem, reasons, caveats
        Sentences: all in a few lines; how hard it is, why this policy, and what would change the
        choice.

    Examples
    --------
    >>> import manyarms as ma
    >>> names = ["moss", "ss-greedy"]
    >>> advice = ma.advise(n=500, horizon=100, m_at_least=100, policies=names, replications=2)
    >>> {row.alpha for row in advice.rows if row.policy == advice.recommended} == advice.alphas
    True
    """

    n: int
    horizon: int
    in_flight: int
    bounded: bool
    alpha: float
    within_reach: bool
    rows: tuple[AdviceRow, ...]
    recommended: Policy
    name: str
    code: str
    not_told_apart: tuple[str, ...]
    not_played: tuple[str, ...]
    in_short: tuple[str, ...]
    problem: tuple[str, ...]
    reasons: tuple[str, ...]
    caveats: tuple[str, ...]
    objective: Objective = "earn"
    word: str = ""

    @property
    def alphas(self) -> set[float]:
        """The hardnesses that were played."""
        return {row.alpha for row in self.rows}

    def at(self, alpha: float) -> list[AdviceRow]:
        """Return the rows of the hardness nearest to `alpha`, the least regret first."""
        if not alpha >= 0.0:
            raise ParameterError(f"`alpha` must be a number >= 0, got {alpha!r}.")
        nearest = min(self.alphas, key=lambda one: abs(one - alpha), default=None)
        found = (row for row in self.rows if row.alpha == nearest)
        return sorted(found, key=lambda row: row.mean)

    def records(self) -> list[dict[str, Any]]:
        """Return the rows as dictionaries of plain values, ready for a data frame."""
        names = [field.name for field in fields(AdviceRow) if field.name != "policy"]
        return [{name: getattr(row, name) for name in names} for row in self.rows]

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain values; what is not finite becomes None."""
        whole = {key: value for key, value in vars(self).items() if key != "recommended"}
        return dict(for_json({**whole, "rows": self.records()}))

    def __repr__(self) -> str:
        more = "text(why=True) shows the table, and what would change the advice."
        return f"{self.text()}\n\n{more}" if self.rows else self.text()

    def text(self, *, why: bool = False, everyone: bool = False) -> str:
        """Return the advice in words.

        Parameters
        ----------
        why
            Whether to show all of it: the table, all reasons, and what would change the advice
            (default: a few lines).
        everyone
            Whether the table has all policies that played, and not only those that played to the
            end; implies `why`.
        """
        lines = [f"Take {self.name}:", *self._typed(), ""]
        if not (why or everyone):
            return "\n".join([*lines, "Why?", *_at_most(_SHORT, self.in_short)])
        lines += ["Because", *_listed(self.reasons), ""]
        lines += [_filled(sentence) for sentence in self.problem]
        if self.rows:
            lines += ["", *_table(self, everyone)]
        if self.caveats:
            lines += ["", "What would change the advice", *_listed(self.caveats)]
        return "\n".join(lines)

    def _typed(self) -> Iterator[str]:
        """Yield what to type, indented: in Python, and in the shell."""
        if self.word and not self.code.startswith("ma.policy("):  # module:Class
            yield f"  import {self.word.partition(':')[0]}"
        yield from _code(f"{self.code}.live", f"n_arms={self.n:_}, horizon={self.horizon:_}")
        if self.word:
            yield f"or, on the command line, --policy {shlex.quote(self.word)}"


def _filled(text: str, indent: str = "") -> str:
    return textwrap.fill(text, _WIDTH, subsequent_indent=indent, break_on_hyphens=False)


def _code(function: str, arguments: str) -> list[str]:
    """Return a call, indented, on one line or on three that can be pasted as they are."""
    line = f"  {function}({arguments})"
    return [line] if len(line) <= _WIDTH else [f"  {function}(", f"      {arguments}", "  )"]


def _listed(sentences: Iterable[str]) -> list[str]:
    return [_filled(f"- {one}", "  ") for one in sentences]


def _at_most(lines: int, sentences: Iterable[str]) -> list[str]:
    """Return the sentences as a list of so many lines; those that do not fit are left out."""
    kept: list[str] = []
    for one in _listed(sentences):
        if len("\n".join([*kept, one]).splitlines()) <= lines:
            kept.append(one)
    return kept


def _table(advice: Advice, everyone: bool) -> Iterator[str]:
    """Yield what is lost: a line for each policy, a column for each case."""
    lines: dict[str, list[AdviceRow]] = {}
    for row in advice.rows:
        lines.setdefault(row.label, []).append(row)
    cases = next(iter(lines.values()))
    shown = {label: own for label, own in lines.items() if own[0].finalist or everyone}
    room = _WIDTH - len("  ") - 6 * len(cases) - len("   worst <-")  # for names
    width = min(max(map(len, ["best arms", *shown])), room)
    roomy = width + len("  runs") <= room

    def line(name: str, cells: Iterable[str], *last: str) -> str:
        if len(name) > width:  # it stands above its numbers
            return f"  {name}\n{line('', cells, *last)}"
        return f"  {name:<{width}}" + "".join(f"{cell:>6}" for cell in cells) + "".join(last)

    scale = advice.horizon if advice.objective == "earn" else 1
    yield (
        "Mean regret, in % of the horizon"
        if advice.objective == "earn"
        else "What the recommended arm lacks of the best mean, in hundredths"
    )
    hardnesses = ("inf" if row.alpha == math.inf else f"{row.alpha:.2f}" for row in cases)
    yield line("hardness", hardnesses, "   worst")
    if len({row.best_mean for row in cases}) > 1:
        yield line("best mean", (f"{row.best_mean:.3g}" for row in cases))
    yield line("best arms", (_short(row.m) for row in cases), "  excess", "  runs" * roomy)
    worst = {label: max(row.excess for row in rows) for label, rows in lines.items()}
    for label in sorted(shown, key=lambda label: (not shown[label][0].finalist, worst[label])):
        own = shown[label]
        shares = (_digits(100 * row.mean / scale) for row in own)
        last = f"{_digits(100 * worst[label]):>8}", f"{own[0].replications:>6}" * roomy
        yield line(label, shares, *last, " <-" if own[0].code == advice.code else "")


def _short(count: int) -> str:
    """Return a count in five characters at most.

    >>> [_short(count) for count in (9_999, 125_000, 31_600_000, 1 << 50)]
    ['9,999', '125k', '32M', '1e+15']
    """
    for most, unit, name in ((1e4, 1, ""), (1e6, 1e3, "k"), (1e9, 1e6, "M")):
        if count < most:
            return f"{count / unit:,.0f}{name}"
    return f"{count:.0e}"


def _digits(number: float) -> str:
    return f"{number:.2f}" if number < 9.995 else f"{number:.1f}"


def advise(
    *,
    horizon: int,
    n: int | None = None,
    m_at_least: int | None = None,
    alpha_at_most: float | None = None,
    best_mean: float | None = None,
    best_between: Sequence[float] | None = None,
    others: Sequence[float] | None = None,
    instance: Instance | None = None,
    in_flight: int = 0,
    objective: Objective = "earn",
    policies: Sequence[str | Policy] | None = None,
    replications: int | None = None,
    seed: int = 0,
    workers: int | None = None,
    progress: bool | ProgressCallback | None = None,
) -> Advice:
    """Say how hard a problem is, what each policy would lose on it, and which one to take.

    Policies play that need to know no more than you do. The arms are your own, or planted ones of
    several hardnesses, up to the largest possible one. Policies play in rounds, and only the best
    go on to the next round. The *excess* is what a policy loses beyond
    the best candidate in the same case; the policy with the smallest worst excess is recommended.
    One with a guarantee is preferred to one without if it loses at most a tenth more.

    Parameters
    ----------
    horizon
        The number of pulls, at most ten million.
    n
        The number of arms.
    m_at_least
        At least this many arms are best. Policies that need to know m, such as MOSS Oracle, join.
    alpha_at_most
        The largest hardness, instead of `m_at_least`.
    best_mean
        The best mean, if you know it; when in doubt, round it down. Policies that need to know it,
        such as Patience, join; if it is 1, so do those that drop an arm that fails.
    best_between
        The smallest and largest best mean you expect, instead of `best_mean`, such as (0.01, 0.05)
        for click rates. Both are planted (default: 0.5 and 0.9, or 0.9 if `others` is given), and
        losses count in proportion to what can be lost.
    others
        The means of the other planted arms, in equal parts (default: the paper's 0.1, 0.2, 0.3,
        0.4 and 0.5, in proportion to the best mean).
    instance
        Arms of your own instead of planted ones, such as `instances.from_means(means)` or
        `instances.captions(652)`: what you expect yours to be like.
    in_flight
        The number of further pulls that are asked for before the reward of a pull is told
        (default: 0). Policies that have `count_late` play with it.
    objective
        "earn": little regret on the way. "find": a good arm to keep in the end (default: "earn").
        With "find", policies are judged by what the recommended arm lacks of the best mean, and if
        nothing is known about the arms they also play on means that are spread out.
    policies
        Consider only these: names, and policies of your own; or "all", the whole catalogue. A
        name is left out if its policy needs to know more than you do. By default, those play that
        lost least of all on some problem of the leaderboard, and those that you have registered.
    replications
        Runs of each finalist (default: as many as fit into about ten seconds on two processors,
        at most 400).
    seed, workers, progress
        As for `simulate`.

    Notes
    -----
    The first call compiles what plays, which takes some seconds (the whole catalogue: a minute or
    two). Later ones find it on disk.

    Examples
    --------
    >>> import manyarms as ma
    >>> own = ["moss", "ss-greedy", ma.MOSSPlusPlus(beta=0.55)]
    >>> advice = ma.advise(n=1000, horizon=200, alpha_at_most=0.3, policies=own, replications=5)
    >>> live = advice.recommended.live(n_arms=1000, horizon=200)
    >>> advice.within_reach
    True
    """
    asked = question(
        n=n,
        horizon=horizon,
        m_at_least=m_at_least,
        alpha_at_most=alpha_at_most,
        best_mean=best_mean,
        best_between=best_between,
        others=others,
        instance=instance,
        in_flight=in_flight,
        policies=policies,
        objective=objective,
    )
    if replications is not None:
        replications = check_int("replications", replications, at_least=1)
    everyone = candidates(asked)
    players = everyone if replications is not None else affordable(asked, everyone)
    skipped = [player for player in everyone if player not in players]
    how = {"seed": seed, "workers": workers, "progress": progress}
    played = None if asked.trivial else race(asked, players, replications, **how)
    taken = players[0] if played is None else played.players[played.winner]
    alike = [] if played is None else [played.players[k].label for k in played.not_told_apart()]
    return Advice(
        n=asked.n,
        horizon=asked.horizon,
        in_flight=asked.in_flight,
        bounded=asked.bounded,
        alpha=asked.hardest.alpha,
        within_reach=asked.hardest.within_reach,
        rows=() if played is None else tuple(_rows(played)),
        recommended=taken.policy,
        name=taken.label,
        code=taken.code,
        not_told_apart=tuple(alike),
        not_played=tuple(player.label for player in skipped),
        in_short=in_short(asked, played, alike),
        problem=problem_in_words(asked, played),
        reasons=reasons(asked, played, alike),
        caveats=caveats(asked, played, skipped),
        objective=asked.objective,
        word=taken.word,
    )


def _rows(played: Race) -> Iterator[AdviceRow]:
    """Yield the numbers of everyone, case by case."""
    bounds = played.bounds
    limits = [mean_limits(regrets, bounds=(0.0 * bounds, bounds)) for regrets in played.regrets]
    excesses = played.excesses
    for at, case in enumerate(played.cases):
        for k, player in enumerate(played.players):
            regrets = played.regrets[k][:, at]
            yield AdviceRow(
                policy=player.policy,
                label=player.label,
                code=player.code,
                guarantee=player.about.guarantee if not player.unmet else "none here",
                best_mean=case.instance.best_mean,
                m=int(case.problem.m),
                alpha=case.problem.alpha,
                mean=float(regrets.mean()),
                low=float(limits[k][0][at]),
                high=float(limits[k][1][at]),
                miss_rate=float(played.missed[k][:, at].mean()),
                excess=float(excesses[k, at]),
                replications=len(regrets),
                finalist=k in played.left,
            )
