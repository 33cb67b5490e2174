"""Serve the captions of a contest to readers whose votes come late or never.

Caption contest 652 has 10025 captions. If its file is found (in a folder named by the environment
variable MANYARMS_DATA, or after `manyarms data get 652`), a reader's vote is drawn from the real
ratings of the caption shown. If it is not, a stand-in is used, and the output says so.
Run it: `python examples/captions_live.py`.
"""

from __future__ import annotations

import heapq
import random

import numpy as np
from numpy.typing import NDArray

import manyarms as ma

READERS = 30_000
DELAY = 200  # readers who are served before a vote comes, on average
NO_VOTE = 0.1  # the share of readers who never vote, independent of the caption
WINDOW = 2_000  # readers after whom we stop waiting for a vote


def shares() -> tuple[str, NDArray[np.float64], tuple[str, ...]]:
    """Return the contest's name, each caption's share of favourable votes, and any texts."""
    try:
        contest = ma.instances.read_contest(652)
    except ma.ContestNotFoundError:
        stand_in = ma.instances.stand_in_652()
        means = np.array([stand_in.mean(arm) for arm in range(stand_in.n_arms)])
        return stand_in.label, means, ()
    return f"contest {contest.path.stem}", contest.shares, contest.captions


def serve(policy: ma.Policy, favour: NDArray[np.float64], *, late: bool) -> ma.Live:
    """Show a caption to each reader, and tell each vote when it comes."""
    live = policy.live(n_arms=len(favour), horizon=READERS, seed=1)
    dice = random.Random(652)
    post: list[tuple[int, int, float]] = []  # (when, pull, vote), earliest first
    for reader in range(READERS):
        pull = live.ask()
        vote = float(dice.random() < favour[pull.arm])
        when = reader + (1 + int(dice.expovariate(1 / DELAY)) if late else 0)
        if late and dice.random() < NO_VOTE:
            when, vote = reader + WINDOW, -1.0
        heapq.heappush(post, (when, pull.id, vote))
        while post and post[0][0] <= reader:
            _, number, vote = heapq.heappop(post)
            if vote >= 0:
                live.tell(number, vote)
            else:
                live.abandon(number)  # no vote will come
    return live


def main() -> None:
    name, favour, texts = shares()
    print(f"{name}: {len(favour)} captions, {READERS} readers")
    print(
        f"a caption at random pleases {favour.mean():.3f} of readers, the best {favour.max():.3f}"
    )
    print(f"\n{'':24} {'pleased':>8} {'recommended':>12} {'its rank':>9}")
    for late, count_late in ((False, False), (True, False), (True, True)):
        live = serve(ma.EmpMOSSPlusPlus(count_late=count_late), favour, late=late)
        arm = live.recommend().arm
        pleased = sum(seen.pulls * favour[seen.arm] for seen in live.arms()) / READERS
        rank = 1 + int((favour > favour[arm]).sum())
        kind = f"votes {DELAY} readers late" if late else "votes at once"
        kind = "… and count_late=True" if count_late else kind
        print(f"{kind:24} {pleased:8.3f} {favour[arm]:12.3f} {rank:9}")
    print(f"\nThe last experiment:\n{live.progress()}")
    if texts:
        print(f'Recommended: "{texts[arm]}"')
    else:
        print("These are results on a stand-in for contest 652, not on the real captions.")


if __name__ == "__main__":
    main()
