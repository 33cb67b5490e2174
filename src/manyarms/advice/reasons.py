"""The sentences of the advice: how hard the problem is, why this policy, what would change it."""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable, Sequence

import numpy as np

from manyarms.advice.candidates import Candidate, admitted_by
from manyarms.advice.question import Question
from manyarms.advice.race import ALIKE, Race
from manyarms.simulation.experiment import Objective
from manyarms.simulation.summary import more_runs
from manyarms.theory import best_arms

_MOST_NAMED = 5


def problem_in_words(question: Question, played: Race | None) -> tuple[str, ...]:
    """Say how hard the problem is, on what it was played, and by whom."""
    sentences = [_size(question), *_special(question)]
    if played is None:
        return tuple(sentences)
    sentences += [_hardness(question), _assumed(question)]
    fewest = min(len(each) for each in played.regrets)
    who = f"{len(played.players)} policies that need to know no more than you do"
    said = f"{who} played {_runs(fewest)} each."
    if fewest < played.runs:
        said += f" The best went on; {len(played.left)} of them played {_runs(played.runs)}."
    unit = f"in % of {_whole(question)}" if question.objective == "earn" else "in hundredths"
    excess = f"The excess is what a policy loses beyond the best candidate of a case, {unit}."
    return (*sentences, said, excess)


def in_short(question: Question, played: Race | None, alike: Sequence[str]) -> tuple[str, ...]:
    """Say the same in a few sentences, the most important ones first."""
    sentences = [_size(question), *_special(question)]
    if played is None:
        return (*sentences, *reasons(question, played, alike))
    own, others = played.players[played.winner], len(played.players)
    hardest = question.hardest
    if question.objective == "find" and question.told_nothing:
        pass  # the means that are drawn have no best arms, only good ones
    elif not hardest.within_reach:
        said = f"Hardness {hardest.alpha:.2f} is above 1: no policy can expect to meet a best arm."
        sentences.append(said)
    elif question.bounded or question.instance is not None:
        sentences.append(_hardness(question))
    sentences += [_assumed(question), _loses(question, played), _expected(question, played)]
    sentences.append(own.proof)
    if alike:
        sentences.append(f"In the usual run it may be no better than {_names(alike)}.")
    elif len(played.left) > 1:
        sentences.append(f"In the usual run it loses less than all others, of {others}.")
    return tuple(sentences)


def _loses(question: Question, played: Race) -> str:
    """Say how far the winner is behind the best candidate of a case, at most."""
    worst, several = played.worst[played.winner], len(played.cases) > 1
    where = " in any of these cases" if several else ""
    best = f"the best of {_runs(len(played.players), 'candidate')}"
    if worst <= 0.0:
        return f"It is {best}{where}."
    if question.objective == "find":
        return f"Its arm is at most {worst:.2g} below that of {best}{where}."
    return f"It loses at most {_percent(worst)} of {_whole(question)} more than {best}{where}."


def _expected(question: Question, played: Race) -> str:
    """Say what the winner loses."""
    ends = played.means[played.winner].min(), played.means[played.winner].max()
    shown = ends if len(played.cases) > 1 else ends[:1]
    if question.objective == "earn":
        return f"Expect a regret of {' to '.join(map(_percent, shown))} of the horizon."
    return (
        f"Expect an arm that lacks {' to '.join(f'{end:.2g}' for end in shown)} of the best mean."
    )


def _whole(question: Question) -> str:
    """Return what excesses are shares of."""
    return "the most that can be lost" if question.rates else "the horizon"


def _runs(number: int, what: str = "run") -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _size(question: Question) -> str:
    n, fewest, own = question.n, question.fewest, question.instance
    pulls = f"{_runs(question.horizon, 'pull')}."
    if n == 1:
        return f"1 arm; {pulls}"
    if question.m_at_least is not None:
        known = f"at least {fewest:,} of them best"
    elif question.alpha_at_most is not None:
        known = f"hardness at most {question.alpha_at_most:g}: at least {fewest:,} best"
    elif own is not None:
        known = f"{fewest:,} of them within {1 / math.sqrt(question.horizon):.2g} of the best"
    else:
        known = "an unknown number of them best"
    return f"{n:,} arms, {known}; {pulls}"


def _special(question: Question) -> list[str]:
    if question.fewest == question.n:
        return ["Every arm is best: nothing can be lost, and there is nothing to learn."]
    if question.horizon == 1:
        return ["With one pull all policies are the same: they pull an arm at random."]
    return []


def _hardness(question: Question) -> str:
    n, horizon, alpha = question.n, question.horizon, question.hardest.alpha
    needed = best_arms(n, horizon, 1.0)
    if alpha > 1.0:
        pulls = math.ceil(n / (2 * question.hardest.m))
        return (
            f"Out of reach if only {question.hardest.m:,.0f} of the arms are best: hardness "
            f"{alpha:.2f} is above 1, so you cannot expect a best arm among {horizon:,} random "
            f"ones. It takes {needed:,} best arms, or {pulls:,} pulls, to come within reach. You "
            f"may count arms as best that are nearly so (within {1 / math.sqrt(horizon):.2g})."
        )
    if question.bounded or question.instance is not None:
        most = "at most " if question.instance is None else ""
        return f"Hardness {most}{alpha:.2f} (0 is easy, above 1 is out of reach)."
    where = "With a single best arm" if needed == 1 else f"With {needed:,} best arms"
    return (
        f"The hardness is not known. {where} it would be {alpha:.2f} (0 is easy, above 1 is out of "
        f"reach); the table covers everything up to there."
    )


def _assumed(question: Question) -> str:
    late = f"; {_runs(question.in_flight, 'pull')} in flight" if question.in_flight else ""
    if question.instance is not None:
        return f"Played on {question.instance.label}{late}."
    if question.objective == "find" and question.told_nothing:
        return (
            "Assumed, one after the other: best arms of mean 0.9 among others of 0.1 to 0.5, and "
            "means that are spread out, as Beta(1, 1), (2, 5), (1, 3) and (10, 30); rewards are 0 "
            f"or 1{late}."
        )
    bests = " or ".join(f"{best:g}" for best in question.bests)
    if question.others is None:
        others = "a ninth to five ninths of that"
    else:
        others = ", ".join(f"{mean:.3g}" for mean in question.others)
    return (
        f"Assumed: the best arms have mean {bests}, the others are spread evenly over {others}, "
        f"and rewards are 0 or 1{late}."
    )


def reasons(question: Question, played: Race | None, alike: Sequence[str]) -> tuple[str, ...]:
    """Say why the winner is recommended."""
    if played is None:
        return ("Any policy will do; this is the simplest.",)
    winner, worst, several = played.winner, played.worst, len(played.cases) > 1
    name, runs = played.players[winner].label, _runs(played.runs)
    if worst[winner] <= 0.0:
        least = "lowest mean regret" if question.objective == "earn" else "best recommended arm"
        sentences = [f"{name} has the {least}{' in every case' if several else ''}."]
    else:
        where = int(played.excesses[winner].argmax())
        best = played.players[played.best_in(where)].label
        beyond = f"the best candidate{'' if several else f', {best}'}"
        if question.objective == "find":
            lost = f"recommends an arm at most {worst[winner]:.2g} below that of {beyond}"
        elif several:
            lost = f"has an excess of at most {_percent(worst[winner])} of {_whole(question)}"
        else:
            lost = f"loses {_percent(worst[winner])} of {_whole(question)} more than {beyond}"
        sentences = [f"{name} {lost}."]
        if several:
            at = _hard(played, where)
            sentences[0] += f" The excess is largest at hardness {at}, where {best} is best."
    sentences += _rivals(played, question.objective)
    sentences.append(_expected(question, played))
    if alike:
        sentences.append(
            f"In the usual run it cannot be distinguished from {_names(alike)} (medians of {runs})."
        )
    elif len(played.left) > 1:
        sentences.append(f"In the usual run it loses less than all others (medians of {runs}).")
    sentences += _on_average(played)
    if not question.hardest.within_reach:
        sentences.append("A best arm is out of reach of every policy: settle for a good one.")
    return tuple(sentences)


def _on_average(played: Race) -> list[str]:
    """Say from whom the winner cannot be distinguished on average, and what would do it."""
    undecided = played.undecided_on_average()
    if not undecided:
        sure = "On average, rare misses included, it loses less than all others."
        return [sure] if len(played.left) > 1 else []
    names = _names(played.players[k].label for k in undecided)
    more = more_runs(max(undecided.values()), played.runs)
    return [
        f"On average, rare misses included, it cannot be distinguished from {names}: it takes "
        f"{more} to decide all of these, by an estimate."
    ]


def _hard(played: Race, case: int) -> str:
    alpha = played.cases[case].problem.alpha
    return "infinite" if alpha == math.inf else f"{alpha:.2f}"


def _rivals(played: Race, objective: Objective) -> list[str]:
    """Name the next ones, and what is proved."""
    worst, own = played.worst, played.players[played.winner]
    order = sorted((k for k in played.left if k != played.winner), key=lambda k: worst[k])
    better = [k for k in order if worst[k] < worst[played.winner]]
    sentences = [own.proof]
    if better:
        names = _names(played.players[k].label for k in better)
        more = f"although it may lose up to {ALIKE - 1:.0%} more"
        sentences.append(f"Therefore it is preferred to {names}, {more}.")
    for k in order[len(better) :][:1]:
        name = played.players[k].label
        excess = _percent(worst[k]) if objective == "earn" else f"{worst[k]:.2g}"
        sentences.append(f"The next best is {name}, with a worst excess of {excess}.")
    return sentences


def caveats(
    question: Question, played: Race | None, skipped: Sequence[Candidate]
) -> tuple[str, ...]:
    """Say what would change the choice."""
    if played is None:
        return ()
    sentences = []
    alphas = [case.problem.alpha for case in played.cases]
    for alpha in sorted(set(alphas[:-1]) - {alphas[-1]}, reverse=True):
        easier = played.excesses[:, : bisect.bisect_right(alphas, alpha)].max(axis=1)
        least = min(played.left, key=lambda k: easier[k])
        if easier[least] < easier[played.winner]:
            name = played.players[least].label
            sentences.append(f"If you know that the hardness is at most {alpha:.2f}, take {name}.")
            break
    if question.few:
        sentences.append(
            "If you ask for the whole catalogue (`policies='all'`), all play that you can make."
        )
    if skipped:
        names = _names(player.label for player in skipped)
        sentences.append(f"If you give `replications`, slow policies play, too: {names}.")
    if not question.bounded:
        names = _names(admitted_by("m", question))
        known = "a lower bound on the number of best arms (`m_at_least`)"
        sentences.append(f"If you know {known}, these play, too: {names}.")
        if question.objective == "find" and question.told_nothing:
            rare = "a handful of arms are good, and all others far worse"
            sentences.append(
                f"If only {rare}, say so: give the largest hardness (`alpha_at_most=0.9`)."
            )
    if question.best_mean is None:
        names = _names(admitted_by("mu*", question))
        sentences.append(
            f"If you know the best mean, give it rounded down (`best_mean`); then these play, too: "
            f"{names}."
        )
    if question.instance is None:
        sentences.append(
            "If you expect other means, give them (`best_between`, `others`), or a file of your "
            "own (`instance`)."
        )
    if not question.in_flight:
        sentences.append("If rewards come late, say how many pulls are in flight (`in_flight`).")
    return tuple(sentences)


def _names(labels: Iterable[str]) -> str:
    """Return a list in words, cut after a few.

    >>> _names(["a", "b", "c"])
    'a, b and c'
    """
    listed = list(labels)
    if len(listed) > _MOST_NAMED:
        listed = [*listed[: _MOST_NAMED - 1], f"{len(listed) - _MOST_NAMED + 1} others"]
    return " and ".join(filter(None, [", ".join(listed[:-1]), listed[-1]]))


def _percent(share: float) -> str:
    return f"{100 * np.abs(share):.2g} %" if share < 0.1 else f"{100 * share:.0f} %"
