"""Players: the policies of a cell, and their labels in tables."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from manyarms.errors import ParameterError, UnknownNameError
from manyarms.protocol.plain_classes import is_plain, plain_policy
from manyarms.protocol.policy import Policy
from manyarms.simulation.columns import Scalar, check_text


@dataclass(frozen=True)
class Player:
    """A policy in a cell.

    Attributes
    ----------
    policy, label, replications
        The policy, its label in tables (unique in the cell), and the number of replications.
    parameters
        Its parameters in tables, each in its own column (default: those of the policy which the
        sweep varies; `Sweep` fills them in).
    """

    policy: Policy
    label: str
    replications: int
    parameters: Mapping[str, Scalar | None] = field(default_factory=dict)


def players_of(policies: Any, replications: int) -> tuple[Player, ...]:
    """Return a player for each policy, or raise. Players are not changed."""
    if isinstance(policies, str | Policy | Player) or not isinstance(policies, Iterable):
        policies = [policies]  # one policy or class; anything else is refused below
    chosen = [plain_policy(one) if is_plain(one) else one for one in policies]
    if not chosen:
        raise ParameterError("`policies` must contain at least one policy, got none.")
    for policy in chosen:
        if not isinstance(policy, Policy | Player):
            raise ParameterError(
                f"`policies` must contain policies such as MOSSPlusPlus(), got {policy!r}."
                f"{_hint(policy)}"
            )
    unnamed = [policy for policy in chosen if isinstance(policy, Policy)]
    labels = iter(_labels(unnamed))
    players = tuple(
        policy if isinstance(policy, Player) else Player(policy, next(labels), replications)
        for policy in chosen
    )
    for label, count in Counter(check_text("label", p.label) for p in players).items():
        if count > 1:
            raise ParameterError(
                f"`policies` must have different labels, got {label} twice. Remove one of them, or "
                f"give each a label: simulation.Player(policy, label, replications)."
            )
    return players


def _labels(policies: Sequence[Policy]) -> list[str]:
    """Return labels without known parameters (see `Policy.text`), unless two would be equal."""
    short = [policy.text(known=False) for policy in policies]
    count = Counter(short)
    return [
        label if count[label] == 1 else str(policy)
        for label, policy in zip(short, policies, strict=True)
    ]


def _hint(wrong: Any) -> str:
    """Return a hint for something that is not a policy."""
    if isinstance(wrong, str):
        return f" For a name use policy({wrong!r})."
    if isinstance(wrong, type) and issubclass(wrong, Policy):
        return f" Call the class: {wrong.__name__}()."
    if is_plain(type(wrong)):
        return (
            f" Pass the class, {type(wrong).__name__}: each replication creates its own instance."
        )
    if isinstance(wrong, type):
        missing = [
            f"`{name}`"
            for name in ("ask()", "tell(arm, reward)")
            if not callable(getattr(wrong, name.partition("(")[0], None))
        ]
        return f" To be simulated, a class needs {' and '.join(missing)}."
    return ""


def specification(policy: Policy) -> str:
    """Return a policy with all its parameters as text; long arrays are not cut."""
    with np.printoptions(threshold=sys.maxsize, floatmode="unique"):
        return repr(policy)


def label_of(policy: str | Policy | type, played: Iterable[tuple[str, str]]) -> str:
    """Return the label of a policy, or raise; `played` has labels and specifications.

    A policy must be one that was played, with all its parameters; a plain class has its defaults. A
    name without parameters is accepted if only one policy has it.

    >>> played = [("moss++(beta=0.6)", "..."), ("moss", "..."), ("ucb(sigma=1)", "...")]
    >>> label_of("moss++", played), label_of("ucb(sigma=1)", played)
    ('moss++(beta=0.6)', 'ucb(sigma=1)')
    """
    pairs = list(played)
    if not isinstance(policy, str):
        return _label_of_policy(policy, pairs)
    labels = {label for label, _ in pairs}
    matches = {policy} & labels or {label for label in labels if _name(label) == policy}
    if len(matches) != 1:
        raise UnknownNameError("policy of this result:", policy, labels)
    return matches.pop()


def _label_of_policy(policy: Any, pairs: list[tuple[str, str]]) -> str:
    text = specification(plain_policy(policy) if is_plain(policy) else policy)
    matches = [label for label, played in dict.fromkeys(pairs) if played == text]
    if not matches:
        raise UnknownNameError("policy of this result:", text, {played for _, played in pairs})
    others = [played for label, played in pairs if label == matches[0] and played != text]
    if len(matches) > 1 or others:
        labels = " and ".join(map(repr, matches))
        also = f", and so was {others[0]}" if others else ""
        raise ParameterError(
            f"`policy` must be the only policy of its label, with one label, got {text}, which was "
            f"played as {labels}{also}. Pass a label."
        )
    return matches[0]


def _name(label: str) -> str:
    """Return a label without parameters."""
    return re.sub(r"\([^()]*\)", "", label)
