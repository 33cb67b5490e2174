"""Microseconds per step of river's bandit UCB; run inside its own environment.

Timed: `pull(arms)`, a Bernoulli draw and `update(arm, reward)`, after every arm was tried once.
"""

from __future__ import annotations

from typing import Any

from river import bandit

from timed_play import arms_from_command_line, print_measurement


def main() -> None:
    """Measure and print."""
    arms = arms_from_command_line()
    names = range(len(arms))
    policy: Any = bandit.UCB(delta=1, seed=1)
    for arm, reward in enumerate(arms.pull_each()):
        policy.update(arm, reward)

    def step() -> None:
        arm = policy.pull(names)
        policy.update(arm, arms.pull(arm))

    print_measurement("river", "UCB", len(arms), step)


if __name__ == "__main__":
    main()
