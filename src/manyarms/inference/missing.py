"""Texts that say why a verdict is not "stop"."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from manyarms.core.tabular import plain
from manyarms.inference.estimates import count, difference_text, mean_text, promise
from manyarms.inference.facts import CONTROL
from manyarms.inference.judging import Judged, lower_bound_of
from manyarms.inference.question import Question
from manyarms.inference.sample import Sample
from manyarms.inference.tried_arms import TriedArms
from manyarms.inference.uplift import uplift_of, why_no_uplift

_NAMED = 3  # arms named in a sentence
_MOST_OPEN = 10  # if more arms are undecided, none is named
_SOME = 100  # rewards that the outcome "nothing earned" needs


def is_target(tried: TriedArms, best: int, question: Question) -> bool:
    """Whether the recommended arm is the target itself, or has the control's name."""
    facts = tried.facts
    if question.rival == CONTROL:
        name = facts.name_of(int(tried.arm[best]))
        return facts.control is not None and bool(name == facts.control.name)
    return question.rival is not None and tried.place(question.rival) == best


def missing_for_target(tried: TriedArms, best: int, question: Question, bar: float) -> str:
    """Return why the arm is not shown to be above the target."""
    mean, rate = float(tried.total[best] / tried.told[best]), tried.rate
    if is_target(tried, best, question):
        return "No other arm is ahead of the target so far."
    if question.rival == CONTROL:
        why = why_no_uplift(tried.facts, best)
        if why:
            return f"{why[:1].upper()}{why[1:]}"
        return f"So far: {uplift_of(tried, question.confidence)}."
    if question.rival is not None:
        return _missing_for_rival(tried, best, question, bar)
    so_far = f"So far its mean is {mean_text(mean, rate)}"
    return f"{so_far}, which is not above the target." if mean <= bar else f"{so_far}."


def _missing_for_rival(tried: TriedArms, best: int, question: Question, bar: float) -> str:
    rate, name = tried.rate, plain(repr(question.target), at_most=24)
    assert question.rival is not None
    place = tried.place(question.rival)
    if place is None or tried.told[place] == 0:
        return f"{name} has no rewards yet."
    mean = float(tried.total[best] / tried.told[best])
    other, error = float(tried.total[place] / tried.told[place]), 1.0 - question.confidence
    so_far = (
        f"So far its mean is {mean_text(mean, rate)}, and that of {name} {mean_text(other, rate)}."
    )
    largest = _largest(tried)
    if not margin_is_possible(tried, question):
        return (
            f"{so_far} No mean can be above the largest reward, {mean_text(largest, rate)}, so "
            f"this margin cannot be reached. Choose a smaller one."
        )
    high = float(tried.intervals_at(np.array([place]), error)[1][0])
    if bar >= largest:
        return (
            f"{so_far} {name} needs more rewards: it has {int(tried.told[place])}, and its mean "
            f"could still be {mean_text(high, rate)}."
        )
    lower = lower_bound_of(tried, best, error)
    return (
        f"{so_far} To stop, its lower bound, {mean_text(lower, rate)}, must exceed "
        f"{mean_text(bar, rate)}: the upper bound of {name}"
        f"{' plus the margin' if question.margin.amount else ''}."
    )


def margin_is_possible(tried: TriedArms, question: Question) -> bool:
    """Whether a mean can exceed the observed mean of the target plus the margin."""
    place = None if question.rival is None else tried.place(question.rival)
    if place is None or tried.told[place] == 0:
        return True
    other = float(tried.total[place] / tried.told[place])
    return question.margin.more(other) < _largest(tried)


def _largest(tried: TriedArms) -> float:
    return math.inf if tried.facts.reward_range is None else tried.facts.reward_range[1]


def missing_of_arms(
    tried: TriedArms, called: Callable[[int], str], judged: Judged, question: Question
) -> str:
    """Return which arms could still be better."""
    facts, present = tried.facts, tried.present
    most = math.floor(question.quantile * facts.n_arms)
    opened = np.flatnonzero(present & ~judged.beaten)
    untried = facts.n_arms - int(present.sum())
    left = len(opened) + untried
    words = [_could_be_worse(tried, question, left, count(facts.n_arms, "arm"), most)]
    if 0 < len(opened) <= _MOST_OPEN:
        named = [
            f"{called(place)} (upper bound {mean_text(high, tried.rate)}, "
            f"{count(int(tried.told[place]), 'reward')})"
            for place, high in highest(tried, opened, judged.share)
        ]
        rest = len(opened) - len(named)
        words.append(f"Least certain: {', '.join(named)}{f' and {rest} more' if rest else ''}.")
    if untried:
        words.append(f"{count(untried, 'arm')} {'has' if untried == 1 else 'have'} no reward yet.")
    if not facts.by_chance:
        words.append(
            f"({facts.policy} is not known to choose new arms at random, so the arms that were "
            f"tried say nothing about the others.)"
        )
    return " ".join(words)


def highest(tried: TriedArms, places: NDArray[np.int64], error: float) -> list[tuple[int, float]]:
    """Return the places of the largest upper bounds, and these bounds."""
    highs = tried.intervals_at(places, error)[1]
    order = np.argsort(-highs, kind="stable")[:_NAMED]
    return [(int(places[k]), float(highs[k])) for k in order]


def missing_in_sample(
    tried: TriedArms, met: NDArray[np.int64], samples: Sequence[Sample], question: Question
) -> str:
    """Return what the random sample lacks."""
    facts = tried.facts
    sample, top = samples[0], f"the top {100 * question.quantile:g} %"
    if not any(each.possible() for each in samples):
        need = "They could all belong to {top}."
        if sample.top >= 1:
            need = (
                f"A statement about {{top}} then needs {count(sample.least(), 'arm')} drawn at "
                f"random, which are not left."
            )
        return (
            f"{facts.missed} of the {count(facts.first_arms, 'initial arm')} could not be drawn at "
            f"random: they were retired without a reward, or observed before they were drawn. "
            f"{need.format(top=top)} Without a target, “stop” may never come: ask for one."
        )
    looks = [(each, *look) for each in samples for look in each.sizes()]
    if not looks:
        drawn = len(sample.open)
        return (
            f"Only {count(drawn, 'arm')} {'has' if drawn == 1 else 'have'} been tried at random so "
            f"far. A statement about {top} needs at least {sample.least()}."
        )
    sample, size, error = min(looks, key=lambda look: look[0].excess(*look[1:]))
    opened, most = int(sample.open[:size].sum()), sample.allowed(size, error)
    gone = int((sample.open & tried.retired[met])[:size].sum())
    first = f"first {count(size, 'arm')} tried at random"
    retired = f" Of these, {gone} are retired and will get no more rewards." if gone else ""
    return _could_be_worse(tried, question, opened, first, max(0, most)) + retired


def _could_be_worse(tried: TriedArms, question: Question, left: int, of: str, most: int) -> str:
    """Return how many arms are not ruled out, and how many need not be."""
    much = difference_text(question.epsilon.given, tried.rate)
    it = f"It could still be more than {much} worse than {left} of the {of}"
    if not question.epsilon.relative:
        it = f"Its mean could still be more than {much} below that of {left} of the {of}"
    return f"{it}; to stop, this must be ruled out for all {f'but {most}' if most else 'of them'}."


def nothing_earned(tried: TriedArms, called: Callable[[int], str], confidence: float) -> str:
    """Return what is known if all rewards are the smallest possible.

    Return "" if they are not, or if there are few of them. Without a success, no arm looks better
    than another.
    """
    scale, present = tried.facts.scale, tried.present
    told, total = tried.told[present], tried.total[present]
    if scale.width == 0.0 or told.sum() < _SOME or (total > scale.low * told).any():
        return ""
    most = int(np.argmax(np.where(present, tried.told, -1)))
    high = float(tried.intervals_at(np.array([most]), 1.0 - confidence)[1][0])
    return (
        f"All {count(int(told.sum()), 'reward')} of {count(len(told), 'arm')} are {scale.low:g}, "
        f"the smallest possible. The mean of arm {called(most)}, which has the most rewards, is at "
        f"most {mean_text(high, tried.rate)} ({promise(confidence)})."
    )
