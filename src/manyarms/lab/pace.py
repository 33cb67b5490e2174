"""How long pulls take: known of our own policies, measured of users' own."""

from __future__ import annotations

import time
from contextlib import suppress

from manyarms.lab.experiment import Cell, Experiment
from manyarms.lab.players import Player
from manyarms.lab.workbench import Stopped, Workbench
from manyarms.protocol.about import About
from manyarms.protocol.plain_classes import plays_plainly
from manyarms.protocol.policy import Policy, layers

_PACKAGE = f"{__name__.partition('.')[0]}."
# Nanoseconds: of most policies, of those that scan their arms, and of a wrapper around another one.
# docs/speed.md has what was measured; these are for plans only.
_PULL, _SCAN, _WRAPPER = 100.0, 2500.0, 40.0
_SLOWER, _LATE = 2.0, 2.0  # on some problems, and while other pulls are pending
_LONGEST, _FEW = 0.5, 64  # seconds and replications, to measure a policy
# Pulls that are lost with a chunk, at most, if it is killed: less than half a minute, unless a
# single replication takes longer
_OF_A_CHUNK = 8e9  # nanoseconds, of our own policies
_OWN, _PLAIN = (
    5_000_000,
    100_000,
)  # pulls of a user's policy: compiled (6 µs), and in Python (300 µs)


def known_nanoseconds(policy: Policy) -> float | None:
    """Return about how long a pull takes; None of a user's own policy.

    >>> import manyarms as ma
    >>> known_nanoseconds(ma.MOSS()), known_nanoseconds(ma.Doubling(ma.MOSS()))
    (100.0, 140.0)
    """
    total = 0.0
    for one in layers(policy):
        if not type(one).__module__.startswith(_PACKAGE) or plays_plainly(one):
            return None
        about = vars(type(one)).get("about")
        total += pull_nanoseconds(about) if isinstance(about, About) else _WRAPPER
    return total


def pull_nanoseconds(about: About) -> float:
    """Return about how long a pull of a policy takes."""
    return _SCAN if about.scans else _PULL


def most_pulls(policy: Policy) -> int:
    """Return how many pulls of a policy are played, and stored, as one chunk, at most."""
    if plays_plainly(policy):
        return _PLAIN
    known = known_nanoseconds(policy)
    return _OWN if known is None else int(_OF_A_CHUNK / known)


def estimated_seconds(experiment: Experiment) -> float:
    """Estimate the time of one processor; it takes half a second for each policy of a user."""
    measured: dict[str, float] = {}
    total = 0.0
    for cell in experiment.cells:
        for player in cell.players:
            known = known_nanoseconds(player.policy)
            if known is None:
                name = player.policy.name
                if name not in measured:
                    measured[name] = _measured(cell, player, experiment.seed)
                known = measured[name]
            else:
                known *= _SLOWER * (_LATE if cell.delay > 0 or cell.batch > 1 else 1.0)
            total += 1e-9 * known * cell.horizon * player.replications
    return total


def _measured(cell: Cell, player: Player, seed: int) -> float:
    """Return the nanoseconds of a pull, from the beginning of a game."""
    bench, pulls = Workbench(cell, player, seed=seed), [0]
    bench.compile()
    begun = time.perf_counter()
    with suppress(Stopped):
        bench.play(
            0,
            min(player.replications, _FEW),
            lambda: time.perf_counter() - begun > _LONGEST,
            pulls.append,
        )
    return 1e9 * (time.perf_counter() - begun) / max(1, sum(pulls))
