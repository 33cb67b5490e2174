"""What people see of a handle: the arm to deploy, the best arms, how far the game is."""

from __future__ import annotations

import heapq
import math
import threading
from typing import TYPE_CHECKING, Any

from manyarms.core.checks import check_int
from manyarms.core.sequences import spent_error, uniform_limits
from manyarms.errors import MissingExtraError, TurnError
from manyarms.live.arms import Arms, Tally
from manyarms.live.estimates import ERROR, PROMISE, ArmEstimate, Progress, plain, rounded
from manyarms.live.html import MOST_ARMS_SHOWN, handle_html
from manyarms.live.pull import Pull
from manyarms.protocol.in_flight import InFlight
from manyarms.protocol.policy import Policy

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped]

__all__ = ["ArmEstimate", "Progress", "Views"]


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
        came too late for the policy count here. Retired arms are out.
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
            best = self._best(k)
        if not best:
            raise TurnError(
                "Cannot recommend an arm: of the arms there are, no reward was told yet."
            )
        return best

    def _best(self, k: int) -> list[ArmEstimate]:
        limits = self._limits()
        known = [number for number in limits if number not in self._retired]
        # a stable order: ties fall to the arm met first, and arms are met in random order
        best = heapq.nlargest(k, known, key=lambda number: limits[number][0])
        return [self._estimate(number, self._tally[number], limits[number]) for number in best]

    def arms(self) -> list[ArmEstimate]:
        """Return what is known of every arm that was pulled, in the order of their first pulls."""
        with self._lock:
            limits = self._limits()
            unknown = self.reward_range or (-math.inf, math.inf)
            return [
                self._estimate(number, tally, limits.get(number, unknown))
                for number, tally in self._tally.items()
            ]

    def _estimate(self, number: int, tally: Tally, limits: tuple[float, float]) -> ArmEstimate:
        return ArmEstimate(
            arm=self._arms.name(number),
            estimate=tally.total / tally.told if tally.told > 0 else math.nan,
            interval=limits,
            pulls=tally.asked,
            told=tally.told,
            retired=number in self._retired,
        )

    def _limits(self) -> dict[int, tuple[float, float]]:
        """Return the limits of every arm of which a reward was told, by number.

        The error is spent over the arms in the order of their first pulls, because the arm that
        looks best was chosen among all of them.
        """
        told = [(k, number) for k, number in enumerate(self._tally) if self._tally[number].told > 0]
        tallies = [self._tally[number] for _, number in told]
        policy = self.policy
        while isinstance(within := getattr(policy, "policy", None), Policy):
            policy = within  # Doubling and SubSampled have no sigma of their own
        low, high = uniform_limits(
            [tally.told for tally in tallies],
            [tally.total for tally in tallies],
            bounds=self.reward_range,
            sigma=getattr(policy, "sigma", 0.5),
            error=spent_error(ERROR, [k + 1 for k, _ in told]),
        )
        ends = zip(low.tolist(), high.tolist(), strict=True)
        return {number: limits for (_, number), limits in zip(told, ends, strict=True)}

    def progress(self) -> Progress:
        """Return how far the game is."""
        with self._lock:
            pending, abandoned = len(self._flight), len(self._lost)
            told = self._pulls - pending - abandoned
            reward = math.fsum([tally.total for tally in self._tally.values()])
            return Progress(
                pulls=self._pulls,
                horizon=self.horizon,
                told=told,
                pending=pending,
                abandoned=abandoned,
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

    def __str__(self) -> str:
        with self._lock:
            lines, best = [self.policy.label, str(self.progress())], self._best(5)
        if best:
            lines.append(f"best arms so far ({PROMISE}):")
        for arm in best:
            low, high = map(rounded, arm.interval)
            name = plain(repr(arm.arm), at_most=24)
            told = f"{arm.told} told"
            lines.append(f"  {name:24} {rounded(arm.estimate):>6} in [{low}, {high}], {told}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        with self._lock:
            progress, best = self.progress(), self._best(MOST_ARMS_SHOWN)
        return handle_html(self.policy.label, progress, best, self.reward_range)
