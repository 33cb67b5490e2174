"""What keeps a verdict from saying stop, in words, and what helps."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from manyarms.core.tabular import plain
from manyarms.inference.confidence_sequences import divergence, spent_error
from manyarms.inference.estimates import count, mean_text, promise
from manyarms.inference.facts import CONTROL
from manyarms.inference.question import Question
from manyarms.inference.sample import Sample, not_met_by_chance
from manyarms.inference.tallies import Tallies
from manyarms.inference.uplift import uplift_of, why_no_uplift
from manyarms.protocol.recommend import Scale

_NAMED = 3  # arms that a sentence names
_ROUNDED = 40.0  # the logarithm of how much less than 1 is lost when it is added to 1
_FEW = 1000  # arms whose intervals are computed at once
_SOME = 100  # rewards: if all of these are as small as can be, it is time to say so


# what helps, in words that are right for a handle and for a service
ALL_ALIKE = "A season with the policy uniform helps: it pulls all arms alike."
ASK_LESS = "Ask for less: a larger epsilon or quantile, or a target."
MORE_ARMS = "A season with the policy empmoss++ helps: it tries more arms."
OTHER_POLICY = "To look for a better arm, begin a season with another policy."
OVER = "Deploy it, or go on in a season, which remembers all rewards."


def missing_for_target(tallies: Tallies, best: int, question: Question, bar: float) -> str:
    """Return in words what keeps an arm from being above its target."""
    mean, rate = float(tallies.total[best] / tallies.told[best]), tallies.rate
    if question.rival == CONTROL:
        why = why_no_uplift(tallies.facts, best)
        return (
            f"{why[:1].upper()}{why[1:]}" or f"So far: {uplift_of(tallies, question.confidence)}."
        )
    if question.rival is not None:
        place = tallies.place(question.rival)
        if place == best:
            return "It is the arm that it is to be compared with."
        if place is None or tallies.told[place] == 0:
            return f"No reward of {plain(repr(question.target))} is known yet."
        other = mean_text(float(tallies.total[place] / tallies.told[place]), rate)
        limit = mean_text(bar, rate)
        return (
            f"So far their means are {mean_text(mean, rate)} and {other}; to stop, its lower bound "
            f"must be above {limit}, the upper bound of {plain(repr(question.target))}"
            f"{' and the margin' if question.margin.amount else ''}."
        )
    if mean <= bar:
        return f"So far its mean is {mean_text(mean, rate)}, so another arm must be found."
    return f"So far its mean is {mean_text(mean, rate)}."


def missing_of_arms(
    tallies: Tallies,
    called: Callable[[int], str],
    beaten: NDArray[np.bool_],
    bar: float,
    error: float,
    question: Question,
) -> str:
    """Return in words which arms keep the verdict from saying stop."""
    facts, present = tallies.facts, tallies.present
    most = math.floor(question.quantile * facts.n_arms)
    opened = np.flatnonzero(present & ~beaten)
    untried = facts.n_arms - int(present.sum())
    words = [
        f"{len(opened) + untried} of {facts.n_arms} arms {_better(question)}; to stop, "
        f"{f'at most {most}' if most else 'none'} may be."
    ]
    if len(opened):
        worst = highest(tallies, opened, bar, error)
        named = [
            f"{called(place)} (upper bound {mean_text(high, tallies.rate)}, "
            f"{count(int(tallies.told[place]), 'reward')})"
            for place, high in worst
        ]
        rest = len(opened) - len(worst)
        words.append(f"Held up by {', '.join(named)}{f' and {rest} more' if rest else ''}.")
    if untried:
        words.append(f"{count(untried, 'arm')} {'has' if untried == 1 else 'have'} no reward yet.")
    if not facts.by_chance:
        words.append(
            f"({facts.policy} is not known to draw arms at random, so the arms tried say "
            f"nothing about the others.)"
        )
    return " ".join(words)


def highest(
    tallies: Tallies, places: NDArray[np.int64], bar: float, error: float
) -> list[tuple[int, float]]:
    """Return the arms with the largest upper bounds, and these bounds, if they exceed `bar`."""
    scale = tallies.facts.scale
    if scale.width:
        places = _ruled_in(tallies, places, (bar - scale.low) / scale.width, scale, error)
    highs = tallies.limits_at(places, error)[1]
    order = np.argsort(-highs, kind="stable")[:_NAMED]
    return [(int(places[k]), float(highs[k])) for k in order]


def _ruled_in(
    tallies: Tallies, places: NDArray[np.int64], bar: float, scale: Scale, error: float
) -> NDArray[np.int64]:
    """Return the arms whose upper bounds may be among the largest, without computing any.

    The bar is raised as long as enough bounds stay above it. A bound is above the bar if the
    rewards speak against the bar by less than 1 over the error, with the likelihood of their own
    mean. That
    of the mixture in `uniform_limits` is smaller by a factor of 2 sqrt(N) at most.
    """
    told, total = tallies.told[places], tallies.total[places]
    ones = np.clip((total - scale.low * told) / scale.width, 0.0, told)
    asked = -np.log(spent_error(error, places + 1))
    full = places[(told - ones) * _ROUNDED < asked - 1.0]
    if len(full) >= _NAMED:  # their bounds are 1, and none is larger: the first ones are named
        return places[: np.searchsorted(places, full[_NAMED - 1], side="right")]
    spread = 1.0 - bar
    mixed = 1.0 + 0.5 * np.log(4.0 * told)
    while len(places) > _FEW and spread > 1e-9:
        spread /= 2.0
        bar = 1.0 - spread
        against = np.where(ones < bar * told, divergence(told, ones, bar), 0.0)
        if (against < asked).sum() < _NAMED:
            break
        near = against < asked + mixed
        places, told, ones = places[near], told[near], ones[near]
        asked, mixed = asked[near], mixed[near]
    return places


def missing_in_sample(
    tallies: Tallies, met: NDArray[np.int64], samples: Sequence[Sample], question: Question
) -> str:
    """Return in words what the sample lacks."""
    facts = tallies.facts
    sample, top = samples[0], f"the top {100 * question.quantile:g} %"
    if sample.top < 1:
        lost = not_met_by_chance(facts)
        least = ((1 << lost.bit_length()) - 1) / facts.first_arms
        larger = f"ask with quantile={math.ceil(1000 * least) / 1000:g} or more, or "
        return (
            f"{lost} of the first {count(facts.first_arms, 'arm')} never had the chance to be "
            f"drawn at random: they were retired without a reward, or were observed before they "
            f"were drawn. They may be {top}. To get a verdict, {larger if least < 0.999 else ''}"
            f"try every arm in play."
        )
    looks = [(each, *look) for each in samples for look in each.sizes()]
    if not looks:
        drawn = len(sample.open)
        return (
            f"Only {count(drawn, 'arm')} {'was' if drawn == 1 else 'were'} drawn at random so far. "
            f"To judge {top}, at least {sample.least()} are needed."
        )
    sample, size, error = min(looks, key=lambda look: look[0].excess(*look[1:]))
    opened, most = int(sample.open[:size].sum()), sample.allowed(size, error)
    gone = int((sample.open & tallies.retired[met])[:size].sum())
    retired = f" Of these, {gone} were retired, and no pull will tell more about those."
    return (
        f"{opened} of the first {count(size, 'arm')} drawn {_better(question)}; to stop, at most "
        f"{most} may be.{retired if gone else ''}"
    )


def _better(question: Question) -> str:
    return f"may still be better by more than {question.epsilon}"


def nothing_earned(tallies: Tallies, called: Callable[[int], str], confidence: float) -> str:
    """Return what is known if all rewards are as small as can be; "" if not, or if few are known.

    Then lower bounds say nothing, and no arm looks better than another.
    """
    scale, present = tallies.facts.scale, tallies.present
    told, total = tallies.told[present], tallies.total[present]
    if scale.width == 0.0 or told.sum() < _SOME or (total > scale.low * told).any():
        return ""
    most = int(np.argmax(np.where(present, tallies.told, -1)))
    high = float(tallies.limits_at(np.array([most]), 1.0 - confidence)[1][0])
    return (
        f"All {count(int(told.sum()), 'reward')} of {count(len(told), 'arm')} in play are "
        f"{scale.low:g}, the smallest there can be. The mean of arm {called(most)}, which has the "
        f"most rewards, is at most {mean_text(high, tallies.rate)} ({promise(confidence)})."
    )
