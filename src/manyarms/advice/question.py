"""The question, checked, and the problems that policies play to answer it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from manyarms.core.checks import check_int, check_number, check_probability, refusal
from manyarms.errors import ParameterError
from manyarms.instances import Instance, from_means, planted
from manyarms.protocol import Policy
from manyarms.protocol.policy import MOST_ARMS
from manyarms.protocol.registry import maker
from manyarms.simulation.experiment import Objective, check_objective
from manyarms.theory import Problem, best_arms

_LONGEST = 10**7  # beyond it a few runs of each policy take minutes, and gigabytes
_POINTS = 5  # hardnesses on the curve; 3 where best means differ as well
_BEST, _OTHERS = 0.9, (0.1, 0.2, 0.3, 0.4, 0.5)  # the paper's experiments
_LESS = 0.5  # planted too where nothing is known: some policies are good at means near 1 only
# What is searched for a good arm, where nothing is known. These are the kinds of problems on which
# finders are compared (docs/earn_or_find.md): few best arms among many; and means that are spread
# out, with many good ones, fewer the better they are, or all close together. Best arms that are
# much rarer are planted only if the user says so: everyone misses most of them, and what is lost
# there would decide alone.
_FIND_ALPHAS = (0.3, 0.45)
_SPREADS = ((1.0, 1.0), (2.0, 5.0), (1.0, 3.0), (10.0, 30.0))  # of Beta laws
_MOST_DRAWN = 1_000_000  # means; more arms than that make no difference


@dataclass(frozen=True)
class Case:
    """One problem that policies are played on, and how many of its arms count as best."""

    instance: Instance
    problem: Problem
    scaled: bool = False  # whether losses count in proportion to what can be lost

    @property
    def unit(self) -> float:
        """What an excess is measured in, a pull: 1, or the most that a pull can lose."""
        return self.instance.largest_gap if self.scaled else 1.0


@dataclass(frozen=True)
class Question:
    """The arms, the pulls, and what is known of the means."""

    n: int
    horizon: int
    m_at_least: int | None
    alpha_at_most: float | None
    best_mean: float | None  # where it is known
    bests: tuple[float, ...]  # the best means that are planted
    others: tuple[float, ...] | None  # None: the paper's, in proportion
    instance: Instance | None  # the user's own
    in_flight: int
    policies: tuple[str | Policy, ...] | None  # None: those of the catalogue
    rates: bool = False  # whether the user said between what the best mean lies
    objective: Objective = "earn"
    everyone: bool = False  # whether all of the catalogue play, or those that may well win

    @property
    def few(self) -> bool:
        """Whether only those of the catalogue play that may well win."""
        return self.policies is None and not self.everyone and not self.trivial

    @property
    def told_nothing(self) -> bool:
        """Whether nothing is known but the size of the problem."""
        usual = self.bests == (_BEST, _LESS) and self.others is None
        return self.instance is None and usual and not self.bounded

    @property
    def bounded(self) -> bool:
        """Whether anything is known about the number of best arms."""
        return self.m_at_least is not None or self.alpha_at_most is not None

    @property
    def trivial(self) -> bool:
        """Whether all policies are the same: every arm is best, or there is one pull."""
        return self.fewest == self.n or self.horizon == 1

    @property
    def fewest(self) -> int:
        """The fewest best arms there may be; where nothing is known, the fewest within reach."""
        if self.m_at_least is not None:
            return self.m_at_least
        if self.alpha_at_most is None and self.instance is not None:
            return _near_best(self.instance, self.horizon)
        alpha = 1.0 if self.alpha_at_most is None else self.alpha_at_most
        return best_arms(self.n, self.horizon, alpha)

    @property
    def hardest(self) -> Problem:
        """The problem with the fewest best arms."""
        return self.cases()[-1].problem

    def cases(self) -> list[Case]:
        """Return the user's own problem, or planted ones, the hardest last."""
        if self.instance is not None:
            near = _near_best(self.instance, self.horizon)
            return [Case(self.instance, Problem(self.n, near, self.horizon))]
        if self.objective == "find" and self.told_nothing:
            return self._for_finding()
        return [
            Case(
                planted(n=self.n, m=m, best=best, others=self.others or _in_proportion(best)),
                Problem(self.n, m, self.horizon),
                scaled=self.rates and self.objective == "earn",
            )
            for m in self._counts()
            for best in self.bests
        ]

    def _for_finding(self) -> list[Case]:
        """Return planted and spread-out means, the hardest last."""
        instances = [
            planted(n=self.n, m=best_arms(self.n, self.horizon, alpha)) for alpha in _FIND_ALPHAS
        ]
        for a, b in _SPREADS:
            means = np.random.default_rng(0).beta(a, b, min(self.n, _MOST_DRAWN))
            label = f"means drawn from Beta({a:g}, {b:g})"
            instances.append(from_means(means, label=label))
        cases = [
            Case(each, Problem(each.n_arms, _near_best(each, self.horizon), self.horizon))
            for each in instances
        ]
        return sorted(cases, key=lambda case: case.problem.alpha)

    def _counts(self) -> list[int]:
        """Return numbers of best arms whose hardnesses are spread evenly, the fewest last.

        What is out of reach is one point: beyond hardness 1 all problems are alike.
        """
        within_reach = max(self.fewest, best_arms(self.n, self.horizon, 1.0))
        points = _POINTS if len(self.bests) == 1 else 3
        points -= within_reach != self.fewest
        most = min(1.0, Problem(self.n, within_reach, self.horizon).alpha)
        steps = (best_arms(self.n, self.horizon, most * k / points) for k in range(1, points))
        easier = {max(within_reach, m) for m in steps}
        return sorted(easier | {within_reach, self.fewest}, reverse=True)


def _near_best(instance: Instance, horizon: int) -> int:
    """Count the arms within 1/sqrt(T) of the best: to stay with one costs no more than sqrt(T)."""
    world = instance.world(horizon)
    sizes = np.diff(world.ends, prepend=0) if len(world.ends) else np.ones(len(world.values))
    near = np.asarray(world.values) >= instance.best_mean - 1.0 / math.sqrt(horizon)
    return int(sizes[near].sum())


def _in_proportion(best: float) -> tuple[float, ...]:
    """Return the paper's other means for this best one, without digits that only rounding made."""
    return tuple(float(f"{mean / _BEST * best:.12g}") for mean in _OTHERS)


def question(
    *,
    n: Any,
    horizon: Any,
    m_at_least: Any,
    alpha_at_most: Any,
    best_mean: Any,
    best_between: Any,
    others: Any,
    instance: Any,
    in_flight: Any,
    policies: Any,
    objective: Any = "earn",
) -> Question:
    """Check what is asked."""
    n = _arms(n, instance, best_between=best_between, others=others)
    longest = "Ask for that many: more pulls only make a problem easier."
    horizon = check_int("horizon", horizon, at_least=1, at_most=_LONGEST, fix=longest)
    if m_at_least is not None and alpha_at_most is not None:
        raise ParameterError(
            f"`alpha_at_most` must be left out with `m_at_least`, got {alpha_at_most!r} and "
            f"{m_at_least!r}. Give the one that you know."
        )
    if m_at_least is not None:
        fix = f"There are n = {n} arms, and at least one of them is best."
        m_at_least = check_int("m_at_least", m_at_least, at_least=1, at_most=n, fix=fix)
    if alpha_at_most is not None:
        fix = "Hardness 0 is easy; above 1 no policy can expect to meet a best arm."
        alpha_at_most = check_probability("alpha_at_most", alpha_at_most, fix=fix)
    fewer = "Give fewer than the horizon."
    in_flight = check_int("in_flight", in_flight, at_most=horizon - 1, fix=fewer)
    best_mean, bests = _best(best_mean, best_between, (_BEST,) if others else (_BEST, _LESS))
    if others is not None:
        fix = f"They must be smaller than the best mean, {bests[0]:g}; `best_mean` sets it."
        others = tuple(_numbers("others", others, at_least=0.0, below=bests[0], fix=fix))
    known = m_at_least, alpha_at_most, best_mean, bests, others
    rates = best_between is not None
    objective = check_objective(objective)
    everyone = isinstance(policies, str) and policies == "all"
    chosen = None if everyone else _chosen(policies)
    return Question(n, horizon, *known, instance, in_flight, chosen, rates, objective, everyone)


def _arms(n: Any, instance: Any, **planted_only: Any) -> int:
    if instance is None and n is None:
        raise refusal("n", "the number of arms", n, "Give it, or arms of your own.")
    if instance is None:
        return check_int("n", n, at_least=1, at_most=MOST_ARMS)
    if not isinstance(instance, Instance):
        raise refusal("instance", "an Instance such as instances.from_means(...)", instance)
    instance.problem(1)  # refuses means that are drawn: nobody knows how many are best
    for name, value in {"n": n, **planted_only}.items():
        if value is not None:
            raise refusal(name, "left out with arms of your own", value, "They say it.")
    return instance.n_arms


def _best(
    best_mean: Any, best_between: Any, unless_given: tuple[float, ...]
) -> tuple[float | None, tuple[float, ...]]:
    """Return the best mean if it is known, and those to plant."""
    bounds: dict[str, Any] = {"above": 0.0, "at_most": 1.0}
    bounds["fix"] = "Rewards lie in [0, 1]; rescale yours."
    if best_mean is not None:
        if best_between is not None:
            raise refusal("best_between", "left out with `best_mean`", best_between)
        best_mean = check_number("best_mean", best_mean, **bounds)
        return best_mean, (best_mean,)
    if best_between is None:
        return None, unless_given
    ends = _numbers("best_between", best_between, **bounds)
    if len(ends) != 2 or ends[0] > ends[1]:
        raise refusal("best_between", "two numbers, the smaller one first", best_between)
    return None, tuple(dict.fromkeys(ends))


def _chosen(policies: Any) -> tuple[str | Policy, ...] | None:
    """Return the names and policies to choose from, all of them known; None stands for all."""
    if policies is None:
        return None
    listed = [policies] if isinstance(policies, str | Policy) else policies
    if not isinstance(listed, Iterable) or not (found := tuple(listed)):
        raise refusal("policies", "a list of names and policies", policies)
    for one in found:
        if isinstance(one, str):
            maker(one)  # raises if there is none of this name
        elif not isinstance(one, Policy):
            raise refusal("policies", "a list of names and policies", one)
    return found


def _numbers(name: str, values: Any, **bounds: Any) -> list[float]:
    if isinstance(values, str) or not hasattr(values, "__iter__") or not list(values):
        raise ParameterError(f"`{name}` must be a list with at least one number, got {values!r}.")
    return [check_number(name, value, **bounds) for value in values]
