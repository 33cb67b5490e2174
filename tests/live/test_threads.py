"""Threads share a handle, and no pull is lost or repeated."""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Callable, Iterator

import pytest

import manyarms as ma

pytestmark = pytest.mark.compiled  # no kernels to cover, so once is enough


@pytest.fixture(autouse=True)
def _busy() -> Iterator[None]:
    """Switch threads a thousand times as often as usual, so that they collide."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    yield
    sys.setswitchinterval(before)


def _together(count: int, work: Callable[[int], None]) -> None:
    """Run `work(0)`, …, `work(count - 1)` in threads; raise what one of them raised."""
    errors: list[BaseException] = []
    start = threading.Barrier(count)

    def guarded(number: int) -> None:
        start.wait()
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


@pytest.mark.slow
def test_eight_threads_and_80000_pulls() -> None:
    pulls, workers = 80_000, 8
    live = ma.Quantile().live(n_arms=10**6, horizon=pulls, seed=1)
    pending: list[ma.Pull] = []  # shared between threads
    asked: list[list[ma.Pull]] = [[] for _ in range(workers)]
    told: list[list[tuple[int, float]]] = [[] for _ in range(workers)]

    def work(number: int) -> None:
        dice = random.Random(number)
        mine = told[number]

        def tell_one() -> None:
            try:
                pull = pending.pop(int(dice.random() * len(pending)))
            except IndexError:  # another thread took it
                return
            reward = (pull.id * 2654435761 % 1024) / 1024  # sums are exact
            live.tell(pull, reward)
            mine.append((pull.id, reward))

        for _ in range(pulls // workers):
            pull = live.ask()
            asked[number].append(pull)
            pending.append(pull)
            if len(pending) > 100 * dice.random():  # random delays of up to about a hundred pulls
                tell_one()
        while pending:
            tell_one()

    _together(workers, work)
    ids = sorted(pull.id for some in asked for pull in some)
    assert ids == list(range(pulls))
    every = sorted(pair for some in told for pair in some)
    assert [number for number, _ in every] == ids  # each once
    progress = live.progress()
    assert (progress.pulls, progress.told, progress.pending) == (pulls, pulls, 0)
    assert progress.reward == sum(reward for _, reward in every)
    pulled: dict[int, int] = {}
    for some in asked:
        for pull in some:
            pulled[pull.arm] = pulled.get(pull.arm, 0) + 1
    assert {arm.arm: arm.pulls for arm in live.arms()} == pulled
    assert {arm.arm: arm.told for arm in live.arms()} == pulled


@pytest.mark.slow
@pytest.mark.parametrize(
    "policy",
    [ma.EmpMOSSPlusPlus(), ma.Parallel(best_mean=0.9), ma.Doubling(ma.MOSSPlusPlus())],
    ids=lambda policy: policy.name,
)
def test_concurrent_calls_of_all_kinds(policy: ma.Policy) -> None:
    horizon = 4000
    live = policy.live(n_arms=300, horizon=horizon, seed=2)
    done = threading.Event()
    counts = {"told": 0, "abandoned": 0}
    count = threading.Lock()

    def player(number: int) -> None:
        dice = random.Random(number)
        for _ in range(horizon // 4 // 10):
            batch = live.ask(10)
            lost = batch.pop() if dice.random() < 0.3 else None
            live.tell_many((pull, float(dice.random() < 0.5)) for pull in batch)
            live.tell(batch[0], 1.0, again="ignore")
            if lost is not None:
                live.abandon(lost)
            with count:
                counts["told"] += len(batch)
                counts["abandoned"] += int(lost is not None)

    def looker() -> None:
        while not done.is_set():
            progress = live.progress()
            assert progress.told + progress.pending + progress.abandoned == progress.pulls
            assert len(live.pending) >= 0
            str(live), repr(live), live._repr_html_()

    def keeper() -> None:
        for arm in range(30):
            live.add_arms(1)
            live.retire(arm)

    finished: list[int] = []

    def work(number: int) -> None:
        try:
            if number < 4:
                player(number)
            elif number == 4:
                keeper()
            else:
                looker()
        finally:
            finished.append(number)
            if len(finished) == 5:
                done.set()

    _together(6, work)
    progress = live.progress()
    assert (progress.pulls, progress.pending) == (horizon, 0)
    assert (progress.told, progress.abandoned) == (counts["told"], counts["abandoned"])
    assert progress.n_arms == 300
    assert sum(arm.pulls for arm in live.arms()) == horizon
    assert {arm.arm for arm in live.arms() if arm.retired} <= set(range(30))


def test_a_reward_that_two_threads_tell_counts_once() -> None:
    live = ma.MOSS().live(n_arms=10, horizon=3000, seed=1)
    pulls = live.ask(3000)
    refused = []

    def work(number: int) -> None:
        for pull in pulls:
            try:
                live.tell(pull, 1.0)
            except ma.TurnError:
                refused.append(pull.id)

    _together(4, work)
    assert live.progress().told == 3000
    assert sorted(refused) == sorted(list(range(3000)) * 3)
