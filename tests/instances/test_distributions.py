"""Own distributions of rewards and means, and tables of rewards, compiled and in CPython."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

import manyarms as ma
from manyarms.instances import draw_mean, reward
from manyarms.kit import unit


class Tips(NamedTuple):
    """Few visitors buy, and all of them spend the same."""

    basket: float

    @property
    def reward_range(self) -> tuple[float, float]:
        return 0.0, self.basket


@reward.register(Tips)
def spend(law: Tips, arm: int, mean: float, word: int) -> float:
    return law.basket if unit(word) < mean / law.basket else 0.0


class Keep:
    """Pulls the arms in turn, and records their rewards."""

    def __init__(self, n_arms: int) -> None:
        self.n_arms, self.pulls = n_arms, 0
        self.seen: list[tuple[int, float]] = []
        Keep.last = self

    last: Any = None

    def ask(self) -> int:
        self.pulls += 1
        return self.pulls % self.n_arms

    def tell(self, arm: int, reward: float) -> None:
        self.seen.append((arm, reward))


def test_an_own_distribution_is_compiled_and_uses_the_same_random_words() -> None:
    arms = ma.instances.from_means([0.5, 2.0, 8.0], rewards=Tips(16.0))
    assert arms.label == "from_means(n=3, Tips(basket=16.0))"
    scaled = ma.instances.from_means([1 / 32, 1 / 8, 1 / 2])
    result, other = (
        ma.simulate(ma.MOSS(), one, horizon=500, replications=3, workers=1)
        for one in (arms, scaled)
    )
    assert (result.regret == 16 * other.regret).all()  # sigma was set by the range
    ma.simulate(Keep, arms, horizon=3000, replications=1)
    for arm, mean in enumerate([0.5, 2.0, 8.0]):
        rewards = [reward for one, reward in Keep.last.seen if one == arm]
        assert set(rewards) == {0.0, 16.0}
        assert abs(np.mean(rewards) - mean) < 1.5


class Generous(NamedTuple):
    """Its rewards are `times` the mean: 1 is right."""

    times: float
    basket: float = 16.0

    @property
    def reward_range(self) -> tuple[float, float]:
        return 0.0, self.basket


@reward.register(Generous)
def give(law: Generous, arm: int, mean: float, word: int) -> float:
    return law.basket if unit(word) < law.times * mean / law.basket else 0.0


class Free(NamedTuple):
    """Uniform around the mean, or beside it, without a range."""

    off: float


@reward.register(Free)
def free(law: Free, arm: int, mean: float, word: int) -> float:
    return mean + law.off + unit(word) - 0.5


@pytest.mark.parametrize("law", [Generous(1.2), Generous(0.8), Free(0.1), Free(-0.1)])
def test_a_distribution_with_a_wrong_mean_is_refused(law: Any) -> None:
    makers: list[Callable[[], Any]] = [
        lambda: ma.instances.from_means([0.5, 2.0, 8.0], rewards=law),
        lambda: ma.instances.grouped(sizes=[2, 3], means=[8.0, 1.0], rewards=law),
        lambda: ma.instances.planted(n=30, m=3, best=8.0, others=(1.0, 2.0), rewards=law),
        lambda: ma.instances.reservoir(ma.instances.UniformMeans(0, 8), rewards=law),
    ]
    for make in makers:
        with pytest.raises(ma.ParameterError, match="`rewards` must have the arm's mean, but"):
            make()


@pytest.mark.parametrize("basket", [0.0, -1.0, float("nan")])
def test_a_range_without_width_is_refused(basket: float) -> None:
    message = "`rewards` must have a `reward_range` of two numbers, the smaller one first, got"
    with pytest.raises(ma.ParameterError, match=message):
        ma.instances.from_means([0.0], rewards=Generous(1.0, basket))


@pytest.mark.parametrize("law", [Generous(1.0), Free(0.0), Tips(16.0), Tips(1e7)])
def test_a_distribution_with_the_right_mean_is_accepted(law: Any) -> None:
    """Also one that pays once in a million draws."""
    for best in (0.001, 1.0, 8.0, 16.0):
        assert ma.instances.from_means([0.0, best / 3, best], rewards=law).best_mean == best


def test_a_distribution_limits_its_means() -> None:
    with pytest.raises(ma.ParameterError, match="`means` must be a number >= 0 and <= 5, got 6"):
        ma.instances.from_means([6.0], rewards=Tips(5.0))
    arms = ma.instances.from_means([1.0], rewards=Tips(5.0))
    with pytest.raises(ma.ParameterError, match=r"`reward_range` must lie in \[0, 1\] for kl-moss"):
        ma.simulate(ma.MOSS(index="kl"), arms, horizon=5, replications=1)
    with pytest.raises(ma.ParameterError, match="`distribution` must be a number <= 5, got 9"):
        ma.instances.reservoir(ma.instances.UniformMeans(0, 9), rewards=Tips(5.0))
    with pytest.raises(ma.ParameterError, match="of your own, registered with `reward.register`"):
        ma.instances.from_means([0.5], rewards=(1.0,))


class Pareto(NamedTuple):
    """The share of arms within x of `best` is (x / width) ** tail."""

    best: float
    tail: float
    width: float = 0.5

    @property
    def mean_range(self) -> tuple[float, float]:
        return self.best - self.width, self.best


@draw_mean.register(Pareto)
def power_mean(law: Pareto, word: int) -> float:
    return float(law.best - law.width * (1.0 - unit(word)) ** (1.0 / law.tail))


def test_own_means_have_their_distribution() -> None:
    """By the inequality of Dvoretzky, Kiefer, Wolfowitz and Massart, false alarm 1e-6."""
    arms, count = ma.instances.reservoir(Pareto(0.9, 3.0)), 20_000
    drawn = np.sort([arms.mean(arm, seed=3, replication=arm % 2) for arm in range(count)])
    below = 1.0 - ((0.9 - drawn) / 0.5) ** 3.0
    away = np.abs(below - (np.arange(count) + 0.5) / count).max() + 0.5 / count
    assert away < np.sqrt(np.log(2.0 / 1e-6) / (2.0 * count))
    assert arms.label == "reservoir(Pareto(best=0.9, tail=3.0, width=0.5))"
    assert (arms.best_mean, arms.largest_gap, arms.n_best) == (0.9, 0.5, None)


def test_compiled_code_and_cpython_draw_the_same_means() -> None:
    # own means and own rewards together; `Instance.mean` is never compiled
    arms = ma.instances.reservoir(Pareto(2.0, 1.7), rewards=Tips(16.0))
    result = ma.simulate(ma.MOSSPlusPlus(), arms, horizon=300, replications=3, record_arms=True)
    assert result.arms is not None
    for replication, pulled in enumerate(result.arms[0]):
        means = {arm: arms.mean(int(arm), replication=replication) for arm in set(pulled)}
        lost = np.cumsum([2.0 - means[arm] for arm in pulled])
        assert (result.regret[0, replication] == lost[result.times - 1]).all()
        assert result.recommended_mean[0, replication] == means[result.recommended[0, replication]]
    assert len({float(total) for total in result.regret[0, :, -1]}) == 3  # drawn again each time


class Wide(NamedTuple):
    """Draws from [0, 2), with a given `mean_range`."""

    low: Any
    high: Any

    @property
    def mean_range(self) -> Any:
        return self.low, self.high


@draw_mean.register(Wide)
def wide_mean(law: Wide, word: int) -> float:
    return 2.0 * unit(word)


@pytest.mark.parametrize(
    ("law", "words"),
    [
        (Wide(0.0, 1.0), r"must have means in its `mean_range`, \[0, 1\], but Wide.* drew 1\."),
        (Wide(0.0, float("inf")), "two finite numbers .* got \\(0.0, inf\\) of Wide"),
        (Tips(3.0), "of your own, registered with `draw_mean.register`, got Tips"),
        (Wide(0.0, 2.0), r"must have means in \[0, 1\] for Bernoulli rewards, got Wide"),
    ],
)
def test_invalid_distributions_of_means_are_refused(law: Any, words: str) -> None:
    with pytest.raises(ma.ParameterError, match=words):
        ma.instances.reservoir(law)


SEEN = {"b": [0.0, 0.0, 6.0], "a": [3.0], "c": [-1.0, 2.0, 2.0, 5.0]}


@pytest.mark.parametrize("kind", ["dictionary", "csv", "parquet"])
def test_a_table_of_rewards(kind: str, tmp_path: Path) -> None:
    rows = [(arm, reward) for arm, rewards in SEEN.items() for reward in rewards]
    rows.append(rows.pop(1))  # arms need not be in order
    columns = {"item": [arm for arm, _ in rows], "paid": [paid for _, paid in rows]}
    (tmp_path / "log.csv").write_text("\n".join(["item,paid", *(f"{a},{r}" for a, r in rows)]))
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "log.parquet")
    arms = ma.instances.from_rewards(
        SEEN if kind == "dictionary" else f"{tmp_path}/log.{kind}:item,paid"
    )
    assert [arms.mean(arm) for arm in range(3)] == [2.0, 3.0, 2.0]
    assert (arms.n_best, arms.rewards.reward_range) == (1, (-1.0, 6.0))
    ma.simulate(Keep, arms, horizon=6000, replications=1)
    counts = Counter(Keep.last.seen)
    assert set(counts) == {(k, r) for k, rs in enumerate(SEEN.values()) for r in rs}
    assert counts[1, 3.0] == 2000
    assert 1250 < counts[0, 0.0] < 1420
    assert 900 < counts[2, 2.0] < 1100
    first, again = (
        ma.simulate(ma.MOSS(), arms, horizon=50, replications=2, workers=k).regret for k in (1, 2)
    )
    assert (first == again).all()


def test_rewards_between_0_and_1_are_not_scaled() -> None:
    arms = ma.instances.from_rewards({0: [0.0, 1.0], 1: [0.25]})
    assert arms.rewards.bounded
    assert ma.simulate(ma.MOSS(index="kl"), arms, horizon=20, replications=1).regret.min() >= 0.0


@pytest.mark.parametrize("table", [{}, {"a": []}, {"a": [1.0, np.nan]}, {"a": 5}, 7, {"a": ["x"]}])
def test_tables_without_rewards_are_refused(table: Any) -> None:
    with pytest.raises(ma.ParameterError, match="`table` must be"):
        ma.instances.from_rewards(table)
