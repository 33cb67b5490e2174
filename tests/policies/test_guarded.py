"""Guarded: bad rules are limited, and good rules play as they would alone.

Bounds are on expectations. The measured means are below half of their bounds.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple

import pytest

import manyarms as ma
from manyarms.core.memory import SPARSE
from manyarms.kit import Memory, Record, Records, choice, kernel, plays, reset
from manyarms.policies import SubSampled
from manyarms.protocol.keys import policy_key
from manyarms.protocol.pending import PendingRecord, abandon_pull, ask_pull, tell_pull
from manyarms.theory import Problem, guarded_steps_bound
from tests.helpers import Stepper, state_of
from tests.policies.compare import check_live
from tests.policies.pairs import Pair
from tests.reference.guarded import GuardedPlayer
from tests.reference.moss import Moss
from tests.reference.prospector import Prospector
from tests.reference.quantile import Quantile
from tests.reference.words import GUARDED, draw

FEW = 8  # arms that a bad rule opens
RULES = ("never searches", "always the worst", "alternates")


class BadRuleArm(Record):
    pulls: int
    total: float


class BadRuleClock(Record):
    asked: int


class BadRuleState(NamedTuple):
    """The rewards of a few arms."""

    rule: int
    few: int
    arm: Records[BadRuleArm]
    clock: Records[BadRuleClock]


def bad_reset(state: BadRuleState, key: int, horizon: int) -> None:
    state.clock[0].asked = 0
    for arm in range(state.few):
        state.arm[arm].pulls = 0
        state.arm[arm].total = 0.0


@kernel
def extreme(state: BadRuleState, sign: float) -> int:
    """Return the arm with the largest mean so far, or with the smallest for -1."""
    found, best = 0, -math.inf
    for arm in range(state.few):
        mean = sign * state.arm[arm].total / max(1, state.arm[arm].pulls)
        if mean > best:
            found, best = arm, mean
    return found


def bad_ask(state: BadRuleState) -> tuple[int, int]:
    clock = state.clock[0]
    clock.asked += 1
    arm = 0
    if state.rule > 0:
        if clock.asked <= 30 * state.few:
            arm = clock.asked % state.few
        else:
            best = state.rule == 2 and clock.asked % 2 == 0
            arm = extreme(state, 1.0 if best else -1.0)
    return arm, arm


def bad_tell(state: BadRuleState, slot: int, reward: float) -> None:
    state.arm[slot].pulls += 1
    state.arm[slot].total += reward


plays(BadRuleState, reset=bad_reset, ask=bad_ask, tell=bad_tell)


@dataclass(frozen=True, kw_only=True)
class BadRule(ma.Policy):
    """A bad rule: always the same arm, the worst so far, or the best and the worst in turn."""

    name = "bad-rule"
    anytime = True

    rule: Annotated[str, choice(*RULES)]

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> BadRuleState:
        few = min(FEW, n_arms)
        arms = memory.records(few, BadRuleArm)
        return BadRuleState(RULES.index(self.rule), few, arms, memory.records(1, BadRuleClock))


def regrets(policy: ma.Policy, instance: Any, horizon: int, runs: int) -> Any:
    result = ma.simulate(
        policy, instance, horizon=horizon, replications=runs, seed=3, checkpoints=1, workers=1
    )
    return result.regret[0, :, -1]


@pytest.mark.compiled
@pytest.mark.parametrize("rule", RULES)
def test_regret_of_bad_rules_is_below_the_bound_of_the_proof(rule: str) -> None:
    # with two arms, the bound is below the regret of these rules alone
    horizon = 2**19
    instance = ma.instances.from_means([0.05, 0.95])
    bound = guarded_steps_bound(Problem(2, 1, horizon), beta=0.5)
    alone = regrets(BadRule(rule=rule), instance, horizon, 8)
    held = regrets(ma.Guarded(BadRule(rule=rule)), instance, horizon, 8)
    assert held.mean() <= bound / 2
    assert held.max() < alone.max() / 2  # the first rule may begin with the best arm
    assert alone.max() > 0.4 * horizon


@pytest.mark.long
@pytest.mark.compiled
@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
def test_the_guard_reduces_regret_in_a_long_run(rule: str) -> None:
    horizon = 5_000_000
    instance = ma.instances.from_means([0.1, 0.2, 0.3] * 80 + [0.9] * 160)
    stepper = Stepper(ma.Guarded(BadRule(rule=rule)), instance, horizon=horizon, seed=5)
    alone = Stepper(BadRule(rule=rule), instance, horizon=horizon, seed=5)
    dropped = 0
    for run in range(4):
        held, free = stepper.play(run, 0, horizon), alone.play(run, 0, horizon)
        clock = stepper.state.guard.clock[0]
        assert clock["debt"] <= clock["allowance"] + 1
        # the allowance, and as much for tests and for the time before they take effect
        assert held <= 3 * clock["allowance"] < free
        dropped += clock["dropped"]
        if clock["dropped"] == 0:  # a rule that never searches may begin with a best arm
            assert rule == RULES[0]
            assert instance.mean(stepper.state.guard.slot[0]["arm"]) == 0.9
    assert dropped > 0


@pytest.mark.long
@pytest.mark.compiled
@pytest.mark.slow
@pytest.mark.parametrize("policy", [ma.MOSSOracle(m=40), ma.EmpMOSSPlusPlus()], ids=str)
def test_a_good_policy_is_kept_at_little_cost(policy: ma.Policy) -> None:
    horizon = 200_000
    instance = ma.instances.planted(n=400, m=40, best=0.9, others=[0.1, 0.2, 0.3])
    alone = regrets(policy, instance, horizon, 20)
    stepper = Stepper(ma.Guarded(policy), instance, horizon=horizon, seed=3)
    held = []
    for run in range(20):
        held.append(stepper.play(run, 0, horizon))
        assert stepper.state.guard.clock[0]["dropped"] == 0
    assert sum(held) / 20 < 2 * alone.mean()


LONG = [
    Pair(ma.Prospector(), Prospector()),
    Pair(ma.Prospector(guess_horizon=True, beta=0.6), Prospector(0.6, guess=True)),
    Pair(ma.Guarded(ma.MOSS()), GuardedPlayer(Moss())),
    Pair(ma.Guarded(ma.Quantile(), beta=0.6), GuardedPlayer(Quantile(), 0.6)),
]


@pytest.mark.slow
@pytest.mark.parametrize("pair", LONG, ids=lambda pair: pair.label)
@pytest.mark.parametrize(
    ("n", "horizon", "problem"), [(3, 5000, "spread"), (40, 5000, "rare"), (12, 6000, "one best")]
)
def test_runs_long_enough_for_stages(pair: Pair, n: int, horizon: int, problem: str) -> None:
    check_live(pair, n, horizon, problem)
    if pair.policy.anytime and n == 12:
        check_live(pair, n, None, problem, pulls=horizon)


@pytest.mark.slow
def test_these_runs_have_stages_and_a_dropped_rule() -> None:
    live = ma.Guarded(BadRule(rule="always the worst")).live(n_arms=2, horizon=60_000, seed=1)
    stages = set()
    for _ in range(60_000):
        pull = live.ask()
        live.tell(pull, float(pull.arm == 1 and pull.id % 10 > 0))
        stages.add(live.policy.stage(state_of(live)))
    assert stages >= {"", "the policy was dropped; the guard chooses all arms"}
    assert any(words.startswith("testing ") for words in stages)
    assert live.recommend().arm == 1


@pytest.mark.slow
def test_the_inner_policy_plays_as_alone_also_with_late_rewards() -> None:
    """It learns only from its own pulls, whose lateness counts in its own pulls."""
    for inner in (ma.MOSS(count_late=True), ma.MOSSPlusPlus(), ma.Patience(best_mean=1.0)):
        chance, seed, horizon = random.Random(8), 11, 50_000
        live = ma.Guarded(inner).live(n_arms=60, horizon=horizon, seed=seed)
        alone = inner.with_reward_range((0.0, 1.0)).new_state(SPARSE, n_arms=60, pulls=horizon)
        reset(alone, draw(policy_key(seed, 0), GUARDED), horizon)
        guard = state_of(live).guard
        pending: Any = SPARSE.records(horizon, PendingRecord)
        arm_of: dict[int, int] = {}  # label -> arm
        waiting: dict[int, ma.Pull] = {}
        owners: dict[int, int] = {}  # pull -> its number among the inner policy's pulls
        last, own, guards = -1, 0, 0
        while live.pulls < 6000:
            if not waiting or (len(waiting) < 5 and chance.random() < 0.55):
                pull = live.ask()
                waiting[pull.id] = pull
                search = live._experiment.search
                assert search is not None
                if guard.pending[search.pending[pull.id].slot].by_rule == 0:
                    guards += 1
                    continue
                label = ask_pull(alone, pending, own, last)
                assert arm_of.setdefault(label, pull.arm) == pull.arm
                owners[pull.id] = last = own
                own += 1
                continue
            pull = waiting.pop(chance.choice(list(waiting)))
            number = owners.get(pull.id, -1)
            last = -1 if number == last else last
            if chance.random() < 0.1:
                live.abandon(pull)
                if number >= 0:
                    abandon_pull(alone, pending, number)
            else:
                reward = float(chance.random() < 0.3)
                live.tell(pull, reward)
                if number >= 0:
                    tell_pull(alone, pending, number, reward)
        assert guards > 20
        assert len(set(arm_of.values())) == len(arm_of)


def test_a_policy_that_uses_arm_numbers_gets_random_arms() -> None:
    firsts = {
        ma.Guarded(BadRule(rule=RULES[0])).live(n_arms=50, seed=s).ask().arm for s in range(30)
    }
    assert len(firsts) > 15


def test_names_and_wrong_parameters() -> None:
    policy = ma.Guarded(ma.MOSSPlusPlus(beta=0.75), beta=0.6)
    assert (policy.name, str(policy)) == ("guarded-moss++", "guarded(beta=0.6)-moss++(beta=0.75)")
    assert ma.Guarded(ma.Quantile()).anytime
    assert not policy.anytime
    told = ma.Guarded(ma.Patience()).with_best_mean(0.7)
    assert told == ma.Guarded(ma.Patience(best_mean=0.7))
    assert ma.policy("guarded", policy=ma.MOSS()) == ma.Guarded(ma.MOSS())
    with pytest.raises(ma.ParameterError, match="`policy` must be a policy such as MOSS"):
        ma.Guarded("moss")  # type: ignore[arg-type]
    with pytest.raises(ma.ParameterError, match="guard already, got prospector. Use it directly"):
        ma.Guarded(ma.Prospector())
    with pytest.raises(ma.ParameterError, match="guard already, got anytime-guarded-moss"):
        ma.Guarded(ma.Doubling(ma.Guarded(ma.MOSS())))
    with pytest.raises(ma.ParameterError, match="`bound` must be 'mean' if rewards may lie"):
        ma.Guarded(ma.MOSS(sigma=2.0)).live(n_arms=9, horizon=90)
    with pytest.raises(ma.ParameterError, match="`sigma` is for bound='mean' only, got sigma=3.0"):
        ma.Prospector(bound="kl", sigma=3.0)
    with pytest.raises(ma.ParameterError, match="`top` must be a number .* <= 1e"):
        ma.Prospector(bound="mean", top=1e308)
    with pytest.raises(ma.ParameterError, match="`beta` must be a number >= 0.5"):
        ma.Guarded(ma.MOSS(), beta=0.4)
    with pytest.raises(ma.ParameterError, match="`top` must be above `bottom`, got bottom=1.0"):
        ma.Guarded(ma.MOSS(), bottom=1.0).live(n_arms=9, horizon=90)
    with pytest.raises(ma.ParameterError, match=r"may lie outside \[0, 2\], got 'kl' with moss"):
        ma.Guarded(ma.MOSS(sigma=1.5), top=2.0).live(n_arms=9, horizon=90)
    with pytest.raises(ma.ParameterError, match="`bound` must be 'mean' for .* the range"):
        ma.Guarded(ma.MOSS(), bound="kl", top=2.0).live(n_arms=9, reward_range=(0.0, 3.0))
    with pytest.raises(ma.ParameterError, match="arms that does not depend on the horizon"):
        ma.Doubling(ma.Guarded(SubSampled(ma.MOSS(), exponent=0.5)))


@pytest.mark.parametrize("policy", [ma.Guarded(ma.MOSS()), ma.Prospector()], ids=lambda p: p.name)
def test_another_range_of_rewards_sets_the_guards_defaults(policy: ma.Policy) -> None:
    wide: Any = policy.with_reward_range((-1.0, 5.0))
    assert (wide.bound, wide.sigma, wide.bottom, wide.top) == ("kl", None, -1.0, 5.0)
    narrower = wide.with_reward_range((0.0, 5.0))
    assert (narrower.bound, narrower.bottom, narrower.top) == ("kl", -1.0, 5.0)
    narrow: Any = policy.with_reward_range((0.0, 0.5))
    assert (narrow.bound, narrow.sigma, narrow.top) == ("kl", None, 1.0)  # they also hold there
    half: Any = replace(policy, top=0.5)  # type: ignore[call-arg]
    told: Any = half.with_reward_range((-2.0, 4.0))
    assert (told.bound, told.sigma, told.bottom, told.top) == ("mean", 3.0, -2.0, 0.5)
    free: Any = replace(half, bottom=-1.0).with_reward_range(None, 2.0)
    assert (free.bound, free.sigma, free.bottom, free.top) == ("mean", 2.0, -1.0, 0.5)
    with pytest.raises(ma.ParameterError, match="`bottom` must be given to .* have no range"):
        half.with_reward_range(None, 2.0)
    with pytest.raises(ma.ParameterError, match="`bound` must be 'mean' for .* the range"):
        replace(half, bound="kl").with_reward_range((0.0, 5.0))
    with pytest.raises(ma.ParameterError, match="`bound` must be 'mean' for .* the range"):
        wide.with_reward_range((0.0, 6.0))
