"""An experiment as its user understands it.

The model is told every call, its answer and the time. It knows no policy, no store and no snapshot.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

from tests.live.promises.arithmetic import Sums
from tests.live.promises.spec import Spec

CLOCK_STEP = 60.0  # seconds that a clock may go back before windows begin again


@dataclass
class Open:
    """A pull that has not ended."""

    arm: Any
    is_control: bool
    asked: float
    held: float | None = None  # a reward that counts when the window ends


class Model:
    """What is known after some calls, from these calls and their answers alone."""

    def __init__(self, spec: Spec) -> None:
        self.spec, self.policy = spec, spec.policy
        self.arms = list(spec.arms)
        self.retired: set[Any] = set()
        self.order: list[Any] = []  # arms, in the order of first pulls or imports
        self.pulls: Counter[Any] = Counter()
        self.rewards: dict[Any, Sums] = {}  # told and imported
        self.open: dict[int, Open] = {}
        self.next = self.asked = self.told = self.abandoned = 0
        self.control, self.control_pulls = Sums(), 0
        self.last_pull = spec.horizon  # the number of pulls at which the promised ones are used up
        self.paused = False
        self.latest = -math.inf  # the time of the last pull

    @property
    def available(self) -> list[Any]:
        return [arm for arm in self.arms if arm not in self.retired]

    @property
    def left(self) -> int | None:
        return None if self.last_pull is None else self.last_pull - self.asked

    @property
    def waiting(self) -> dict[int, Any]:
        """The arms of the pulls whose reward may be told."""
        return {number: pull.arm for number, pull in self.open.items() if pull.held is None}

    def add_pull(self, arm: Any, *, is_control: bool, now: float) -> None:
        self.open[self.next] = Open(arm, is_control, now)
        self.latest = max(self.latest, now)
        self.next += 1
        if is_control:
            self.control_pulls += 1
            return
        self.asked += 1
        self.pulls[arm] += 1
        self._meet(arm)

    def _meet(self, arm: Any) -> None:
        if arm not in self.order:
            self.order.append(arm)

    def tell(self, number: int, reward: float) -> None:
        if self.spec.hold:
            self.open[number].held = reward
        else:
            self._credit(number, reward)

    def _credit(self, number: int, reward: float) -> None:
        pull = self.open.pop(number)
        if pull.is_control:
            self.control.add(1, reward)
        else:
            self.rewards.setdefault(pull.arm, Sums()).add(1, reward)
            self.told += 1

    def abandon(self, number: int) -> None:
        if not self.open.pop(number).is_control:
            self.abandoned += 1

    def observe(self, arm: Any, count: int, total: float) -> None:
        self._meet(arm)
        self.rewards.setdefault(arm, Sums()).add(count, total)

    def begin_season(self, policy: str, horizon: int | None) -> None:
        self.policy = policy
        self.last_pull = None if horizon is None else self.asked + horizon

    def set_time(self, now: float) -> None:
        """End the windows that are over.

        If the clock was set back by more than a minute, the windows of pulls whose ask now lies in
        the future begin again.
        """
        if now < self.latest - CLOCK_STEP:
            self.latest = now
            for pull in self.open.values():
                pull.asked = min(pull.asked, now)
        window = math.inf if self.spec.window is None else self.spec.window
        for number in [n for n, pull in self.open.items() if pull.asked + window <= now]:
            held = self.open[number].held
            reward = self.spec.missing if held is None else held
            if reward is None:
                self.abandon(number)
            else:
                self._credit(number, reward)
