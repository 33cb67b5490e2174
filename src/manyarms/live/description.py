"""What a saved handle says about its policy and its arms, in JSON's terms."""

from __future__ import annotations

import numbers
from dataclasses import fields
from typing import Any

from manyarms.errors import ManyarmsError, ParameterError, SavedFileError
from manyarms.live.arms import ArmNames, ArmNumbers, Arms
from manyarms.protocol.policy import Policy
from manyarms.protocol.registry import name_of
from manyarms.protocol.registry import policy as policy_named

__all__ = ["describe_arms", "describe_policy", "first_arms", "policy_from", "read_arms"]


def describe_policy(policy: Policy) -> dict[str, Any]:
    """Return a policy's registered name (None if it has none) and its parameters."""
    name = name_of(type(policy))
    parameters = {} if name is None else {f.name: _plain(policy, f.name) for f in fields(policy)}
    return {"name": name, "label": policy.label, "parameters": parameters}


def _plain(policy: Policy, parameter: str) -> Any:
    value = getattr(policy, parameter)
    if isinstance(value, Policy):
        return describe_policy(value)
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value)
    raise ParameterError(
        f"`{parameter}` of {policy.label} must be a number, a string, a policy or None to be "
        f"saved, got {value!r}."
    )


def policy_from(described: dict[str, Any], given: Policy | None, what: str) -> Policy:
    """Return the described policy, or the given one if it is that."""
    if given is not None:
        ours = describe_policy(given)
        known = described["name"] is not None and ours["name"] is not None
        if ours != described if known else ours["label"] != described["label"]:
            raise SavedFileError(
                f"{what} was saved with the policy {described['label']}, not with {given.label}. "
                f"Pass that one."
            )
        return given
    try:
        return _made(described)
    except ManyarmsError as error:
        raise SavedFileError(
            f"{what} needs the policy {described['label']}, which cannot be made here: {error} "
            f"Import the module that registers it, or pass `policy`."
        ) from error


def _made(described: dict[str, Any]) -> Policy:
    if described["name"] is None:
        raise ParameterError("it was not registered when it was saved.")
    parameters = {
        name: _made(value) if isinstance(value, dict) else value
        for name, value in described["parameters"].items()
    }
    return policy_named(described["name"], **parameters)


def describe_arms(arms: Arms) -> dict[str, Any]:
    """Return how many arms there are, or their names."""
    return {"names": arms.names} if isinstance(arms, ArmNames) else {"count": arms.count}


def read_arms(described: dict[str, Any]) -> Arms:
    """Return the described arms."""
    if "names" in described:
        return ArmNames(described["names"])
    return ArmNumbers(described["count"])


def first_arms(described: dict[str, Any], count: int) -> dict[str, Any]:
    """Return the description of the arms that a game began with."""
    return {"names": described["names"][:count]} if "names" in described else {"count": count}
