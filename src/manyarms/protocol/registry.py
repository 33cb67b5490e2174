"""Policies by name."""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Callable
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

from manyarms.errors import DuplicateNameError, ParameterError, UnknownNameError
from manyarms.protocol.about import About
from manyarms.protocol.policy import Policy

_makers: dict[str, Callable[..., Policy]] = {}  # in the order in which lists show them
_unlisted: set[str] = set()
_DEEPEST = 8  # policies within policies

M = TypeVar("M", bound=Callable[..., Policy])


class Form:
    """What a name of the registry makes: a policy with fixed parameters, or in a wrapper.

    It takes the parameters of the policy and of the wrapper.

    >>> import manyarms as ma
    >>> about = described()["anytime-moss++"]
    >>> Form(about, ma.MOSS, ma.Doubling)(sigma=1.0).label
    'anytime-moss(sigma=1.0)'
    """

    def __init__(
        self, about: About, make: Callable[..., Policy], wrap: Callable[..., Policy] | None = None
    ) -> None:
        self.about, self._make, self._wrap = about, make, wrap
        wrappers = inspect.signature(wrap).parameters.values() if wrap else ()
        self._own = [p for p in wrappers if p.kind is p.KEYWORD_ONLY]
        both = [*inspect.signature(make).parameters.values(), *self._own]
        self.__signature__ = inspect.Signature(both)

    def __call__(self, **parameters: Any) -> Policy:
        own = {p.name: parameters.pop(p.name) for p in self._own if p.name in parameters}
        made = self._make(**parameters)
        return self._wrap(made, **own) if self._wrap else made


def register(name: str, make: M, *, listed: bool = True) -> M:
    """Register a policy under a name, for `policy(name, ...)`.

    Parameters
    ----------
    name
        What users will call it, such as "moss++".
    make
        The policy's class, or a function with keyword parameters that returns a policy. Lists
        and the leaderboard show it with its attribute `about`, if it has one of its own.
    listed
        Whether `policy_names()` lists it; wrappers that cannot be made without another policy
        are not.

    Examples
    --------
    >>> import manyarms as ma
    >>> make = ma.register("tuned-moss++", lambda: ma.MOSSPlusPlus(beta=0.6))
    >>> ma.policy("tuned-moss++").label
    'moss++(beta=0.6)'
    """
    if not isinstance(name, str):
        raise ParameterError(f"`name` must be a string, got {name!r}.")
    if not callable(make):
        raise ParameterError(f"`make` must be a policy's class or a function, got {make!r}.")
    if name in _makers and _makers[name] is not make:
        raise DuplicateNameError(f"A policy named {name!r} exists already. Choose another name.")
    _makers[name] = make
    if not listed:
        _unlisted.add(name)
    return make


def policy_names() -> tuple[str, ...]:
    """Return the names of all registered policies.

    >>> "moss++" in policy_names()
    True
    """
    _load_ours()
    return tuple(sorted(_makers.keys() - _unlisted))


def described() -> dict[str, About]:
    """Return the descriptions of the listed policies by name, in the order of registration.

    >>> list(described())[:3]
    ['moss', 'moss-oracle', 'quantile']
    """
    _load_ours()
    # not what a class inherits: it was said of another policy
    said = {name: getattr(make, "__dict__", {}).get("about") for name, make in _makers.items()}
    return {name: about for name, about in said.items() if about and name not in _unlisted}


def maker(name: str) -> Callable[..., Policy]:
    """Return the class or function behind a name."""
    _load_ours()
    if not isinstance(name, str) or name not in _makers:
        raise UnknownNameError("policy", name, _makers.keys() - _unlisted)
    return _makers[name]


def is_registered(name: str) -> bool:
    _load_ours()
    return name in _makers


def name_of(make: Callable[..., Policy]) -> str | None:
    """Return the name under which a class or function is registered; None if it is not."""
    _load_ours()
    return next((name for name, known in _makers.items() if known is make), None)


def policy(name: str, **parameters: Any) -> Policy:
    """Make a policy from its name and parameters.

    Examples
    --------
    >>> policy("moss++", beta=0.6).label
    'moss++(beta=0.6)'
    """
    make = maker(name)
    known = inspect.signature(make).parameters
    for parameter in parameters:
        if parameter not in known:
            raise UnknownNameError(f"parameter of {name!r}:", parameter, known)
    try:
        return make(**parameters)
    except TypeError as error:
        missing = [
            f"`{key}`" for key, p in known.items() if p.default is p.empty and key not in parameters
        ]
        if not missing:
            raise ParameterError(f"{name!r} cannot be made: {error}.") from error
        fix = f"Give {'it' if len(missing) == 1 else 'them'} by name."
        raise ParameterError(f"{name!r} needs {', '.join(missing)}. {fix}") from error


def described_policy(policy: Policy) -> dict[str, Any]:
    """Return a policy's registered name (None if it has none) and its parameters."""
    name = name_of(type(policy))
    parameters = {} if name is None else {f.name: _storable(policy, f.name) for f in fields(policy)}
    return {"name": name, "label": policy.label, "parameters": parameters}


def _storable(policy: Policy, parameter: str) -> Any:
    value = getattr(policy, parameter)
    if isinstance(value, Policy):
        return described_policy(value)
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


def policy_from(
    described: dict[str, Any],
    given: Any = None,
    limits: tuple[float, float] | None = None,
    depth: int = 0,
) -> Policy:
    """Return the policy of a description; one without a registered name must be given."""
    own = given if isinstance(given, Policy) else None
    if described["name"] is None or (own is not None and name_of(type(own)) is None):
        for one in () if own is None else (own, own.with_reward_range(limits)):
            if described["label"] == one.label:
                return one
        raise ParameterError("it was not registered when it was saved.")
    if depth > _DEEPEST:
        raise ParameterError("it is nested too deeply.")
    parameters = {
        name: policy_from(value, getattr(own, name, None), limits, depth + 1)
        if isinstance(value, dict)
        else value
        for name, value in described["parameters"].items()
    }
    return policy(described["name"], **parameters)


def _load_ours() -> None:
    if not TYPE_CHECKING:  # mypy loses its way in the circle
        import manyarms.policies  # noqa: F401  one of the two imports that go up
