"""The protocol of a policy: parameters that create a state, and functions on that state.

A policy's file defines a state (a NamedTuple with a unique name) and functions on it, and registers
them with `plays(State, reset=…, ask=…, tell=…)`. CPython runs these functions live; the simulator
compiles them.
"""

from __future__ import annotations

import inspect
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import MISSING, dataclass, fields
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from manyarms.core.checks import by_name, refusal
from manyarms.core.jit import Dispatched, generic, optional
from manyarms.core.memory import Memory
from manyarms.errors import ParameterError, UnknownNameError
from manyarms.protocol.parameters import checks_of

if TYPE_CHECKING:
    from manyarms.live.handle import Live
else:
    Live = Any  # so that the hints of `live` can be evaluated, although its module is loaded later

_OF_REWARDS = ("bound", "sigma", "bottom", "top")  # None: what the rewards imply
_LONG = 8  # characters; longer floats are shown as fractions if these are exact
MOST_ARMS = 1 << 50  # so that a number for (subroutine, arm) still fits into 64 bits

P = TypeVar("P", bound="Policy")


@generic
def reset(state: Any, key: int, horizon: int) -> None:
    """Start a replication. `key` decides all random choices; `horizon` is 0 if unknown."""


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
    """Never choose this arm again. The caller ensures that other arms are left."""


@optional
def credit_known(state: Any, arm: int, count: int, total: float, squares: float) -> int:
    """Credit known rewards that came without a pull of this state; return their arm.

    They are `count` >= 1 rewards of sum `total`, and `squares` is the sum of their squares. If
    `arm` is -1, the policy draws an arm that neither `ask` nor this function has returned since the
    last reset; else it is an arm that one of them returned. The result is -1 if the policy has no
    place for the arm, or does not have this function: it then does not use these rewards.
    """
    return -1


@optional
def recommend(state: Any) -> int:
    """Return the arm to keep, or -1 to use the common rule.

    At least one reward of the arm must have been told.
    """
    return -1


_FUNCTIONS: tuple[Dispatched[..., Any], ...] = (
    *(reset, ask, tell),
    *(count_late, generation, arrive, retire, credit_known, recommend),
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
    credit_known: Callable[[Any, int, int, float, float], int] | None = None,
    recommend: Callable[[Any], int] | None = None,
) -> None:
    """Register the functions of a policy whose states are of this class.

    Parameters
    ----------
    state_class
        A NamedTuple. No other state may have its name.
    reset, ask, tell
        Required.
    count_late, generation
        For late rewards; without them, late pulls are not counted, and no reward is dropped.
    arrive, retire
        To add and retire arms; without them, handles refuse to.
    credit_known
        Credits rewards that came without a pull; without it, they are not used.
    recommend
        Returns the arm to keep, if the policy does not use the common rule.
    """
    needed: tuple[Any, ...] = (reset, ask, tell)
    others: tuple[Any, ...] = (count_late, generation, arrive, retire, credit_known, recommend)
    table = dict(zip(_FUNCTIONS, (*needed, *others), strict=True))
    for function, body in table.items():
        if not callable(body) and (body is not None or function in _FUNCTIONS[: len(needed)]):
            name = getattr(function, "__name__", "")
            raise refusal(name, f"a function on {state_class.__name__}", body)
    for function, body in table.items():
        if body is not None:
            function.register(state_class)(body)


def _value_text(value: Any) -> str:
    """Format a value for a policy's name: a long float as a fraction, if that is exact.

    >>> [_value_text(value) for value in (0.6, 2 / 3, 7, True, "kl")]
    ['0.6', '2/3', '7', 'True', "'kl'"]
    """
    text = repr(value)
    if isinstance(value, float) and len(text) > _LONG:
        fraction = Fraction(value).limit_denominator(9)
        return str(fraction) if float(fraction) == value else text
    return text


@dataclass(frozen=True, kw_only=True)
class Policy(ABC):
    """The parameters of a policy, a frozen dataclass that creates the policy's state."""

    name: ClassVar[str]  # without parameters; `str(policy)` has those that are not the defaults
    anytime: ClassVar[bool] = False  # works without knowing the horizon
    unit_rewards: ClassVar[bool] = False  # made for rewards in [0, 1] only

    def __new__(cls: type[P], *values: Any, **given: Any) -> P:
        """Suggest the nearest parameter if a name is misspelled."""
        if given.keys() - cls.__dataclass_fields__.keys():
            known = inspect.signature(cls.__init__).parameters  # a class may define its own
            for name in given.keys() - known.keys():
                if not any(one.kind is one.VAR_KEYWORD for one in known.values()):
                    raise UnknownNameError(f"parameter of {cls.__name__}:", name, [*known][1:])
        return super().__new__(cls)

    def __post_init__(self) -> None:
        """Check and convert the parameters by their types, so that no float32 reaches a kernel."""
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

    def with_reward_range(
        self: P, reward_range: tuple[float, float] | None, sigma: float | None = None
    ) -> P:
        """Return the policy for these rewards, or raise if it cannot play them.

        Parameters that depend on the rewards, such as `sigma`, are set unless they were given.
        `new_state` needs them, so the caller keeps the given policy, and plays this one.

        Parameters
        ----------
        reward_range
            The smallest and the largest possible reward, or None if rewards are not bounded.
        sigma
            Rewards are sigma-sub-Gaussian, if that is known although they are not bounded.
        """
        if self.unit_rewards and reward_range is None:
            raise ParameterError(
                f"`reward_range` must lie in [0, 1] for {self}, got None, that is, rewards without "
                f"bounds. Use a policy with `sigma`, such as MOSS(), or rewards with a range, "
                f"scaled into [0, 1]."
            )
        if self.unit_rewards and not is_unit(reward_range):
            low, high = reward_range or (0.0, 1.0)
            raise ParameterError(
                f"`reward_range` must lie in [0, 1] for {self}, got {(low, high)}. Tell "
                f"(reward - {low:g}) / {high - low:g} instead, or use a policy with `sigma`."
            )
        return self

    def __str__(self) -> str:
        """Return the name with the parameters that differ from their defaults.

        `manyarms.policy` makes the same policy from it.

        >>> import manyarms as ma
        >>> str(ma.MOSSPlusPlus(beta=0.6)), str(ma.Doubling(ma.MOSSPlusPlus(beta=0.6)))
        ('moss++(beta=0.6)', 'anytime-moss++(beta=0.6)')
        """
        return self.text()

    def text(self, *, known: bool = True) -> str:
        """Return `str(policy)`, or its label in tables if not `known`.

        Labels omit what the policy knows about the problem, such as the hardness: parameters whose
        default is None, or that have no default, but not `sigma` and others about the rewards. So a
        policy has the same label in all cells.

        >>> import manyarms as ma
        >>> ma.MOSSOracle(alpha=0.2, sigma=1.0).text(known=False)
        'moss-oracle(sigma=1.0)'
        """
        return self.name + self._brackets(known)

    def _brackets(self, known: bool) -> str:
        words = [f"{name}={_value_text(value)}" for name, value in self._changed(known).items()]
        return f"({', '.join(words)})" if words else ""

    def _changed(self, known: bool) -> dict[str, Any]:
        """Return the parameters that differ from their defaults."""
        return {
            field.name: value
            for field in fields(self)
            if (value := getattr(self, field.name)) != field.default
            and not isinstance(value, Policy)
            and (known or field.default not in (None, MISSING) or field.name in _OF_REWARDS)
        }

    def stage(self, state: Any) -> str:
        """Describe a state's progress, such as "iteration 3 of 8"; "" if there are no stages."""
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
            The number of arms, named 0, 1, 2 and so on.
        arms
            Names of the arms, strings or integers, instead of `n_arms`.
        horizon
            The total number of pulls (default: None, for policies that need none).
        seed
            The seed of all random choices; the same seed and rewards give the same arms (default:
            drawn at random; see `live.seed`).
        reward_range
            The smallest and the largest possible reward (default: (0, 1)). A policy that was given
            no `sigma` takes half the width of the range. None accepts all rewards from -1e100 to
            1e100; then a policy with `sigma` must be given one.
        control
            The name of what you have today, to compare with: `live.uplift()` returns how much
            better the recommended arm is (default: no control).
        share
            The fraction of the pulls that the control gets (default: 0.05).
        reward
            The word printed after sums of rewards, such as "clicks".
        epsilon
            How much worse than the best an arm may be for `verdict` to advise stopping: a number,
            or a share such as "20%" (default: "10%").
        window
            How long a reward may take (seconds; default: no limit). If it ends without a reward,
            the pull gets the reward `missing`, or is abandoned if that is None.
        missing
            The reward of pulls whose window ended without one, such as 0 (default: None).
        hold
            Whether rewards count only when their window ends (default: False).
        store
            Where to record every event before a call returns, such as "shop.db" (default: nothing
            is recorded). If the store has an experiment of this name, it is continued.
        name
            The experiment's name in the store (default: "experiment").
        durable
            Which failures recorded events survive: the end of the process at any moment
            ("process", the default), or also a power failure ("power").
        now
            Returns the time (seconds since 1970; default: `time.time`).
        """
        from manyarms.live.handle import Live  # one of two imports of a higher layer

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


def is_unit(reward_range: tuple[float, float] | None) -> bool:
    """Return whether all rewards lie in [0, 1]."""
    return reward_range is not None and 0.0 <= reward_range[0] <= reward_range[1] <= 1.0


def layers(policy: Policy) -> Iterator[Policy]:
    """Yield a policy and the policies that it wraps, from the outside in."""
    one: Any = policy
    while isinstance(one, Policy):
        yield one
        one = getattr(one, "policy", None)
