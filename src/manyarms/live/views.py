"""What people see of a handle: the arm to deploy, the best arms, how far the game is."""

from __future__ import annotations

import heapq
import math
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from manyarms.core.checks import check_int
from manyarms.core.statistics import uniform_half_width
from manyarms.errors import MissingExtraError, TurnError
from manyarms.live.arms import Arms, Tally
from manyarms.live.flight import InFlight
from manyarms.live.protocol import Policy
from manyarms.live.pull import Pull

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped]

__all__ = ["ArmEstimate", "Progress", "Views"]


@dataclass(frozen=True)
class ArmEstimate:
    """What is known of an arm.

    Attributes
    ----------
    arm
        Its number or name.
    estimate
        The mean of the rewards told; NaN before the first.
    interval
        A 95 % interval for the arm's mean, valid at all times at once, so one may look as often
        as one likes; not corrected for choosing the best of many arms.
    pulls, told
        Pulls asked for, and rewards told.
    retired
        Whether the arm was retired.
    """

    arm: Any
    estimate: float
    interval: tuple[float, float]
    pulls: int
    told: int
    retired: bool = False


@dataclass(frozen=True)
class Progress:
    """How far a game is.

    Attributes
    ----------
    pulls, horizon
        Pulls asked for, and how many there will be (None without a horizon).
    told, pending, abandoned
        Rewards told, pulls in flight, pulls given up: together all pulls.
    stage
        Where the policy is, in its own words, such as "iteration 3 of 8".
    arms_touched, n_arms
        Arms pulled at least once, and arms there are.
    reward, mean_reward
        The sum of the rewards told, and their mean (NaN before the first).
    """

    pulls: int
    horizon: int | None
    told: int
    pending: int
    abandoned: int
    stage: str
    arms_touched: int
    n_arms: int
    reward: float
    mean_reward: float


class Views:
    """The part of a handle that only looks."""

    policy: Policy
    horizon: int | None
    reward_range: tuple[float, float] | None
    _arms: Arms
    _retired: set[int]
    _tally: dict[int, Tally]
    _flight: dict[int, InFlight]
    _lost: set[int]
    _pulls: int
    _state: Any
    _lock: threading.RLock

    @property
    def n_arms(self) -> int:
        """The number of arms there are now, retired ones apart."""
        return self._arms.count - len(self._retired)

    @property
    def pulls(self) -> int:
        """The number of pulls asked for."""
        return self._pulls

    @property
    def pending(self) -> list[Pull]:
        """The pulls whose reward was not told yet, in the order they were asked for."""
        with self._lock:
            return [Pull(self._arms.name(p.arm), number) for number, p in self._flight.items()]

    def recommend(self) -> ArmEstimate:
        """Return the arm to deploy: that of the largest lower limit of its interval.

        So an arm that was lucky once does not win against one that has proved itself. Rewards that
        came too late for the policy count here.
        """
        return self.top(1)[0]

    def top(self, k: int) -> list[ArmEstimate]:
        """Return the `k` arms of the largest lower limits, best first; fewer if fewer are known.

        Parameters
        ----------
        k
            How many.
        """
        k = check_int("k", k, at_least=1)
        with self._lock:
            known = [
                (tally.total / tally.told - self._half_width(tally), number)
                for number, tally in self._tally.items()
                if tally.told > 0 and number not in self._retired
            ]
            if not known:
                raise TurnError("Cannot recommend an arm: no reward of one was told yet.")
            # a stable order: ties fall to the arm met first, and arms are met in random order
            best = heapq.nlargest(k, known, key=lambda arm: arm[0])
            return [self._estimate(number, self._tally[number]) for _, number in best]

    def arms(self) -> list[ArmEstimate]:
        """Return what is known of every arm that was pulled, in the order of their first pulls."""
        with self._lock:
            return [self._estimate(number, tally) for number, tally in self._tally.items()]

    def _estimate(self, number: int, tally: Tally) -> ArmEstimate:
        low, high = self.reward_range or (-math.inf, math.inf)
        mean = math.nan
        if tally.told > 0:
            mean, half = tally.total / tally.told, self._half_width(tally)
            low, high = max(low, mean - half), min(high, mean + half)
        return ArmEstimate(
            arm=self._arms.name(number),
            estimate=mean,
            interval=(low, high),
            pulls=tally.asked,
            told=tally.told,
            retired=number in self._retired,
        )

    def _half_width(self, tally: Tally) -> float:
        if self.reward_range is None:
            return uniform_half_width(tally.told, getattr(self.policy, "sigma", 0.5))
        low, high = self.reward_range
        return uniform_half_width(tally.told, (high - low) / 2)  # Hoeffding's lemma

    def progress(self) -> Progress:
        """Return how far the game is."""
        with self._lock:
            told = sum(tally.told for tally in self._tally.values())
            reward = math.fsum(tally.total for tally in self._tally.values())
            return Progress(
                pulls=self._pulls,
                horizon=self.horizon,
                told=told,
                pending=len(self._flight),
                abandoned=len(self._lost),
                stage=self.policy.stage(self._state),
                arms_touched=len(self._tally),
                n_arms=self.n_arms,
                reward=reward,
                mean_reward=reward / told if told else math.nan,
            )

    def to_dataframe(self) -> pandas.DataFrame:
        """Return what is known of every arm that was pulled as a pandas table."""
        try:
            import pandas
        except ImportError:
            raise MissingExtraError("pandas", "to make a dataframe", "pandas") from None
        rows = [
            {
                "arm": e.arm,
                "estimate": e.estimate,
                "low": e.interval[0],
                "high": e.interval[1],
                "pulls": e.pulls,
                "told": e.told,
                "retired": e.retired,
            }
            for e in self.arms()
        ]
        columns = ["arm", "estimate", "low", "high", "pulls", "told", "retired"]
        return pandas.DataFrame(rows, columns=columns)

    def __repr__(self) -> str:
        of = "" if self.horizon is None else f" of {self.horizon}"
        waiting = f", {len(self._flight)} pending" if self._flight else ""
        return f"<Live {self.policy.label}: {self._pulls}{of} pulls on {self.n_arms} arms{waiting}>"
