"""Random sequences of commands, and a model of what a handle must know after them.

`Model` records what a caller was told. With `ExperimentMachine`, Hypothesis chooses the commands.
Every command also goes to a twin, a handle that is never closed or killed and must answer the same.
Time passes only where a rule says so.
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
from tests.client.comparison import plain
from tests.live.stores import copied, known

__all__ = ["LONG", "SHORT", "ExperimentMachine", "LocalMachine"]

SHORT = settings(max_examples=4, stateful_step_count=30, deadline=None, derandomize=True)
LONG = settings(SHORT, max_examples=400, stateful_step_count=80)
_ALL = [
    *(ma.MOSS(), ma.MOSSPlusPlus(), ma.EmpMOSSPlusPlus(), ma.Prospector(), ma.Quantile()),
    *(ma.Parallel(best_mean=0.9), ma.Doubling(ma.MOSSPlusPlus())),
    *(ma.Guarded(ma.MOSS()), ma.Patience(best_mean=0.9), ma.MOSSOracle(size=3)),
]
POLICIES = {str(policy): policy for policy in _ALL}
WINDOWS = [None, None, (10.0, None, False), (10.0, 0.0, False), (10.0, 0.0, True)]
WHICH = st.integers(0, 999)
REWARD = st.sampled_from([0.0, 1.0, 0.25])


class Model:
    """What a handle must know, computed from what its caller was told."""

    def __init__(self, arms: list[Any]) -> None:
        self.arms, self.retired = arms, set[Any]()
        self.open: dict[int, Any] = {}  # the arms of the pending pulls
        self.asked_at: dict[int, float] = {}
        self.held: dict[int, float] = {}  # rewards that count when a window ends
        self.rewards: dict[Any, list[float]] = {}  # told or observed
        self.pulls = self.abandoned = 0

    def asked(self, pulls: list[ma.Pull], at: float) -> None:
        numbers = [pull.id for pull in pulls]
        assert numbers == list(range(self.pulls, self.pulls + len(pulls)))
        assert all(pull.arm in self.arms and pull.arm not in self.retired for pull in pulls)
        self.open |= {pull.id: pull.arm for pull in pulls}
        self.asked_at |= dict.fromkeys(numbers, at)
        self.pulls += len(pulls)

    def told(self, number: int, reward: float) -> None:
        self.rewards.setdefault(self.open.pop(number), []).append(reward)

    def expire(self, before: float, missing: float | None) -> None:
        for number in [n for n in [*self.open] if self.asked_at[n] <= before]:
            reward = self.held.pop(number, missing)
            if reward is None:
                del self.open[number]
                self.abandoned += 1
            else:
                self.told(number, reward)

    def check(self, experiment: ma.Live | ma.Remote) -> None:
        how = experiment.progress()
        assert (how.pulls, how.abandoned) == (self.pulls, self.abandoned)
        assert how.n_arms == len(self.arms) - len(self.retired)
        assert {pull.id: pull.arm for pull in experiment.pending} == {
            number: arm for number, arm in self.open.items() if number not in self.held
        }
        known = {arm.arm: arm for arm in experiment.arms()}
        assert {name for name, arm in known.items() if arm.told} == self.rewards.keys()
        for name, rewards in self.rewards.items():
            arm = known[name]
            assert (arm.told, arm.retired) == (len(rewards), name in self.retired)
            assert math.isclose(arm.estimate, math.fsum(rewards) / len(rewards), abs_tol=1e-12)


class ExperimentMachine(RuleBasedStateMachine):
    """An experiment, from its beginning. Subclasses choose the store."""

    experiment: Any
    windows = False
    time = 1000.0

    def __init__(self) -> None:
        super().__init__()
        self._root = tempfile.TemporaryDirectory()
        self._folders = map(Path(self._root.name).joinpath, map(str, itertools.count()))

    def new_folder(self) -> Path:
        folder = next(self._folders)
        folder.mkdir()
        return folder

    def end(self) -> None:
        """Close everything that is open."""

    def teardown(self) -> None:
        try:
            if hasattr(self, "experiment"):
                self.same_bytes()
                self.experiment.close()
        finally:
            self.end()
            self._root.cleanup()

    def begin(self, policy: ma.Policy, spec: dict[str, Any]) -> Any:
        """Return a new experiment in a new store."""
        raise NotImplementedError

    def reopened(self) -> Any:
        """Return the experiment after closing and opening it."""
        raise NotImplementedError

    def killed(self, torn: int) -> Any:
        """Return the experiment after a kill that leaves `torn` bytes of another write."""
        raise NotImplementedError

    @initialize(
        policy=st.sampled_from(sorted(POLICIES)),
        n_arms=st.integers(1, 12),
        named=st.booleans(),
        horizon=st.sampled_from([400, 20, 3]),
        window=st.sampled_from(
            [None, None, (10.0, None, False), (10.0, 0.0, False), (10.0, 0.0, True)]
        ),
    )
    def start(self, policy: str, n_arms: int, named: bool, horizon: int, window: Any) -> None:
        arms = [f"arm {k}" for k in range(n_arms)] if named else list(range(n_arms))
        self.named, self.model = named, Model(arms)
        spec: dict[str, Any] = {"arms": arms} if named else {"n_arms": n_arms}
        self.window = window if self.windows else None
        spec |= {"horizon": horizon, "seed": 5, "now": lambda: self.time}
        if self.window is not None:
            spec |= dict(zip(("window", "missing", "hold"), self.window, strict=True))
        self.twin = POLICIES[policy].live(**spec)
        self.experiment = self.begin(POLICIES[policy], spec)

    def both(self, call: Callable[[Any], Any], *, refused: bool) -> Any:
        """Run a command on the experiment and on its twin; return the answer."""
        answers = [_outcome(call, experiment) for experiment in (self.experiment, self.twin)]
        self.same(*answers)
        assert isinstance(answers[0], Exception) == refused, answers[0]
        return answers[0]

    def same(self, ours: Any, twins: Any) -> None:
        """Compare answers, or errors."""
        assert (type(ours), str(ours)) == (type(twins), str(twins))

    def same_bytes(self) -> None:
        """Compare all state."""
        assert known(self.experiment) == known(self.twin)

    def arm(self, which: int) -> Any:
        return self.model.arms[which % len(self.model.arms)]

    def pull(self, which: int) -> int:
        return list(self.model.open)[which % len(self.model.open)]

    @rule(k=st.sampled_from([None, 1, 2, 4]))
    def ask(self, k: int | None) -> None:
        left = self.twin._experiment.ledger.left
        possible = left is None or (k or 1) <= left
        pulls = self.both(lambda handle: handle.ask(k) if k else handle.ask(), refused=not possible)
        if possible:
            self.model.asked(pulls if k else [pulls], self.time)

    @precondition(lambda self: self.model.open)
    @rule(which=WHICH, reward=REWARD)
    def tell(self, which: int, reward: float) -> None:
        number = self.pull(which)
        again = number in self.model.held
        self.both(lambda handle: handle.tell(number, reward), refused=again)
        if not again:
            self.take(number, reward)

    def take(self, number: int, reward: float) -> None:
        if self.window is not None and self.window[2]:
            self.model.held[number] = reward
        else:
            self.model.told(number, reward)

    @precondition(lambda self: self.model.open)
    @rule(reward=REWARD)
    def tell_many(self, reward: float) -> None:
        last = [number for number in self.model.open if number not in self.model.held][-3:]
        self.both(lambda handle: handle.tell_many([(n, reward) for n in last]), refused=False)
        for number in last:
            self.take(number, reward)

    @precondition(lambda self: self.model.open)
    @rule(which=WHICH)
    def abandon(self, which: int) -> None:
        number = self.pull(which)
        self.both(lambda handle: handle.abandon(number), refused=False)
        del self.model.open[number]
        self.model.held.pop(number, None)
        self.model.abandoned += 1

    @precondition(lambda self: self.window is not None)
    @rule(seconds=st.sampled_from([1.0, 4.0, 20.0]))
    def wait(self, seconds: float) -> None:
        self.time += seconds
        assert self.window is not None
        self.model.expire(self.time - self.window[0], self.window[1])
        self.both(lambda handle: handle.progress().pulls, refused=False)

    @rule(which=WHICH, again=st.sampled_from(["refuse", "ignore"]), reward=REWARD)
    def end_again(self, which: int, again: str, reward: float) -> None:
        """Tell and abandon a pull that has ended, or that was never made."""
        ended = [k for k in range(self.model.pulls + 1) if k not in self.model.open]
        number = ended[which % len(ended)]
        refused = again == "refuse" or number == self.model.pulls
        self.both(lambda handle: handle.tell(number, reward, again=again), refused=refused)
        self.both(lambda handle: handle.abandon(number, again=again), refused=refused)

    @rule(count=st.integers(1, 3))
    def add_arms(self, count: int) -> None:
        there = len(self.model.arms)
        new = [f"arm {k}" if self.named else k for k in range(there, there + count)]
        self.both(lambda handle: handle.add_arms(new if self.named else count), refused=False)
        self.model.arms += new

    @rule(which=WHICH)
    def retire(self, which: int) -> None:
        arm, model = self.arm(which), self.model
        last = len(model.arms) == len(model.retired) + 1
        refused = arm in model.retired or last
        self.both(lambda handle: handle.retire(arm), refused=refused)
        if not refused:
            model.retired.add(arm)

    @rule(which=WHICH, gone=st.booleans())
    def restore(self, which: int, gone: bool) -> None:
        retired = [arm for arm in self.model.arms if arm in self.model.retired]
        arm = retired[which % len(retired)] if gone and retired else self.arm(which)
        refused = arm not in self.model.retired
        self.both(lambda handle: handle.restore(arm), refused=refused)
        self.model.retired.discard(arm)

    @rule(which=WHICH, times=st.integers(1, 3))
    def retire_and_restore(self, which: int, times: int) -> None:
        arm, model = self.arm(which), self.model
        if arm not in model.retired and len(model.arms) > len(model.retired) + 1:
            for _ in range(times):
                self.both(lambda handle: handle.retire(arm), refused=False)
                self.both(lambda handle: handle.restore(arm), refused=False)

    @rule(which=WHICH, rewards=st.lists(REWARD, min_size=1, max_size=3))
    def observe(self, which: int, rewards: list[float]) -> None:
        arm = self.arm(which)
        self.both(lambda handle: handle.observe(arm, rewards), refused=False)
        self.model.rewards.setdefault(arm, []).extend(rewards)

    @rule()
    def reopen(self) -> None:
        self.experiment = self.reopened()
        self.same_bytes()

    @rule(torn=st.integers(0, 23))
    def kill(self, torn: int) -> None:
        self.experiment = self.killed(torn)
        self.same_bytes()

    @invariant()
    def knows_what_it_must(self) -> None:
        self.model.check(self.experiment)


def _outcome(call: Callable[[Any], Any], experiment: Any) -> Any:
    try:
        return call(experiment)
    except ma.ManyarmsError as error:
        return error


class LocalMachine(ExperimentMachine):
    """An experiment in this process: it can be saved, and has seasons and windows."""

    windows = True

    @rule(k=st.integers(1, 4))
    def look(self, k: int) -> None:
        known = any(arm not in self.model.retired for arm in self.model.rewards)
        self.both(lambda handle: plain(handle.top(k)), refused=not known)

    @rule()
    def save(self) -> None:
        """Replace the twin by a copy."""
        self.twin = copied(self.experiment)

    @rule(horizon=st.integers(1, 50), policy=st.sampled_from(["", *sorted(POLICIES)]))
    def season(self, horizon: int, policy: str) -> None:
        self.both(
            lambda handle: handle.season(horizon=horizon, policy=POLICIES.get(policy), seed=8),
            refused=False,
        )
