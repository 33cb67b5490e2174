"""The handle users hold: ask for an arm, pull it, tell the reward."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from manyarms.core.checks import check_int
from manyarms.core.jit import check_bodies
from manyarms.core.memory import SPARSE
from manyarms.core.rng import draw
from manyarms.errors import ParameterError, TurnError
from manyarms.live.protocol import MOST_ARMS, Policy, ask, reset, tell

__all__ = ["Live", "Pull", "policy_key", "run_key", "tape_key"]

_ENDLESS = 1 << 40  # room for the pulls of a game without a horizon


def run_key(seed: int) -> int:
    """Return the key from which all random numbers of a run derive."""
    return draw(check_int("seed", seed, at_most=2**64 - 1), 0)


def policy_key(seed: int, replication: int) -> int:
    """Return the key of the policy's own choices; a live game is replication 0."""
    return draw(draw(run_key(seed), replication), 0)


def tape_key(seed: int, replication: int) -> int:
    """Return the key of the world's side: means and rewards."""
    return draw(draw(run_key(seed), replication), 1)


class Pull(NamedTuple):
    """An arm to pull now.

    Attributes
    ----------
    arm
        The arm's number.
    id
        Which pull of the game this is, from 0.
    slot
        Where the policy will credit the reward: for MOSS++ it may be a mixture-arm's place.
    """

    arm: int
    id: int
    slot: int


class Live:
    """A policy at work on real arms. Made by `policy.live(...)`.

    Parameters
    ----------
    policy
        The policy to use.
    n_arms
        The number of arms; they are numbered from 0.
    horizon
        The number of pulls there will be; None only for anytime policies.
    seed
        Decides all random choices.

    Notes
    -----
    Everything the handle does follows from the policy, the seed and the rewards. It takes
    microseconds, needs no compiler, and its memory grows with the arms touched, not with
    `n_arms`. Asks and tells take turns.

    Examples
    --------
    >>> import manyarms as ma
    >>> live = ma.EmpMOSSPlusPlus(beta=0.5).live(n_arms=1_000_000, horizon=20_000, seed=7)
    >>> pull = live.ask()
    >>> live.tell(pull, reward=1.0)
    >>> live.pulls
    1
    """

    def __init__(
        self, policy: Policy, *, n_arms: int, horizon: int | None = None, seed: int = 0
    ) -> None:
        self.policy = policy
        self.n_arms = check_int("n_arms", n_arms, at_least=1, at_most=MOST_ARMS)
        self.horizon = _check_horizon(policy, horizon)
        self.seed = seed
        self._awaited: Pull | None = None
        self._pulls = 0
        key = policy_key(seed, 0)
        room = self.horizon or _ENDLESS
        self._state = policy.new_state(SPARSE, n_arms=self.n_arms, pulls=room)
        check_bodies(self._state, (reset, ask, tell))
        reset(self._state, key, self.horizon or 0)

    @property
    def pulls(self) -> int:
        """The number of rewards told."""
        return self._pulls

    @property
    def waiting(self) -> Pull | None:
        """The pull that waits for its reward, if there is one."""
        return self._awaited

    def ask(self) -> Pull:
        """Return the arm to pull next."""
        if self._awaited is not None:
            raise TurnError(
                f"Cannot ask again: pull {self._awaited.id} of arm {self._awaited.arm} still "
                f"waits for its reward. Call tell(live.waiting, reward) first."
            )
        if self._pulls == self.horizon:
            raise TurnError(
                f"Cannot ask: all {self.horizon} pulls of the horizon are made. Start with a "
                f"longer horizon, or with an anytime policy such as Doubling(...)."
            )
        slot, arm = ask(self._state)
        if not 0 <= arm < self.n_arms:
            raise ParameterError(
                f"{self.policy.label} chose arm {arm!r}, and there are {self.n_arms}, numbered "
                f"from 0. Its `ask` must return (slot, arm), in this order."
            )
        self._awaited = Pull(arm, self._pulls, slot)
        return self._awaited

    def tell(self, pull: Pull, reward: float) -> None:
        """Report the reward of a pull."""
        if not isinstance(pull, Pull):
            raise ParameterError(f"`pull` must be what ask() returned, got {pull!r}.")
        if pull is not self._awaited and pull != self._awaited:
            raise TurnError(_not_due(pull, self._awaited, self._pulls))
        value = _check_reward(reward)
        tell(self._state, pull.slot, value)
        self._awaited = None
        self._pulls += 1

    def __repr__(self) -> str:
        of = "" if self.horizon is None else f" of {self.horizon}"
        return f"<Live {self.policy.label}: {self._pulls}{of} pulls on {self.n_arms} arms>"


def _check_horizon(policy: Policy, horizon: Any) -> int | None:
    if horizon is None and policy.anytime:
        return None
    if horizon is None:
        raise ParameterError(
            f"`horizon` must be given to {policy.label}, got None. Pass the number of pulls "
            f"there will be, or use an anytime policy such as Doubling(...) or Quantile()."
        )
    return check_int("horizon", horizon, at_least=1, at_most=_ENDLESS)


def _check_reward(reward: Any) -> float:
    if type(reward) is float and math.isfinite(reward):
        return reward  # the usual case, and the fast one
    try:
        if isinstance(reward, str) or getattr(reward, "ndim", 0) > 0:
            raise TypeError
        value = float(reward)
        if math.isfinite(value):
            return value
    except (TypeError, ValueError, OverflowError):
        pass
    raise ParameterError(f"`reward` must be a finite number, got {reward!r}. The pull still waits.")


def _not_due(pull: Pull, awaited: Pull | None, pulls: int) -> str:
    if pull.id < pulls:
        return (
            f"Cannot tell pull {pull.id}: its reward was told already, or it is another handle's. "
            f"Call ask() for a new one."
        )
    if awaited is None:
        return f"Cannot tell pull {pull.id}: it was not asked for. Call ask() first."
    return (
        f"Cannot tell pull {pull.id} of arm {pull.arm}: the pull that waits for a reward is "
        f"{awaited.id} of arm {awaited.arm}."
    )
