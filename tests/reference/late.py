"""The policies with late or missing rewards. Every ask scans all slots."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

from tests.reference.emp_moss_plus_plus import choose_arms
from tests.reference.leaders import Leaders
from tests.reference.moss import Shuffle, Slot
from tests.reference.moss_plus_plus import (
    Mixtures,
    arms_in,
    next_mixture,
    pulls_in,
    smallest_power,
)
from tests.reference.parallel import set_sizes
from tests.reference.quantile import set_size
from tests.reference.words import (
    EPOCHS,
    FRESH,
    MIXTURES,
    ORDER,
    RANKING,
    TIES,
    below,
    stream,
    upper,
)


@dataclass(eq=False)
class LateSlot(Slot):
    """`pulls` and `total` count told rewards, `asked` counts pulls."""

    late: int = 0  # pending pulls, except the newest of all pulls
    asked: int = 0
    owner: int = 0  # Parallel: the subroutine

    @property
    def mean(self) -> float:
        return self.total / self.pulls if self.pulls else 0.0


@dataclass
class PendingPull:
    slot: LateSlot
    late: bool = False  # True after the next ask


class LateReference:
    """A policy with asks, tells and abandons in any order, by the number of the pull."""

    keeps_statistics = False  # of slots that cannot be chosen at present

    def __init__(self, key: int, *, count_late: bool) -> None:
        self.count_late = count_late
        self.leaders: Leaders[LateSlot] = Leaders(stream(key, TIES))
        self.slots: list[LateSlot] = []  # those that may be chosen
        self.pending: dict[int, PendingPull] = {}
        self.made = 0

    def choose(self) -> tuple[LateSlot, int]:
        """Return a slot and the arm to pull for it."""
        raise NotImplementedError

    def horizon_and_size(self, slot: LateSlot) -> tuple[int, int]:
        """Return H and K of the index."""
        raise NotImplementedError

    def leaders_of(self, slot: LateSlot) -> Leaders[LateSlot]:
        """Return the leaders among the slots that this slot is compared with."""
        return self.leaders

    def ask(self) -> int:
        before = self.pending.get(self.made - 1)
        if before is not None:
            before.late = True
            self.late_changed(before.slot, 1)
        slot, arm = self.choose()
        slot.asked += 1
        self.pending[self.made] = PendingPull(slot)
        self.made += 1
        return arm

    def tell(self, number: int, reward: float) -> None:
        pull = self.pending.pop(number)
        slot = pull.slot
        if slot not in self.slots and not self.keeps_statistics:
            return  # its MOSS run has ended
        slot.pulls += 1
        slot.total += reward
        if slot in self.slots:
            self.leaders_of(slot).changed(slot, self.value(slot))
        if pull.late:
            self.late_changed(slot, -1)

    def abandon(self, number: int) -> None:
        pull = self.pending.pop(number)
        self.late_changed(pull.slot, -int(pull.late))

    def late_changed(self, slot: LateSlot, change: int) -> None:
        """Count late pulls if the index depends on them."""
        slot.late += change
        if slot in self.slots and (slot.pulls == 0 or self.count_late):
            self.leaders_of(slot).changed(slot, self.value(slot))

    def value(self, slot: LateSlot) -> float:
        if slot.pulls == 0:  # without rewards: above all others, fewest pending first
            return 1e300 / slot.late if slot.late > 0 else math.inf
        horizon, size = self.horizon_and_size(slot)
        n = slot.pulls + (slot.late if self.count_late else 0)
        excess = max(0.0, math.log(horizon / size) - math.log(n))
        return slot.mean + math.sqrt(excess / n)


class LateMoss(LateReference):
    """MOSS on `size` random arms."""

    def __init__(
        self, n: int, horizon: int, key: int, *, count_late: bool, size: int | None = None
    ) -> None:
        super().__init__(key, count_late=count_late)
        self.size, self.horizon = min(size or n, n), horizon
        self.due: list[LateSlot] = []  # slots with the value of an earlier size
        self.shuffle = Shuffle(n, stream(key, FRESH))

    def choose(self) -> tuple[LateSlot, int]:
        if len(self.slots) < self.size:
            slot = LateSlot(self.shuffle.next())
            self.slots.append(slot)
        else:
            for slot in self.due:
                self.leaders.changed(slot, self.value(slot))
            self.due = []
            slot = self.leaders.choose(self.slots)
        return slot, slot.arm

    def credit(self, arm: int, count: int, total: float) -> int:
        """Count known rewards of an arm, or of the next one; a full set grows."""
        slot = next((slot for slot in self.slots if slot.arm == arm), None)
        if arm < 0 and self.shuffle.left > 0:
            slot = LateSlot(self.shuffle.next())
            self.slots.append(slot)
            if len(self.slots) > self.size:
                self.size = len(self.slots)
                self.due = self.slots[:-1]
        if slot is None:
            return -1
        slot.pulls += count
        slot.total += total
        self.leaders.changed(slot, self.value(slot))
        return slot.arm

    def horizon_and_size(self, slot: LateSlot) -> tuple[int, int]:
        return self.horizon, self.size


class LateMossPlusPlus(LateReference):
    """A new MOSS in each iteration; mixture-arms count pulls, told or not."""

    def __init__(
        self, n: int, horizon: int, key: int, *, count_late: bool, beta: str = "0.5"
    ) -> None:
        super().__init__(key, count_late=count_late)
        self.n, self.horizon = n, horizon
        self.p = smallest_power(horizon, beta)
        self.fresh, self.order = stream(key, FRESH), stream(key, ORDER)
        self.mixtures = Mixtures(stream(key, MIXTURES))
        self.iteration, self.length, self.left = 0, 0, 0

    def next_iteration(self) -> None:
        if self.iteration > 0:
            self.mixtures.add([(slot, slot.asked) for slot in self.slots])
        self.iteration += 1
        self.slots = []
        self.leaders.forget()
        self.length = self.left = pulls_in(self.p, self.iteration, self.horizon)
        self.shuffle = Shuffle(self.n, self.fresh)
        self.waiting = list(range(1, self.iteration))
        self.size = arms_in(self.p, self.iteration, self.n) + len(self.waiting)

    def choose(self) -> tuple[LateSlot, int]:
        if self.left == 0:
            self.next_iteration()
        self.left -= 1
        if len(self.slots) < self.size:
            mixture = next_mixture(self.waiting, self.size - len(self.slots), self.order)
            slot = LateSlot(mixture=mixture) if mixture else LateSlot(self.shuffle.next())
            self.slots.append(slot)
        else:
            slot = self.leaders.choose(self.slots)
        return slot, self.mixtures.real_arm(slot)

    def horizon_and_size(self, slot: LateSlot) -> tuple[int, int]:
        return self.length, self.size


class LateQuantile(LateReference):
    """QRM2: rounds of 2^l pulls on a growing set."""

    def __init__(self, n: int, horizon: int, key: int, *, count_late: bool) -> None:
        super().__init__(key, count_late=count_late)
        self.n, self.horizon = n, horizon
        self.shuffle = Shuffle(n, stream(key, FRESH))
        self.round, self.left = 0, 0

    def choose(self) -> tuple[LateSlot, int]:
        if self.left == 0:
            self.round += 1
            self.left = 2**self.round
            self.size = set_size("0.347", self.round, self.n)
            self.total = min(2 ** (self.round + 1) - 2, self.horizon)
            self.leaders.forget()
            for slot in self.slots:
                slot.value = self.value(slot)
        self.left -= 1
        if len(self.slots) < self.size:
            self.slots.append(LateSlot(self.shuffle.next()))
            return self.slots[-1], self.slots[-1].arm
        slot = self.leaders.choose(self.slots)
        return slot, slot.arm

    def horizon_and_size(self, slot: LateSlot) -> tuple[int, int]:
        return self.total, self.size


class LateParallel(LateReference):
    """Subroutines are compared, like arms, by told rewards."""

    def __init__(
        self, n: int, horizon: int, key: int, *, count_late: bool, best_mean: float = 0.0
    ) -> None:
        super().__init__(key, count_late=count_late)
        self.best_mean, self.horizon = best_mean, horizon
        self.sizes = set_sizes(n, horizon)
        fresh = stream(key, FRESH)
        self.shuffles = [Shuffle(n, fresh) for _ in self.sizes]
        self.epochs = stream(key, EPOCHS)
        words = stream(key, TIES)
        self.runs: list[Leaders[LateSlot]] = [Leaders(words) for _ in self.sizes]
        self.chosen, self.left = 0, 0
        self.told = [0] * len(self.sizes)
        self.rewards = [0.0] * len(self.sizes)

    def tell(self, number: int, reward: float) -> None:
        owner = self.pending[number].slot.owner
        self.told[owner] += 1
        self.rewards[owner] += reward
        super().tell(number, reward)

    def next_subroutine(self) -> None:
        if self.left == 0:
            self.left = math.isqrt(self.horizon - 1) + 1  # ⌈√T⌉
            self.epochs.next()  # stands for "none yet"
            words = [upper(self.epochs.next()) for _ in self.sizes]
            lost = [t * self.best_mean - r for t, r in zip(self.told, self.rewards, strict=True)]
            self.chosen = min(range(len(words)), key=lambda i: (lost[i], -words[i]))
        self.left -= 1

    def choose(self) -> tuple[LateSlot, int]:
        self.next_subroutine()
        size = self.sizes[self.chosen]
        own = [slot for slot in self.slots if slot.owner == self.chosen]
        if len(own) < size:
            slot = LateSlot(self.shuffles[self.chosen].next(), owner=self.chosen)
            self.slots.append(slot)
        else:
            slot = self.runs[self.chosen].choose(own)
        return slot, slot.arm

    def leaders_of(self, slot: LateSlot) -> Leaders[LateSlot]:
        return self.runs[slot.owner]

    def horizon_and_size(self, slot: LateSlot) -> tuple[int, int]:
        return self.horizon, self.sizes[slot.owner]


class LateEmpMossPlusPlus(LateReference):
    """Rewards count whenever they come; an arm without rewards has mean 0."""

    keeps_statistics = True

    def __init__(
        self, n: int, horizon: int, key: int, *, count_late: bool, beta: str = "0.5"
    ) -> None:
        super().__init__(key, count_late=count_late)
        self.n, self.horizon = n, horizon
        self.p = smallest_power(horizon, beta)
        self.order, self.ranking = stream(key, ORDER), stream(key, RANKING)
        self.shuffle = Shuffle(n, stream(key, FRESH))
        self.mixtures = Mixtures(stream(key, MIXTURES))
        self.opened: list[LateSlot] = []  # all, in this order
        self.iteration, self.planned, self.left = 0, 0, 0

    def next_iteration(self) -> None:
        self.iteration += 1
        self.left = pulls_in(self.p, self.iteration, self.horizon)
        self.planned += self.left
        self.new_arms = arms_in(self.p, self.iteration, self.n)
        self.waiting = self.iteration > 1  # the newest mixture-arm
        if self.iteration > 1:
            self.mixtures.add([(slot, slot.asked) for slot in self.slots])
            everything = cast("list[Slot]", self.opened)
            ranked = choose_arms(everything, self.new_arms, self.shuffle.left, self.ranking)
            self.new_arms = ranked[1]
            self.slots = cast("list[LateSlot]", ranked[0])
            self.slots += [slot for slot in self.opened if slot.mixture]
        self.size = len(self.slots) + self.new_arms + self.waiting
        self.leaders.forget()
        for slot in self.opened:
            slot.value = -math.inf
        for slot in self.slots:
            slot.value = self.value(slot)
            slot.asked = 0

    def choose(self) -> tuple[LateSlot, int]:
        if self.left == 0:
            self.next_iteration()
        self.left -= 1
        if self.waiting and below(self.order.next(), self.new_arms + 1) == 0:
            self.waiting = False
            self.opened.append(LateSlot(mixture=self.iteration - 1))
            self.slots.append(self.opened[-1])
        elif self.new_arms > 0:
            self.new_arms -= 1
            self.opened.append(LateSlot(self.shuffle.next()))
            self.slots.append(self.opened[-1])
        else:
            slot = self.leaders.choose(self.opened)
            return slot, self.mixtures.real_arm(slot)
        return self.opened[-1], self.mixtures.real_arm(self.opened[-1])

    def horizon_and_size(self, slot: LateSlot) -> tuple[int, int]:
        return min(self.planned, self.horizon), self.size
