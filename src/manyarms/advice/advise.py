"""The one call: ask, play, choose, put into words."""

from __future__ import annotations

from collections.abc import Sequence

from manyarms.advice.candidates import Candidate, candidates
from manyarms.advice.choice import choose
from manyarms.advice.playing import Game, play
from manyarms.advice.question import question as check_question
from manyarms.advice.reasons import caveats, problem_in_words, reasons
from manyarms.advice.table import Advice, AdviceRow
from manyarms.core.checks import check_int
from manyarms.core.statistics import Interval, mean_interval
from manyarms.lab.progress import ProgressCallback
from manyarms.theory import Problem

__all__ = ["BETAS", "advise"]

BETAS = (0.5, 0.6, 0.75)


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
    asked = check_question(
        n=n,
        horizon=horizon,
        m_at_least=m_at_least,
        alpha_at_most=alpha_at_most,
        best_mean=best_mean,
        others=others,
        betas=betas,
    )
    if replications is not None:
        replications = check_int("replications", replications, at_least=1)
    players, problems = candidates(asked), asked.problems()
    games = play(
        asked,
        players,
        replications=replications,
        seed=seed,
        workers=workers,
        progress=progress,
    )
    made = choose(games, asked.horizon)
    rows = [
        _row(problem, player, game, lowest=min(float(g.regrets.mean()) for g in line))
        for problem, line in zip(problems, games, strict=True)
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


def _row(problem: Problem, player: Candidate, game: Game, *, lowest: float) -> AdviceRow:
    mean = float(game.regrets.mean())
    interval = Interval(mean, mean, mean) if game.exact else mean_interval(game.regrets)
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
        low=max(interval.low, 0.0),  # regret is never below it; NaN stays NaN
        high=interval.high,
        median=game.median,
        miss_rate=game.miss_rate,
        share=mean / problem.horizon,
        excess=(mean - lowest) / problem.horizon,
        ratio=max(mean, 1.0) / max(lowest, 1.0),
        replications=0 if game.exact else len(game.regrets),
    )
