"""Prompts in two seasons: stop when the verdict says so, and continue next month.

In May, 20000 prompts are searched until the verdict says that the best one found is good enough. In
June, there is money for 3000 more evaluations. The new season keeps all rewards of May and uses
them before it evaluates a prompt again. Run it: `python examples/seasons.py`.
"""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import manyarms as ma

PROMPTS = 20_000
DICE = random.Random(3)
QUALITY = [DICE.betavariate(2, 5) for _ in range(PROMPTS)]  # true means, unknown to the policy


def evaluate(live: ma.Live, times: int) -> None:
    for _ in range(times):
        pull = live.ask()
        live.tell(pull, float(DICE.random() < QUALITY[pull.arm]))


def share_better(arm: int) -> float:
    return 100 * sum(quality > QUALITY[arm] for quality in QUALITY) / PROMPTS


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "prompts.db"
        best = {}
        with ma.EmpMOSSPlusPlus().live(n_arms=PROMPTS, horizon=20_000, seed=4, store=path) as live:
            evaluate(live, 500)
            while not live.verdict(epsilon=0.1, quantile=0.05).stop and live.pulls < 20_000:
                evaluate(live, 500)
            print(f"May, {live.pulls} evaluations of at most 20000.\n{live.verdict(epsilon=0.1)}")
            best["May"] = live.recommend().arm
        with ma.load(path) as live:
            live.season(horizon=3_000)
            print(f"\nJune starts with {live.progress().observed} rewards.")
            evaluate(live, 3_000)
            best["June"] = live.recommend().arm
            spent = sum(event.kind == "told" for event in live.events())
    for month, arm in best.items():
        print(f"{month}'s prompt is truly {QUALITY[arm]:.2f}; {share_better(arm):.2f} % are better")
    print(f"The log has all {spent} evaluations.")


if __name__ == "__main__":
    main()
