"""What a study adds to a page: titles, captions, further lines, claims. All of it is plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Pairs = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Section:
    """How a page shows one experiment."""

    group: str = ""  # its name in lists, and before titles, such as "Figure 2(a)"
    title: str = ""  # above its first figure, with `text` (default: what fits any experiment)
    text: str = ""
    against: str = ""  # a parameter of policies, to draw final regret against
    line: str = ""  # the policy whose line that is
    logarithmic: bool = False  # whether that axis is so at first
    # by another experiment: its policies that are drawn too, where cells have equal parameters
    beside: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Presentation:
    """What a page says that does not follow from the results alone.

    >>> first = Presentation("A title", lead=["One."], sections={"a": Section("Figure 1")})
    >>> second = Presentation("A title", lead=["One.", "Two."], sections={"b": Section()})
    >>> both = first.merged(second)
    >>> both.title, both.lead, list(both.sections)
    ('A title', ('One.', 'Two.'), ['a', 'b'])
    """

    title: str = ""
    lead: Sequence[str] = ()  # sentences below the title (default: how much was played)
    facts: Pairs = ()  # beside the usual ones
    # by experiment, in the order of the page; experiments that are not here come last
    sections: Mapping[str, Section] = field(default_factory=dict)
    curves: Sequence[dict[str, Any]] = ()  # figures of further lines, each by `figures.curves`
    claims: Sequence[dict[str, Any]] = ()  # with their verdicts, each from `Claim.as_dict`
    repeat: Pairs = ()  # commands, each with a name

    def merged(self, other: Presentation) -> Presentation:
        """Return both as one; what both say is said once."""
        titles = dict.fromkeys(title for title in (self.title, other.title) if title)
        return Presentation(
            title="; ".join(titles),
            lead=tuple(dict.fromkeys([*self.lead, *other.lead])),
            facts=tuple(dict.fromkeys([*self.facts, *other.facts])),
            sections={**self.sections, **other.sections},
            curves=(*self.curves, *other.curves),
            claims=(*self.claims, *other.claims),
            repeat=(*self.repeat, *other.repeat),
        )

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Presentation:
        """Return what `dataclasses.asdict` turned into plain data."""
        sections = {name: Section(**each) for name, each in content["sections"].items()}
        return cls(**{**content, "sections": sections})
