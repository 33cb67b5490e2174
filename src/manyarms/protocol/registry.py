"""Policies by name."""

from __future__ import annotations

import inspect
import numbers
import re
from collections.abc import Callable
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

from manyarms.errors import DuplicateNameError, ParameterError, UnknownNameError
from manyarms.protocol.policy import Policy
from manyarms.protocol.wrapper import Wrapper

_makers: dict[str, Callable[..., Policy]] = {}
_unlisted: set[str] = set()
_combined: set[str] = set()  # listed names that have several layers
_DEEPEST = 8  # policies within policies
_WORDS = {"True": True, "False": False, "None": None}

M = TypeVar("M", bound=Callable[..., Policy])


def register(name: str, make: M, *, listed: bool = True) -> M:
    """Register a policy under a name, for `policy(name, ...)`.

    Parameters
    ----------
    name
        The name for users, such as "moss++".
    make
        The policy's class, or a function with keyword parameters that returns a policy.
    listed
        Whether `policy_names()` lists it (default: True). Wrappers are never listed.

    Examples
    --------
    >>> import manyarms as ma
    >>> make = ma.register("tuned-moss++", lambda: ma.MOSSPlusPlus(beta=0.6))
    >>> str(ma.policy("tuned-moss++"))
    'moss++(beta=0.6)'
    """
    if not isinstance(name, str):
        raise ParameterError(f"`name` must be a string, got {name!r}.")
    if not re.fullmatch(r"[^\s(),=]([^(),=]*[^\s(),=])?", name):
        rule = "at least one character, without brackets, commas, '=' and spaces at the ends"
        raise ParameterError(f"`name` must have {rule}, so that policy() finds it, got {name!r}.")
    if not callable(make):
        raise ParameterError(f"`make` must be a policy's class or a function, got {make!r}.")
    if name in _makers and _makers[name] is not make:
        raise DuplicateNameError(f"A policy named {name!r} exists already. Choose another name.")
    _makers[name] = make
    if not listed or _is_wrapper(make):
        _unlisted.add(name)
    return make


def list_combined(name: str) -> None:
    """Make `policy_names` list a name of several layers, such as "anytime-moss++"."""
    _combined.add(name)


def policy_names() -> tuple[str, ...]:
    """Return the names of all built-in and registered policies.

    >>> "moss++" in policy_names()
    True
    """
    _load_builtin()
    return tuple(sorted((_makers.keys() | _combined) - _unlisted))


def is_known(name: str) -> bool:
    """Return whether `policy` can make a policy of this name."""
    try:
        _layers_of(name)
    except UnknownNameError:
        return False
    return True


def name_of(make: Callable[..., Policy]) -> str | None:
    """Return the name under which a class or function is registered; None if it is not."""
    _load_builtin()
    return next((name for name, known in _makers.items() if known is make), None)


def makers_of(name: str) -> list[Callable[..., Policy]]:
    """Return the classes or functions behind a name, from the outside in.

    >>> import manyarms as ma
    >>> makers_of("anytime-moss++") == [ma.Doubling, ma.MOSSPlusPlus]
    True
    """
    return [_makers[layer] for layer, _ in _layers_of(name)]


def parameters_of(name: str) -> dict[str, inspect.Parameter]:
    """Return the parameters that `policy` takes with this name."""
    makers = makers_of(name)
    known = {key: one for make in makers for key, one in _parameters(make).items()}
    if len(makers) > 1:  # the name says which policy is wrapped
        known.pop("policy", None)
    return known


def policy(name: str, **parameters: Any) -> Policy:
    """Make a policy from its name, which `str(policy)` returns.

    Parameters
    ----------
    name
        Such as "moss++", "moss++(beta=0.6)" or "anytime-moss++".
    parameters
        Further parameters. If a name has several layers, each layer takes those that it has.

    Examples
    --------
    >>> str(policy("moss++", beta=0.6))
    'moss++(beta=0.6)'
    >>> policy("ss(size=7)-moss++(beta=0.6)")
    SubSampled(policy=MOSSPlusPlus(sigma=None, ..., beta=0.6, ...), size=7, exponent=None)
    """
    known = parameters_of(name)
    for parameter in parameters:
        if parameter not in known:
            raise UnknownNameError(f"parameter of {name!r}:", parameter, known)
    made: dict[str, Policy] = {}
    for layer, given in reversed(_layers_of(name)):
        takes = _parameters(_makers[layer])
        own = {key: value for key, value in parameters.items() if key in takes}
        for key in own.keys() & given.keys():
            raise _repeated(key, name)
        made = {"policy": _make(layer, **given | own | made)}
    return made["policy"]


def _make(name: str, **parameters: Any) -> Policy:
    make = _makers[name]
    try:
        return make(**parameters)
    except TypeError as error:
        known = _parameters(make)
        missing = [
            f"`{key}`" for key, p in known.items() if p.default is p.empty and key not in parameters
        ]
        if not missing:
            raise ParameterError(f"{name!r} cannot be made: {error}.") from error
        fix = f"Give {'it' if len(missing) == 1 else 'them'} by name."
        raise ParameterError(f"{name!r} needs {', '.join(missing)}. {fix}") from error


def _parameters(make: Callable[..., Policy]) -> dict[str, inspect.Parameter]:
    fixed = getattr(make, "keywords", {})  # of a functools.partial
    known = inspect.signature(make).parameters
    return {key: one for key, one in known.items() if key not in fixed}


def _layers_of(text: str) -> list[tuple[str, dict[str, Any]]]:
    """Split a name into registered names with their parameters, from the outside in.

    >>> _layers_of("ss(size=7)-moss++(beta=0.6)")
    [('ss', {'size': 7}), ('moss++', {'beta': 0.6})]
    """
    _load_builtin()
    layers: list[tuple[str, dict[str, Any]]] = []
    rest = text if isinstance(text, str) else ""
    while rest and len(layers) <= _DEEPEST:
        split = re.fullmatch(r"([^()]*)(?:\(([^()]*)\))?", rest)
        if split and split[1] in _makers:
            return [*layers, (split[1], _parameters_in(text, split[2] or ""))]
        for prefix in filter(lambda name: _is_wrapper(_makers[name]), _makers):
            around = re.match(re.escape(prefix) + r"(?:\(([^()]*)\))?-", rest)
            if around:
                layers.append((prefix, _parameters_in(text, around[1] or "")))
                rest = rest[around.end() :]
                break
        else:
            break
    raise UnknownNameError("policy", text, policy_names())


def _parameters_in(text: str, pairs: str) -> dict[str, Any]:
    found = {}
    for pair in filter(None, pairs.split(",")):
        key, equals, value = map(str.strip, pair.partition("="))
        if not equals:
            raise ParameterError(
                f"`name` must have parameters as key=value, such as moss++(beta=0.6), got {text!r}."
            )
        if key in found:
            raise _repeated(key, text)
        found[key] = value_of(value)
    return found


def _repeated(key: str, text: str) -> ParameterError:
    return ParameterError(
        f"`{key}` must be given once, got it twice for {text!r}. Remove one.", parameter=key
    )


def value_of(text: str) -> Any:
    """Parse a value, without `eval`, because it may come from a client of the service.

    >>> [value_of(text) for text in ("7", "-0.5", "2/3", "1e3", "True", "'kl'", "kl", "1_0")]
    [7, -0.5, 0.6666666666666666, 1000.0, True, 'kl', 'kl', '1_0']
    """
    if text in _WORDS:
        return _WORDS[text]
    if ratio := re.fullmatch(r"(\d{1,9})/([1-9]\d{0,8})", text):
        return int(ratio[1]) / int(ratio[2])
    if re.fullmatch(r"[+-]?[0-9]{1,4000}", text):
        return int(text)
    if re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", text):
        return float(text)
    return text.strip("'\"")  # a string, such as index='kl'


def _is_wrapper(make: Callable[..., Policy]) -> bool:
    return isinstance(make, type) and issubclass(make, Wrapper)


def described_policy(policy: Policy) -> dict[str, Any]:
    """Return a policy's registered name (None if it has none) and its parameters."""
    name = name_of(type(policy))
    parameters = {} if name is None else {f.name: _storable(policy, f.name) for f in fields(policy)}
    return {"name": name, "label": str(policy), "parameters": parameters}


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
        f"`{parameter}` of {policy} must be a number, a string, a policy or None to be "
        f"saved, got {value!r}."
    )


def restored_policy(described: dict[str, Any], given: Any = None, depth: int = 0) -> Policy:
    """Return the policy of a description; `given` is needed if it has no registered name."""
    own = given if isinstance(given, Policy) else None
    if described["name"] is None or (own is not None and name_of(type(own)) is None):
        if own is not None and described["label"] == str(own):
            return own
        raise ParameterError("it was not registered when it was saved.")
    if depth > _DEEPEST:
        raise ParameterError("it is nested too deeply.")
    parameters = {
        name: restored_policy(value, getattr(own, name, None), depth + 1)
        if isinstance(value, dict)
        else value
        for name, value in described["parameters"].items()
    }
    return policy(described["name"], **parameters)


def _load_builtin() -> None:
    if not TYPE_CHECKING:  # mypy cannot follow the circular import
        import manyarms.policies  # noqa: F401  one of two imports of a higher layer
