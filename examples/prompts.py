"""Choose among 100000 prompts with 5000 evaluations.

An evaluation asks a language model one question with one prompt; its reward is 1 if the answer is
right. There are twenty times as many prompts as evaluations, but one prompt in a hundred is good,
and any good prompt will do. The model is simulated, so the true accuracies are known.
Run it: `python examples/prompts.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import manyarms as ma

PROMPTS = 100_000
EVALUATIONS = 5_000
RUNS = 20


class Outcome(NamedTuple):
    tried: int  # prompts
    right: float  # the share of right answers during the search
    found: float  # the true accuracy of the recommended prompt


Evaluate = Callable[[int], float]


def accuracies() -> NDArray[np.float64]:
    """Return the accuracies: 85 % for one prompt in a hundred, 10 to 60 % for the others."""
    generator = np.random.default_rng(652)
    accuracy = generator.uniform(0.1, 0.6, PROMPTS)
    accuracy[generator.choice(PROMPTS, PROMPTS // 100, replace=False)] = 0.85
    return accuracy


def search(policy: ma.Policy, truth: NDArray[np.float64], evaluate: Evaluate, run: int) -> Outcome:
    """Search with a policy. A real search needs no other code."""
    live = policy.live(n_arms=PROMPTS, horizon=EVALUATIONS, seed=run)
    for _ in range(EVALUATIONS):
        pull = live.ask()
        live.tell(pull, evaluate(pull.arm))
    progress = live.progress()
    return Outcome(progress.arms_touched, progress.mean_reward, truth[live.recommend().arm])


def random_search(truth: NDArray[np.float64], evaluate: Evaluate, run: int) -> Outcome:
    """Give 100 random prompts 50 evaluations each, and take the best one."""
    prompts = np.random.default_rng(run).choice(PROMPTS, 100, replace=False)
    share = EVALUATIONS // len(prompts)
    right = [sum(evaluate(prompt) for _ in range(share)) for prompt in prompts]
    return Outcome(len(prompts), sum(right) / EVALUATIONS, truth[prompts[int(np.argmax(right))]])


def main() -> None:
    truth = accuracies()
    best = int((truth == truth.max()).sum())
    hardness = ma.hardness(n=PROMPTS, m=best, horizon=EVALUATIONS)
    print(f"{PROMPTS} prompts, {best} of them good, {EVALUATIONS} evaluations.")
    print(
        f"Good prompts are right in {truth.max():.0%}, all prompts in {truth.mean():.0%} of cases."
    )
    print(f"Hardness {hardness:.2f}. Means of {RUNS} runs:\n")
    print(f"{'':14} {'prompts tried':>14} {'right in the search':>20} {'accuracy found':>15}")
    policies: list[ma.Policy | None]
    policies = [ma.Scout(), ma.EmpMOSSPlusPlus(), ma.MOSSPlusPlus(), ma.MOSS(), None]
    for policy in policies:
        outcomes = []
        for run in range(RUNS):
            luck = np.random.default_rng([1, run])

            def evaluate(prompt: int, luck: np.random.Generator = luck) -> float:
                return float(luck.random() < truth[prompt])

            if policy is None:
                outcomes.append(random_search(truth, evaluate, run))
            else:
                outcomes.append(search(policy, truth, evaluate, run))
        tried, right, found = np.mean(outcomes, axis=0)
        name = "random search" if policy is None else str(policy)
        print(f"{name:14} {tried:14.0f} {right:20.2f} {found:15.2f}")
    print(
        "\nMOSS tries a new prompt every time, so its recommendation is a guess. Random search"
        "\nfinds a good prompt if one is among its hundred, but does not adapt. Scout tries many"
        "\nprompts before it settles, because only the recommended prompt counts for it."
    )


if __name__ == "__main__":
    main()
