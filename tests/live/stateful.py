"""Games in which anything may happen in any order, and what their handles must know all the time.

`Model` notes what a caller was told. `Game` lets Hypothesis choose what happens; every command also
goes to a twin, a handle that is never closed or killed and must answer the same.
"""

from __future__ import annotations

import itertools
import math
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import manyarms as ma
from tests.client.same import plain

__all__ = ["LONG", "SHORT", "Game", "LocalGame"]

SHORT = settings(max_examples=4, stateful_step_count=30, deadline=None, derandomize=True)
LONG = settings(SHORT, max_examples=400, stateful_step_count=80)
_ALL = [
    *(ma.MOSS(), ma.MOSSPlusPlus(), ma.EmpMOSSPlusPlus(), ma.Prospector(), ma.Quantile()),
    *(ma.Parallel(best_mean=0.9), ma.Doubling(ma.MOSSPlusPlus())),
    *(ma.Guarded(ma.MOSS()), ma.Patience(best_mean=0.9), ma.MOSSOracle(size=3)),
]
POLICIES = {policy.label: policy for policy in _ALL}
WHICH = st.integers(0, 999)
REWARD = st.sampled_from([0.0, 1.0, 0.25])


class Model:
    """What a handle must know, from what its caller was told."""

    def __init__(self, arms: list[Any]) -> None:
        self.arms, self.retired = arms, set[Any]()
        self.open: dict[int, Any] = {}  # the arms of the pulls in flight
        self.rewards: dict[Any, list[float]] = {}  # told or observed
        self.pulls = self.abandoned = self.stock = 0

    def asked(self, pulls: list[ma.Pull], after: int) -> None:
        numbers = [pull.id for pull in pulls]
        assert numbers == sorted(set(numbers))
        assert all(self.pulls <= number < after for number in numbers)
        assert all(pull.arm in self.arms and pull.arm not in self.retired for pull in pulls)
        self.open |= {pull.id: pull.arm for pull in pulls}
        self.stock -= after - self.pulls - len(pulls)  # which have answered the others
        self.pulls = after

    def told(self, number: int, reward: float) -> None:
        self.rewards.setdefault(self.open.pop(number), []).append(reward)

    def season(self) -> None:
        self.open, self.pulls, self.abandoned = {}, 0, 0
        self.stock = sum(map(len, self.rewards.values()))

    def check(self, game: ma.Live | ma.Remote) -> None:
        how = game.progress()
        assert (how.pulls, how.abandoned, how.observed) == (self.pulls, self.abandoned, self.stock)
        assert how.n_arms == len(self.arms) - len(self.retired)
        assert {pull.id: pull.arm for pull in game.pending} == self.open
        known = {arm.arm: arm for arm in game.arms()}
        assert {name for name, arm in known.items() if arm.told} == self.rewards.keys()
        for name, rewards in self.rewards.items():
            arm = known[name]
            assert (arm.told, arm.retired) == (len(rewards), name in self.retired)
            assert math.isclose(arm.estimate, math.fsum(rewards) / len(rewards), abs_tol=1e-12)


class Game(RuleBasedStateMachine):
    """A game from its beginning on. Where it is kept, in folders of its own, a subclass says."""

    game: Any

    def __init__(self) -> None:
        super().__init__()
        self._root = tempfile.TemporaryDirectory()
        self._folders = map(Path(self._root.name).joinpath, map(str, itertools.count()))

    def new_folder(self) -> Path:
        folder = next(self._folders)
        folder.mkdir()
        return folder

    def end(self) -> None:
        """Let go of all that is open."""

    def teardown(self) -> None:
        try:
            if hasattr(self, "game"):
                self.same_bytes()
                self.game.close()
        finally:
            self.end()
            self._root.cleanup()

    def begin(self, live: ma.Live) -> Any:
        """Return the game of a new handle, in a place of its own."""
        raise NotImplementedError

    def reopened(self) -> Any:
        """Return the game after it was closed."""
        raise NotImplementedError

    def killed(self, torn: int) -> Any:
        """Return the game as a kill leaves it now, after so many bytes of another write."""
        raise NotImplementedError

    @initialize(
        policy=st.sampled_from(sorted(POLICIES)),
        n_arms=st.integers(1, 12),
        named=st.booleans(),
        horizon=st.sampled_from([400, 20, 3]),
    )
    def start(self, policy: str, n_arms: int, named: bool, horizon: int) -> None:
        arms = [f"arm {k}" for k in range(n_arms)] if named else list(range(n_arms))
        self.named, self.model = named, Model(arms)
        spec: dict[str, Any] = {"arms": arms} if named else {"n_arms": n_arms}
        spec |= {"horizon": horizon, "seed": 5}
        self.twin = ma.recorded(ma.InMemory(), POLICIES[policy].live(**spec))
        self.game = self.begin(POLICIES[policy].live(**spec))

    def both(self, call: Callable[[Any], Any], *, refused: bool) -> Any:
        """Let the game and its twin do the same; return what they answer."""
        answers = [_outcome(call, game) for game in (self.game, self.twin)]
        self.same(*answers)
        assert isinstance(answers[0], Exception) == refused, answers[0]
        return answers[0]

    def same(self, ours: Any, twins: Any) -> None:
        """Compare answers, or errors."""
        assert (type(ours), str(ours)) == (type(twins), str(twins))

    def same_bytes(self) -> None:
        """Compare all that is known."""
        assert self.game.to_bytes() == self.twin.to_bytes()

    def arm(self, which: int) -> Any:
        return self.model.arms[which % len(self.model.arms)]

    def pull(self, which: int) -> int:
        return list(self.model.open)[which % len(self.model.open)]

    @rule(k=st.sampled_from([None, 1, 2, 4]))
    def ask(self, k: int | None) -> None:
        room = self.twin.horizon is None or self.model.pulls + (k or 1) <= self.twin.horizon
        pulls = self.both(lambda game: game.ask(k) if k else game.ask(), refused=not room)
        if room:
            self.model.asked(pulls if k else [pulls], self.twin.pulls)

    @precondition(lambda self: self.model.open)
    @rule(which=WHICH, reward=REWARD)
    def tell(self, which: int, reward: float) -> None:
        number = self.pull(which)
        self.both(lambda game: game.tell(number, reward), refused=False)
        self.model.told(number, reward)

    @precondition(lambda self: self.model.open)
    @rule(reward=REWARD)
    def tell_many(self, reward: float) -> None:
        last = list(self.model.open)[-3:]
        self.both(lambda game: game.tell_many([(n, reward) for n in last]), refused=False)
        for number in last:
            self.model.told(number, reward)

    @precondition(lambda self: self.model.open)
    @rule(which=WHICH)
    def abandon(self, which: int) -> None:
        number = self.pull(which)
        self.both(lambda game: game.abandon(number), refused=False)
        del self.model.open[number]
        self.model.abandoned += 1

    @rule(which=WHICH, again=st.sampled_from(["refuse", "ignore"]), reward=REWARD)
    def end_again(self, which: int, again: str, reward: float) -> None:
        """A pull that has ended, or one that was never asked for."""
        ended = [k for k in range(self.model.pulls + 1) if k not in self.model.open]
        number = ended[which % len(ended)]
        refused = again == "refuse" or number == self.model.pulls
        self.both(lambda game: game.tell(number, reward, again=again), refused=refused)
        self.both(lambda game: game.abandon(number, again=again), refused=refused)

    @rule(count=st.integers(1, 3))
    def add_arms(self, count: int) -> None:
        there = len(self.model.arms)
        new = [f"arm {k}" if self.named else k for k in range(there, there + count)]
        self.both(lambda game: game.add_arms(new if self.named else count), refused=False)
        self.model.arms += new

    @rule(which=WHICH)
    def retire(self, which: int) -> None:
        arm, model = self.arm(which), self.model
        last = len(model.arms) == len(model.retired) + 1
        refused = arm in model.retired or last
        self.both(lambda game: game.retire(arm), refused=refused)
        if not refused:
            model.retired.add(arm)

    @rule(which=WHICH, gone=st.booleans())
    def restore(self, which: int, gone: bool) -> None:
        retired = [arm for arm in self.model.arms if arm in self.model.retired]
        arm = retired[which % len(retired)] if gone and retired else self.arm(which)
        refused = arm not in self.model.retired
        self.both(lambda game: game.restore(arm), refused=refused)
        self.model.retired.discard(arm)

    @rule(which=WHICH, times=st.integers(1, 3))
    def go_and_come_back(self, which: int, times: int) -> None:
        arm, model = self.arm(which), self.model
        if arm not in model.retired and len(model.arms) > len(model.retired) + 1:
            for _ in range(times):
                self.both(lambda game: game.retire(arm), refused=False)
                self.both(lambda game: game.restore(arm), refused=False)

    @rule(which=WHICH, rewards=st.lists(REWARD, min_size=1, max_size=3))
    def observe(self, which: int, rewards: list[float]) -> None:
        arm = self.arm(which)
        self.both(lambda game: game.observe(arm, rewards), refused=False)
        self.model.rewards.setdefault(arm, []).extend(rewards)
        self.model.stock += len(rewards)

    @rule()
    def reopen(self) -> None:
        self.game = self.reopened()
        self.same_bytes()

    @rule(torn=st.integers(0, 23))
    def kill(self, torn: int) -> None:
        self.game = self.killed(torn)
        self.same_bytes()

    @invariant()
    def knows_what_it_must(self) -> None:
        self.model.check(self.game)


def _outcome(call: Callable[[Any], Any], game: Any) -> Any:
    try:
        return call(game)
    except ma.ManyarmsError as error:
        return error


class LocalGame(Game):
    """A game in this process: it can be saved, and has seasons."""

    @rule(k=st.integers(1, 4))
    def look(self, k: int) -> None:
        known = any(arm not in self.model.retired for arm in self.model.rewards)
        self.both(lambda game: plain(game.top(k)), refused=not known)

    @rule()
    def compact(self) -> None:
        self.game.compact()

    @rule()
    def save(self) -> None:
        """The twin goes on from what was saved; from then on it has no history."""
        self.twin = ma.Live.from_bytes(self.game.to_bytes())

    @rule(horizon=st.integers(1, 50), policy=st.sampled_from(["", *sorted(POLICIES)]))
    def season(self, horizon: int, policy: str) -> None:
        seasons = [
            game.season(horizon=horizon, policy=POLICIES.get(policy), seed=8)
            for game in (self.game, self.twin)
        ]
        if complete(self.game) == complete(self.twin):
            assert seasons[0].to_bytes() == seasons[1].to_bytes()
        self.model.season()
        self.twin = ma.recorded(ma.InMemory(), ma.Live.from_bytes(seasons[0].to_bytes()))
        self.game.close()
        self.game = self.begin(seasons[0])


def complete(live: ma.Live) -> bool:
    """Whether a handle knows all that happened, in its order."""
    try:
        return bool(live.events().complete)
    except ma.TurnError:
        return False
