"""What tables call policies, and by which other names they are found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from manyarms.errors import UnknownNameError
from manyarms.lab.experiment import Player
from manyarms.protocol.policy import Policy

__all__ = ["aliases_of", "label_of", "names_alone"]


def aliases_of(players: Iterable[Player]) -> dict[str, str]:
    """Return other names that lead to one player alone, with its label."""
    found: dict[str, list[str]] = {}
    for player in players:
        for name in {player.policy.label, player.policy.short_label, player.policy.name}:
            found.setdefault(name, []).append(player.label)
    return {name: labels[0] for name, labels in found.items() if len(labels) == 1}


def names_alone(labels: Iterable[str]) -> dict[str, str]:
    """Return the names that one label alone has, without its parameters.

    >>> names_alone(["moss++(beta=0.6)", "moss", "ucb(sigma=1)", "ucb(sigma=2)"])
    {'moss++': 'moss++(beta=0.6)', 'moss': 'moss'}
    """
    found: dict[str, list[str]] = {}
    for label in labels:
        found.setdefault(label.partition("(")[0], []).append(label)
    return {name: same[0] for name, same in found.items() if len(same) == 1}


def label_of(policy: str | Policy, labels: Sequence[str], aliases: Mapping[str, str]) -> str:
    """Return the label that a policy or one of its names stands for, or raise."""
    name = policy.label if isinstance(policy, Policy) else policy
    label = name if name in labels else aliases.get(name)
    if label is None:
        raise UnknownNameError("policy of this result:", name, labels)
    return label
