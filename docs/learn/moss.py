"""MOSS (Audibert & Bubeck 2009), which all policies of the paper run inside.

The paper runs it on small sets. With more arms than pulls it never pulls an arm twice.
"""

import math

from simulate import show


def index(total, N, H, K):
    """Return the mean of N rewards and a bonus, which is 0 from N = H / K on."""
    # For rewards in [0, 1]. "1/4-sub-Gaussian" in the paper means a variance of 1/4.
    return total / N + math.sqrt(max(0.0, math.log(H / (K * N))) / N)


class Moss:
    """MOSS on a set S of arms with horizon H."""

    def __init__(self, S, H, luck, N=None, total=None, index=index):
        self.H, self.K, self.luck, self.index = H, len(S), luck, index
        # Pulls and sums of rewards: none, or (empMOSS++) those of earlier iterations.
        self.N = {} if N is None else N
        self.total = {} if total is None else total
        # An arm without a pull has index +oo: so all come once, in random order, before
        # one comes twice.
        self.B = {arm: self.bound(arm) if arm in self.N else math.inf for arm in S}

    def bound(self, arm):
        return self.index(self.total[arm], self.N[arm], self.H, self.K)

    def choose(self):
        return self.luck.largest(self.B)

    def learn(self, arm, reward):
        self.N[arm] = self.N.get(arm, 0) + 1
        self.total[arm] = self.total.get(arm, 0.0) + reward
        self.B[arm] = self.bound(arm)  # those of the other arms are as they were


def moss(n, T, luck):
    """Play MOSS on the arms 0, ..., n - 1: `reward = yield arm` pulls an arm."""
    moss = Moss(luck.sample(n, n), T, luck)
    for _ in range(T):
        arm = moss.choose()
        reward = yield arm
        moss.learn(arm, reward)


if __name__ == "__main__":
    show("MOSS", moss)
