"""A policy in a few words: what it needs to know, its guarantee, its cost.

Each policy's file describes its policy. `manyarms policies`, the page "Choosing a policy" and the
leaderboard show the descriptions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from manyarms.core.checks import check_choice

Kind: TypeAlias = Literal["paper", "ours", "field"]
Knowledge: TypeAlias = Literal["none", "m", "mu*"]
Rewards: TypeAlias = Literal["any", "[0, 1]"]
Condition: TypeAlias = Literal[
    "best mean 1",
    "rewards 0 and 1",
    "Gaussian rewards",
    "means dense near the best",
    "a known shape",
    "more pulls than arms",
    "hardness below 0.35",
]


@dataclass(frozen=True, kw_only=True)
class Variant:
    """Another form of a policy that is worth playing beside its default one.

    Attributes
    ----------
    label
        What tables call it.
    parameters
        The parameters that make it.
    guarantee, only_if, rewards
        As for `About`, of this form.

    Examples
    --------
    >>> import manyarms as ma
    >>> [variant.label for variant in ma.Quantile.about.variants]
    ['quantile(kl)']
    """

    label: str
    parameters: Mapping[str, Any]
    guarantee: str
    rewards: Rewards = "any"
    only_if: tuple[Condition, ...] = ()


@dataclass(frozen=True, kw_only=True)
class About:
    """A policy in a few words.

    Attributes
    ----------
    kind
        "paper": of *On Regret with Multiple Best Arms*; "ours"; "field": the others.
    needs
        All that it needs to know, the horizon included, or "nothing".
    knowledge
        What it knows about the arms' means: "none", "m" (how rare good arms are, also as hardness
        or shape), or "mu*" (the best mean, also by assuming that it is 1).
    guarantee, good_at, source
        In a few words.
    only_if
        The conditions of the guarantee that not every problem meets. `advise` quotes a guarantee
        only where they hold.
    scaling
        What the cost of a pull grows with.
    rewards
        "any", or "[0, 1]" if it is made for these rewards only.
    perfect_best
        Whether it is made for a best mean of exactly 1.
    finds
        Whether it is made for a good arm in the end (objective "find"), and not for little regret.
    variants
        Its other forms; the leaderboard and `advise` play them too.
    page
        The page of the docs that has its box, its guarantee, its cost and its picture.

    Examples
    --------
    >>> import manyarms as ma
    >>> ma.Parallel.about.needs, ma.Parallel.about.knows
    ('horizon, μ*', 'μ*')
    """

    kind: Kind = "field"
    needs: str
    knowledge: Knowledge = "none"
    guarantee: str
    scaling: str
    good_at: str
    source: str = "\N{EN DASH}"  # none
    rewards: Rewards = "any"
    perfect_best: bool = False
    finds: bool = False
    only_if: tuple[Condition, ...] = ()
    variants: tuple[Variant, ...] = ()
    page: str = ""

    def __post_init__(self) -> None:
        for name, words in (("kind", Kind), ("knowledge", Knowledge), ("rewards", Rewards)):
            check_choice(name, getattr(self, name), get_args(words))
        for condition in self.only_if:
            check_choice("only_if", condition, get_args(Condition))

    @property
    def scans(self) -> bool:
        """Whether every pull looks at all arms tried, or at all of a subset."""
        return self.scaling.startswith("arms")

    @property
    def knows(self) -> str:
        """The knowledge as pages write it: μ* for "mu*"."""
        return self.knowledge.replace("mu*", "μ*")
