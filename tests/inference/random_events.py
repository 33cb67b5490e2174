"""Random events for a handle; each depends only on the handle's state.

Two handles with the same state get the same events, so a handle that was interrupted and continued
can be compared with one that was not.
"""

from __future__ import annotations

import random
from typing import Any

import manyarms as ma

__all__ = ["counts", "in_turn", "new", "play", "step"]


def new(policy: ma.Policy | None = None, **changes: Any) -> ma.Live:
    """Return a new handle."""
    start: dict[str, Any] = {"n_arms": 12, "horizon": 5000, "seed": 4} | changes
    return (policy or ma.MOSS()).live(**start)


def in_turn(live: ma.Live, pulls: int) -> None:
    for _ in range(pulls):
        live.tell(live.ask(), 1.0)


def counts(live: ma.Live) -> tuple[int, ...]:
    """Return counts of everything that an event changes."""
    experiment = live._experiment
    told = sum(
        counts.told for counts in list(experiment.ledger.counts.values())
    )  # a handler may add to it
    return (
        experiment.ledger.pulls,
        told,
        len(experiment.ledger.abandoned),
        experiment.ledger.n_all,
        len(experiment.ledger.retired),
    )


def step(live: ma.Live) -> None:
    """Make one event: an ask, a late tell, a batch, an abandoned pull, or a change of the arms."""
    *_, arms, retired = key = counts(live)
    chance = random.Random(repr(key))
    pending = live.pending
    luck = chance.random()
    named = isinstance(live._context.arms.name(0), str)
    if not pending or (luck < 0.46 and len(pending) < 25):
        live.ask()
    elif 0.46 <= luck < 0.5:
        live.ask(3)
    elif 0.5 <= luck < 0.54:
        live.abandon(chance.choice(pending))
    elif 0.54 <= luck < 0.55:
        live.add_arms([f"new {arms}"] if named else 1)
    elif 0.55 <= luck < 0.56 and arms - retired > 3:
        known = chance.random() < 0.5
        number = (
            chance.choice(list(live._experiment.ledger.counts)) if known else chance.randrange(arms)
        )
        while number in live._experiment.ledger.retired:
            number = chance.randrange(arms)
        live.retire(live._context.arms.name(number))
    elif 0.56 <= luck < 0.62:
        live.tell_many((pull, _reward(live, pull)) for pull in pending[:2])
    else:
        pull = chance.choice(pending)
        live.tell(pull.id if chance.random() < 0.5 else pull, _reward(live, pull))


def _reward(live: ma.Live, pull: ma.Pull) -> float:
    number = live._experiment.ledger.pending[pull.id].arm
    return float(random.Random(1000 * pull.id + number).random() < (number % 7) / 7)


def play(live: ma.Live, events: int) -> None:
    for _ in range(events):
        step(live)
