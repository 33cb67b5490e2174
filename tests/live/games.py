"""A game that plays itself: what happens next follows from what the handle knows.

So two handles that know the same play the same game, and one that was interrupted, and goes on,
can be compared with one that was not.
"""

from __future__ import annotations

import random

import manyarms as ma

__all__ = ["counts", "play", "step"]


def counts(game: ma.Live | ma.Journal) -> tuple[int, ...]:
    """Everything that an event changes, counted."""
    live = game.live if isinstance(game, ma.Journal) else game
    told = sum(tally.told for tally in live._tally.values())
    return live.pulls, told, len(live._lost), live._arms.count, len(live._retired)


def step(game: ma.Live | ma.Journal) -> None:
    """Let one thing happen: late tells, batches, abandoned pulls, arms that come and go."""
    live = game.live if isinstance(game, ma.Journal) else game
    *_, arms, retired = key = counts(live)
    chance = random.Random(repr(key))
    pending = live.pending
    luck = chance.random()
    named = isinstance(live._arms.name(0), str)
    if not pending or (luck < 0.46 and len(pending) < 25):
        game.ask()
    elif 0.46 <= luck < 0.5:
        game.ask(3)
    elif 0.5 <= luck < 0.54:
        game.abandon(chance.choice(pending))
    elif 0.54 <= luck < 0.55:
        game.add_arms([f"new {arms}"] if named else 1)
    elif 0.55 <= luck < 0.56 and arms - retired > 3:
        known = chance.random() < 0.5
        number = chance.choice(list(live._tally)) if known else chance.randrange(arms)
        while number in live._retired:
            number = chance.randrange(arms)
        game.retire(live._arms.name(number))
    elif 0.56 <= luck < 0.62:
        game.tell_many((pull, _reward(live, pull)) for pull in pending[:2])
    else:
        pull = chance.choice(pending)
        game.tell(pull.id if chance.random() < 0.5 else pull, _reward(live, pull))


def _reward(live: ma.Live, pull: ma.Pull) -> float:
    number = live._flight[pull.id].arm
    return float(random.Random(1000 * pull.id + number).random() < (number % 7) / 7)


def play(game: ma.Live | ma.Journal, events: int) -> None:
    for _ in range(events):
        step(game)
