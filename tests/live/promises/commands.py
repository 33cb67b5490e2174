"""The calls that a user can make. Each command makes a call on a play, and tells the model.

A number that names an arm or a pull counts modulo the arms or pulls that there are, so that any
sequence of commands can be played, also after some were deleted.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import manyarms as ma
from tests.live.promises import promises
from tests.live.promises.answers import Handle
from tests.live.promises.homes import Home
from tests.live.promises.play import Play
from tests.live.promises.spec import INTEGERS, POLICIES, SCALED, TEXTS, UNIT, Spec


class Command:
    """Something that a user does, or that happens to the experiment."""

    def apply(self, play: Play) -> None:
        raise NotImplementedError


def at(which: int, among: Sequence[Any]) -> Any:
    return among[which % len(among)]


@dataclass(frozen=True)
class Ask(Command):
    count: int = 1

    def apply(self, play: Play) -> None:
        if play.model.paused:
            play.refuse("ask", lambda handle: handle.ask(self.count), also_twin=False)
        else:
            play.ask(self.count)


@dataclass(frozen=True)
class AskAll(Command):
    """Ask for all pulls of the horizon, and for one more."""

    def apply(self, play: Play) -> None:
        left = play.model.left
        if left is None or left > 60 or play.model.paused:
            return
        while play.model.left:
            play.ask(1)
        play.refuse("an ask without pulls left", lambda handle: handle.ask())


@dataclass(frozen=True)
class Tell(Command):
    which: int
    reward: float

    def apply(self, play: Play) -> None:
        if waiting := [*play.model.waiting]:
            number = at(self.which, waiting)
            play.both("tell", lambda handle: handle.tell(number, self.reward))
            play.model.tell(number, self.reward)


@dataclass(frozen=True)
class TellMany(Command):
    """Tell the rewards of the last pulls."""

    count: int
    reward: float

    def apply(self, play: Play) -> None:
        pairs = [(number, self.reward) for number in [*play.model.waiting][-self.count :]]

        def singly(handle: Handle) -> None:
            for number, reward in pairs:
                handle.tell(number, reward)

        play.both("tell_many", lambda handle: handle.tell_many(pairs), singly)
        for number, reward in pairs:
            play.model.tell(number, reward)


@dataclass(frozen=True)
class TellAgain(Command):
    """Repeat a tell and an abandon of a pull that has ended."""

    which: int

    def apply(self, play: Play) -> None:
        if ended := [k for k in range(play.model.next) if k not in play.model.open]:
            number = at(self.which, ended)
            play.both("tell", lambda handle: handle.tell(number, 0.0, again="ignore"))
            play.both("abandon", lambda handle: handle.abandon(number, again="ignore"))


@dataclass(frozen=True)
class Abandon(Command):
    which: int

    def apply(self, play: Play) -> None:
        if play.model.open:
            number = at(self.which, [*play.model.open])
            play.both("abandon", lambda handle: handle.abandon(number))
            play.model.abandon(number)


@dataclass(frozen=True)
class Observe(Command):
    which: int
    reward: float
    count: int = 1

    def apply(self, play: Play) -> None:
        arm = at(self.which, play.model.arms)
        rewards = [self.reward] * self.count

        def singly(handle: Handle) -> None:
            for reward in rewards:
                handle.observe(arm, reward)

        play.both("observe", lambda handle: handle.observe(arm, rewards), singly)
        play.model.observe(arm, self.count, self.count * self.reward)


@dataclass(frozen=True)
class Add(Command):
    count: int = 1

    def apply(self, play: Play) -> None:
        new = new_names(play, self.count)
        if not (new and play.can_change):
            return

        def singly(handle: Handle) -> None:
            for name in new:
                handle.add_arms([name])

        arms: Any = new if play.spec.named else self.count
        play.both("add_arms", lambda handle: handle.add_arms(arms), singly)
        play.model.arms += new


def new_names(play: Play, count: int) -> list[Any]:
    there = play.model.arms
    if not play.spec.named:
        return list(range(len(there), len(there) + count))
    names: Sequence[Any] = TEXTS if isinstance(there[0], str) else INTEGERS
    return [name for name in names if name not in there][:count]


@dataclass(frozen=True)
class Retire(Command):
    which: int

    def apply(self, play: Play) -> None:
        if len(play.model.available) > 1 and play.can_change:
            arm = at(self.which, play.model.available)
            play.both("retire", lambda handle: handle.retire(arm))
            play.model.retired.add(arm)


@dataclass(frozen=True)
class Restore(Command):
    which: int

    def apply(self, play: Play) -> None:
        retired = [arm for arm in play.model.arms if arm in play.model.retired]
        if retired and play.can_change:
            arm = at(self.which, retired)
            play.both("restore", lambda handle: handle.restore(arm))
            play.model.retired.discard(arm)


@dataclass(frozen=True)
class Sync(Command):
    """Keep the arms whose bit in `mask` is set, and add new ones."""

    mask: int
    new: int = 0

    def apply(self, play: Play) -> None:
        if not (play.spec.named and play.can_change):
            return
        model, new = play.model, new_names(play, self.new)
        kept = [arm for place, arm in enumerate(model.arms) if self.mask >> place & 1]
        back = [arm for arm in kept if arm in model.retired]
        gone = [arm for arm in model.available if arm not in kept]
        if not kept + new:
            return

        def singly(handle: Handle) -> None:
            for arms, change in ((new, handle.add_arms), (back, handle.restore)):
                for arm in arms:
                    change([arm])
            for arm in gone:
                handle.retire(arm)

        done = play.both("sync_arms", lambda handle: handle.sync_arms(kept + new), singly)
        changes = [list(done.added), list(done.restored), list(done.retired)]
        if play.home.is_remote:  # its answer may count them
            changes = [new, back, gone]
        promises.pieces_equal_the_whole([new, back, gone], changes, "sync_arms")
        model.arms = model.arms + new
        model.retired = (model.retired - set(back)) | set(gone)


@dataclass(frozen=True)
class Season(Command):
    horizon: int | None = None
    policy: str = "moss"
    sigma: float | None = None

    def apply(self, play: Play) -> None:
        policy = self.policy
        if play.model.policy == "own" or play.spec.reward_range not in POLICIES[policy].ranges:
            policy = play.model.policy
        if play.model.retired and not POLICIES[policy].changes:
            return
        chosen = POLICIES[policy].make(self.sigma)
        horizon = 20 if self.horizon is None and not chosen.anytime else self.horizon
        other = None if policy == play.model.policy and self.sigma is None else chosen
        settings: dict[str, Any] = {"horizon": horizon, "policy": other, "seed": 8}
        if policy in SCALED and self.sigma not in (None, play.spec.sigma):
            play.refuse("another sigma", lambda handle: handle.season(**settings))
            return
        before = play.answers.statistics()
        play.both("season", lambda handle: handle.season(**settings))
        play.model.begin_season(policy, horizon)
        promises.a_season_changes_no_statistic(before, play.look().statistics())


@dataclass(frozen=True)
class Reopen(Command):
    """Close and load the experiment, or load it after a kill."""

    kill: bool = False

    def apply(self, play: Play) -> None:
        event = "a kill" if self.kill else "closing and loading"
        try:
            load = play.home.kill if self.kill else play.home.reopen
            play.handle = load(play.handle)
        except ma.ManyarmsError as error:
            play.blame(event, error)
        before, after = play.answers.everything(), play.look().everything()
        promises.answers_survive(before, after, event)


@dataclass(frozen=True)
class Look(Command):
    """Print everything."""

    def apply(self, play: Play) -> None:
        before = play.look().everything()
        for query in (str, repr, lambda handle: handle.top(3)):
            try:
                query(play.handle)
            except ma.TurnError:
                continue  # nothing to recommend
            except ma.ManyarmsError as error:
                play.blame("a query", error)
        promises.answers_survive(before, play.look().everything(), "a look")


@dataclass(frozen=True)
class Peek(Command):
    """Time passes, and another process reads the experiment; it may stay open."""

    seconds: float = 0.0
    stay: bool = False

    def apply(self, play: Play) -> None:
        play.time += self.seconds
        play.model.set_time(play.time)
        before = play.events()
        play.was_read = True
        try:
            reader = play.home.reader(play.handle)
        except ma.ManyarmsError as error:
            play.blame("a second handle", error)
        theirs = play.look(reader).everything()
        if self.stay:
            play.readers.append(reader)
        else:
            reader.close()
        promises.queries_write_nothing(play.events() - before)
        promises.answers_survive(theirs, play.look().everything(), "a second handle")
        _ = play.twin.pulls


@dataclass(frozen=True)
class Wait(Command):
    """Let time pass."""

    seconds: float

    def apply(self, play: Play) -> None:
        play.pass_time(self.seconds)


@dataclass(frozen=True)
class SetBack(Command):
    """Set the clock back, between two calls that record how far the clock was."""

    seconds: float

    def apply(self, play: Play) -> None:
        if play.model.left != 0 and not play.model.paused:
            Observe(0, 0.0).apply(play)
            play.pass_time(-self.seconds)
            play.ask(1)


@dataclass(frozen=True)
class Pause(Command):
    """Pause the experiment in the service, or resume it."""

    def apply(self, play: Play) -> None:
        if play.home.is_remote:
            (play.handle.resume if play.model.paused else play.handle.pause)()
            play.model.paused = not play.model.paused


@dataclass(frozen=True)
class Name(Command):
    """Name an arm as the target of a verdict."""

    which: int

    def apply(self, play: Play) -> None:
        arm = at(self.which, play.model.arms)
        if play.spec.control is not None and arm in ("control", play.spec.control):
            return  # this means the control
        try:
            verdict = play.handle.verdict(target=str(arm))
        except ma.ManyarmsError as error:
            promises.every_name_is_accepted(str(arm), error)
        promises.every_name_is_accepted(str(arm), None, verdict.target)


@dataclass(frozen=True)
class Wrong(Command):
    """Make a call that must be refused, and change nothing."""

    which: int

    def apply(self, play: Play) -> None:
        model, there = play.model, at(self.which, play.model.arms)
        waiting, gone = [*model.waiting], [arm for arm in model.arms if arm in model.retired]
        bad = at(self.which, [k for k in range(model.next + 1) if k not in model.waiting])
        far = 1e9 if play.spec.reward_range is not None else math.inf
        calls = {
            "a tell of a pull that has ended": lambda handle: handle.tell(bad, 1.0),
            "an observed NaN": lambda handle: handle.observe(there, [1.0, math.nan]),
            "a reward that is too large": lambda handle: handle.observe(there, far),
            "a horizon of 0": lambda handle: handle.season(horizon=0),
            "an ask for no pulls": lambda handle: handle.ask(0),
            "an unknown arm": lambda handle: handle.observe("no such arm", 1.0),
            "a verdict without confidence": lambda handle: handle.verdict(confidence=1.5),
        }
        if not play.home.is_remote:  # `Remote` takes what it can of a list
            calls |= {
                "a list with a wrong tell": lambda handle: handle.tell_many(
                    [*((number, 1.0) for number in waiting), (bad, 1.0)]
                ),
                "an arm twice": lambda handle: handle.add_arms([*new_names(play, 1), there]),
                "restoring available arms": lambda handle: handle.restore(
                    [*gone, *model.available]
                ),
                "retiring all arms": lambda handle: handle.retire(model.available),
            }
        name = at(self.which // 7, [*calls])
        play.refuse(name, calls[name])


def random_command(dice: random.Random, spec: Spec, home: Home) -> Command:
    """Return a random command; asks and tells are the most frequent."""
    which, count = dice.randrange(1000), dice.randint(1, 4)
    rewards = [0.0, 1.0, 1.0, 0.25, 0.75] if spec.reward_range == UNIT else [0.0, -2.0, 3.5]
    reward = dice.choice(rewards)
    waits = [
        *[Wait(dice.choice([1.0, 4.0, 20.0, 20.0])), SetBack(dice.choice([5.0, 30.0, 100.0, 1e6]))],
        Peek(20.0, stay=dice.random() < 0.5),
    ]
    seasons = [name for name, kind in POLICIES.items() if spec.reward_range in kind.ranges]
    season = Season(
        dice.choice([1, 5, 20, None]),
        dice.choice([name for name in seasons if name != "own"]),
        dice.choice([None, 1.0, 3.0] if spec.reward_range is None else [None]),
    )
    commands: list[Command] = [
        *[Ask(dice.choice([1, 1, 2, 5]))] * 4,
        *[Tell(which, reward)] * 3,
        *[TellMany(count, reward), TellAgain(which), Abandon(which)],
        *[Observe(which, reward, count), Add(count), Retire(which), Restore(which)],
        *[Sync(which, dice.randint(0, 2)), season, AskAll()],
        *[Reopen(), Reopen(kill=True), Look(), Peek(stay=dice.random() < 0.5)],
        *[Name(which), Wrong(which)],
        *(waits * 2 if spec.window else []),
        *([Pause()] if home.is_remote else []),
    ]
    return dice.choice(commands)
