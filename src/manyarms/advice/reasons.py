"""The sentences of the advice: how hard the problem is, why this policy, what would change it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from manyarms.advice.play import ALIKE, Choice, Game
from manyarms.advice.question import Candidate, Question
from manyarms.policies import MOSS, MOSSOracle
from manyarms.theory import best_arms

__all__ = ["caveats", "problem_in_words", "reasons"]

_DEGREES = ((0.25, "easy"), (0.5, "moderate"), (0.75, "hard"), (1.0, "very hard"))
_HARDLY_ANY = 20  # pulls
_SURE = 0.9  # of the bootstrap samples
_MANY = 30  # runs


def problem_in_words(question: Question, players: Sequence[Candidate]) -> tuple[str, ...]:
    """Say how hard the problem is, and on what it was played."""
    sentences = [_size(question), *_special(question)]
    if question.trivial:
        return tuple(sentences)
    sentences.append(_hardness(question))
    if question.bounded and not any(isinstance(p.policy, MOSSOracle) for p in players):
        sentences.append("For that, MOSS Oracle would draw as many arms as it can: it is MOSS.")
    means = ", ".join(f"{mean:.3g}" for mean in question.others)
    sentences.append(
        f"Assumed: the best arms have mean {question.best:g}, the others are spread evenly over "
        f"{means}, and rewards are 0 or 1."
    )
    return tuple(sentences)


def _size(question: Question) -> str:
    n, horizon, fewest = question.n, question.horizon, question.fewest
    pulls = f"{horizon:,} pull{'' if horizon == 1 else 's'}."
    if n == 1:
        return f"1 arm; {pulls}"
    if question.m_at_least is not None:
        known = f"at least {fewest:,} of them best"
    elif question.alpha_at_most is not None:
        known = f"hardness at most {question.alpha_at_most:g}: at least {fewest:,} best"
    else:
        known = "an unknown number of them best"
    return f"{n:,} arms, {known}; {pulls}"


def _special(question: Question) -> list[str]:
    n, horizon = question.n, question.horizon
    if question.fewest == n:
        return ["Every arm is best: nothing can be lost, and there is nothing to learn."]
    if horizon == 1:
        return ["With one pull all policies are the same: they pull an arm at random."]
    if horizon <= _HARDLY_ANY:
        return ["So few pulls leave hardly anything to learn from: policies differ little."]
    if _time_for_all(question):
        return [f"There are {horizon // n:,} pulls for each arm: time enough to try them all."]
    return []


def _time_for_all(question: Question) -> bool:
    return question.horizon >= 100 * question.n


def _hardness(question: Question) -> str:
    n, horizon, alpha = question.n, question.horizon, question.hardest.alpha
    needed = best_arms(n, horizon, 1.0)
    if alpha > 1.0:
        pulls = math.ceil(n / (2 * question.fewest))
        return (
            f"Out of reach if no more are best: hardness {alpha:.2f} is above 1, and "
            f"{horizon:,} random arms are not expected to hold a best one. It takes "
            f"{needed:,} best arms, or {pulls:,} pulls, to come within reach. Arms that are "
            f"nearly best (within {1 / math.sqrt(horizon):.2g}) may be counted as best."
        )
    degree = next(word for bound, word in _DEGREES if alpha <= bound)
    if question.bounded:
        return f"Hardness at most {alpha:.2f}: {degree} (0 is easy, above 1 is out of reach)."
    if needed > 1:
        return (
            f"Its hardness is not known: with fewer than {needed:,} best arms it is above 1, and "
            f"out of reach. Up to there, this is the whole curve."
        )
    return (
        f"Its hardness is not known; with a single best arm it is {alpha:.2f}: {degree} (0 is "
        f"easy, above 1 is out of reach). Up to there, this is the whole curve."
    )


def reasons(question: Question, players: Sequence[Candidate], made: Choice) -> tuple[str, ...]:
    """Say why the winner is recommended."""
    if question.trivial:
        return ("Any policy will do; this is the simplest.",)
    alphas, winner = [problem.alpha for problem in question.problems()], made.winner
    name, several = players[winner].label, len(alphas) > 1
    if made.worst[winner] == 0.0:
        place = "at every hardness played" if several else "of all"
        sentences = [f"{name} has the lowest mean regret {place}."]
    else:
        where = int(made.excesses[:, winner].argmax())
        best = players[int(made.excesses[where].argmin())].label
        whatever = "At every hardness played, " if several else ""
        sentences = [
            f"{whatever}{name} loses at most {_percent(made.worst[winner])} of the horizon more "
            f"than the best candidate there; most at {alphas[where]:.2f}, where that is {best}."
        ]
    sentences += _rivals(players, made)
    if isinstance(players[winner].policy, MOSS) and _time_for_all(question):
        sentences.append("There is time to try every arm, and MOSS needs no parameter for it.")
    if not question.hardest.within_reach:
        sentences.append("Out of reach, nothing finds a best arm: one can only settle for less.")
    first, last = (_percent(made.shares[k, winner]) for k in (0, -1))
    spread = f"{first} (easiest) to {last} (hardest)" if several else first
    sentences.append(f"Expect a regret of {spread} of the horizon.")
    sentences.append(f"{made.wins[winner]:.0%} of bootstrap samples of the runs choose it again.")
    return tuple(sentences)


def _rivals(players: Sequence[Candidate], made: Choice) -> list[str]:
    worst, own = made.worst, players[made.winner]
    order = [int(k) for k in worst.argsort(kind="stable") if k != made.winner]
    alike = [players[k].label for k in order if worst[k] < worst[made.winner]]
    behind = [k for k in order if worst[k] >= worst[made.winner]]
    safe = None if own.has_guarantee else next(k for k in order if players[k].has_guarantee)
    sentences = []
    if alike:
        sentences.append(
            f"It is taken before {', '.join(alike)}, which may do better by less than "
            f"{_percent(ALIKE)} of the horizon, because it is simpler or has a guarantee."
        )
    if behind and behind[0] != safe:
        sentences.append(f"Next comes {_standing(players, made, behind[0])}.")
    if safe is not None:
        best = _standing(players, made, safe)
        lacks = "Nothing is proven about" if own.rate is None else "Others promise more than"
        sentences.append(f"{lacks} {own.label}; of those with a guarantee the best is {best}.")
    return sentences


def _standing(players: Sequence[Candidate], made: Choice, k: int) -> str:
    if made.worst[k] - made.worst[made.winner] <= ALIKE:
        return f"{players[k].label}, which does as well within {_percent(ALIKE)} of the horizon"
    return f"{players[k].label}, which may lose {_percent(made.worst[k])} of the horizon more"


def caveats(
    question: Question, players: Sequence[Candidate], games: Sequence[Sequence[Game]], made: Choice
) -> tuple[str, ...]:
    """Say what would change the choice."""
    if question.trivial:
        return ()
    winner, sentences = made.winner, []
    runs = min(len(row[winner].regrets) for row in games)
    if runs < _MANY and not games[0][winner].exact:
        sentences.append(
            f"More replications: a run either meets a best arm or does not, and what happens less "
            f"than once in {runs} runs may not have been seen; the intervals allow for it."
        )
    if made.wins[winner] < _SURE:
        others = np.where(np.arange(len(players)) == winner, -1.0, made.wins)
        rival = players[int(others.argmax())].label
        sentences.append(f"More replications may decide for {rival}.")
    easy, hard = (f"{question.problems()[k].alpha:.2f}" for k in (0, -1))
    ends = {
        f"be sure that the hardness is {hard} and no less": int(made.shares[-1].argmin()),
        f"know that the hardness is at most {easy}": int(made.shares[0].argmin()),
    }
    for known, best in ends.items():
        if len(made.shares) > 1 and best != winner:
            sentences.append(f"To {known}: there {players[best].label} loses least.")
    if not question.bounded:
        sentences.append("To know how many arms are best, at least: it admits moss-oracle.")
    if question.best_mean is None:
        sentences.append("To know the best mean (rounded down): it admits patience and parallel.")
    sentences.append("Other gaps: give the best mean and the means of the others that you expect.")
    return tuple(sentences)


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.1 else f"{100 * share:.0f} %"
