"""What a policy is: plain data that makes a state, and three functions on that state.

A policy's file defines a state (a NamedTuple with a name of its own), functions on it, and a table
that says which of them play it: `plays(State, reset=…, ask=…, tell=…)`. CPython runs these
functions live; the simulator compiles them.
"""

from __future__ import annotations

import importlib
import inspect
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from manyarms.core.checks import by_name, refusal
from manyarms.core.jit import Dispatched, generic, optional
from manyarms.core.memory import Memory
from manyarms.errors import ParameterError, UnknownNameError
from manyarms.protocol.about import About
from manyarms.protocol.parameters import checks_of

if TYPE_CHECKING:
    from manyarms.live.handle import Live


MOST_ARMS = 1 << 50  # so that a number for (subroutine, arm) still fits into 64 bits

P = TypeVar("P", bound="Policy")


@generic
def reset(state: Any, key: int, horizon: int) -> None:
    """Begin anew: `key` decides all random choices; `horizon` is 0 where none is known."""


@generic
def ask(state: Any) -> tuple[int, int]:  # type: ignore[empty-body]  # bodies are registered
    """Choose: return the slot that the reward will be credited to, and the arm to pull."""


@generic
def tell(state: Any, slot: int, reward: float) -> None:
    """Credit a reward to the slot that `ask` returned."""


@optional
def count_late(state: Any, slot: int, change: int) -> None:
    """Count `change` more late pulls of the slot.

    A pull is late when its reward is not told before the next pull is asked for. A change of 0
    says that a pull was abandoned before it was late.
    """


@optional
def generation(state: Any) -> int:
    """Return a number that changes when slots change their meaning.

    Rewards of an earlier generation come too late to teach the policy anything.
    """
    return 0


@generic
def arrive(state: Any, count: int) -> None:
    """Add `count` arms, numbered on from the last one."""


@generic
def retire(state: Any, arm: int) -> None:
    """Never choose this arm again. The caller sees to it that others are left."""


@optional
def recommend(state: Any) -> int:
    """Return the arm that the policy would keep; -1 if it knows none, or leaves it to the rule.

    The arm must be one that was pulled, and whose reward was told.
    """
    return -1


_FUNCTIONS: tuple[Dispatched[..., Any], ...] = (
    *(reset, ask, tell),
    *(count_late, generation, arrive, retire, recommend),
)


def plays(
    state_class: type,
    *,
    reset: Callable[[Any, int, int], None],
    ask: Callable[[Any], tuple[int, int]],
    tell: Callable[[Any, int, float], None],
    count_late: Callable[[Any, int, int], None] | None = None,
    generation: Callable[[Any], int] | None = None,
    arrive: Callable[[Any, int], None] | None = None,
    retire: Callable[[Any, int], None] | None = None,
    recommend: Callable[[Any], int] | None = None,
) -> None:
    """Say which functions play a policy with states of this class.

    Parameters
    ----------
    state_class
        A NamedTuple. No other state may have its name.
    reset, ask, tell
        What every policy has.
    count_late, generation
        For late rewards; without them, rewards are told as they come.
    arrive, retire
        For arms that come and go; without them, handles refuse to add or retire arms.
    recommend
        The arm to keep, where the policy knows better than the largest lower limit.
    """
    needed: tuple[Any, ...] = (reset, ask, tell)
    others: tuple[Any, ...] = (count_late, generation, arrive, retire, recommend)
    table = dict(zip(_FUNCTIONS, (*needed, *others), strict=True))
    for function, body in table.items():
        if not callable(body) and (body is not None or function in _FUNCTIONS[: len(needed)]):
            name = getattr(function, "__name__", "")
            raise refusal(name, f"a function on {state_class.__name__}", body)
    for function, body in table.items():
        if body is not None:
            function.register(state_class)(body)


_SPEAKING = ("index", "bound")  # parameters whose values say what they are


def short_form(name: str, value: Any) -> str:
    """Return a parameter as labels show it.

    >>> short_form("beta", 0.6), short_form("count_late", True), short_form("index", "kl")
    ('beta=0.6', 'count_late', 'kl')
    """
    if name in _SPEAKING:
        return str(value)
    return name if value is True else f"{name}={value!r}"


def in_brackets(words: list[str]) -> str:
    """Return words for the end of a label; nothing if there are none."""
    return f"({', '.join(words)})" if words else ""


def table_labels(policies: Sequence[Policy]) -> list[str]:
    """Return what a table calls policies: their short labels, or their labels where two are alike.

    >>> import manyarms as ma
    >>> table_labels([ma.MOSS(), ma.MOSSOracle(m=3), ma.MOSSOracle(m=5)])
    ['moss', 'moss-oracle(m=3)', 'moss-oracle(m=5)']
    """
    count = Counter(policy.short_label for policy in policies)
    return [
        policy.short_label if count[policy.short_label] == 1 else policy.label
        for policy in policies
    ]


@dataclass(frozen=True, kw_only=True)
class Policy(ABC):
    """A policy's parameters; a frozen dataclass. The state it makes does the work."""

    name: ClassVar[str]
    about: ClassVar[About | None] = None  # for lists and the leaderboard
    anytime: ClassVar[bool] = False  # works without knowing the horizon

    def __new__(cls: type[P], *values: Any, **given: Any) -> P:
        """Suggest the nearest parameter where a name is misspelled."""
        if given.keys() - cls.__dataclass_fields__.keys():
            known = inspect.signature(cls.__init__).parameters  # a class may have written its own
            for name in given.keys() - known.keys():
                if not any(one.kind is one.VAR_KEYWORD for one in known.values()):
                    raise UnknownNameError(f"parameter of {cls.__name__}:", name, [*known][1:])
        return super().__new__(cls)

    def __post_init__(self) -> None:
        """Check the parameters by their types, and keep them so: no float32 reaches a kernel."""
        for name, (check, none_too) in checks_of(type(self)).items():
            value = getattr(self, name)
            if value is not None or not none_too:
                object.__setattr__(self, name, check(name, value))

    @abstractmethod
    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> Any:
        """Make a state with room for `pulls` pulls: the horizon, or more than ever happen."""

    def with_best_mean(self: P, best_mean: float) -> P:
        """Return the policy with μ* given, if it needs to know it and does not yet."""
        return self

    def with_reward_range(self: P, reward_range: tuple[float, float] | None) -> P:
        """Return the policy made for rewards of this range, where that was left open."""
        return self

    @property
    def unit_rewards(self) -> bool:
        """Whether rewards outside of [0, 1] mean nothing to it."""
        return self.about is not None and self.about.rewards == "[0, 1]"

    def check_rewards(self, reward_range: tuple[float, float] | None) -> None:
        """Raise unless the policy is made for rewards of this range; None is not known."""
        low, high = reward_range or (0.0, 1.0)
        if self.unit_rewards and not 0.0 <= low <= high <= 1.0:
            raise ParameterError(
                f"`reward_range` must lie in [0, 1] for {self.label}, got {(low, high)}. Tell "
                f"(reward - {low:g}) / {high - low:g} instead, or take a policy with `sigma`."
            )

    @property
    def label(self) -> str:
        """The name, with the parameters that are not the default ones."""
        return self.name + in_brackets(self.changed())

    def changed(self, *, given: bool = True) -> list[str]:
        """Return the parameters that are not the default ones, as labels show them.

        `given` says whether those are among them that have no default, or None.
        """
        found = []
        for field in fields(self):
            value = getattr(self, field.name)
            hidden = not given and field.default in (None, MISSING)
            if not (isinstance(value, Policy) or value == field.default or hidden):
                found.append(short_form(field.name, value))
        return found

    @property
    def stored_label(self) -> str:
        """The name with the parameters that are not the default ones, written out.

        Files know policies by it, so it does not change with the way in which labels are written.
        """
        changed = (
            f"{field.name}={value!r}"
            for field in fields(self)
            if (value := getattr(self, field.name)) != field.default
        )
        return self.name + in_brackets(list(changed))

    @property
    def short_label(self) -> str:
        """The label without what the policy is given to know, such as the hardness: for tables.

        That is what parameters say that have no default, or None; the others are the policy's own.
        If two policies of a table would look alike, it shows their labels.

        >>> import manyarms as ma
        >>> ma.MOSSOracle(alpha=0.2, count_late=True).short_label
        'moss-oracle(count_late)'
        """
        own = [word for one in layers(self) for word in one.changed(given=False)]
        return self.name + in_brackets(own)

    def stage(self, state: Any) -> str:
        """Say in words where a state is, such as "iteration 3 of 8"; "" if there are no stages."""
        return ""

    @by_name
    def live(
        self,
        *,
        n_arms: int | None = None,
        arms: Iterable[str | int] | None = None,
        horizon: int | None = None,
        seed: int | None = None,
        reward_range: tuple[float, float] | None = (0.0, 1.0),
    ) -> Live:
        """Return a handle to use the policy on real arms: ask for pulls, tell rewards.

        Parameters
        ----------
        n_arms
            The number of arms, called 0, 1, 2 and so on.
        arms
            Names of the arms, strings or integers, instead of `n_arms`.
        horizon
            The number of pulls there will be. Anytime policies work without.
        seed
            Decides all random choices; the same seed and rewards give the same arms. None draws
            one, `live.seed`, so that two services make different random choices.
        reward_range
            The smallest and the largest reward there can be (default: 0 and 1). A `sigma` of 1/2,
            the default, becomes half their distance. None accepts all rewards up to 1e100, and
            leaves `sigma` as it is.
        """
        # by name, so that this room does not import the one above it
        handle: type[Live] = importlib.import_module("manyarms.live.handle").Live
        return handle(
            self, n_arms=n_arms, arms=arms, horizon=horizon, seed=seed, reward_range=reward_range
        )


def layers(policy: Policy) -> Iterator[Policy]:
    """Yield a policy, and those that it wraps, from the outside in."""
    one: Any = policy
    while isinstance(one, Policy):
        yield one
        one = getattr(one, "policy", None)
