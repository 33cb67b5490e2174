"""Measure when verdicts say stop, and whether they are right: docs/stopping.md.

    python benchmarks/stopping.py [EXPERIMENTS]

Each experiment is asked for verdicts a hundred times. The first stop of each question counts;
"wrong" counts the stops whose statement is false.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import manyarms as ma

Question = dict[str, Any]
PROBLEMS: dict[str, tuple[Any, int, list[Question]]] = {
    # 50000 pictures with click rates around 3 %, the best about 10 %
    "pictures": (
        np.random.default_rng(1).beta(6, 190, 50_000),
        60_000,
        [{"epsilon": 0.1}, {}, {"epsilon": "30%"}, {"target": 0.05}],
    ),
    "prompts": (
        np.random.default_rng(1).beta(2, 5, 200_000),
        10_000,
        [{"epsilon": 0.1}, {}, {"epsilon": "20%"}, {"target": 0.7}],
    ),
    "three arms": (
        np.array([0.2, 0.6, 0.4]),
        5_000,
        [{"epsilon": 0.1}, {}, {"epsilon": "20%"}, {"target": 0.5}],
    ),
}
POLICIES = ("prospector", "empmoss++", "scout")


def wrong(said: ma.StopVerdict, means: Any) -> bool:
    """Return whether a verdict's statement is false."""
    mean = means[said.arm]
    if said.target is not None:
        return bool(mean <= said.target)
    best = np.sort(means)[::-1][int(said.quantile * len(means))]
    if isinstance(said.epsilon, str):
        return bool(mean < best * (1 - float(said.epsilon.rstrip("%")) / 100))
    return bool(mean < best - said.epsilon)


def stops(
    name: str, means: Any, horizon: int, questions: list[Question], seed: int
) -> list[tuple[int, bool] | None]:
    """Return, for each question, when an experiment stopped and whether that was wrong."""
    live = ma.policy(name).live(n_arms=len(means), horizon=horizon, seed=seed)
    luck = np.random.default_rng(seed)
    found: list[tuple[int, bool] | None] = [None] * len(questions)
    for k in range(1, horizon + 1):
        pull = live.ask()
        live.tell(pull, float(luck.random() < means[pull.arm]))
        if k % (horizon // 100) == 0:
            for place, question in enumerate(questions):
                if found[place] is None and (said := live.verdict(**question)).stop:
                    found[place] = k, wrong(said, means)
            if None not in found:
                break
    return found


def main() -> None:
    experiments = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    for problem, (means, horizon, questions) in PROBLEMS.items():
        for name in POLICIES:
            found = [stops(name, means, horizon, questions, seed) for seed in range(experiments)]
            for place, question in enumerate(questions):
                given = [stopped[place] for stopped in found]
                there = [stop for stop in given if stop is not None]
                middle = int(np.median([pulls for pulls, _ in there])) if there else "-"
                mistakes = sum(mistaken for _, mistaken in there)
                asked = " ".join(f"{key}={value}" for key, value in question.items()) or "default"
                print(
                    f"{problem:10} {name:10} {asked:12} stopped {len(there):2} of {experiments}, "
                    f"median {middle}, wrong {mistakes}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
