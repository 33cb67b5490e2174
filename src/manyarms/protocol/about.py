"""A policy in a few words: what it needs to know, its guarantee, its cost.

Each policy's file describes its policy. `manyarms policies` and the page "The policies" show the
descriptions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from manyarms.core.checks import check_choice

Kind: TypeAlias = Literal["paper", "ours", "field"]
Rewards: TypeAlias = Literal["any", "[0, 1]"]


@dataclass(frozen=True, kw_only=True)
class About:
    """A policy in a few words.

    Attributes
    ----------
    kind
        "paper": of *On Regret with Multiple Best Arms*; "ours"; "field": the others.
    needs
        All that it needs to know, the horizon included, or "nothing".
    guarantee, good_at, source
        In a few words.
    scaling
        What the cost of a pull grows with.
    rewards
        "any", or "[0, 1]" if it is made for these rewards only.
    page
        The page of the docs that has its box, its guarantee, its cost and its picture.

    Examples
    --------
    >>> import manyarms as ma
    >>> ma.Parallel.about.needs
    'horizon, μ*'
    """

    kind: Kind = "field"
    needs: str
    guarantee: str
    scaling: str
    good_at: str
    source: str = "\N{EN DASH}"  # none
    rewards: Rewards = "any"
    page: str = ""

    def __post_init__(self) -> None:
        for name, words in (("kind", Kind), ("rewards", Rewards)):
            check_choice(name, getattr(self, name), get_args(words))
