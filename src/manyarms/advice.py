"""Recommend a policy by simulating several on problems of the user's size."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from manyarms.core.checks import check_int, check_number, check_one, refusal
from manyarms.core.tabular import aligned
from manyarms.instances import Instance, from_means, planted
from manyarms.policies import CATALOGUE, Prospector
from manyarms.protocol import Policy, policy
from manyarms.protocol.policy import MOST_ARMS
from manyarms.protocol.registry import makers_of, parameters_of
from manyarms.simulation.players import players_of
from manyarms.simulation.progress import ProgressCallback
from manyarms.simulation.results import Result
from manyarms.simulation.simulate import run_in_memory
from manyarms.simulation.sweep import Objective, Sweep, cell, check_objective
from manyarms.theory import best_arms, hardness
from manyarms.theory.hardness import good_mean

# In order of preference: of policies that cannot be distinguished, the first is recommended.
_POLICIES: dict[Objective, tuple[str, ...]] = {
    "earn": ("prospector", "empmoss++", "moss++", "moss", "ss-greedy", "empirical-cbt"),
    "find": ("scout", "sequential-halving", "prospector", "empmoss++", "moss++", "moss"),
}
_BUDGET = 10e9  # nanoseconds of one core
_PULL = 100  # nanoseconds of a simulated pull, on average over these policies
_FEWEST, _MOST = 4, 200  # replications
_LONGEST = 10**7  # pulls; longer horizons take minutes and gigabytes
_HARDEST = 0.6  # hardness if nothing is known; beyond it, policies rarely find a best arm
_BESTS = (0.9, 0.5)  # best means if nothing is known
_OTHERS = (1, 2, 3, 4, 5)  # ninths of the best mean; if it is 0.9: 0.1 to 0.5, as in the paper
_SPREAD = (2, 5)  # parameters of the Beta distribution
_MOST_DRAWN = 10**6  # means; more arms make no difference
_WIDTH = 80  # characters of a line


class AdviceRow(NamedTuple):
    """The loss of one policy, in percent of the largest possible loss.

    `mean` and its standard error `se` are over all problems, and `median` is over all replications
    of all problems. `by_problem` has the mean on each problem, and `worst` is the largest of these.
    """

    policy: str
    mean: float
    se: float
    median: float
    worst: float
    by_problem: tuple[float, ...]


@dataclass(frozen=True, repr=False)
class Advice:
    """A recommended policy, with the losses of all simulated policies.

    `print` shows the recommendation and a table.

    Attributes
    ----------
    policy
        The recommended policy.
    label, code
        Its label in tables, and the code that creates it.
    alike
        The policies that cannot be distinguished from it.
    rows
        One `AdviceRow` for each simulated policy, lowest mean first.
    problems
        Descriptions of the problems.
    n_arms, horizon, pending, objective, replications
        The size of the simulation.

    Examples
    --------
    >>> import manyarms as ma
    >>> names = ["moss", "ss-greedy"]
    >>> advice = ma.advise(n_arms=500, horizon=100, policies=names, replications=5)
    >>> print(str(advice).splitlines()[0])
    Use ma.policy("ss-greedy"): it loses least, 46 % on average.
    """

    policy: Policy
    label: str
    code: str
    alike: tuple[str, ...]
    rows: tuple[AdviceRow, ...]
    problems: tuple[str, ...]
    n_arms: int
    horizon: int
    pending: int
    objective: Objective
    replications: int

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain values."""
        known = {key: value for key, value in vars(self).items() if key != "policy"}
        return {**known, "rows": [row._asdict() for row in self.rows]}

    def __repr__(self) -> str:
        head = ["loss in %", "mean", "± error", "median", "worst problem"]
        cells = [
            [row.policy, *(f"{value:.1f}" for value in (row.mean, row.se, row.median, row.worst))]
            for row in self.rows
        ]
        late = f", {self.pending:,} pending" if self.pending else ""
        kept = "is pulled every time" if self.objective == "earn" else "is recommended at the end"
        notes = [
            f"0 % means that a best arm {kept}, 100 % that the worst arm is.",
            f"{self.n_arms:,} arms, {self.horizon:,} pulls{late}; {self.replications} replications "
            f"of {_count(len(self.problems), 'problem')}: {', '.join(self.problems)}.",
            "If arms are added later, Prospector tries them."
            if isinstance(self.policy, Prospector)
            else "If arms will be added later, use ma.Prospector(), which tries new arms.",
        ]
        shown = len(head) if len(self.problems) > 1 else -1  # the same as the mean
        table = aligned([row[:shown] for row in (head, *cells)])
        return "\n".join([*map(_filled, self._answer()), "", *table, "", *map(_filled, notes)])

    def _answer(self) -> Iterator[str]:
        (own,) = (row for row in self.rows if row.policy == self.label)
        share = f"{own.mean:.2g} % on average"
        if not self.alike:
            yield f"Use {self.code}: it loses least, {share}."
            return
        yield f"Use {self.code}: it loses {share}; none is clearly better."
        yield f"No clear difference from: {', '.join(self.alike)}."


def _filled(text: str) -> str:
    return textwrap.fill(text, _WIDTH, break_on_hyphens=False)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def advise(
    *,
    horizon: int,
    n_arms: int | None = None,
    instance: Instance | None = None,
    m_at_least: int | None = None,
    best_mean: float | Sequence[float] | None = None,
    pending: int = 0,
    objective: Objective = "earn",
    policies: Sequence[str | Policy] | None = None,
    replications: int | None = None,
    seed: int = 0,
    workers: int | None = None,
    progress: bool | ProgressCallback | None = None,
) -> Advice:
    """Recommend a policy for problems of your size.

    Six policies are simulated on problems with your number of arms and pulls. The one that loses
    least on average is recommended. Among policies that differ from it by at most two standard
    errors, Prospector is preferred (Scout, if `objective` is "find"). Policies that need to know
    more than you do are left out.

    Parameters
    ----------
    horizon
        The number of pulls, at most ten million.
    n_arms
        The number of arms.
    instance
        An instance like your data, such as `instances.from_means(means)`, instead of `n_arms`.
        Then it is the only problem.
    m_at_least
        A lower bound on the number of best arms. Problems with this many best arms and more are
        simulated, and MOSS Oracle is added (default: unknown).
    best_mean
        The best mean; Patience and Parallel are added. When in doubt, round it down. If you only
        know that it is between two numbers, give both, such as (0.01, 0.05) for click rates
        (default: unknown; 0.9 and 0.5 are simulated).
    pending
        The number of further pulls that are asked for before the reward of a pull is told
        (default: 0).
    objective
        "earn": every reward counts. "find": only the arm recommended at the end counts (default:
        "earn").
    policies
        The policies to simulate instead, by name or as objects.
    replications
        The number of replications of each problem (default: between 4 and 200, as many as take
        about ten seconds on one core).
    seed, workers, progress
        As for `simulate`.

    Notes
    -----
    If you give no instance, m arms are best, for three values of m, and the others have 1/9 to 5/9
    of the best mean. If `m_at_least` is not given either, the hardness is 0.2, 0.4 and 0.6, and
    problems without a group of best arms are added: means drawn from Beta(2, 5), scaled so that the
    largest is the best mean.

    The first call compiles the policies, which takes about half a minute. Horizons above half a
    million pulls take longer than ten seconds.

    If arms will be added later, use Prospector.

    Examples
    --------
    >>> import manyarms as ma
    >>> mine = ["moss", "ss-greedy", ma.MOSSPlusPlus(beta=0.55)]
    >>> advice = ma.advise(n_arms=1000, horizon=200, policies=mine, replications=5)
    >>> live = advice.policy.live(n_arms=1000, horizon=200)
    """
    check_one("Give the number of arms.", n_arms=n_arms, instance=instance)
    if instance is None:
        n_arms = check_int("n_arms", n_arms, at_least=2, at_most=MOST_ARMS)
    elif isinstance(instance, Instance):
        n_arms = instance.n_arms
    else:
        raise refusal("instance", "an Instance such as instances.from_means(...)", instance)
    longest = f"For more pulls, use {_LONGEST}: they only make a problem easier."
    horizon = check_int("horizon", horizon, at_least=2, at_most=_LONGEST, fix=longest)
    pending = check_int("pending", pending, at_most=horizon - 1, fix="Give fewer than the horizon.")
    objective = check_objective(objective)
    if m_at_least is not None:
        fix = f"Of {n_arms} arms, at least one must be best, and at least one must not be."
        m_at_least = check_int("m_at_least", m_at_least, at_least=1, at_most=n_arms - 1, fix=fix)
    if instance is not None and policies is not None:
        for name, value in {"m_at_least": m_at_least, "best_mean": best_mean}.items():
            if value is not None:
                rule = "left out with `instance` and `policies`"
                raise refusal(name, rule, value, "It would have no effect.")
    known, bests = _best_means(best_mean, instance)
    if policies is None:
        candidates = _usual(objective, instance, pending, m_at_least, known)
    else:
        candidates = _given(policies)
    problems = (
        _problems(n_arms, horizon, m_at_least, bests)
        if instance is None
        else {instance.label: instance}
    )
    if replications is None:
        cost = _PULL * horizon * len(problems) * len(candidates)
        replications = min(max(_FEWEST, int(_BUDGET / cost)), _MOST)
    replications = check_int("replications", replications, at_least=2)
    made = list(candidates.values())
    size: dict[str, Any] = {"horizon": horizon, "replications": replications, "delay": pending}
    cells = tuple(
        cell(made, problem, **size, checkpoints=1, parameters={"problem": words})
        for words, problem in problems.items()
    )
    results = run_in_memory(Sweep("advice", cells, seed), workers=workers, progress=progress).cells
    losses, labels = _losses(results, objective), results[0].policies
    best, alike = _choice(losses, labels)
    return Advice(
        policy=made[best],
        label=labels[best],
        code=list(candidates)[best],
        alike=alike,
        rows=tuple(sorted(_rows(losses, labels), key=lambda row: row.mean)),
        problems=tuple(problems),
        n_arms=n_arms,
        horizon=horizon,
        pending=pending,
        objective=objective,
        replications=replications,
    )


def _best_means(best_mean: Any, instance: Instance | None) -> tuple[float | None, list[float]]:
    """Return the best mean if it is known, and the best means to simulate."""
    bounds: dict[str, Any] = {"above": 0.0, "at_most": 1.0}
    bounds["fix"] = "Rewards must be in [0, 1]: for 10 %, pass 0.1."
    if best_mean is None:
        return None, list(_BESTS)
    if isinstance(best_mean, Iterable) and not isinstance(best_mean, str):
        ends = [check_number("best_mean", one, **bounds) for one in best_mean]
        if len(ends) != 2 or ends[0] >= ends[1] or instance is not None:
            rule = "a number, or two numbers of which the first is smaller (without `instance`)"
            raise refusal("best_mean", rule, best_mean)
        return None, ends
    if instance is not None:
        bounds = {}
    best = check_number("best_mean", best_mean, **bounds)
    return best, [best]


def _problems(
    n_arms: int, horizon: int, m_at_least: int | None, bests: Iterable[float]
) -> dict[str, Instance]:
    """Return the problems to simulate, with a description of each."""
    fewest = best_arms(n_arms, horizon, _HARDEST if m_at_least is None else 1.0)
    fewest = max(fewest, m_at_least or 1)  # beyond hardness 1, all problems are alike
    hardest = hardness(n_arms, fewest, horizon)
    counts = {best_arms(n_arms, horizon, hardest * share) for share in (1 / 3, 2 / 3)}
    counts = {min(max(m, fewest), n_arms - 1) for m in (*counts, fewest)}
    found = {}
    for best in bests:
        others = [float(f"{best * ninths / 9:.12g}") for ninths in _OTHERS]
        mean = repr(best).removesuffix(".0")  # all digits: two best means may be close
        for m in sorted(counts, reverse=True):
            words = f"{_count(m, 'best arm')} of mean {mean}"
            found[words] = planted(n=n_arms, m=m, best=best, others=others)
        if m_at_least is None:
            drawn = np.random.default_rng(0).beta(*_SPREAD, min(n_arms, _MOST_DRAWN))
            found[f"Beta(2, 5) means up to {mean}"] = from_means(best * drawn / drawn.max())
    return found


def _usual(
    objective: Objective,
    instance: Instance | None,
    pending: int,
    m_at_least: int | None,
    best_mean: float | None,
) -> dict[str, Policy]:
    """Return the policies that need to know no more than the user does, by their code."""
    low, high = (instance.rewards.reward_range if instance else None) or (0.0, 1.0)
    unit = 0.0 <= low <= high <= 1.0 and (instance is None or instance.rewards.bounded)
    wanted: dict[str, dict[str, Any]] = {name: {} for name in _POLICIES[objective]}
    if m_at_least is not None:
        wanted["moss-oracle"] = {"m": m_at_least} | ({"index": "kl++"} if unit else {})
    if best_mean is not None:
        wanted["parallel"] = {"best_mean": best_mean}
        wanted["patience"] = {"best_mean": best_mean} | ({"bound": "kl"} if unit else {})
    found = {}
    for name, parameters in wanted.items():
        late = parameters_of(name).get("count_late")
        if pending and late is not None and late.default is False:
            parameters["count_late"] = True
        made = policy(name, **parameters)
        if unit or not made.unit_rewards:
            found[_code(name, parameters)] = made
    return found


def _code(name: str, parameters: dict[str, Any]) -> str:
    """Return the code that makes a policy.

    >>> _code("moss++", {"beta": 0.6}), _code("ss-greedy", {})
    ('ma.MOSSPlusPlus(beta=0.6)', 'ma.policy("ss-greedy")')
    """
    make: Any = makers_of(name)[0]
    words = [f"{key}={value!r}" for key, value in parameters.items()]
    if name in CATALOGUE and CATALOGUE[name].kind != "field" and len(makers_of(name)) == 1:
        return f"ma.{make.__name__}({', '.join(words)})"
    return f"ma.policy({', '.join([json.dumps(name), *words])})"


def _given(policies: Any) -> dict[str, Policy]:
    """Return the policies that the user gave, by their code or label."""
    listed = [policies] if isinstance(policies, str | Policy) else policies
    if not isinstance(listed, Iterable) or not (listed := list(listed)):
        raise refusal("policies", "a list of names and policies", policies)
    made = [policy(one) if isinstance(one, str) else one for one in listed]
    labels = [player.label for player in players_of(made, 1)]
    return {
        _code(one, {}) if isinstance(one, str) else label: each
        for one, label, each in zip(listed, labels, made, strict=True)
    }


def _losses(results: Sequence[Result], objective: Objective) -> NDArray[np.float64]:
    """Return losses in percent of the largest possible, by policy, replication and problem."""
    if objective == "find":
        lost, pulls = [one.simple_regret for one in results], [1] * len(results)
    else:
        lost, pulls = [one.regret[:, :, -1] for one in results], [one.horizon for one in results]
    gaps = [  # 0 % if all arms are best, up to rounding errors
        math.inf if one.best_mean - one.largest_gap >= good_mean(one.best_mean) else one.largest_gap
        for one in results
    ]
    return 100.0 * np.stack(lost, axis=2) / np.multiply(gaps, pulls)


def _choice(losses: NDArray[np.float64], labels: Sequence[str]) -> tuple[int, tuple[str, ...]]:
    """Return the policy to recommend, and the labels of those that cannot be distinguished from it.

    The candidates are the policies whose mean is at most two standard errors of the paired
    difference above the lowest mean. The first of them is recommended.
    """
    means = losses.mean(axis=2)  # by policy and replication
    lowest = int(means.mean(axis=1).argmin())
    beyond = means - means[lowest]
    alike = np.flatnonzero(beyond.mean(axis=1) <= 2.0 * _standard_error(beyond)).tolist()
    return alike[0], tuple(labels[k] for k in alike[1:])


def _standard_error(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(values.std(axis=-1, ddof=1) / np.sqrt(values.shape[-1]))


def _rows(losses: NDArray[np.float64], labels: Sequence[str]) -> Iterator[AdviceRow]:
    for label, own in zip(labels, losses, strict=True):
        by_problem = tuple(own.mean(axis=0).tolist())
        yield AdviceRow(
            policy=label,
            mean=float(own.mean()),
            se=float(_standard_error(own.mean(axis=1))),
            median=float(np.median(own)),
            worst=max(by_problem),
            by_problem=by_problem,
        )
