"""Instances: means, rewards, and wrong arguments."""

from __future__ import annotations

import math
import pickle
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

import manyarms as ma
from manyarms.core.memory import BOUNDED
from manyarms.instances import (
    BetaMeans,
    BetaRewards,
    DiscreteMeans,
    Gaussian,
    Instance,
    UniformMeans,
    from_means,
    from_rewards,
    grouped,
    planted,
    reservoir,
)
from manyarms.instances.tape import arm_of, best_record, next_reward, record_of, rewind, tape
from manyarms.protocol.scales import scale_of


def test_planted_means_are_those_of_the_paper() -> None:
    instance = planted(n=1003, m=3)
    counts = Counter(instance.mean(arm) for arm in range(1003))
    assert counts == {0.9: 3, 0.1: 200, 0.2: 200, 0.3: 200, 0.4: 200, 0.5: 200}
    assert (instance.best_mean, instance.n_best) == (0.9, 3)
    counts = Counter(planted(n=13, m=1).mean(arm) for arm in range(13))  # with a remainder
    assert counts == {0.9: 1, 0.1: 3, 0.2: 3, 0.3: 2, 0.4: 2, 0.5: 2}


def test_a_billion_planted_arms_need_no_array() -> None:
    instance = planted(n=10**9, alpha=0.4, horizon=50_000)
    assert instance.mean(10**9 - 1) == 0.5
    assert sum(len(numbers) for numbers in instance.world(1)[4:7]) < 20
    assert instance.problem(50_000).alpha == pytest.approx(0.4, abs=1e-6)


def test_groups_and_arrays_agree() -> None:
    groups = grouped(sizes=[2, 0, 3, 1], means=[0.2, 1.0, 0.5, 0.5])
    array = from_means([0.2, 0.2, 0.5, 0.5, 0.5, 0.5])
    assert [groups.mean(arm) for arm in range(6)] == [array.mean(arm) for arm in range(6)]
    assert groups.best_mean == array.best_mean == 0.5  # empty groups do not count
    assert groups.n_best == array.n_best == 4


@pytest.mark.parametrize(
    ("instance", "gap"),
    [
        (planted(n=30, m=2), 0.8),
        (from_means([-3.0, 1.0], rewards=Gaussian()), 4.0),
        (reservoir(BetaMeans(2, 3)), 1.0),
        (reservoir(UniformMeans(0.25, 0.5)), 0.25),
        (reservoir(DiscreteMeans([0.75, 0.5], [0.5, 0.5])), 0.25),
    ],
)
def test_the_largest_gap(instance: Instance, gap: float) -> None:
    assert instance.largest_gap == pytest.approx(gap)
    arms = range(min(instance.n_arms, 50))
    assert all(instance.best_mean - instance.mean(arm) <= gap + 1e-9 for arm in arms)


def test_instances_are_compared_by_identity_and_cannot_be_changed() -> None:
    assert from_means([0.1, 0.9]) != from_means([0.5, 0.9])
    with pytest.raises(ValueError, match="read-only"):
        from_means([0.1, 0.9]).world(5).values[1] = 0.3


def test_drawn_means_agree_with_the_simulation() -> None:
    instance = reservoir(UniformMeans(0.2, 0.4))
    result = ma.simulate(
        ma.MOSS(), instance, horizon=50, replications=3, seed=8, workers=1, record_arms=True
    )
    assert result.arms is not None
    for r in range(3):
        arms = result.arms[0, r]
        means = [instance.mean(int(arm), seed=8, replication=r) for arm in arms]
        assert result.regret[0, r, -1] == pytest.approx(sum(0.4 - mean for mean in means))
        assert 0.26 < sum(means) / 50 < 0.34  # 50 uniform means: 5 standard errors are 0.04


@pytest.mark.parametrize(
    ("distribution", "low", "high", "best"),
    [
        (BetaMeans(1, 2), 0.0, 1.0, 1.0),
        (UniformMeans(0.2, 0.4), 0.2, 0.4, 0.4),
        (DiscreteMeans([0.9, 0.5], [0.25, 0.75]), 0.5, 0.9, 0.9),
    ],
)
def test_reservoirs_draw_means(
    distribution: BetaMeans | UniformMeans | DiscreteMeans, low: float, high: float, best: float
) -> None:
    instance = reservoir(distribution)
    means = [instance.mean(arm, seed=5) for arm in range(2000)]
    assert all(low <= mean <= high for mean in means)
    assert instance.best_mean == best
    assert means[:9] != [instance.mean(arm, seed=6) for arm in range(9)]  # new in each replication
    assert means[:9] == [instance.mean(arm, seed=5) for arm in range(9)]


def test_discrete_reservoirs_keep_their_probabilities() -> None:
    """A z-test on 4000 arms, false alarm 1e-6."""
    instance = reservoir(DiscreteMeans([0.9, 0.5], [0.25, 0.75]))
    best = sum(instance.mean(arm, replication=9) == 0.9 for arm in range(4000))
    assert abs(best - 1000) < 4.9 * math.sqrt(4000 * 0.25 * 0.75)


def test_near_best_arms_of_a_reservoir() -> None:
    assert reservoir(UniformMeans()).world(10_000).good_mean == pytest.approx(0.99)
    assert reservoir(UniformMeans(), epsilon=0.2).world(10_000).good_mean == pytest.approx(0.8)
    with pytest.raises(ma.ParameterError, match=r"Problem\.infinite"):
        reservoir(UniformMeans()).problem(100)


def _rewards(instance: Instance, arm: int, count: int) -> list[float]:
    reel, world = tape(BOUNDED, instance.n_arms, count), instance.world(count)
    rewind(reel)
    record_of(reel, world, 77, arm)
    return [next_reward(reel, world) for _ in range(count)]


@pytest.mark.parametrize(
    ("instance", "arm", "mean", "variance"),
    [
        (planted(n=10, m=1), 0, 0.9, 0.09),
        (from_means([0.3]), 0, 0.3, 0.21),
        (from_means([-2.0], rewards=Gaussian(sigma=3.0)), 0, -2.0, 9.0),
        (from_means([0.2], rewards=BetaRewards(concentration=4.0)), 0, 0.2, 0.16 / 5),
    ],
)
def test_rewards_have_their_mean_and_variance(
    instance: Instance, arm: int, mean: float, variance: float
) -> None:
    """Two z-tests, false alarm 1e-6 each."""
    sample = np.array(_rewards(instance, arm, 10_000))
    assert abs(sample.mean() - mean) < 4.9 * math.sqrt(variance / len(sample))
    squares = (sample - mean) ** 2
    assert abs(squares.mean() - variance) < 4.9 * squares.std() / math.sqrt(len(sample))


@pytest.mark.parametrize("mean", [0.0, 1.0])
def test_rewards_of_means_0_and_1_are_certain(mean: float) -> None:
    for rewards in (ma.instances.Bernoulli(), BetaRewards(2.0)):
        assert set(_rewards(from_means([mean], rewards=rewards), 0, 500)) == {mean}


def test_the_tape_depends_only_on_the_arm_and_its_count() -> None:
    instance = planted(n=50, m=5)
    world = instance.world(100)
    alone = {arm: _rewards(instance, arm, 20) for arm in range(5)}
    mixed = tape(BOUNDED, 50, 100)
    rewind(mixed)
    for count in range(20):
        for arm in (3, 0, 4, 1, 2):
            record_of(mixed, world, 77, arm)
            assert next_reward(mixed, world) == alone[arm][count]


def test_the_best_record_has_the_largest_lower_bound() -> None:
    instance = from_means([1.0, 0.0, 0.9])
    reel, world = tape(BOUNDED, 3, 100), instance.world(100)
    rewind(reel)
    scale = scale_of(ma.MOSS(), (0.0, 1.0))
    for arm in (1, 0, *[2] * 50):
        record_of(reel, world, 77, arm)
        next_reward(reel, world)
        if arm == 0:
            assert arm_of(reel, best_record(reel, scale)) == 0
    assert arm_of(reel, best_record(reel, scale)) == 2  # not the arm with one good reward


def test_instances_can_be_sent_to_processes() -> None:
    for instance in (planted(n=10, m=1), reservoir(BetaMeans(1, 1)), from_means([0.1, 0.2])):
        assert pickle.loads(pickle.dumps(instance)).mean(1, seed=3) == instance.mean(1, seed=3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: planted(n=0, m=1), "`n` must be an integer >= 1"),
        (lambda: planted(n=5, m=6), "`m` must be an integer >= 1 and <= 5, got 6"),
        (lambda: planted(n=5), "`alpha` or `m`, .* is required"),
        (lambda: planted(n=5, alpha=0.5), "`horizon` is required with `alpha`"),
        (lambda: planted(n=5, alpha=0.5, m=1), "`alpha` must be left out"),
        (lambda: planted(n=5, m=1, best=0.5), "`others` must be smaller than best = 0.5, got 0.5"),
        (lambda: planted(n=5, m=1, best=1.5), r"`best` must be .* got 1.5.*Gaussian"),
        (lambda: from_means([0.5, math.nan]), "`means` must be finite, got nan"),
        (lambda: from_means([0.5, 1.01]), r"`means` must be a number >= 0 and <= 1, got 1.01"),
        (lambda: from_means(np.array([[0.1], [0.2]])), r"got shape \(2, 1\)"),
        (lambda: grouped(sizes=[1], means=[0.1, 0.2]), "same length, got 1 and 2"),
        (lambda: grouped(sizes=[0], means=[0.1]), "`sizes` must be an integer >= 1"),
        (lambda: reservoir("beta"), "`distribution` must be BetaMeans"),  # type: ignore[arg-type]
        (lambda: reservoir(UniformMeans(0, 2)), r"means in \[0, 1\] for Bernoulli rewards"),
        (lambda: BetaMeans(0, 1), "`a` must be a number >= 0.001"),
        (lambda: DiscreteMeans([0.1], [0.5]), "`probabilities` must add up to 1, got 0.5"),
        (lambda: planted(n=5, m=1, others=0.5), "`others` must be a list"),  # type: ignore[arg-type]
        (lambda: planted(n=5, m=1, rewards=Gaussian), "`rewards` must be Bernoulli"),  # type: ignore[arg-type]
        (lambda: Gaussian(sigma=0), "`sigma` must be a number > 0, got 0"),
        (lambda: planted(n=5, m=1).mean(5), "`arm` must be an integer >= 0 and <= 4, got 5"),
    ],
)
def test_bad_input(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ma.ParameterError, match=message):
        call()


@pytest.mark.parametrize(
    "make",
    [
        lambda **more: from_means([0.2, 0.69, 0.7, 0.7], **more),
        lambda **more: grouped(sizes=[1, 1, 2], means=[0.2, 0.69, 0.7], **more),
        lambda **more: planted(n=4, m=2, best=0.7, others=[0.69, 0.2], **more),
        lambda **more: from_rewards({k: [m] for k, m in enumerate([0.2, 0.69, 0.7, 0.7])}, **more),
    ],
)
def test_what_counts_as_a_best_arm(make: Callable[..., Instance]) -> None:
    exact, near = make(), make(epsilon=0.02)
    assert (exact.n_best, near.n_best) == (2, 3)
    assert exact.best_mean == near.best_mean == 0.7
    assert exact.world(100).good_mean == pytest.approx(0.7)
    assert near.world(100).good_mean == pytest.approx(0.68)
    assert near.problem(100).m == 3
    played = [ma.simulate(ma.MOSS(), one, horizon=40, replications=2) for one in (exact, near)]
    assert (played[0].regret == played[1].regret).all()
    assert (played[0].best_pulls < played[1].best_pulls).all()
    with pytest.raises(ma.ParameterError, match="`epsilon` must be a number >= 0, got -1"):
        make(epsilon=-1)


def test_labels_name_the_rewards_and_the_best_arms() -> None:
    arms = [0.2, 0.7]
    assert from_means(arms).label == "from_means(n=2)"
    assert from_means(arms, epsilon=0.5).label == "from_means(n=2, epsilon=0.5)"
    normal = Gaussian(2.0)
    for made in (
        from_means(arms, rewards=normal),
        planted(n=9, m=1, rewards=normal),
        reservoir(UniformMeans(0.0, 1.0), rewards=normal),
    ):
        assert "Gaussian(sigma=2.0)" in made.label


@pytest.mark.parametrize("best", [0.1 + k / 97 for k in range(80)])
def test_rounding_does_not_decide_what_counts_as_best(best: float) -> None:
    means = [best, best - 0.1, best * (1.0 + 1e-15), best * (1.0 - 1e-9)]
    for made in (
        from_means(means, epsilon=0.1, rewards=Gaussian()),
        grouped(sizes=[1] * 4, means=means, epsilon=0.1, rewards=Gaussian()),
    ):
        assert made.n_best == 4
        assert made.world(9).good_mean <= made.mean(1)
    near = from_means([*means, 3 * best - 2 * best], rewards=Gaussian())
    assert near.n_best == 3
    assert ma.Problem.near_optimal(means, horizon=9, epsilon=0.1).m == 4


def test_rounding_does_not_decide_about_a_pull() -> None:
    arms = from_means([0.1 + 0.2, 0.3, 0.0])
    result = ma.simulate(ma.MOSS(), arms, horizon=60, replications=20)
    lost = np.rint(result.regret[0, :, -1] / 0.3)
    assert (arms.n_best, arms.problem(60).alpha) == (2, 0.0)
    assert (result.best_pulls[0] == 60 - lost).all()
    assert result.summary(objective="find")["moss"].miss_rate < 1.0
    with pytest.raises(ma.ParameterError, match="`others` must be smaller than best"):
        planted(n=9, m=2, best=0.1 + 0.2, others=[0.3])


def test_masked_means_are_refused() -> None:
    masked = np.ma.masked_equal([0.2, 0.9], 0.9)
    message = r"`means` must have no masked values, got 1 of 2. Leave them out, .*`compressed"
    with pytest.raises(ma.ParameterError, match=message):
        from_means(masked)
    assert from_means(masked.compressed()).best_mean == 0.2
    assert from_means(np.ma.array([0.2, 0.9])).best_mean == 0.9
