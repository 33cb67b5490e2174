"""An A/B/n test with arms that are added and removed, and a process that restarts every night.

Headlines are shown to visitors. The test begins with three headlines. On the second day, ten more
are added, and on the third day one is removed. All events are recorded in a file, so nothing is
lost in a restart. Run it: `python examples/new_arms.py`.
"""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import manyarms as ma

VISITORS = 1_500  # a day
DAYS = 4
FIRST = ["plain", "bold", "question"]
LATER = [f"idea {number}" for number in range(1, 11)]
CLICKS = {"plain": 0.30, "bold": 0.35, "question": 0.25} | dict.fromkeys(LATER, 0.2)
CLICKS |= {"idea 3": 0.60, "idea 8": 0.55}  # the true means, unknown to the policy


def one_day(live: ma.Live, day: int) -> None:
    """Serve a day's visitors. The last clicks of a day come on the next day."""
    dice = random.Random(day)
    waiting = live.pending  # from the day before
    for _ in range(VISITORS):
        waiting.append(live.ask())
        if len(waiting) > 20:
            pull = waiting.pop(dice.randrange(len(waiting)))
            live.tell(pull, float(dice.random() < CLICKS[pull.arm]))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "headlines.db"
        for day in range(1, DAYS + 1):
            # the same line starts the experiment on the first day and continues it on later days
            policy = ma.MOSS(count_late=True)  # about twenty pulls are always pending
            with policy.live(arms=FIRST, horizon=DAYS * VISITORS, seed=7, store=path) as live:
                if day == 2:
                    live.add_arms(LATER)
                if day == 3:
                    live.retire("idea 3")
                before = live.progress().reward
                one_day(live, day)
                clicks = live.progress().reward - before
                print(f"day {day}: {live.n_arms} headlines, {clicks:.0f} clicks")
        with ma.load(path) as live:
            print(f"\n{live.progress()}\n")
            for arm in live.top(3):
                print(f"{arm} (truly {CLICKS[arm.arm]:.2f})")
            gone = next(arm for arm in live.arms() if arm.retired)
            print(f"withdrawn: {gone}")
    print(
        "\nThe intervals hold at all times, so you may look every day. No theorem covers arms"
        "\nthat come late: see docs/guarantees.md."
    )


if __name__ == "__main__":
    main()
