"""The keys of a run. All random numbers follow from one seed."""

from __future__ import annotations

from manyarms.core.checks import check_int
from manyarms.core.rng import draw


def run_key(seed: int) -> int:
    """Return the key from which all random numbers of a run derive."""
    return draw(check_int("seed", seed, at_most=2**64 - 1), 0)


def policy_key(seed: int, replication: int) -> int:
    """Return the key of the policy's own choices; a live experiment is replication 0."""
    return draw(draw(run_key(seed), replication), 0)


def tape_key(seed: int, replication: int) -> int:
    """Return the key of the means and rewards."""
    return draw(draw(run_key(seed), replication), 1)


def memory_key(seed: int) -> int:
    """Return the key of the order in which a season observes rewards whose order is unknown."""
    return draw(draw(run_key(seed), 0), 2)


def control_key(seed: int) -> int:
    """Return the key of the stream that decides which pulls of an experiment the control gets."""
    return draw(draw(run_key(seed), 0), 3)
