"""Arms with rewards 0 and 1, for the policies of this folder.

`python docs/learn/moss_plus_plus.py`, and likewise for the other policies, simulates one run
and prints what happened. Change MEANS, T or the last lines of that file, and run it again.
"""

import random
from collections import Counter

from luck import Luck

T = 2000
MEANS = [0.9] * 50 + [0.1, 0.2, 0.3, 0.4, 0.5] * 190  # one arm in 20 is best


def pulls(policy, means, T, seed=None):
    """Let a policy pull T arms, and yield them one by one."""
    chance, reward = random.Random(seed), None
    for _ in range(T):
        arm = policy.send(reward)  # sending None starts it
        reward = float(chance.random() < means[arm])
        yield arm


def play(policy, means, T, seed=None):
    """Let a policy pull T arms, and return its regret."""
    best = max(means)
    return sum(best - means[arm] for arm in pulls(policy, means, T, seed))


def show(title, begin, means=MEANS, T=T, seed=1):
    """Let the policy begin(n, T, luck) pull T arms; print what it did, eighth by eighth."""
    n, best = len(means), max(means)
    arms = list(pulls(begin(n, T, Luck(seed)), means, T, seed))
    print(f"{title}: {n} arms, {means.count(best)} of them best (mean {best}), {T} pulls\n")
    print("until pull   arms tried   of the last pulls, best arms got   regret")
    for k in range(8):
        start, end = k * T // 8, (k + 1) * T // 8
        tried, last = len(set(arms[:end])), arms[start:end]
        share = sum(means[arm] == best for arm in last) / len(last)
        regret = sum(best - means[arm] for arm in arms[:end])
        print(f"{end:10}   {tried:10}   {share:32.0%}   {regret:6.0f}")
    arm, count = Counter(arms).most_common(1)[0]
    print(f"\nMost often, {count} times, it pulled arm {arm}, which has mean {means[arm]}.")
