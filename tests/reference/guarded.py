"""The guard around any rule, as in docs/guard.md; rewards in [0, 1], without delay.

Arms are slots here: slot j is the j-th arm of the guard's random order, which the caller draws.
`GuardedPlayer` is the caller for a rule that is a policy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from tests.reference.field.kl import divergence, largest
from tests.reference.moss import Play, Player, Shuffle, Slot
from tests.reference.words import FRESH, GUARDED, draw, stream


@dataclass(frozen=True)
class Stage:
    """One stage: the first `arms` slots, to `pulls` pulls in all, once `start` pulls are made."""

    arms: int
    pulls: int
    start: int
    level: float
    error: float


def levels(horizon: int) -> tuple[float, float]:
    """Return the level of lower bounds, and that of upper bounds in stages without all arms."""
    log = max(1.0, math.log(horizon))
    quarters = 4
    while 2 * math.e * math.ceil(quarters / 4 * log) * math.exp(-quarters / 4) > 1:
        quarters += 1
    return 2.5 * log, quarters / 4


def stages(horizon: int, beta: float, n: float) -> list[Stage]:
    low, up = levels(horizon)
    power = horizon**beta
    size = power / max(1.0, math.log(horizon))
    made: list[Stage] = []
    while not made or size / 2 ** len(made) > 0.5:
        wanted = math.ceil(size / 2 ** len(made))
        arms = wanted if wanted < n else int(n)
        pulls = math.ceil((size / wanted) ** 2)
        level = low if arms == n else up
        error = (math.sqrt(level / 2) + math.sqrt(low / 2)) / math.sqrt(pulls)
        made.append(Stage(arms, pulls, math.ceil(power * size / wanted), level, error))
    return made


@dataclass
class Guarded:
    """Decide whether the guard or the rule pulls, and which slot, and learn the reward.

    `rule` returns an open slot, or the next fresh one; it may use everything. `refresh` returns
    the open slots, at least one, whose lower bounds raise the floor when a stage begins.
    """

    rule: Callable[[Guarded], int]
    horizon: int
    beta: float
    n: float
    refresh: Callable[[Guarded], Iterable[int]] = lambda guard: [guard.current]
    slots: list[Slot] = field(default_factory=list)  # the open ones
    out: set[int] = field(default_factory=set)
    floor: float = -math.inf
    keeper: int = -1
    current: int = 0  # the slot of the rule's last pull
    made: int = 0
    lost: float = 0.0  # D, what the rule lost against the floor
    ends: list[int] = field(default_factory=list)  # pulls made at the ends of the stages
    floors: list[float] = field(default_factory=list)  # and the floors then
    testing: int = -1  # the present slot of a stage in progress

    def __post_init__(self) -> None:
        self.plan()

    def plan(self) -> None:
        self.stages = stages(self.horizon, self.beta, self.n)
        self.low, _ = levels(self.horizon)
        self.allowance: float = 4 * self.horizon**self.beta * max(1.0, math.log(self.horizon))

    def next_guess(self) -> None:
        """Double the horizon if four times the pulls reach it; only order and slots are kept."""
        if 4 * self.made >= self.horizon:
            self.horizon *= 2
            self.plan()
            self.out, self.floor, self.keeper, self.lost = set(), -math.inf, -1, 0.0
            self.ends, self.floors, self.testing = [], [], -1

    @property
    def dropped(self) -> bool:
        return self.lost > self.allowance

    def ask(self) -> tuple[str, int]:
        """Return what pulls next ("guard", "rule" or "keeper"), and the slot."""
        while len(self.ends) < len(self.stages):
            stage = self.stages[len(self.ends)]
            if self.made < stage.start:
                break
            slot = self.tested(stage)
            if slot is not None:
                return "guard", slot
            self.ends.append(self.made)
            self.floors.append(self.floor)
            self.testing = -1
        return ("keeper", self.keeper) if self.dropped else ("rule", self.rule(self))

    def tell(self, who: str, slot: int, reward: float) -> None:
        if slot == len(self.slots):
            self.slots.append(Slot(slot))
        self.slots[slot].pulls += 1
        self.slots[slot].total += reward
        self.made += 1
        if who == "rule":
            self.current = slot
            self.lost += self.floor - reward if self.ends else 0.0

    def tested(self, stage: Stage) -> int | None:
        """Return the slot that the stage pulls now, None if it is over."""
        if self.testing < 0:
            for j in self.refresh(self):
                self.lift(j)
            if 1 - self.floor <= stage.error:
                return None
            self.testing = 0
        while self.testing < stage.arms:
            j = self.testing
            if j == len(self.slots):
                return j
            if j not in self.out:
                slot = self.slots[j]
                if self.too_low(slot, stage.level):
                    self.out.add(j)
                elif slot.pulls < stage.pulls:
                    return j
                else:
                    self.lift(j)
            self.testing += 1
        return None

    def too_low(self, slot: Slot, level: float) -> bool:
        """Return whether the upper bound of the slot is below the floor."""
        below = slot.mean < self.floor
        return below and slot.pulls * divergence(slot.mean, self.floor) > level

    def lift(self, j: int) -> None:
        """Raise the floor to the lower bound of a slot, if that is larger."""
        slot = self.slots[j]
        bound = 1 - largest(1 - slot.mean, self.low / slot.pulls)
        if bound > self.floor:
            self.floor, self.keeper = bound, j


def play_guarded(guard: Guarded, order: Shuffle, guess: bool, before: Callable[[], None]) -> Play:
    """Play the guard and its rule; `before` is called before each pull."""
    arms: list[int] = []
    while True:
        if guess:
            guard.next_guess()
        before()
        who, slot = guard.ask()
        if slot == len(arms):
            arms.append(order.next())
        guard.tell(who, slot, (yield arms[slot]))


@dataclass(frozen=True)
class GuardedPlayer:
    """A policy that learns only from its own pulls; the r-th arm that it names is slot r."""

    player: Player
    beta: float = 0.5

    def play(self, n: int, horizon: int | None, key: int) -> Play:
        play = self.player.play(n, horizon, draw(key, GUARDED))
        labels: dict[int, int] = {}
        rewards: list[float] = []

        def rule(guard: Guarded) -> int:
            label = play.send(rewards.pop()) if rewards else next(play)
            return labels.setdefault(label, len(labels))

        class Telling(Guarded):
            def tell(self, who: str, slot: int, reward: float) -> None:
                super().tell(who, slot, reward)
                if who == "rule":
                    rewards.append(reward)

        guard = Telling(rule, horizon or 256, self.beta, n)
        order = Shuffle(n, stream(key, FRESH))
        return play_guarded(guard, order, horizon is None, lambda: None)
