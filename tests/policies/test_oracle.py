"""The package picks the same arms as the slow references, pull by pull."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

import manyarms as ma
from manyarms.core import rng
from manyarms.core.memory import BOUNDED
from manyarms.policies import field
from manyarms.protocol.state_dump import classes_in
from tests.helpers import run_python
from tests.policies.compare import LONG, MEANS, PROBLEMS, check_live, check_simulated, problems_for
from tests.policies.pairs import ALL_POLICIES, EVERY_POLICY, PAIRS, Pair, label, unit_only
from tests.reference.doubling import Doubling
from tests.reference.emp_moss_plus_plus import EmpMossPlusPlus
from tests.reference.moss import MossOracle
from tests.reference.moss_plus_plus import MossPlusPlus
from tests.reference.parallel import Parallel
from tests.reference.patience import Patience
from tests.reference.words import SplitMix64, below, draw, unit


def _compiled_at_every_change() -> set[str]:
    """Return the policies that `make test` compiles.

    These are the policies of the paper and of this project, and those for comparison whose state
    has a new part or no new class.
    """
    names, compiled = {policy.name for policy in ALL_POLICIES}, set[type]()
    for policy in sorted(EVERY_POLICY, key=lambda policy: policy.name not in names):
        informed = policy.with_best_mean(0.9).with_reward_range((0.0, 1.0))
        state = informed.new_state(BOUNDED, n_arms=50, pulls=40)
        new = classes_in(state) - compiled
        of_field = type(policy).__module__.startswith(field.__name__)
        new_part = any(".parts." in kind.__module__ for kind in new)
        if not of_field or new_part or not new:
            names.add(policy.name)
            compiled |= new
    return names


# All pairs are played live. The other simulations only compile a kernel for a policy in a wrapper,
# or for a baseline whose parts are compiled with others.
NOW = _compiled_at_every_change()
SIMULATED = [
    pytest.param(pair, id=pair.label, marks=[] if pair.policy.name in NOW else pytest.mark.long)
    for pair in PAIRS
    if pair.simulated
]


def _policy(parameters: Any) -> ma.Policy:
    policy: ma.Policy = parameters.values[0].policy
    return policy


def test_reference_words_are_the_published_ones() -> None:
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    published += [4593380528125082431, 16408922859458223821]
    generator = SplitMix64(1234567)
    assert [generator.next() for _ in published] == published
    assert [draw(1234567, counter) for counter in range(5)] == published


def test_reference_words_are_those_of_the_package() -> None:
    for counter in range(200):
        key, word = draw(1, counter), draw(2, counter)
        assert rng.draw(key, counter) == draw(key, counter)
        assert rng.unit(word) == unit(word)
        for n in (1, 2, 3, 1000, 2**50):
            assert rng.below(word, n) == below(word, n)


def test_every_registered_policy_has_a_reference() -> None:
    # in a new process, because other tests register policies
    listed = run_python("import manyarms as ma; print(*ma.policy_names())").stdout.split()
    assert set(listed) <= {pair.policy.name for pair in PAIRS}


@pytest.mark.slow
@pytest.mark.parametrize("pair", PAIRS, ids=label)
def test_handles(pair: Pair) -> None:
    for horizon in pair.horizons:
        for n in pair.arms if horizon < LONG else pair.arms[::3]:
            for problem in problems_for(horizon, pair.label, n, of=PROBLEMS, most=4):
                check_live(pair, n, horizon, problem)


@pytest.mark.slow
@pytest.mark.parametrize("pair", [p for p in PAIRS if p.policy.anytime], ids=label)
def test_handles_without_a_horizon(pair: Pair) -> None:
    for n, problem in product((1, 3, 60), PROBLEMS[::2]):
        check_live(pair, n, None, problem, pulls=100)


@pytest.mark.slow
@pytest.mark.parametrize("pair", SIMULATED)
def test_simulations(pair: Pair) -> None:
    # the same functions as above, compiled, so fewer runs suffice
    for horizon, n in product(pair.horizons, pair.arms[::3]):
        (problem,) = problems_for(horizon, pair.label, n, "simulated", of=[*MEANS], most=1)
        check_simulated(pair, MEANS[problem](n), horizon)


@pytest.mark.slow
@pytest.mark.parametrize("pair", SIMULATED)
def test_many_arms(pair: Pair) -> None:
    check_live(pair, 20_000, 150, "spread")
    check_simulated(pair, MEANS["spread"](20_000), 150, replications=1)


@pytest.mark.slow
@pytest.mark.parametrize("pair", [one for one in SIMULATED if not unit_only(_policy(one))])
def test_gaussian_rewards(pair: Pair) -> None:
    # the reference's rewards may differ in the last bits, which is too little to change a choice
    check_simulated(pair, [mean - 0.5 for mean in MEANS["spread"](40)], 200, sigma=0.7)


@pytest.mark.parametrize(
    "pair",
    [
        Pair(ma.Parallel(), Parallel(0.75)),
        Pair(ma.Doubling(ma.Parallel()), Doubling(Parallel(0.75))),
        Pair(ma.Patience(), Patience(0.75)),
    ],
    ids=label,
)
def test_parallel_gets_the_instances_best_mean(pair: Pair) -> None:
    check_simulated(pair, [0.25, 0.75, 0.5, 0.75] * 20, 300, replications=3)


@pytest.mark.parametrize("m", [2, 3, 17])
def test_moss_oracle_with_m(m: int) -> None:
    pair = Pair(ma.MOSSOracle(m=m), MossOracle(m=m))
    for n, horizon, problem in product((17, 60, 300), (1, 2, 7, 50, 257), ("eighths", "spread")):
        check_live(pair, n, horizon, problem)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("horizon", "beta"),
    [(32, "0.6"), (33, "0.6"), (2**20, "0.55"), (2**20 + 1, "0.55"), (2**10, "0.9")],
)
def test_powers_of_two(horizon: int, beta: str) -> None:
    # beta log2 T is an integer, or just above; enough pulls to see the second iteration begin
    for pair in (
        Pair(ma.MOSSPlusPlus(beta=float(beta)), MossPlusPlus(beta=beta)),
        Pair(ma.EmpMOSSPlusPlus(beta=float(beta)), EmpMossPlusPlus(beta=beta)),
    ):
        check_live(pair, 5000, horizon, "equal", pulls=min(horizon, 2**12 + 20))
