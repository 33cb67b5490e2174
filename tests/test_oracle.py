"""The package picks the same arms as the slow references, pull by pull."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from itertools import product

import pytest

import manyarms as ma
from manyarms.core import rng
from tests.reference.doubling import Doubling
from tests.reference.emp_moss_plus_plus import EmpMossPlusPlus
from tests.reference.field_kl import KLIndex
from tests.reference.hybrid_moss_plus_plus import HybridMossPlusPlus
from tests.reference.moss import Index, Moss, MossOracle, Player
from tests.reference.moss_plus_plus import MossPlusPlus
from tests.reference.parallel import Parallel
from tests.reference.patience import Patience
from tests.reference.quantile import Quantile
from tests.reference.words import SplitMix64, below, draw, policy_key, unit
from tests.reference.world import (
    Rewards,
    bernoulli,
    counted,
    eighths,
    floats,
    gaussian,
    signed_halves,
)

ARMS = (1, 2, 3, 5, 17, 60, 300)
HORIZONS = (1, 2, 3, 4, 7, 16, 50, 257, 1000)
SHORT = 16  # games up to here are played on many worlds each
LONG = 200  # games from here on are played on one world each

WIDE = Index(sigma=1.0)
SHY = Index(exploration=0.5)
BOTH = Index(sigma=1.0, exploration=0.5)

# name: the package's policy, the reference
PAIRS: dict[str, tuple[ma.Policy, Player]] = {
    "moss": (ma.MOSS(), Moss()),
    "moss-wide": (ma.MOSS(sigma=1.0), Moss(WIDE)),
    "moss-shy": (ma.MOSS(exploration=0.5), Moss(SHY)),
    "moss-both": (ma.MOSS(sigma=1.0, exploration=0.5), Moss(BOTH)),
    "oracle-0": (ma.MOSSOracle(alpha=0.0), MossOracle(alpha="0")),
    "oracle-0.3": (ma.MOSSOracle(alpha=0.3), MossOracle(alpha="0.3")),
    "oracle-0.8-both": (
        ma.MOSSOracle(alpha=0.8, sigma=1.0, exploration=0.5),
        MossOracle(BOTH, alpha="0.8"),
    ),
    "oracle-1-arm": (ma.MOSSOracle(m=1), MossOracle(m=1)),
    "oracle-size-11": (ma.MOSSOracle(size=11), MossOracle(size=11)),
    "quantile": (ma.Quantile(), Quantile()),
    "quantile-wide": (ma.Quantile(sigma=1.0), Quantile(WIDE)),
    "quantile-shy-0.6": (ma.Quantile(exploration=0.5, exponent=0.6), Quantile(SHY, exponent="0.6")),
    "quantile-both-1": (
        ma.Quantile(sigma=1.0, exploration=0.5, exponent=1.0),
        Quantile(BOTH, exponent="1"),
    ),
    "moss++-0.5": (ma.MOSSPlusPlus(beta=0.5), MossPlusPlus(beta="0.5")),
    "moss++-0.6": (ma.MOSSPlusPlus(beta=0.6), MossPlusPlus(beta="0.6")),
    "moss++-0.75": (ma.MOSSPlusPlus(beta=0.75), MossPlusPlus(beta="0.75")),
    "moss++-1": (ma.MOSSPlusPlus(beta=1.0), MossPlusPlus(beta="1")),
    "moss++-0.5-wide": (ma.MOSSPlusPlus(sigma=1.0), MossPlusPlus(WIDE)),
    "moss++-0.6-shy": (
        ma.MOSSPlusPlus(beta=0.6, exploration=0.5),
        MossPlusPlus(SHY, beta="0.6"),
    ),
    "empmoss++-0.5": (ma.EmpMOSSPlusPlus(beta=0.5), EmpMossPlusPlus(beta="0.5")),
    "empmoss++-0.6": (ma.EmpMOSSPlusPlus(beta=0.6), EmpMossPlusPlus(beta="0.6")),
    "empmoss++-0.75": (ma.EmpMOSSPlusPlus(beta=0.75), EmpMossPlusPlus(beta="0.75")),
    "empmoss++-1": (ma.EmpMOSSPlusPlus(beta=1.0), EmpMossPlusPlus(beta="1")),
    "empmoss++-0.5-wide": (ma.EmpMOSSPlusPlus(sigma=1.0), EmpMossPlusPlus(WIDE)),
    "empmoss++-0.6-shy": (
        ma.EmpMOSSPlusPlus(beta=0.6, exploration=0.5),
        EmpMossPlusPlus(SHY, beta="0.6"),
    ),
    "empmoss++-0.5-pulled": (ma.EmpMOSSPlusPlus(rank="pulled"), EmpMossPlusPlus(rank="pulled")),
    "empmoss++-0.6-pulled-both": (
        ma.EmpMOSSPlusPlus(beta=0.6, rank="pulled", sigma=1.0, exploration=0.5),
        EmpMossPlusPlus(BOTH, beta="0.6", rank="pulled"),
    ),
    "hybrid-moss++-0.5": (ma.HybridMOSSPlusPlus(beta=0.5), HybridMossPlusPlus(beta="0.5")),
    "hybrid-moss++-0.6-both": (
        ma.HybridMOSSPlusPlus(beta=0.6, sigma=1.0, exploration=0.5),
        HybridMossPlusPlus(BOTH, beta="0.6"),
    ),
    "hybrid-moss++-0.75": (ma.HybridMOSSPlusPlus(beta=0.75), HybridMossPlusPlus(beta="0.75")),
    "hybrid-moss++-1": (ma.HybridMOSSPlusPlus(beta=1.0), HybridMossPlusPlus(beta="1")),
    "hybrid-moss++-kl": (ma.HybridMOSSPlusPlus(index="kl"), HybridMossPlusPlus(KLIndex())),
    "patience": (ma.Patience(best_mean=0.9), Patience(0.9)),
    "patience-high": (ma.Patience(best_mean=1.0, sigma=0.25), Patience(1.0, sigma=0.25)),
    "patience-low": (ma.Patience(best_mean=0.5), Patience(0.5)),
    "patience-kl": (ma.Patience(best_mean=0.75, bound="kl"), Patience(0.75, kl=True)),
    "parallel": (ma.Parallel(best_mean=0.9), Parallel(0.9)),
    "parallel-low": (ma.Parallel(best_mean=0.5), Parallel(0.5)),
    "parallel-1": (ma.Parallel(best_mean=1.0, subset_factor=1), Parallel(1.0, subset_factor=1)),
    "parallel-1-wide": (
        ma.Parallel(best_mean=0.75, subset_factor=1, sigma=1.0),
        Parallel(0.75, WIDE, subset_factor=1),
    ),
    "parallel-shy": (ma.Parallel(best_mean=0.9, exploration=0.5), Parallel(0.9, SHY)),
    "doubling-moss": (ma.Doubling(ma.MOSS()), Doubling(Moss())),
    "doubling-oracle": (ma.Doubling(ma.MOSSOracle(m=1)), Doubling(MossOracle(m=1))),
    "doubling-moss++": (ma.Doubling(ma.MOSSPlusPlus()), Doubling(MossPlusPlus())),
    "doubling-empmoss++": (
        ma.Doubling(ma.EmpMOSSPlusPlus(beta=0.6)),
        Doubling(EmpMossPlusPlus(beta="0.6")),
    ),
    "doubling-parallel": (ma.Doubling(ma.Parallel(best_mean=0.9)), Doubling(Parallel(0.9))),
    "doubling-hybrid": (ma.Doubling(ma.HybridMOSSPlusPlus()), Doubling(HybridMossPlusPlus())),
    "doubling-patience": (ma.Doubling(ma.Patience(best_mean=0.9)), Doubling(Patience(0.9))),
}
ANYTIME = [name for name, (policy, _) in PAIRS.items() if policy.anytime]

# name: means of n arms
MEANS: dict[str, Callable[[int], list[float]]] = {
    "spread": lambda n: [(0.1, 0.5, 0.9, 0.3, 0.2, 0.4)[7 * arm % 6] for arm in range(n)],
    "one best": lambda n: [0.9 if arm == n // 3 else 0.2 for arm in range(n)],
    "equal": lambda n: [0.6] * n,
    "zeros": lambda n: [0.0] * n,
    "ones": lambda n: [1.0] * n,
    "rare": lambda n: [0.02] * n,
}
OTHER_REWARDS = {"eighths": eighths, "signed halves": signed_halves, "floats": floats}
WORLDS = [*MEANS, *OTHER_REWARDS]


def rewards_of(world: str, n: int, seed: int) -> Rewards:
    """Make the rewards of a live game."""
    if world in MEANS:
        return bernoulli(MEANS[world](n), seed, 0)
    return OTHER_REWARDS[world](seed)


def worlds_for(horizon: int, *salt: object, of: list[str], most: int) -> list[str]:
    """Return the worlds for a game; where that is not all of them, they take turns."""
    count = most if horizon <= SHORT else 3 if horizon < LONG else 1
    first = zlib.crc32(repr((horizon, *salt)).encode())
    return [of[(first + k) % len(of)] for k in range(count)]


def seed_for(*salt: object) -> int:
    """Give every case a seed of its own, of up to 64 bits."""
    crc = zlib.crc32(repr(salt).encode())
    return crc if crc % 2 else draw(crc, 0)


def reference_arms(
    player: Player, n: int, horizon: int | None, pulls: int, key: int, rewards: Rewards
) -> list[int]:
    pull = counted(rewards)
    game = player.play(n, horizon, key)
    arms = [next(game)]
    while len(arms) < pulls:
        arms.append(game.send(pull(arms[-1])))
    return arms


def live_arms(
    policy: ma.Policy, n: int, horizon: int | None, pulls: int, seed: int, rewards: Rewards
) -> list[int]:
    pull = counted(rewards)
    live = policy.live(n_arms=n, horizon=horizon, seed=seed, reward_range=None)
    arms = []
    for _ in range(pulls):
        asked = live.ask()
        arms.append(asked.arm)
        live.tell(asked, pull(asked.arm))
    return arms


def simulated_arms(
    policy: ma.Policy, instance: ma.instances.Instance, horizon: int, replications: int, seed: int
) -> list[list[int]]:
    result = ma.simulate(
        policy,
        instance,
        horizon=horizon,
        replications=replications,
        seed=seed,
        workers=1,
        record_arms=True,
        progress=False,
    )
    assert result.arms is not None
    return [result.arms[0, r, :].tolist() for r in range(replications)]


def check_same(picked: list[int], expected: list[int], case: object) -> None:
    __tracebackhide__ = True
    assert len(picked) == len(expected), case
    for t, (ours, reference) in enumerate(zip(picked, expected, strict=True)):
        if ours != reference:
            pytest.fail(f"{case}: pull {t} is of arm {ours}, the reference's of arm {reference}")


def test_words_are_the_published_ones() -> None:
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    published += [4593380528125082431, 16408922859458223821]
    generator = SplitMix64(1234567)
    assert [generator.next() for _ in published] == published
    assert [draw(1234567, counter) for counter in range(5)] == published


def test_words_are_the_packages() -> None:
    for counter in range(200):
        key, word = draw(1, counter), draw(2, counter)
        assert rng.draw(key, counter) == draw(key, counter)
        assert rng.unit(word) == unit(word)
        for n in (1, 2, 3, 1000, 2**50):
            assert rng.below(word, n) == below(word, n)


@pytest.mark.parametrize("n", ARMS)
@pytest.mark.parametrize("name", PAIRS)
def test_live_games(name: str, n: int) -> None:
    policy, player = PAIRS[name]
    for horizon in HORIZONS:
        for world in worlds_for(horizon, name, n, of=WORLDS, most=len(WORLDS)):
            seed = seed_for(name, n, horizon, world)
            rewards = rewards_of(world, n, seed)
            check_same(
                live_arms(policy, n, horizon, horizon, seed, rewards),
                reference_arms(player, n, horizon, horizon, policy_key(seed, 0), rewards),
                f"{policy!r}, n={n}, T={horizon}, seed={seed}, {world}",
            )


@pytest.mark.parametrize("n", ARMS)
@pytest.mark.parametrize("name", PAIRS)
def test_simulations(name: str, n: int) -> None:
    policy, player = PAIRS[name]
    for horizon in HORIZONS:
        for world in worlds_for(horizon, name, n, "simulated", of=[*MEANS], most=3):
            seed = seed_for(name, n, horizon, world, "simulated")
            means = MEANS[world](n)
            runs = simulated_arms(policy, ma.instances.from_means(means), horizon, 2, seed)
            for r, arms in enumerate(runs):
                tape = bernoulli(means, seed, r)
                check_same(
                    arms,
                    reference_arms(player, n, horizon, horizon, policy_key(seed, r), tape),
                    f"{policy!r}, n={n}, T={horizon}, seed={seed}, {world}, replication {r}",
                )


@pytest.mark.parametrize("name", ANYTIME)
def test_games_without_a_horizon(name: str) -> None:
    policy, player = PAIRS[name]
    for n, world in product((1, 3, 60), WORLDS):
        seed = seed_for(name, n, world, "endless")
        rewards = rewards_of(world, n, seed)
        check_same(
            live_arms(policy, n, None, 100, seed, rewards),
            reference_arms(player, n, None, 100, policy_key(seed, 0), rewards),
            f"{policy!r}, n={n}, no horizon, seed={seed}, {world}",
        )


@pytest.mark.parametrize("name", PAIRS)
def test_many_arms(name: str) -> None:
    policy, player = PAIRS[name]
    n, horizon, seed = 20_000, 150, seed_for(name, "many")
    means = MEANS["spread"](n)
    (simulated,) = simulated_arms(policy, ma.instances.from_means(means), horizon, 1, seed)
    tape = bernoulli(means, seed, 0)
    expected = reference_arms(player, n, horizon, horizon, policy_key(seed, 0), tape)
    check_same(simulated, expected, f"{policy!r}, simulated, seed={seed}")
    check_same(live_arms(policy, n, horizon, horizon, seed, tape), expected, f"{policy!r}, live")


@pytest.mark.parametrize("name", PAIRS)
def test_gaussian_rewards(name: str) -> None:
    # the reference's rewards may differ in the last bits: too little to turn a choice
    policy, player = PAIRS[name]
    n, horizon, seed = 40, 200, seed_for(name, "gaussian")
    means = [mean - 0.5 for mean in MEANS["spread"](n)]
    instance = ma.instances.from_means(means, rewards=ma.instances.Gaussian(0.7))
    for r, arms in enumerate(simulated_arms(policy, instance, horizon, 2, seed)):
        tape = gaussian(means, 0.7, seed, r)
        expected = reference_arms(player, n, horizon, horizon, policy_key(seed, r), tape)
        check_same(arms, expected, f"{policy!r}, seed={seed}, replication {r}")


@pytest.mark.parametrize(
    ("policy", "player"),
    [
        (ma.Parallel(), Parallel(0.75)),
        (ma.Doubling(ma.Parallel()), Doubling(Parallel(0.75))),
        (ma.Patience(), Patience(0.75)),
    ],
    ids=["parallel", "doubling", "patience"],
)
def test_the_best_mean_is_the_instances(policy: ma.Policy, player: Player) -> None:
    means = [0.25, 0.75, 0.5, 0.75] * 20
    runs = simulated_arms(policy, ma.instances.from_means(means), 300, 3, 11)
    for r, arms in enumerate(runs):
        tape = bernoulli(means, 11, r)
        expected = reference_arms(player, len(means), 300, 300, policy_key(11, r), tape)
        check_same(arms, expected, f"replication {r}")


@pytest.mark.parametrize("m", [2, 3, 17])
def test_the_oracle_told_m(m: int) -> None:
    for n, horizon, seed in product((17, 60, 300), (1, 2, 7, 50, 257), (0, 2**64 - 1)):
        rewards = eighths(seed)
        check_same(
            live_arms(ma.MOSSOracle(m=m), n, horizon, horizon, seed, rewards),
            reference_arms(MossOracle(m=m), n, horizon, horizon, policy_key(seed, 0), rewards),
            f"n={n}, T={horizon}, seed={seed}",
        )


@pytest.mark.parametrize(
    ("horizon", "beta"),
    [(32, "0.6"), (33, "0.6"), (2**20, "0.55"), (2**20 + 1, "0.55"), (2**10, "0.9")],
)
def test_powers_of_two(horizon: int, beta: str) -> None:
    # beta log2 T is an integer, or just above; enough pulls to see the second iteration begin
    n = 5000
    pulls = min(horizon, 2**12 + 20)
    rewards = bernoulli([0.5] * n, 3, 0)
    pairs: list[tuple[ma.Policy, Player]] = [
        (ma.MOSSPlusPlus(beta=float(beta)), MossPlusPlus(beta=beta)),
        (ma.EmpMOSSPlusPlus(beta=float(beta)), EmpMossPlusPlus(beta=beta)),
        (ma.HybridMOSSPlusPlus(beta=float(beta)), HybridMossPlusPlus(beta=beta)),
    ]
    for policy, player in pairs:
        check_same(
            live_arms(policy, n, horizon, pulls, 3, rewards),
            reference_arms(player, n, horizon, pulls, policy_key(3, 0), rewards),
            f"{policy!r}, T={horizon}",
        )
