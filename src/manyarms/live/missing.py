"""What keeps a verdict from saying stop, in words, and what helps."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from manyarms.core.confidence_sequences import divergence, spent_error
from manyarms.live.estimates import count, rounded
from manyarms.live.game import LiveGame, exchangeable
from manyarms.live.sample import Sample, not_met_by_chance
from manyarms.live.tallies import Tallies
from manyarms.protocol.recommend import Scale, scale_of

OVER = "The horizon is over"  # how the words begin if no pull is left
_NAMED = 3  # arms that a sentence names
_ROUNDED = 40.0  # the logarithm of how much less than 1 is lost when it is added to 1
_FEW = 1000  # arms whose limits are computed at once


def missing_of_arms(
    tallies: Tallies,
    called: Callable[[int], str],
    best: int,
    bar: float,
    error: float,
    beaten: NDArray[np.bool_],
    quantile: float,
) -> str:
    """Return in words which arms keep the verdict from saying stop, and what helps."""
    game, present = tallies.game, tallies.present
    most = math.floor(quantile * game.n_arms)
    opened = np.flatnonzero(present & ~beaten)
    untried = game.n_arms - int(present.sum())
    words = [
        f"{len(opened) + untried} of {game.n_arms} arms {_above(called(best), bar)}; to stop, "
        f"{f'at most {most}' if most else 'none'} may be."
    ]
    if len(opened):
        worst = highest(tallies, opened, bar, error)
        named = [
            f"{called(place)} (upper limit {rounded(high)}, "
            f"{count(int(tallies.told[place]), 'reward')})"
            for place, high in worst
        ]
        rest = len(opened) - len(worst)
        words.append(f"Held up by {', '.join(named)}{f' and {rest} more' if rest else ''}.")
    if untried:
        words.append(f"{count(untried, 'arm')} {'has' if untried == 1 else 'have'} no reward yet.")
    if not exchangeable(game.policy):
        words.append(
            f"({game.policy.label} is not known to draw arms at random, so the arms tried say "
            f"nothing about the others.)"
        )
    words.append(
        "More rewards of these arms help: from observe(), or from a policy that pulls all arms "
        'alike, with season(policy=ma.policy("uniform"), ...). So does a larger epsilon.'
    )
    return " ".join(words)


def highest(
    tallies: Tallies, places: NDArray[np.int64], bar: float, error: float
) -> list[tuple[int, float]]:
    """Return the arms of largest upper limits, with these, of arms whose limits are above `bar`."""
    scale = scale_of(tallies.game.policy, tallies.game.reward_range)
    if scale.width:
        places = _ruled_in(tallies, places, (bar - scale.low) / scale.width, scale, error)
    highs = tallies.limits_at(places, error)[1]
    order = np.argsort(-highs, kind="stable")[:_NAMED]
    return [(int(places[k]), float(highs[k])) for k in order]


def _ruled_in(
    tallies: Tallies, places: NDArray[np.int64], bar: float, scale: Scale, error: float
) -> NDArray[np.int64]:
    """Return the arms whose upper limits may be among the largest, without computing any.

    The bar is raised as long as enough limits stay above it. A limit is above if the rewards
    speak against the bar by less than 1 over the error, with the likelihood of their own mean. That
    of the mixture in `uniform_limits` is smaller by a factor of 2 sqrt(N) at most.
    """
    told, total = tallies.told[places], tallies.total[places]
    ones = np.clip((total - scale.low * told) / scale.width, 0.0, told)
    asked = -np.log(spent_error(error, places + 1))
    full = places[(told - ones) * _ROUNDED < asked - 1.0]
    if len(full) >= _NAMED:  # their limits are 1, and none is larger: the first ones are named
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
    game: LiveGame, best: str, bar: float, samples: Sequence[Sample], quantile: float
) -> str:
    """Return in words what the sample lacks, and what helps."""
    sample, top = samples[0], f"the top {100 * quantile:g} %"
    if sample.top < 1:
        lost = not_met_by_chance(game)
        least = ((1 << lost.bit_length()) - 1) / game.first_arms
        larger = f"ask with quantile={math.ceil(1000 * least) / 1000:g} or more, or "
        return (
            f"{lost} of the first {count(game.first_arms, 'arm')} never had the chance to be drawn "
            f"at random: they were retired without a reward, or were observed before they were "
            f"drawn. They may be {top}. To get a verdict, {larger if least < 0.999 else ''}"
            f"try every arm in play."
        )
    looks = [(each, *look) for each in samples for look in each.sizes()]
    if not looks:
        drawn = len(sample.open)
        return (
            f"only {count(drawn, 'arm')} {'was' if drawn == 1 else 'were'} drawn at random so far. "
            f"To judge {top}, at least {sample.least()} are needed."
        )
    sample, size, error = min(looks, key=lambda look: look[0].excess(*look[1:]))
    opened, most = int(sample.open[:size].sum()), sample.allowed(size, error)
    return (
        f"{opened} of the first {count(size, 'arm')} drawn {_above(best, bar)}; to stop, at most "
        f"{most} may be. More pulls help, and so does a larger epsilon."
    )


def _above(best: str, bar: float) -> str:
    return f"may still be above {rounded(bar)} (the lower limit of arm {best} plus epsilon)"


def missing_at_the_end(game: LiveGame, best: str, missing: str) -> str:
    """Return what is missing where no pull is left, and what to do."""
    wait = ""
    if game.flight:
        wait = f"tell the {count(len(game.flight), 'reward')} still missing, "
    return (
        f"{OVER}, and it is not shown that arm {best} is good enough: {missing} Now {wait}deploy "
        f"arm {best}, or go on with season(horizon=...)."
    )
