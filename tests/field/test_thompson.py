"""Thompson sampling, its satisficing form, and the Beta law beneath them."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import manyarms as ma
from manyarms.core.memory import SPARSE
from manyarms.core.rng import draw
from manyarms.errors import ParameterError
from manyarms.policies.field.satisficing import SatisficingTS
from manyarms.policies.field.thompson import Thompson, most_tail
from manyarms.policies.parts.beta import (
    beta_tail,
    beta_upper,
    beta_variate,
    share_of_tail,
    stirling_error,
)
from manyarms.policies.parts.first_success import (
    add_chance,
    chances,
    clear_chances,
    first_again,
    first_of,
    set_chance,
)
from tests.reference.field_thompson import Satisficing
from tests.reference.field_thompson import Thompson as ThompsonReference
from tests.reference.moss import Player
from tests.reference.words import policy_key
from tests.reference.world import bernoulli, gaussian
from tests.test_oracle import (
    MEANS,
    WORLDS,
    check_same,
    live_arms,
    reference_arms,
    rewards_of,
    seed_for,
    simulated_arms,
    worlds_for,
)

PAIRS: dict[str, tuple[ma.Policy, Player]] = {
    "thompson": (Thompson(), ThompsonReference()),
    "satisficing-0.5": (SatisficingTS(target=0.5), Satisficing(0.5)),
    "satisficing-0.8": (SatisficingTS(target=0.8), Satisficing(0.8)),
    "satisficing-0": (SatisficingTS(target=0.0), Satisficing(0.0)),
    "satisficing-1": (SatisficingTS(target=1.0), Satisficing(1.0)),
}
whole = st.integers(1, 60)
FOUR_SIGMA, SIX_SIGMA = 4.0, 6.0


def exact_tail(a: int, b: int, x: Fraction) -> Fraction:
    """Return P(Beta(a, b) > x) = P(Bin(a + b - 1, x) < a)."""
    n = a + b - 1
    terms = (math.comb(n, j) * x**j * (1 - x) ** (n - j) for j in range(a))
    return sum(terms, Fraction(0))


@given(a=whole, b=whole, x=st.fractions(0, 1, max_denominator=4096))
def test_tail_is_the_binomial_sum(a: int, b: int, x: Fraction) -> None:
    exact = exact_tail(a, b, x)
    computed = beta_tail(float(a), float(b), float(x))
    assert computed == pytest.approx(float(exact), rel=1e-11, abs=1e-14)


@pytest.mark.parametrize(("a", "b"), [(900, 100), (30000, 4000), (5, 40000), (2000, 2000)])
def test_tail_of_many_pulls_is_the_integral(a: int, b: int) -> None:
    mean = a / (a + b)
    deviation = math.sqrt(mean * (1 - mean) / (a + b + 1))
    for z in (-3.0, -0.5, 0.0, 1.0, 4.0):
        # Simpson's rule from x to some 14 deviations beyond the mean
        x, steps = max(mean + z * deviation, 1e-6), 4000
        width = (min(mean + 14 * deviation, 1 - 1e-6) - x) / steps
        log_b = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)

        def density(at: float, log_b: float = log_b) -> float:
            return math.exp((a - 1) * math.log(at) + (b - 1) * math.log1p(-at) - log_b)

        inner = (2 + 2 * (k % 2) for k in range(1, steps))
        total = math.fsum(w * density(x + k * width) for k, w in enumerate(inner, 1))
        integral = width / 3 * (total + density(x) + density(x + steps * width))
        assert beta_tail(float(a), float(b), x) == pytest.approx(integral, rel=1e-6)


def test_stirling_error() -> None:
    for n in (1, 2, 15, 16, 17, 100):
        exact = math.log(math.factorial(n)) - (n + 0.5) * math.log(n) + n - math.log(math.tau) / 2
        assert stirling_error(float(n)) == pytest.approx(exact, abs=2e-13 * max(1, n / 10))


@given(a=st.integers(1, 3000), b=st.integers(1, 3000), p=st.floats(1e-12, 1 - 1e-12))
def test_upper_is_the_inverse_of_the_tail(a: int, b: int, p: float) -> None:
    x = beta_upper(float(a), float(b), p)
    assert 0 < x <= 1
    around = [beta_tail(float(a), float(b), x * (1 + e)) for e in (1e-11, -1e-11)]
    assert around[0] - 1e-14 <= p <= around[1] + 1e-14


@given(a=whole, b=whole, x=st.floats(0.001, 0.999))
def test_the_cheap_bound_is_never_below_the_tail(a: int, b: int, x: float) -> None:
    ways = float(math.comb(a + b - 1, b)) if b <= 8 else math.inf
    bound = most_tail(ways, b, a / (a + b), float(a + b), x)
    assert bound * (1 + 1e-12) >= beta_tail(float(a), float(b), x)


def test_the_largest_of_k() -> None:
    for u in (0.001, 0.3, 0.999):
        for k in (1, 2, 1000, 10**9):
            largest = -math.expm1(k * math.log1p(-share_of_tail(u, k)))
            assert largest == pytest.approx(u, rel=1e-14)


@pytest.mark.parametrize(("a", "b"), [(2, 2), (2, 30), (70, 3), (400, 100), (1, 5), (5, 1)])
def test_variates_have_the_law(a: int, b: int) -> None:
    # Kolmogorov: P(sqrt(n) D > 2.9) <= 2 exp(-2 * 2.9^2) < 1e-7
    n = 4000
    key = draw(17, a)
    values = sorted(
        beta_tail(float(a), float(b), beta_variate(float(a), float(b), draw(key, k)))
        for k in range(n)
    )
    distance = max(max(abs(v - k / n), abs(v - (k + 1) / n)) for k, v in enumerate(values))
    assert math.sqrt(n) * distance < 2.9


def test_first_of_many() -> None:
    choice = random.Random(5)
    tree = chances(SPARSE, 100)
    clear_chances(tree)
    q: list[float] = []
    for step in range(1500):
        if len(q) < 100 and step % 5 == 0:
            q.append(choice.random() / 10)
            assert add_chance(tree, q[-1]) == len(q)
        else:
            place = choice.randrange(len(q))
            q[place] = choice.choice([0.0, choice.random() / 10, choice.random(), 1.0])
            set_chance(tree, place + 1, q[place])
            if q[place] == 1.0:
                q[place] = 1e-3
                set_chance(tree, place + 1, q[place])
        word = choice.getrandbits(64)
        u = ((word >> 12) + 0.5) / 2**52
        none, expected = 1.0, 0
        for place, chance in enumerate(q, 1):
            none *= 1 - chance
            if none < u:
                expected = place
                break
        assert first_of(tree, word) == expected


def test_a_chance_of_one_passes_always() -> None:
    tree = chances(SPARSE, 3)
    clear_chances(tree)
    for chance in (0.0, 1.0, 1.0):
        add_chance(tree, chance)
    assert {first_of(tree, word) for word in (0, 1, 2**63, 2**64 - 1)} == {2}


def test_trying_again_until_one_passes() -> None:
    tree = chances(SPARSE, 3)
    clear_chances(tree)
    for chance in (1e-30, 0.0, 3e-30):
        add_chance(tree, chance)
    counts = [0, 0, 0, 0]
    for k in range(4000):
        counts[first_again(tree, draw(3, k))] += 1
    assert counts[0] == counts[2] == 0
    assert abs(counts[1] - 1000) < SIX_SIGMA * math.sqrt(750)  # false alarms: 2e-9
    for place in (1, 3):
        set_chance(tree, place, 0.0)
    assert {first_again(tree, draw(4, k)) for k in range(60)} == {1, 2, 3}  # else 1e-10


@pytest.mark.parametrize("n", [1, 2, 3, 17, 60])
@pytest.mark.parametrize("name", PAIRS)
def test_live_games(name: str, n: int) -> None:
    policy, player = PAIRS[name]
    for horizon in (1, 2, 3, 7, 50, 257):
        for world in worlds_for(horizon, name, n, of=WORLDS, most=4)[: 1 if horizon > 100 else 4]:
            seed = seed_for(name, n, horizon, world)
            rewards = rewards_of(world, n, seed)
            check_same(
                live_arms(policy, n, horizon, horizon, seed, rewards),
                reference_arms(player, n, horizon, horizon, policy_key(seed, 0), rewards),
                f"{policy!r}, n={n}, T={horizon}, seed={seed}, {world}",
            )


@pytest.mark.parametrize("name", PAIRS)
def test_simulations(name: str) -> None:
    policy, player = PAIRS[name]
    cases = [(1, 9, "equal"), (2, 300, "spread"), (7, 300, "one best"), (200, 60, "rare")]
    for n, horizon, world in cases:
        seed = seed_for(name, n, horizon, world, "simulated")
        means = MEANS[world](n)
        runs = simulated_arms(policy, ma.instances.from_means(means), horizon, 2, seed)
        for r, arms in enumerate(runs):
            tape = bernoulli(means, seed, r)
            expected = reference_arms(player, n, horizon, horizon, policy_key(seed, r), tape)
            check_same(arms, expected, f"{policy!r}, n={n}, T={horizon}, {world}, replication {r}")


@pytest.mark.parametrize("name", PAIRS)
def test_gaussian_rewards(name: str) -> None:
    policy, player = PAIRS[name]
    n, horizon, seed = 20, 100, seed_for(name, "gaussian")
    means = MEANS["spread"](n)
    instance = ma.instances.from_means(means, rewards=ma.instances.Gaussian(0.3))
    for r, arms in enumerate(simulated_arms(policy, instance, horizon, 2, seed)):
        tape = gaussian(means, 0.3, seed, r)
        expected = reference_arms(player, n, horizon, horizon, policy_key(seed, r), tape)
        check_same(arms, expected, f"{policy!r}, seed={seed}, replication {r}")


@pytest.mark.parametrize("name", ["thompson", "satisficing-0.8"])
def test_many_arms_and_no_horizon(name: str) -> None:
    policy, player = PAIRS[name]
    n, seed = 5000, seed_for(name, "many")
    rewards = bernoulli(MEANS["spread"](n), seed, 0)
    check_same(
        live_arms(policy, n, None, 120, seed, rewards),
        reference_arms(player, n, None, 120, policy_key(seed, 0), rewards),
        f"{policy!r}",
    )


def plain_thompson(counts: list[list[int]], choice: random.Random) -> int:
    samples = [choice.betavariate(1 + s, 1 + f) for s, f in counts]
    return samples.index(max(samples))


def plain_satisficing(counts: list[list[int]], choice: random.Random) -> int:
    while True:
        for arm, (s, f) in enumerate(counts):
            fresh = s + f == 0
            if fresh or choice.betavariate(1 + s, 1 + f) >= 0.6:
                return arm


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("policy", "plain"),
    [(Thompson(), plain_thompson), (SatisficingTS(target=0.6), plain_satisficing)],
    ids=["thompson", "satisficing"],
)
def test_the_law_is_that_of_sampling_every_arm(
    policy: ma.Policy, plain: Callable[[list[list[int]], random.Random], int]
) -> None:
    """Pulls of the best arms, with every arm sampled by the standard library instead."""
    means, horizon, games = [0.8, 0.3, 0.5, 0.8, 0.2, 0.4], 40, 2500
    result = ma.simulate(
        policy, ma.instances.from_means(means), horizon=horizon, replications=games, workers=1
    )
    ours = [int(pulls) for pulls in result.best_pulls[0]]
    choice = random.Random(2)
    theirs = []
    for _ in range(games):
        order = choice.sample(means, len(means))
        counts = [[0, 0] for _ in means]
        best = 0
        for _ in range(horizon):
            arm = plain(counts, choice)
            counts[arm][int(choice.random() >= order[arm])] += 1
            best += order[arm] == 0.8
        theirs.append(best)

    def moments(values: list[int]) -> tuple[float, float]:
        mean = sum(values) / games
        return mean, sum((v - mean) ** 2 for v in values) / games / games

    (mean, variance), (other, other_variance) = moments(ours), moments(theirs)
    # false alarms: 6e-5
    assert abs(mean - other) < FOUR_SIGMA * math.sqrt(variance + other_variance)


@pytest.mark.parametrize("policy", [Thompson(), SatisficingTS(target=0.7)], ids=lambda p: p.name)
def test_rewards_may_come_in_any_order(policy: ma.Policy) -> None:
    live = policy.live(n_arms=30, seed=4)
    choice = random.Random(1)
    flying: list[Any] = []
    for _ in range(60):
        flying += live.ask(5)
        choice.shuffle(flying)
        while len(flying) > 8:
            pull = flying.pop()
            live.tell(pull, 0.9 if pull.arm == 7 else 0.1)
    for pull in flying:
        live.abandon(pull)
    last = [pull.arm for pull in live.ask(40)]
    assert last.count(7) > 25


def test_a_batch_of_first_pulls_spreads() -> None:
    live = Thompson().live(n_arms=10**9, seed=1)
    assert len({pull.arm for pull in live.ask(200)}) == 200


def test_the_target_is_the_instances_best_mean_less_the_tolerance() -> None:
    policy = SatisficingTS(tolerance=0.25).with_best_mean(0.75)
    assert policy.target == 0.5
    assert SatisficingTS(target=0.3).with_best_mean(0.75).target == 0.3
    assert SatisficingTS().with_best_mean(4.0).target == 1.0
    assert SatisficingTS().with_best_mean(-4.0).target == 0.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SatisficingTS(target=1.1), "`target` must be a number >= 0 and <= 1, got 1.1"),
        (lambda: SatisficingTS(tolerance=-1), "`tolerance` must be a number >= 0 and <= 1"),
        (lambda: SatisficingTS().live(n_arms=3), "`target` must be given to SatisficingTS"),
    ],
)
def test_parameters(make: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        make()
