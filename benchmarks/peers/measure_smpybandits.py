"""Microseconds per step of SMPyBandits' MOSS; run inside its own environment.

Timed: `choice()`, a Bernoulli draw and `getReward(arm, reward)`, after every arm was tried once.
"""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from typing import Any

from timed_play import arms_from_command_line, print_measurement


def new_moss(n_arms: int) -> Any:
    """Return the policy, without printing: standard output is for one line of JSON."""
    # Importing the package prints hints about optional modules; MOSS uses none of them.
    with redirect_stdout(sys.stderr):
        from SMPyBandits.Policies import MOSS

    policy = MOSS(n_arms)
    policy.startGame()
    return policy


def main() -> None:
    """Measure and print."""
    arms = arms_from_command_line()
    policy = new_moss(len(arms))
    for arm, reward in enumerate(arms.pull_each()):
        policy.getReward(arm, reward)

    def step() -> None:
        arm = policy.choice()
        policy.getReward(arm, arms.pull(arm))

    print_measurement("SMPyBandits", "MOSS", len(arms), step)


if __name__ == "__main__":
    main()
