"""What each policy is, in a few words: what it needs to know, its guarantee, its cost.

The words stand in `catalogue.toml`, beside this file: one table for each name of the registry.
`manyarms policies`, the page "Choosing a policy" and the leaderboard all read them from here.
"""

from __future__ import annotations

import functools
import tomllib
from dataclasses import dataclass, fields
from importlib.resources import files
from typing import Any, Literal, TypeAlias, get_args

from manyarms.errors import ManyarmsError, UnknownNameError

__all__ = ["CatalogueError", "Entry", "Knowledge", "catalogue", "entry"]

Knowledge: TypeAlias = Literal["none", "m", "mu*", "arm"]
Kind: TypeAlias = Literal["paper", "ours", "field"]
Rewards: TypeAlias = Literal["any", "[0, 1]"]

_CHOICES = {
    "kind": get_args(Kind),
    "knowledge": get_args(Knowledge),
    "rewards": get_args(Rewards),
}


class CatalogueError(ManyarmsError, ValueError):
    """An entry of the catalogue is not as it should be."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One policy in a few words.

    Attributes
    ----------
    name
        As the registry has it.
    kind
        "paper": of *On Regret with Multiple Best Arms*; "ours"; "field": the others.
    needs
        All it is told, horizon included, or "nothing".
    knowledge
        What it is told of the arms' means: "none", "m" (how rare good arms are, also as hardness
        or shape), "mu*" (the best mean, also by assuming that it is 1), or "arm" (the answer).
    guarantee, good_at, source
        In a few words.
    nanoseconds
        Of one simulated pull at n = 20000, T = 50000 and hardness 0.4.
    scaling
        What the cost of a pull grows with.
    rewards
        "any", or "[0, 1]" where other rewards mean nothing to it.
    perfect_best
        Whether it is made for a best mean of exactly 1.
    """

    name: str
    kind: Kind
    needs: str
    knowledge: Knowledge
    guarantee: str
    nanoseconds: int
    scaling: str
    good_at: str
    source: str
    rewards: Rewards = "any"
    perfect_best: bool = False

    @property
    def knows(self) -> str:
        """The knowledge in a reader's letters.

        >>> entry("patience").knows
        'μ*'
        """
        return self.knowledge.replace("mu*", "μ*")


@functools.cache
def catalogue() -> dict[str, Entry]:
    """Return all entries by name, in the order in which they are shown.

    >>> list(catalogue())[:3]
    ['moss', 'moss-oracle', 'quantile']
    """
    text = files(__package__).joinpath("catalogue.toml").read_text(encoding="utf-8")
    return {name: read_entry(name, row) for name, row in tomllib.loads(text).items()}


def entry(name: str) -> Entry:
    """Return the entry of a policy.

    >>> entry("moss++").guarantee
    'Pareto optimal, every beta in [1/2, 1)'
    """
    if name not in catalogue():
        raise UnknownNameError("policy of the catalogue:", name, catalogue())
    return catalogue()[name]


def read_entry(name: str, row: dict[str, Any]) -> Entry:
    """Make an entry of a table of the file, or say what is wrong with it."""
    known = {field.name for field in fields(Entry)} - {"name"}
    for key in row:
        if key not in known:
            raise CatalogueError(f"`{key}` of {name!r} must be one of {', '.join(sorted(known))}.")
    for key, choices in _CHOICES.items():
        if row.get(key, choices[0]) not in choices:
            wanted = ", ".join(repr(choice) for choice in choices)
            raise CatalogueError(f"`{key}` of {name!r} must be one of {wanted}, got {row[key]!r}.")
    try:
        return Entry(name=name, **row)
    except TypeError as error:
        raise CatalogueError(f"The entry of {name!r} must be complete: {error}.") from error
