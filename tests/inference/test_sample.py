"""A verdict that stops is right, even if the caller manipulates the random sample of arms.

In every case the best arms are 20 % and one more, so that a poor arm is wrong. The caller knows the
means and tries to bias the sample: it lets the best arms answer late, retires them, or observes
others. Each case stops in most runs. At an error rate of 5 %, the number of wrong verdicts exceeds
`WRONG` with probability 0.001 in each case. The seeds are fixed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from manyarms.inference.confidence_sequences import spent_error, uniform_interval
from manyarms.inference.sample import LEVELS, Sample
from manyarms.live.experiment import Experiment
from tests.live.stores import copied

RUNS = 16
WRONG = 4  # of 16; at 5 % each, more have probability 0.0009
ARMS = 1000
ASKED = {"epsilon": 0.5, "quantile": 0.2}


class Run:
    """An experiment on arms with known means."""

    def __init__(self, seed: int, arms: int = ARMS, size: int = 220) -> None:
        self.luck = np.random.default_rng(seed)
        self.means = np.zeros(arms)
        self.best = self.luck.permutation(arms)[: arms // 5 + 1].tolist()
        self.means[self.best] = 1.0
        self.poor = [arm for arm in range(arms) if self.means[arm] == 0.0]
        self.seed = seed
        policy = ma.MOSSOracle(size=size, count_late=True)
        self.live = policy.live(n_arms=arms, horizon=3000, seed=seed)
        self.verdict: ma.StopVerdict | None = None

    def reward(self, arm: int) -> float:
        return float(self.luck.random() < self.means[arm])

    def play(self, pulls: int, silent: Iterable[int] = ()) -> None:
        """Ask, and tell rewards except those of silent arms, until a verdict says stop."""
        kept = set(silent)
        for k in range(pulls):
            if self.verdict is not None:
                return
            pull = self.live.ask()
            if pull.arm not in kept:
                self.live.tell(pull, self.reward(pull.arm))
            if k % 50 == 49 or k == pulls - 1:
                self.look()

    def look(self) -> None:
        said = self.live.verdict(**ASKED)
        if said.stop and self.verdict is None:
            self.verdict = said

    def season(self, **changes: Any) -> None:
        self.live.season(**{"horizon": 3000} | changes)
        self.look()

    def wrong(self) -> bool:
        assert self.verdict is not None
        return bool(self.means[self.verdict.arm] < 0.5)


def _late(run: Run) -> None:
    """The best arms answer late: after a season, their rewards are observed, or told there."""
    run.play(250, silent=run.best)
    waiting = run.live.pending
    run.season()
    run.play(200, silent=run.best)
    for pull in waiting:
        if run.verdict is None and run.luck.random() < 0.5:
            run.live.observe(pull.arm, run.reward(pull.arm))
    run.look()
    run.play(2000)


def _later(run: Run) -> None:
    """The best arms are silent for two seasons, and fewer of them in the second."""
    run.play(250, silent=run.best)
    run.season()
    run.play(120, silent=run.best[:100])
    run.season(seed=run.seed + 1000)
    run.play(2500)


def _abandoned(run: Run) -> None:
    """All pulls of the best arms are abandoned, before a season."""
    run.play(250, silent=run.best)
    for pull in run.live.pending:
        run.live.abandon(pull)
    run.look()
    run.season()
    run.play(2500)


def _retired(run: Run) -> None:
    """Arms that do not answer in time are retired, before a season, and some come back."""
    run.play(900, silent=run.best)
    silent = sorted({pull.arm for pull in run.live.pending})
    run.live.retire(silent)
    run.look()
    run.season()
    run.play(100, silent=run.best)
    run.live.restore(silent[:2])
    run.live.observe(silent[0], [run.reward(silent[0]) for _ in range(100)])
    run.play(500)


def _observed_first(run: Run) -> None:
    """A few arms, poor ones and best ones, are observed before they are drawn."""
    for arm in [*run.poor[:3], *run.best[:2]]:
        run.live.observe(arm, [run.reward(arm) for _ in range(5)])
    run.play(500)
    run.season()
    run.play(2400)


def _observed_in_between(run: Run) -> None:
    """The arms that were drawn are also observed, the poor ones ten times as often."""
    run.play(200, silent=run.best[::2])
    for arm in list(run.live._experiment.ledger.counts):
        rewards = 1 if run.means[arm] else 10
        run.live.observe(arm, [run.reward(arm) for _ in range(rewards)])
    run.look()
    run.season()
    run.play(2400)


def _restored(run: Run) -> None:
    """Some of the best arms are retired before they are tried, and two come back."""
    run.live.retire(run.best[:3])
    run.play(300)
    run.live.restore(run.best[:2])
    run.play(300)
    run.season()
    run.play(2300)


def _catalogue(run: Run) -> None:
    """Arms are retired, added and restored during the experiment."""
    run.play(100, silent=run.best[::3])
    gone = [arm for arm in run.best + run.poor if arm not in run.live._experiment.ledger.counts][:3]
    run.live.retire(gone)
    run.live.add_arms(100)  # all poor
    run.means = np.concatenate([run.means, np.zeros(100)])
    run.play(200, silent=run.best[::3])
    run.live.restore(gone[0])
    run.play(2500)


def _another_policy(run: Run) -> None:
    """A season with a policy that pulls all arms alike, while the best arms are silent."""
    run.play(200, silent=run.best)
    silent = [pull.arm for pull in run.live.pending]
    run.season(policy=ma.policy("uniform"))
    run.play(200, silent=run.best)
    run.season(policy=ma.MOSSOracle(size=220, count_late=True))
    run.play(200, silent=run.best)
    run.live.observe(silent[0], [run.reward(silent[0]) for _ in range(60)])
    run.play(2000)


def _copied(run: Run) -> None:
    """The experiment is saved and loaded, with new seasons, while arms are silent."""
    for _ in range(3):
        run.play(80, silent=run.best)
        run.live = copied(run.live)
        run.season()
        run.live = copied(run.live)
    run.play(2500)


CASES: dict[str, Callable[[Run], None]] = {
    case.__name__.strip("_"): case
    for case in (
        *(_late, _later, _abandoned, _retired, _observed_first, _observed_in_between),
        *(_restored, _catalogue, _another_policy, _copied),
    )
}


def _stopped(case: Callable[[Run], None], count: int = RUNS) -> list[Run]:
    many = {"arms": 20_000, "size": 900} if case is _retired else {}
    runs = [Run(seed, **many) for seed in range(count)]
    for run in runs:
        case(run)
    return [run for run in runs if run.verdict is not None]


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_verdicts_about_a_manipulated_sample_are_right(case: Callable[[Run], None]) -> None:
    stopped = _stopped(case)
    by_chance = [w for w in stopped if w.verdict and "tried at random" in str(w.verdict)]
    assert len(by_chance) >= RUNS // 2  # else nothing was tested
    assert sum(run.wrong() for run in stopped) <= WRONG


def _move_silent_arms_back(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = Experiment.begin_season

    def reordered(experiment: Experiment, *given: Any) -> None:
        silent = [
            arm for arm in experiment.ledger.counts if experiment.ledger.counts[arm].known == 0
        ]
        for arm in silent:
            experiment.ledger.counts[arm] = experiment.ledger.counts.pop(arm)
        experiment.columns = None
        begin(experiment, *given)

    monkeypatch.setattr(Experiment, "begin_season", reordered)


@pytest.mark.parametrize("name", ["late", "abandoned", "another_policy"])
def test_seasons_that_move_silent_arms_would_be_wrong(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Show that the test above can fail."""

    _move_silent_arms_back(monkeypatch)
    assert sum(run.wrong() for run in _stopped(CASES[name], 12)) > WRONG


def test_silent_arms_stay_where_they_were_drawn(tmp_path: Path) -> None:
    run = Run(1)
    run.play(60, silent=run.best)
    live = run.live
    order = list(live._experiment.ledger.counts)
    silent = [arm for arm in order if live._experiment.ledger.counts[arm].known == 0]
    assert silent
    run.season()
    assert live.verdict(**ASKED).met == len(order)
    late = next(pull for pull in live.pending if pull.arm == silent[0])
    live.tell(late, 1.0)
    assert silent[0] not in live._experiment.ledger.named
    for pull in live.ask(20):
        live.tell(pull, run.reward(pull.arm))
    run.season()
    assert list(live._experiment.ledger.counts)[: len(order)] == order
    live.save(tmp_path / "saved.db")
    with ma.load(tmp_path / "saved.db") as again:
        assert again.verdict(**ASKED) == live.verdict(**ASKED)


def _stops(first: int, best: int, others: int, *, quantile: float, error: float, runs: int) -> int:
    """Return in how many runs a sample is ever large enough; best arms are open at random."""
    facts, count = ma.MOSS().live(n_arms=first, horizon=9, seed=1)._tried_arms().facts, 0
    for run in range(runs):
        luck = np.random.default_rng(run)
        opened = (luck.permutation(first) < best) & (luck.random(first) < 1.0 - LEVELS[0])
        count += Sample(facts, opened, quantile, error, LEVELS[0], others).small_enough()
    return count


@pytest.mark.slow
def test_arms_that_were_added_later_count_as_better() -> None:
    """One arm too many is better: 241 of the first 2000 arms, and all 200 that were added later.

    So a stop is wrong. If each of 200 runs stops with probability 5 %, 21 or more stop with
    probability 0.001. If the added arms were not counted, about half of the runs would stop.
    """
    first, came, quantile = 2000, 200, 0.2
    better = int(quantile * (first + came)) + 1 - came
    others = came - int(quantile * came)
    asked: dict[str, Any] = {"quantile": quantile, "error": 0.05, "runs": 200}
    assert _stops(first, better, others, **asked) <= 20
    assert _stops(first, better, 0, **asked) > 60
    assert _stops(first, 10, others, **asked) == 200


@pytest.mark.slow
def test_verdicts_with_daily_batches_of_arms() -> None:
    """With new arms every day, verdicts about the first arms or about all arms stop.

    In every second run, 100 arms come per day. They are better than all others and never answer.
    If they were not counted, verdicts about all arms in play would be wrong. If they were part of
    the sample, no verdict would stop. In the other runs, 10 poor arms come per day. With an error
    rate of 5 %, more than `WRONG` verdicts are wrong with probability 0.001.
    """
    of_all = wrong = 0
    for seed in range(RUNS):
        live, said, means = _daily(seed, hidden=seed % 2 == 0)
        assert said.stop
        assert said.n_arms == (ARMS if said.at_first else len(means))
        of_all += not said.at_first
        order = np.sort(means[: said.n_arms])[::-1]
        wrong += means[said.arm] < order[int(0.2 * said.n_arms)] - 0.6
    assert 5 <= of_all < RUNS
    assert wrong <= WRONG
    met = live.verdict(epsilon=0.6, quantile=0.2).met
    live.add_arms(ARMS)  # without rewards: more than a fifth of all arms
    later = live.verdict(epsilon=0.6, quantile=0.2)
    assert later.stop
    assert later.at_first
    assert later.met == met
    assert " initial arms (" in later.headline


def _daily(seed: int, *, hidden: bool) -> tuple[ma.Live, ma.StopVerdict, Any]:
    """Play until a verdict stops; return also the means. Rewards of new arms may be hidden."""
    luck = np.random.default_rng(seed)
    means = luck.uniform(0.0, 0.3, ARMS)
    live = ma.Prospector(trials=0.5).live(n_arms=ARMS, seed=seed)
    said = live.verdict()
    while live.pulls < 16_000 and not said.stop:
        if live.pulls % 1000 == 0:
            came = 100 if hidden else 10
            live.add_arms(came)
            means = np.concatenate([means, np.full(came, 1.0 if hidden else 0.0)])
        for _ in range(250):
            pull = live.ask()
            if pull.arm < ARMS or not hidden:
                live.tell(pull, float(luck.random() < means[pull.arm]))
        if live.pulls >= 3000:  # then a fifth of all arms may be new
            said = live.verdict(epsilon=0.6, quantile=0.2)
    return live, said, means


@cache
def _above_a_half() -> Any:
    """Return, for 1 to 2000 rewards, the least sum with a lower bound above 0.5."""
    counts = np.arange(1, 2001)
    below, above = counts // 2, counts + 1
    while (above - below > 1).any():
        middle = (below + above) // 2
        low, _ = uniform_interval(counts, middle, error=float(spent_error(0.05, 1)))
        below, above = np.where(low > 0.5, below, middle), np.where(low > 0.5, middle, above)
    return above


def _wrong_after_a_season(seed: int) -> set[str]:
    """Return the methods that claim that one of 40 arms of mean 0.5 is better than 0.5.

    The intervals of `uplift` are wider and never claim it, but must not change with the season.

    All arms are asked for at once, and the arm asked for first answers last. The season begins when
    the interval of an arm, computed as if it had been met first, is above the target. The control
    has so many rewards that its mean is known to be 0.5.
    """
    luck = np.random.default_rng(seed)
    live = ma.MOSS().live(n_arms=40, horizon=40, seed=seed, control="today", share=1e-9)
    control = live._experiment.ledger.control
    assert control is not None
    control.asked, control.told, control.total = 10**7, 10**7, 5.0e6
    wrong = set[str]()
    for pull in reversed(live.ask(40)):
        rewards = (luck.random(2000) < 0.5).astype(float)
        above = np.flatnonzero(np.cumsum(rewards) >= _above_a_half())
        end = int(above[0]) + 1 if len(above) else 20
        live.tell(pull, rewards[0])
        live.observe(pull.arm, rewards[1:end].tolist())
        if len(above):
            uplift, before = live.uplift(), live.verdict(target=0.5).stop
            live.season(horizon=40)
            said = {
                "verdict": live.verdict(target=0.5).stop,
                "recommend": live.recommend().interval[0] > 0.5,
                "uplift": live.uplift().interval != uplift.interval,
                "season": live.verdict(target=0.5).stop != before,
            }
            wrong |= {what for what, better in said.items() if better}
    return wrong


STOPPED = 22  # of 200; at 5 % each, more have probability 0.0002


def _times_wrong(runs: int = 200) -> Counter[str]:
    return Counter(what for seed in range(runs) for what in _wrong_after_a_season(seed))


@pytest.mark.slow
def test_arms_keep_their_share_of_the_error_in_a_new_season() -> None:
    assert max(_times_wrong().values(), default=0) <= STOPPED


@pytest.mark.long
def test_no_season_makes_a_verdict_stop() -> None:
    """The new season gives no arm a new share of the error: 0 of 400."""
    assert _times_wrong(400)["season"] == 0


@pytest.mark.slow
def test_new_shares_of_the_error_in_a_season_would_be_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Show that the test above can fail."""
    _move_silent_arms_back(monkeypatch)
    times = _times_wrong()
    assert min(times[what] for what in ("verdict", "recommend", "uplift", "season")) > STOPPED


@pytest.mark.parametrize(("few", "size"), [(0, 200), (1, 200), (7, 200), (40, 500), (150, 2000)])
def test_the_number_of_open_arms_is_binomial(few: int, size: int) -> None:
    facts = ma.MOSS().live(n_arms=1000, horizon=10, seed=1)._tried_arms().facts
    sample = Sample(facts, np.zeros(size, np.bool_), 0.5, 0.05, LEVELS[0])
    chance = (1 - LEVELS[0]) * (sample.top - few) / 1000
    terms = (math.comb(size, k) * chance**k * (1 - chance) ** (size - k) for k in range(few + 1))
    assert sample.likely(few, size) == pytest.approx(sum(terms), rel=1e-9)


def test_a_sample_needs_enough_draws_and_few_open_arms() -> None:
    facts = ma.MOSS().live(n_arms=1000, horizon=10, seed=1)._tried_arms().facts

    def sample(drawn: int, opened: int = 0, others: int = 0) -> Sample:
        return Sample(facts, np.arange(drawn) < opened, 0.2, 0.05, LEVELS[0], others)

    least = sample(0).least()
    assert sample(least - 1).draws_missing() == 1
    assert sample(least + 5).draws_missing() == 0
    assert not sample(least - 1).small_enough()
    assert sample(least).small_enough()
    # if more than a fifth of the arms cannot be drawn, no sample is large enough
    assert sample(least, others=300).draws_missing() == math.inf
    assert not sample(900, others=300).small_enough()
    size, error = list(sample(300).sizes())[-1]
    allowed = sample(300).allowed(size, error)
    assert sample(300).likely(allowed, size) <= error < sample(300).likely(allowed + 1, size)
    assert sample(300, opened=allowed).small_enough()
    assert sample(300, opened=allowed + 9).excess(size, error) == 9 / size
