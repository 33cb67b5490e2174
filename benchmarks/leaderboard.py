"""Compare policies on a suite of problems, as multiples of the least regret.

    python benchmarks/leaderboard.py leaderboard.csv             38 problems, 100 runs (an hour)
    python benchmarks/leaderboard.py random.csv --half held-out  200 random problems (hours)
    python benchmarks/leaderboard.py random.csv --half tuned     the half for tuning constants
    python benchmarks/leaderboard.py leaderboard.csv --table     print the table of a file again

A number of the table is the mean regret of a policy divided by the least mean regret, on that
problem, of the policies that know nothing about the means; it is the geometric mean over the
problems of a family. Numbers below 1 show the value of knowing more. Contests are played if they
are on this machine.
"""

from __future__ import annotations

import argparse
import csv
import math
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import manyarms as ma
from manyarms.core.tabular import markdown_table
from manyarms.instances import BetaMeans, DiscreteMeans, Instance, UniformMeans, planted, reservoir

N_ARMS, HORIZON, CONTEST_HORIZON = 20_000, 50_000, 100_000
COLUMNS = ("family", "problem", "horizon", "policy", "knowledge", "runs", "mean", "q99", "missed")
SEEDS = {"tuned": 14_001, "held-out": 14_002}
COUNT = 200  # random problems in each half


class Problem(NamedTuple):
    """An instance, a horizon, and what some policies know about how rare good arms are."""

    family: str
    name: str
    instance: Instance
    horizon: int = HORIZON
    shape: tuple[float, float] | None = None  # (b, w): P(mean >= best - e) is about w e^b
    chance: float | None = None  # that an arm counts as best, if means are drawn

    @property
    def ratio(self) -> float:
        """n/m, or its equivalent if means are drawn."""
        return 1 / self.chance if self.chance else self.instance.problem(self.horizon).ratio


class Entrant(NamedTuple):
    """A policy by name, what it knows, and which problems it can play."""

    name: str
    parameters: dict[str, Any]
    knowledge: str = "nothing"
    bounded: bool = False  # made for rewards in [0, 1]


ENTRANTS = {
    "prospector": Entrant("prospector", {}, bounded=True),
    "prospector(bold)": Entrant("prospector", {"bold": True}, bounded=True),
    "empirical-cbt": Entrant("empirical-cbt", {}, bounded=True),
    "ss-greedy": Entrant("ss-greedy", {}),
    "ss-greedy(T^2/3)": Entrant("ss-greedy", {"exponent": 2 / 3}),
    "guarded-ss-greedy": Entrant("guarded-ss-greedy", {}, bounded=True),
    "guarded-empmoss++": Entrant("guarded-empmoss++", {}, bounded=True),
    "empmoss++": Entrant("empmoss++", {}),
    "empmoss++(kl)": Entrant("empmoss++", {"index": "kl"}, bounded=True),
    "moss++": Entrant("moss++", {}),
    "moss++(kl++)": Entrant("moss++", {"index": "kl++"}, bounded=True),
    "anytime-moss++": Entrant("anytime-moss++", {}),
    "quantile": Entrant("quantile", {}),
    "quantile(kl)": Entrant("quantile", {"index": "kl"}, bounded=True),
    "moss": Entrant("moss", {}),
    "uniform": Entrant("uniform", {}),
    "moss-oracle": Entrant("moss-oracle", {}, "m"),
    "moss-oracle(kl++)": Entrant("moss-oracle", {"index": "kl++"}, "m", bounded=True),
    "patience": Entrant("patience", {}, "μ*"),
    "patience(kl)": Entrant("patience", {"bound": "kl"}, "μ*", bounded=True),
    "parallel": Entrant("parallel", {}, "μ*"),
    "anytime-parallel": Entrant("anytime-parallel", {}, "μ*"),
    "cbt": Entrant("cbt", {}, "μ* = 1", bounded=True),
}


def policy_for(entrant: Entrant, problem: Problem) -> ma.Policy | None:
    """Return the policy with what it knows; None if it cannot play the problem."""
    if entrant.bounded and not problem.instance.rewards.bounded:
        return None
    known: dict[str, Any] = {}
    if entrant.knowledge == "m":
        alpha = math.log(problem.ratio / 2) / math.log(problem.horizon)
        known = {"alpha": min(1.0, max(0.0, alpha))}
    if entrant.knowledge == "μ* = 1":
        if problem.instance.best_mean != 1.0:
            return None
        if problem.shape is not None:
            known = dict(zip(("b", "weight"), problem.shape, strict=True))
    return ma.policy(entrant.name, **entrant.parameters, **known)


def suite() -> Iterator[Problem]:
    """Yield the problems of the leaderboard."""

    def coins(alpha: float, **options: Any) -> Instance:
        return planted(n=N_ARMS, alpha=alpha, horizon=HORIZON, **options)

    for alpha in (k / 10 for k in range(1, 10)):
        yield Problem("Figure 2(a)", f"Fig. 2(a), alpha {alpha}", coins(alpha))
    for best, others in ((0.5, (0.1, 0.2, 0.3)), (0.6, (0.5,)), (0.55, (0.5,))):
        for alpha in (0.2, 0.4):
            name = f"{best} over at most {others[-1]}, alpha {alpha}"
            yield Problem("smaller gaps", name, coins(alpha, best=best, others=others))
    for alpha in (0.2, 0.4):
        normal = coins(alpha, rewards=ma.instances.Gaussian(0.5))
        yield Problem("Gaussian", f"Gaussian, alpha {alpha}", normal)
    for alpha in (0.2, 0.4):  # T << n
        many = planted(n=1_000_000, alpha=alpha, horizon=10_000)
        yield Problem("extreme sizes", f"n = 1 000 000, T = 10 000, alpha {alpha}", many, 10_000)
    for m in (10, 1):  # n << T
        yield Problem("extreme sizes", f"n = 100, T = 50 000, m = {m}", planted(n=100, m=m))
    for a, b in ((1.0, 1.0), (2.0, 0.5), (2.0, 2.0), (1.0, 3.0)):
        # P(mean >= 1 - e) = e^b / (b B(a, b)) plus lower-order terms
        weight = math.gamma(a + b) / (b * math.gamma(a) * math.gamma(b))
        yield _infinite(f"Beta({a:g}, {b:g}) means", BetaMeans(a, b), b, weight)
    yield _infinite("uniform means up to 0.8", UniformMeans(0.0, 0.8), 1.0, 1 / 0.8)
    yield from contests()


def _infinite(name: str, means: Any, b: float, weight: float) -> Problem:
    # No policy can expect to come nearer than T^(-1/(b+1)): finding such an arm and telling it from
    # the others takes more than T pulls.
    epsilon = max(HORIZON**-0.5, HORIZON ** (-1 / (b + 1)))
    arms, chance = reservoir(means, epsilon=epsilon), min(1.0, weight * epsilon**b)
    return Problem("infinitely many", name, arms, HORIZON, (b, weight), chance)


def contests() -> Iterator[Problem]:
    """Yield the contests on this machine as in the paper, and 652 also in other forms."""
    found: dict[str, Instance] = {}
    for stem, path in ma.instances.local_contests().items():
        number = stem.partition("_")[0]
        found[f"contest {number}"] = ma.instances.captions(path)
        if number == "652":
            found["contest 652, no threshold"] = ma.instances.captions(path, threshold=None)
            found["contest 652, shares as voted"] = ma.instances.captions(path, scaled=False)
    for name, arms in found.items():
        yield Problem("contests", name, arms, CONTEST_HORIZON)


def random_problems(half: str) -> Iterator[Problem]:
    """Yield random problems; the seeds were fixed before anything was played."""
    luck = np.random.default_rng(SEEDS[half])
    draws = {"planted": _planted, "Beta": _beta, "uniform": _uniform, "discrete": _discrete}
    for number in range(1, COUNT + 1):
        horizon = round(_log_uniform(luck, 1_000, 200_000))
        if number % 25 == 0:
            horizon = round(_log_uniform(luck, 200_000, 5_000_000))
        kind = str(luck.choice(["planted", "planted", "Beta", "uniform", "discrete"]))
        words, arms = draws[kind](luck, horizon)
        yield Problem(f"random: {kind}", f"{number}: {words}, T = {horizon}", arms, horizon)


def _log_uniform(luck: np.random.Generator, low: float, high: float) -> float:
    return math.exp(luck.uniform(math.log(low), math.log(high)))


def _planted(luck: np.random.Generator, horizon: int) -> tuple[str, Instance]:
    """Draw best arms with a mean of 0.1 or more, and up to six kinds of arms clearly below."""
    n, alpha = round(_log_uniform(luck, 50, 10**9)), luck.uniform(0.05, 0.75)
    best = luck.uniform(0.1, 1.0)
    below = best * luck.uniform(0.4, 0.9)
    others = sorted(float(mean) for mean in luck.uniform(0.0, below, size=luck.integers(1, 7)))
    arms = planted(n=n, alpha=alpha, horizon=horizon, best=float(best), others=others)
    return f"{best:.2f} over at most {others[-1]:.2f}, n = {n}, alpha {alpha:.2f}", arms


def _beta(luck: np.random.Generator, horizon: int) -> tuple[str, Instance]:
    a, b = (_log_uniform(luck, 0.5, 6.0) for _ in range(2))
    return f"Beta({a:.2f}, {b:.2f})", reservoir(BetaMeans(a, b))


def _uniform(luck: np.random.Generator, horizon: int) -> tuple[str, Instance]:
    low, high = sorted(float(mean) for mean in luck.uniform(0.0, 1.0, size=2))
    return f"uniform from {low:.2f} to {high:.2f}", reservoir(UniformMeans(low, high))


def _discrete(luck: np.random.Generator, horizon: int) -> tuple[str, Instance]:
    """Draw up to six means; the chance of the best one is between 1/(2 sqrt(T)) and 0.3."""
    values = sorted((float(mean) for mean in luck.uniform(size=luck.integers(2, 7))), reverse=True)
    best = _log_uniform(luck, 0.5 / math.sqrt(horizon), 0.3)
    rest = luck.dirichlet(np.ones(len(values) - 1)) + 1e-9
    chances = [best, *((1.0 - best) * rest / rest.sum()).tolist()]
    words = f"{values[0]:.2f} with chance {best:.3g}, next {values[1]:.2f}"
    return words, reservoir(DiscreteMeans(values, chances))


def play(problem: Problem, runs: int, seed: int) -> Iterator[list[Any]]:
    """Play all policies that apply, on the same rewards, and yield a row of the file for each."""
    chosen = {label: policy_for(entrant, problem) for label, entrant in ENTRANTS.items()}
    for label, policy in chosen.items():
        if policy is None:
            continue
        result = ma.simulate(
            policy, problem.instance, horizon=problem.horizon, replications=runs, seed=seed,
            checkpoints=1,
        )  # fmt: skip
        final = result.regret[0, :, -1]
        numbers = (final.mean(), np.quantile(final, 0.99), (result.best_pulls == 0).mean())
        about = (problem.family, problem.name, problem.horizon, label, ENTRANTS[label].knowledge)
        yield [*about, runs, *(f"{number:.5g}" for number in numbers)]


def table(rows: Sequence[dict[str, str]]) -> str:
    """Return a table of policies by families, the best over all problems first."""
    least: dict[str, float] = {}
    for row in rows:
        if row["knowledge"] == "nothing":
            mean = float(row["mean"])
            least[row["problem"]] = min(mean, least.get(row["problem"], math.inf))
    families = list(dict.fromkeys(row["family"] for row in rows))
    ratios: dict[tuple[str, str], dict[str, list[float]]] = {}
    for row in rows:
        own = ratios.setdefault((row["policy"], row["knowledge"]), {})
        own.setdefault(row["family"], []).append(float(row["mean"]) / least[row["problem"]])

    def cells(own: dict[str, list[float]]) -> list[str]:
        columns = [own.get(family, []) for family in families]
        several = [*columns, [ratio for column in columns for ratio in column]]
        return [f"{statistics.geometric_mean(each):.3g}" if each else "–" for each in several]

    def overall(item: tuple[Any, dict[str, list[float]]]) -> float:
        return statistics.geometric_mean([one for each in item[1].values() for one in each])

    ordered = sorted(ratios.items(), key=overall)
    lines = [[policy, knows, *cells(own)] for (policy, knows), own in ordered]
    return markdown_table(["policy", "knows", *families, "all"], lines)


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--half", choices=list(SEEDS), help="random problems, of this half")
    parser.add_argument("--runs", type=int, help="default: 100, or 50 on random problems")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--table", action="store_true", help="play nothing, print FILE's table")
    options = parser.parse_args()
    if not options.table:
        runs = options.runs or (50 if options.half else 100)
        problems = random_problems(options.half) if options.half else suite()
        with options.file.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(COLUMNS)
            for problem in problems:
                print(problem.name, flush=True)
                writer.writerows(play(problem, runs, options.seed))
                file.flush()
    print(table(read(options.file)))


if __name__ == "__main__":
    main()
