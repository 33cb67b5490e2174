"""Policies that are plain Python classes with `ask` and `tell`: slow, for a first try."""

from __future__ import annotations

import inspect
import operator
from dataclasses import dataclass
from typing import Any

from manyarms.core.memory import Memory
from manyarms.errors import ParameterError, UnknownNameError
from manyarms.protocol.policy import Policy, layers, plays

_FACTS = ("n_arms", "horizon", "seed")  # parameters that are passed if the constructor has them


class PlainState:
    """The user's object for the current replication, and what is needed to create it."""

    def __init__(self, policy: PlainPolicy, n_arms: int) -> None:
        self.policy, self.n_arms = policy, n_arms
        self.own: Any = None
        self.told: set[int] = set()  # arms with rewards


def plain_reset(state: PlainState, key: int, horizon: int) -> None:
    facts = {"n_arms": state.n_arms, "horizon": horizon or None, "seed": int(key)}
    state.own = state.policy.new_object(facts)
    state.told.clear()


def plain_ask(state: PlainState) -> tuple[int, int]:
    arm = _checked_arm(state, "ask", state.own.ask())
    return arm, arm


def _checked_arm(state: PlainState, method: str, arm: Any) -> int:
    """Return the arm that a method returned, or raise."""
    try:
        number = operator.index(arm)
    except TypeError:
        number = -1
    if not 0 <= number < state.n_arms:
        raise ParameterError(
            f"`{method}` of {state.policy} must return an arm from 0 to {state.n_arms - 1}, got "
            f"{arm!r}."
        )
    return number


def plain_tell(state: PlainState, slot: int, reward: float) -> None:
    state.own.tell(slot, float(reward))
    state.told.add(slot)


def plain_recommend(state: PlainState) -> int:
    if not hasattr(state.own, "recommend") or not state.told:
        return -1
    arm = state.own.recommend()
    if arm is None:
        return -1
    number = _checked_arm(state, "recommend", arm)
    if number not in state.told:
        raise ParameterError(
            f"`recommend` of {state.policy} must return an arm with a reward, got {arm!r}, which "
            f"has none yet. Return None to use the common rule."
        )
    return number


def plain_count_late(state: PlainState, slot: int, change: int) -> None:
    if hasattr(state.own, "count_late"):
        state.own.count_late(slot, change)


def plain_arrive(state: PlainState, count: int) -> None:
    check_method(state, "arrive")
    state.own.arrive(count)
    state.n_arms += count


def plain_retire(state: PlainState, arm: int) -> None:
    check_method(state, "retire")
    state.own.retire(arm)


def check_method(state: PlainState, name: str) -> None:
    """Raise unless the user's object has a method."""
    if not hasattr(state.own, name):
        raise ParameterError(
            f"{state.policy} has no `{name}`, so its arms cannot change. Write one."
        )


plays(
    PlainState,
    reset=plain_reset,
    ask=plain_ask,
    tell=plain_tell,
    count_late=plain_count_late,
    arrive=plain_arrive,
    retire=plain_retire,
    recommend=plain_recommend,
)


@dataclass(frozen=True, kw_only=True)
class PlainPolicy(Policy):
    """A plain class with its parameters. Created by `plain_policy`."""

    make: type
    parameters: tuple[tuple[str, Any], ...] = ()

    @property
    def name(self) -> str:  # type: ignore[override]  # that of the class
        """The `name` of the class, or `__name__` if it has none."""
        return str(getattr(self.make, "name", self.make.__name__))

    def _changed(self, known: bool) -> dict[str, Any]:
        return dict(self.parameters)

    def defaults(self) -> dict[str, Any]:
        """Return the default of each parameter that users may give; a required one has `empty`."""
        known = _signature(self.make)
        return {key: one.default for key, one in known.items() if key not in _FACTS}

    @property
    def anytime(self) -> bool:  # type: ignore[override]  # it depends on the class
        """Whether the class can be made without a horizon."""
        horizon = _signature(self.make).get("horizon")
        return horizon is None or horizon.default is not horizon.empty

    def new_object(self, facts: dict[str, Any]) -> Any:
        """Create an object of the class, with the facts that its constructor takes."""
        known, given = _signature(self.make), dict(self.parameters)
        asked = {key: value for key, value in facts.items() if key in known and key not in given}
        return self.make(**given, **asked)

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> PlainState:
        return PlainState(self, n_arms)


class PlainMaker:
    """Creates policies from a plain class; its signature has the parameters users may give."""

    def __init__(self, make: type) -> None:
        self.make = make
        own = [one for key, one in _signature(make).items() if key not in _FACTS]
        self.__signature__ = inspect.Signature(own)
        self.__doc__ = make.__doc__

    def __call__(self, **parameters: Any) -> PlainPolicy:
        return plain_policy(self.make, **parameters)


def is_plain(make: Any) -> bool:
    """Return whether this is a class with `ask` and `tell`, but not a `Policy`."""
    own = isinstance(make, type) and not issubclass(make, Policy)
    return own and all(callable(getattr(make, name, None)) for name in ("ask", "tell"))


def plain_policy(make: type, **parameters: Any) -> PlainPolicy:
    """Make a policy from a plain Python class whose `ask()` returns an arm.

    Parameters
    ----------
    make
        A class with `ask()`, which returns the number of an arm from 0 on, and `tell(arm, reward)`.
        Each replication creates an object of it. The constructor gets `n_arms`, `horizon` (None if
        unknown) and `seed` if it has parameters of these names. If rewards are late, `ask` is
        called again before they are told. A method `count_late(arm, change)`, if there is one, is
        called with 1 when a pull becomes late, and with -1 when it is told or abandoned. With
        methods `arrive(count)` and `retire(arm)`, arms can be added and retired. A method
        `recommend()` returns the arm to keep, which must have a reward, or None to use the common
        rule.
    parameters
        Other parameters of its constructor.

    Notes
    -----
    CPython runs it on the same random rewards, some hundred times slower than compiled policies.
    It cannot be saved, because its state is unknown.

    Examples
    --------
    >>> import manyarms as ma
    >>> class Twice:
    ...     def __init__(self, n_arms, times=2):
    ...         self.n_arms, self.times, self.pulls = n_arms, times, 0
    ...     def ask(self):
    ...         self.pulls += 1
    ...         return (self.pulls - 1) // self.times % self.n_arms
    ...     def tell(self, arm, reward):
    ...         pass
    >>> arms = ma.instances.planted(n=9, m=3)
    >>> played = ma.simulate([Twice, ma.plain_policy(Twice, times=5)], arms, horizon=20)
    >>> played.policies
    ('Twice', 'Twice(times=5)')
    """
    if not is_plain(make):
        raise ParameterError(
            f"`make` must be a class with `ask()` and `tell(arm, reward)`, got {make!r}."
        )
    _check_tell(make)
    known = _signature(make)
    if not any(one.kind is one.VAR_KEYWORD for one in known.values()):
        for key in parameters.keys() - known.keys():
            if not known:
                raise ParameterError(
                    f"`{key}` must be left out: {make.__name__} takes no parameters.",
                    parameter=key,
                )
            raise UnknownNameError(f"parameter of {make.__name__}:", key, known)
    for key, one in known.items():
        is_given = key in _FACTS or key in parameters or one.default is not one.empty
        if not is_given and one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL):
            raise ParameterError(f"`{key}` must be given to {make.__name__}.", parameter=key)
    return PlainPolicy(make=make, parameters=tuple(parameters.items()))


def _check_tell(make: type) -> None:
    """Raise unless `tell` takes an arm and a reward."""
    try:
        inspect.signature(make.tell).bind(None, 0, 0.0)  # type: ignore[attr-defined]
    except TypeError:
        shown = inspect.signature(make.tell)  # type: ignore[attr-defined]
        raise ParameterError(
            f"`tell` of {make.__name__} must take an arm and its reward, got tell{shown}. Write "
            f"def tell(self, arm, reward)."
        ) from None
    except ValueError:
        pass  # functions written in C may have no signature


def plays_plainly(policy: Any) -> bool:
    """Return whether a policy, or one that it wraps, is a plain class, which only CPython runs."""
    return any(isinstance(one, PlainPolicy) for one in layers(policy))


def _signature(make: type) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(make).parameters)
