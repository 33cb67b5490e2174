"""What a policy is: parameters that make a state, and functions on that state.

A policy's file defines a state (a NamedTuple with a name of its own), functions on it, and a table
that says which of them play it: `plays(State, reset=…, ask=…, tell=…)`. CPython runs these
functions live; the simulator compiles them.
"""

from __future__ import annotations

import inspect
import os
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

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
    """Start a new game. `key` decides all random choices; `horizon` is 0 if it is unknown."""


@generic
def ask(state: Any) -> tuple[int, int]:  # type: ignore[empty-body]  # bodies are registered
    """Choose an arm: return the slot that its reward will be credited to, and the arm."""


@generic
def tell(state: Any, slot: int, reward: float) -> None:
    """Credit a reward to the slot that `ask` returned."""


@optional
def count_late(state: Any, slot: int, change: int) -> None:
    """Count `change` more late pulls of the slot.

    A pull is late when its reward is not told before the next pull is asked for. A change of 0
    means that a pull was abandoned before it was late.
    """


@optional
def generation(state: Any) -> int:
    """Return a number that changes when slots change their meaning.

    Rewards of an earlier generation are dropped.
    """
    return 0


@generic
def arrive(state: Any, count: int) -> None:
    """Add `count` arms; their numbers follow the last one."""


@generic
def retire(state: Any, arm: int) -> None:
    """Never choose this arm again. The caller makes sure that others are left."""


@optional
def recommend(state: Any) -> int:
    """Return the arm to keep, or -1 to leave the choice to the common rule.

    At least one reward of the arm must have been told.
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
    """Return words in brackets for the end of a label, or "" if there are none."""
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
    """The parameters of a policy, a frozen dataclass. The state it makes does the work."""

    name: ClassVar[str]
    about: ClassVar[About | None] = None  # for lists and the leaderboard
    anytime: ClassVar[bool] = False  # works without knowing the horizon
    in_name: ClassVar[tuple[str, ...]] = ()  # parameters that the name says already

    def __new__(cls: type[P], *values: Any, **given: Any) -> P:
        """Suggest the nearest parameter where a name is misspelled."""
        if given.keys() - cls.__dataclass_fields__.keys():
            known = inspect.signature(cls.__init__).parameters  # a class may have written its own
            for name in given.keys() - known.keys():
                if not any(one.kind is one.VAR_KEYWORD for one in known.values()):
                    raise UnknownNameError(f"parameter of {cls.__name__}:", name, [*known][1:])
        return super().__new__(cls)

    def __post_init__(self) -> None:
        """Check and convert the parameters by their types: no float32 reaches a kernel."""
        for name, (check, none_too) in checks_of(type(self)).items():
            value = getattr(self, name)
            if value is not None or not none_too:
                object.__setattr__(self, name, check(name, value))

    @abstractmethod
    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> Any:
        """Make a state with room for `pulls` pulls: the horizon, or 2^40 if it is unknown."""

    def first_draws(self, *, n_arms: int, pulls: int) -> int:
        """Return how many arms are drawn before the first pull; most policies draw none ahead."""
        return 0

    def with_best_mean(self: P, best_mean: float) -> P:
        """Return the policy with this best mean, if it needs one and was given none."""
        return self

    def with_reward_range(self: P, reward_range: tuple[float, float] | None) -> P:
        """Return the policy with the parameters that follow from the range, if not given."""
        return self

    @property
    def unit_rewards(self) -> bool:
        """Whether the policy is made for rewards in [0, 1] only."""
        return self.about is not None and self.about.rewards == "[0, 1]"

    def check_rewards(self, reward_range: tuple[float, float] | None) -> None:
        """Raise unless the policy can take rewards of this range; None if it is unknown."""
        low, high = reward_range or (0.0, 1.0)
        if self.unit_rewards and not 0.0 <= low <= high <= 1.0:
            raise ParameterError(
                f"`reward_range` must lie in [0, 1] for {self.label}, got {(low, high)}. Tell "
                f"(reward - {low:g}) / {high - low:g} instead, or take a policy with `sigma`."
            )

    @property
    def label(self) -> str:
        """The name, with the parameters that differ from their defaults."""
        return self.name + in_brackets(self.changed())

    def changed(self, *, given: bool = True) -> list[str]:
        """Return the parameters that differ from their defaults, as labels show them.

        Without `given`, parameters whose default is None, or that have none, are left out.
        """
        found = []
        for field in fields(self):
            value = getattr(self, field.name)
            hidden = field.name in self.in_name
            hidden |= not given and field.default in (None, MISSING)
            if not (isinstance(value, Policy) or value == field.default or hidden):
                found.append(short_form(field.name, value))
        return found

    @property
    def short_label(self) -> str:
        """The label for tables: without what the policy was told about the problem.

        These are the parameters without a default, or with None, such as the hardness. If two
        policies of a table would look alike, it shows their labels.

        >>> import manyarms as ma
        >>> ma.MOSSOracle(alpha=0.2, count_late=True).short_label
        'moss-oracle(count_late)'
        """
        own = [word for one in layers(self) for word in one.changed(given=False)]
        return self.name + in_brackets(own)

    def stage(self, state: Any) -> str:
        """Describe where a state is, such as "iteration 3 of 8"; "" if there are no stages."""
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
        control: str | int | None = None,
        share: float = 0.05,
        reward: str | None = None,
        epsilon: float | str | None = None,
        window: float | None = None,
        missing: float | None = None,
        hold: bool = False,
        store: str | os.PathLike[str] | None = None,
        name: str | None = None,
        durable: Literal["process", "power"] = "process",
        now: Callable[[], float] = time.time,
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
        control
            The name of what you have today, to compare with: `live.uplift()` says how much better
            the recommended arm is (default: no control).
        share
            The share of the pulls that go to the control (default: 0.05).
        reward
            What rewards are, such as "clicks".
        epsilon
            How much worse than the best an arm may be, so that `verdict` says stop: a number, or a
            share such as "20%" (default: "10%").
        window
            How long a reward may take (seconds). When the window of a pull ends, the pull gets the
            reward `missing`; without one it is abandoned (default: no window).
        missing
            The reward of pulls whose window ended without one, such as 0 (default: None).
        hold
            Whether rewards count only when their window ends (default: False).
        store
            Where to record every event before a call returns, such as "shop.db". An experiment of
            this name that is there is continued (default: nothing is recorded).
        name
            The experiment's name in the store (default: "experiment").
        durable
            What recorded events survive: a kill of the process ("process", the default), or also a
            power failure ("power").
        now
            Returns the time (seconds since 1970; default: `time.time`).
        """
        from manyarms.live.handle import Live  # one of the two imports that go up

        return Live(
            self,
            n_arms=n_arms,
            arms=arms,
            horizon=horizon,
            seed=seed,
            reward_range=reward_range,
            control=control,
            share=share,
            reward=reward,
            epsilon=epsilon,
            window=window,
            missing=missing,
            hold=hold,
            store=store,
            name=name,
            durable=durable,
            now=now,
        )


def layers(policy: Policy) -> Iterator[Policy]:
    """Yield a policy and the policies that it wraps, from the outside in."""
    one: Any = policy
    while isinstance(one, Policy):
        yield one
        one = getattr(one, "policy", None)
