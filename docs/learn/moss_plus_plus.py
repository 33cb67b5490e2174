"""MOSS++: Algorithm 1 of the paper.

Theorem 1: its regret is at most 160 (log2 T)^(5/2) T^theta, where theta is
min(max(beta, 1 + alpha - beta), 1), and alpha is the hardness, which it does not know.
Theorem 3: for beta < 1 it is Pareto optimal: a better rate here is a worse one there.
"""

import math

from moss import Moss
from simulate import show


class Mixture:
    """A mixture-arm: what one iteration chose, pull by pull."""

    def __init__(self, choices):
        self.choices = choices


def real_arm(member, luck):
    """Return a member of a set as an arm that can be pulled."""
    # Drawing from the choices is drawing a member by how often it was chosen. That may
    # be an older mixture-arm; then draw again.
    while isinstance(member, Mixture):
        member = luck.one_of(member.choices)
    return member


def iterations(T, beta):
    """Return p = ceil(log2 T^beta), the smallest number with 2^p >= T^beta."""
    return math.ceil(beta * math.log2(T) - 1e-12)  # 0.55 * 20 is 11.000000000000002


def moss_plus_plus(n, T, beta, luck, **options):
    """Play MOSS++ on the arms 0, ..., n - 1 for T pulls; 1/2 <= beta <= 1."""
    mixtures, t = [], 0  # t counts pulls
    # Line 1. Set p = ceil(log2 T^beta), K_i = 2^(p + 2 - i), DT_i = min(2^(p + i), T).
    p = iterations(T, beta)
    # Line 2. For i = 1, ..., p do. (If T = 1, p is 0, and there is one pull to make.)
    for i in range(1, max(p, 1) + 1):
        K, DT = 2 ** (p + 2 - i), min(2 ** (p + i), T)
        # Line 3. Run MOSS on S_i for DT_i rounds. S_i has K_i real arms, selected
        # uniformly at random, and the mixture-arms of all earlier iterations. (Open in
        # the box: there may be fewer than K_i arms; arms are drawn anew in each
        # iteration; the run ends after T pulls.)
        S = luck.sample(n, min(K, n)) + mixtures
        moss, choices = Moss(S, DT, luck, **options), []
        for _ in range(min(DT, T - t)):
            member = moss.choose()
            reward = yield real_arm(member, luck)
            moss.learn(member, reward)  # the reward counts for the member alone
            choices.append(member)
            t += 1
        # Line 4. Construct a mixture-arm from how often MOSS chose each member.
        mixtures.append(Mixture(choices))


if __name__ == "__main__":
    show("MOSS++ with beta 0.5", lambda n, T, luck: moss_plus_plus(n, T, 0.5, luck))
