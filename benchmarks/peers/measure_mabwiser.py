"""Microseconds per step of MABWiser's UCB1; run inside its own environment.

Timed: `predict()`, a Bernoulli draw and `partial_fit` of that one decision, after one `fit` on a
batch with one reward of every arm.
"""

from __future__ import annotations

from typing import Any

from mabwiser.mab import MAB, LearningPolicy

from timed_play import arms_from_command_line, print_measurement


def main() -> None:
    """Measure and print."""
    arms = arms_from_command_line()
    names = list(range(len(arms)))
    policy: Any = MAB(arms=names, learning_policy=LearningPolicy.UCB1())
    policy.fit(decisions=names, rewards=arms.pull_each())

    def step() -> None:
        arm = policy.predict()
        policy.partial_fit(decisions=[arm], rewards=[arms.pull(arm)])

    print_measurement("mabwiser", "UCB1", len(arms), step)


if __name__ == "__main__":
    main()
