"""Numbers and names as a page writes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from manyarms.report.style import policy_title, thousands

__all__ = ["count_of", "plainly", "spread", "titles", "versions"]

_NAMED = 8  # policies, before the rest is only counted


def titles(policies: Iterable[str]) -> str:
    """Name policies, each once, and count those that are too many to name.

    >>> titles(["moss", "moss++", "moss"]), titles(map(str, range(10)))
    ('MOSS, MOSS++', '0, 1, 2, 3, 4, 5, 6, 7 and 2 more')
    """
    named = [policy_title(label) for label in dict.fromkeys(policies)]
    more = len(named) - _NAMED
    return ", ".join(named[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def versions(provenance: Mapping[str, Any]) -> str:
    """Say what software computed it; the machine does not matter, and is left out."""
    found = provenance.get("versions", {})
    ordered = sorted(found, key=lambda name: (name != "manyarms", name))
    return ", ".join(f"{name} {found[name]}" for name in ordered if found[name])


def plainly(parameters: Mapping[str, Any]) -> str:
    """Return parameters as one would write them.

    >>> plainly({"horizon": 1000, "alpha": 0.25, "problem": "easy"})
    'horizon = 1000, alpha = 0.25, problem = easy'
    """
    return ", ".join(
        f"{name} = {value:.6g}" if isinstance(value, float) else f"{name} = {value}"
        for name, value in parameters.items()
    )


def count_of(number: int, one: str, many: str) -> str:
    """Say how many, in words that fit.

    >>> count_of(1, "policy", "policies"), count_of(12000, "pull", "pulls")
    ('1 policy', '12,000 pulls')
    """
    return f"{thousands(number)} {one if number == 1 else many}"


def spread(values: Iterable[Any]) -> str:
    """Say which values there are: each once, or the ends of many.

    >>> spread([20, 10, 20]), spread(range(9)), spread(["a"])
    ('10, 20', '0 to 8', 'a')
    """
    different = sorted(set(values), key=lambda v: (isinstance(v, str), v))
    words = [thousands(v) if isinstance(v, int | float) else str(v) for v in different]
    return ", ".join(words) if len(words) <= 4 else f"{words[0]} to {words[-1]}"
