"""An experiment over HTTP picks the same arms and raises the same errors as a handle."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import math
import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import manyarms as ma
from manyarms.client import AsyncRemote
from tests.client.comparison import plain, play
from tests.client.lossy_proxy import lossy_proxy
from tests.serve.machines import TOKEN, Node, call, in_thread, node, wait

pytestmark = pytest.mark.interpreted

_names = (f"experiment-{k}" for k in itertools.count())
KEYS = [f"key {k}" for k in range(300)]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with node(f"sqlite:///{tmp_path_factory.mktemp('remote') / 'serve.db'}") as one:
        yield one


@pytest.fixture
def url(service: Node) -> str:
    return f"http://{service.address}"


def create(url: str, policy: Any = "moss", **spec: Any) -> ma.Remote:
    return ma.Remote.create(url, next(_names), policy, token=TOKEN, **spec)


@pytest.mark.parametrize("policy", [ma.MOSSPlusPlus(beta=0.6), ma.Prospector(), ma.Quantile()])
@pytest.mark.parametrize("named", [False, True])
def test_a_remote_picks_the_arms_of_a_handle(url: str, policy: ma.Policy, named: bool) -> None:
    arms: dict[str, Any] = {"arms": KEYS} if named else {"n_arms": 300}
    live = policy.live(horizon=500, seed=5, **arms)
    with create(url, policy, horizon=500, seed=5, **arms) as remote:
        assert play(remote, 1) == play(live, 1)
        assert plain([remote.recommend()]) == plain([live.recommend()])
        assert remote.ask() == live.ask()
        assert remote.pending == live.pending != []
        assert plain(remote.top(5)) == plain(live.top(5))
        assert remote.progress() == live.progress()
        by_arm = [sorted(plain(experiment.arms()), key=repr) for experiment in (remote, live)]
        assert repr(by_arm[0]) == repr(by_arm[1])
        assert (remote.n_arms, remote.pulls) == (live.n_arms, live.pulls)


@pytest.mark.parametrize("several", [False, True])
def test_lost_answers_lose_or_repeat_no_call(service: Node, url: str, several: bool) -> None:
    live = ma.MOSS().live(n_arms=50, horizon=500, seed=2)
    made = create(url, ma.MOSS(), n_arms=50, horizon=500, seed=2)
    with lossy_proxy(service.port, lost=3) as port, lossy_proxy(service.port, lost=2) as other:
        urls = [f"http://127.0.0.1:{k}" for k in (port, other)]
        remote = ma.Remote(urls if several else urls[0], made.experiment, token=TOKEN)
        assert play(remote, 7, turns=30) == play(live, 7, turns=30)
        assert remote.url in urls
    assert made.progress() == live.progress()


def test_an_async_remote_picks_the_arms_of_a_handle(service: Node, url: str) -> None:
    live = ma.MOSS().live(arms=KEYS, horizon=400, seed=3)
    made = create(url, "moss", arms=KEYS, horizon=400, seed=3)

    async def play_async(port: int) -> list[ma.Pull]:
        base = f"http://127.0.0.1:{port}"
        async with AsyncRemote(base, made.experiment, token=TOKEN) as remote:
            asked = [await remote.ask(), *(await remote.ask(4))]
            for k, pull in enumerate(asked):
                await remote.tell(pull, k / 4)
            last = await remote.ask()
            await remote.abandon(last)
            with pytest.raises(ma.TurnError, match="it was abandoned"):
                await remote.tell(last, 1.0)
            assert await remote.recommend() == made.recommend()
            assert (await remote.progress()).pulls == 6
            assert (await remote.arms(), await remote.pending()) == (made.arms(), [])
            await remote.pause()
            with pytest.raises(ma.TurnError, match="paused"):
                await remote.ask()
            await remote.resume()
            assert await remote.verdict(epsilon=0.2) == made.verdict(epsilon=0.2)
            return [*asked, last]

    with lossy_proxy(service.port, lost=4) as port:
        asked = asyncio.run(play_async(port))
    ours = [live.ask(), *live.ask(4)]
    for k, pull in enumerate(ours):
        live.tell(pull, k / 4)
    assert asked == [*ours, live.ask()]


def test_errors_are_those_of_a_handle(url: str) -> None:
    spec: dict[str, Any] = {"arms": KEYS[:3], "horizon": 4, "seed": 1}
    live, remote = ma.MOSS().live(**spec), create(url, ma.MOSS(), **spec)
    wrong: list[Callable[[Any], object]] = [
        lambda handle: handle.recommend(),
        lambda handle: handle.tell(handle.ask(), 2.0),
        lambda handle: handle.tell(0, math.nan),
        lambda handle: handle.tell(99, 1.0),
        lambda handle: handle.tell("first", 1.0),
        lambda handle: [handle.tell(0, 1.0), handle.tell(0, 1.0)],
        lambda handle: handle.tell(0, 0.5),
        lambda handle: [handle.abandon(handle.ask()), handle.abandon(1)],
        lambda handle: handle.tell(1, 1.0),
        lambda handle: handle.abandon(0),
        lambda handle: handle.tell(0, 1.0, again="often"),
        lambda handle: handle.ask(0),
        lambda handle: handle.ask(3),
        lambda handle: handle.retire("nobody"),
        lambda handle: handle.top(0),
        lambda handle: [handle.ask(2), handle.ask()],
    ]
    for attempt in wrong:
        raised = []
        for experiment in (live, remote):
            with pytest.raises(ma.ManyarmsError) as caught:
                attempt(experiment)
            raised.append(caught.value)
        assert isinstance(raised[1], type(raised[0])), raised
        if isinstance(raised[0], ma.TurnError) and "again=" in str(raised[0]):
            assert str(raised[0]) == str(raised[1])
    assert isinstance(raised[1], ma.StoppedError)
    assert raised[1].recommended == remote.recommend()
    assert plain([remote.recommend()]) == plain([live.recommend()])
    assert pickle.loads(pickle.dumps(raised[1])).recommended == remote.recommend()
    remote.tell(0, 1.0, again="ignore")
    remote.abandon(1, again="ignore")
    said = r"rewards\[1\], of pull 0: .* In total, 1 of 2 rewards were refused; 1 were told"
    with pytest.raises(ma.TurnError, match=said):
        remote.tell_many([(2, 1.0), (0, 0.25)])
    with pytest.raises(ma.ParameterError, match=r"rewards\[1\], of pull 3: .* Nothing was told"):
        remote.tell_many([(2, 1.0), (3, math.nan)])
    with pytest.raises(ma.ParameterError, match=r"got -1\. Pass the number of pulls"):
        remote.ask(-1)
    assert remote.progress().told == 2


def test_methods_that_only_the_service_has(url: str) -> None:
    remote = create(url, "moss", arms=KEYS[:3], horizon=100)
    assert remote.add_arms(["new one"]) == ["new one"]
    assert remote.add_arms(["new one"]) == ["new one"], "known names are skipped"
    assert remote.n_arms == 4
    remote.retire("new one")
    assert remote.n_arms == 3
    with pytest.raises(ma.TurnError, match="Cannot retire arm 'new one': it is already retired"):
        remote.retire("new one")
    with pytest.raises(ma.UnknownArmError, match="Unknown arm 'nobody'"):
        remote.retire("nobody")
    remote.restore("new one")
    assert remote.n_arms == 4
    with pytest.raises(ma.TurnError, match="Cannot restore arm 'new one': it is not retired"):
        remote.restore("new one")
    remote.retire("new one")
    remote.pause()
    with pytest.raises(ma.TurnError, match="paused"):
        remote.ask()
    remote.resume()
    same: dict[str, Any] = {"policy": "moss", "token": TOKEN, "horizon": 100}
    again = ma.Remote.create(url, remote.experiment, **same, arms=KEYS[:3])
    assert again.n_arms == 3, "the same experiment is found, with its arms"
    ma.Remote.create(url, remote.experiment, **same, arms=[KEYS[1], "new one", "other"])
    assert remote.n_arms == 4, "what it lacks is added; what is retired stays retired"
    with pytest.raises(ma.ParameterError, match="names of arms, got 3. Pass n_arms=3"):
        ma.Remote.create(url, "new", **same, arms=3)  # type: ignore[arg-type]
    with pytest.raises(ma.DuplicateNameError, match="is 100 in the store, and 101 was given"):
        ma.Remote.create(url, remote.experiment, "moss", token=TOKEN, horizon=101)
    remote.stop()
    with pytest.raises(ma.StoppedError):
        remote.ask()
    with pytest.raises(ma.ServiceError, match="no experiment 'nowhere'") as caught:
        ma.Remote(url, "nowhere", token=TOKEN).ask()
    assert (caught.value.status, caught.value.code) == (404, "unknown_experiment")
    with pytest.raises(ma.ServiceError) as caught:
        ma.Remote(url, remote.experiment, token="wrong").ask()
    assert caught.value.status == 401


@pytest.mark.parametrize("question", [{}, {"epsilon": 0.3, "quantile": 0.0, "confidence": 0.8}])
def test_verdicts_are_those_of_a_handle(url: str, question: dict[str, float]) -> None:
    live = ma.MOSS().live(arms=KEYS[:3], horizon=200, seed=4)
    remote = create(url, "moss", arms=KEYS[:3], horizon=200, seed=4)
    assert remote.verdict(**question) == live.verdict(**question)
    for turn in range(60):
        pull = live.ask()
        assert remote.ask() == pull
        live.tell(pull, float(pull.arm == KEYS[0]))
        remote.tell(pull, float(pull.arm == KEYS[0]))
        if turn == 5:  # too early to stop; the sentence names arms
            early = str(live.verdict(**question))
            assert f"The best so far is arm {KEYS[0]!r}." in early
            assert str(remote.verdict(**question)) == early
    here, there = live.verdict(**question), remote.verdict(**question)
    assert str(there) == str(here)
    assert dataclasses.replace(there, lower_bound=0.0) == dataclasses.replace(here, lower_bound=0.0)
    assert there.lower_bound == pytest.approx(here.lower_bound, rel=1e-9)
    with pytest.raises(ma.ParameterError, match="`quantile` must be"):
        remote.verdict(quantile=2)
    with pytest.raises(ma.UnknownNameError, match="Unknown parameter of `verdict`: 'eps'"):
        remote.verdict(eps=0.1)  # type: ignore[call-arg]
    with pytest.raises(ma.ServiceError, match="no experiment"):
        ma.Remote(url, "nowhere", token=TOKEN).verdict()


def arms(pulls: list[Any]) -> list[Any]:
    """Ids differ, because the service counts pulls that observed rewards answer."""
    return [pull.arm for pull in pulls]


def test_observed_rewards_are_those_of_a_handle(url: str) -> None:
    spec: dict[str, Any] = {"arms": KEYS, "horizon": 500, "seed": 6}
    live, remote = ma.Prospector().live(**spec), create(url, ma.Prospector(), **spec)
    for experiment in (live, remote):
        experiment.observe(KEYS[7], [1.0, 0.0, 1.0])
        experiment.observe(KEYS[8], 0.5)
        experiment.observe(KEYS[9], [])
        experiment.retire(KEYS[8])
    assert arms(play(remote, 3)) == arms(play(live, 3))
    for experiment in (live, remote):
        experiment.restore(KEYS[8])
        with pytest.raises(ma.UnknownArmError, match="nobody"):
            experiment.observe("nobody", 1.0)
        with pytest.raises(ma.UnknownArmError, match="nobody"):
            experiment.restore("nobody")
        with pytest.raises(ma.ParameterError, match="Cannot observe"):
            experiment.observe(KEYS[7], [1.0, math.inf])
    assert arms(play(remote, 4)) == arms(play(live, 4))
    known = [
        {arm.arm: arm.estimate for arm in experiment.arms() if arm.told}
        for experiment in (remote, live)
    ]
    assert known[0] == known[1]

    async def more() -> None:
        async with AsyncRemote(url, remote.experiment, token=TOKEN) as experiment:
            await experiment.retire(KEYS[8])
            await experiment.observe(KEYS[10], (1.0 for _ in range(12_000)))
            await experiment.restore(KEYS[8])

    asyncio.run(more())
    live.retire(KEYS[8])
    live.observe(KEYS[10], [1.0] * 12_000)
    live.restore(KEYS[8])
    assert plain([remote.recommend()]) == plain([live.recommend()])
    assert remote.n_arms == 300


def test_long_unicode_names(url: str) -> None:
    """The name of an arm may be a prompt, as long as in a handle."""
    names = [letter * 20_000 for letter in ("\U0001f600", "ä", "x", "\u4e2d")]
    spec: dict[str, Any] = {"arms": names, "control": names[0], "seed": 3}
    live = ma.Prospector().live(**spec)
    for experiment in (live, create(url, ma.Prospector(), **spec)):
        for pull in experiment.ask(40):
            experiment.tell(pull, float(pull.arm == names[1]))
        experiment.observe(names[2], 0.0)
        experiment.retire(names[3])
        experiment.restore(names[3])
        experiment.retire(names[3])
        assert experiment.verdict(target=names[2]).target == names[2]
        assert experiment.recommend().arm == names[1]
        assert set(experiment.sync_arms(names[:3]).retired) == set()
        assert experiment.n_arms == 3
        with pytest.raises(ma.ParameterError, match="at most|1 to 20,000 characters"):
            experiment.add_arms(["x" * 20_001])


def test_arms_named_by_integers(tmp_path: Path) -> None:
    """A store may have integers as names, and the service continues it."""
    store, live = tmp_path / "shop.db", ma.Prospector().live(arms=[10, 20, 30], seed=1)
    with ma.Prospector().live(arms=[10, 20, 30], seed=1, store=store, name="shop"):
        pass
    with in_thread(f"sqlite:///{store}") as one:
        experiment = ma.Remote(f"http://127.0.0.1:{one.port}", "shop", token=TOKEN)
        for other in (live, experiment):
            assert list(other.add_arms([40, 50])) == [40, 50]
            done = other.sync_arms([10, 40, 60])
            assert (done.added, done.retired, done.n_arms) == ([60], [20, 30, 50], 3)
        assert play(experiment, 5) == play(live, 5)
        assert experiment.verdict(target="40") == live.verdict(target="40")
        kind: dict[str, Any] = {"Content_Type": "application/x-ndjson"}
        for body, more in ((b"70\n80\n", kind), (b'{"names": [70, "80"]}', {})):
            assert call(one.port, "POST", "/v1/experiments/shop/arms", body, **more)[0] == 200
        with pytest.raises(ma.ParameterError, match="integers"):
            experiment.sync_arms(["blue"])
        experiment.close()
    with ma.load(store) as again:
        again.retire([70, 80])
        assert again.n_arms == 3


def test_threads_share_a_client(url: str) -> None:
    remote = create(url, "moss", n_arms=20, horizon=1000)

    def work(_: int) -> list[int]:
        ids = []
        for _ in range(20):
            pull = remote.ask()
            remote.tell(pull, 1.0)
            ids.append(pull.id)
        return ids

    with ThreadPoolExecutor(8) as pool:
        ids = [pull for some in pool.map(work, range(8)) for pull in some]
    assert sorted(ids) == list(range(160))
    assert remote.progress().told == 160


def test_a_reward_after_the_window_is_refused_with_the_reason(url: str) -> None:
    remote = create(url, "moss", arms=KEYS[:3], horizon=100, window=0.1, missing=0)
    pull = remote.ask()
    wait(lambda: remote.progress().told == 1)
    with pytest.raises(ma.TurnError, match="already been told, or its window has ended"):
        remote.tell(pull, 1.0)
