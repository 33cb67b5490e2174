"""empMOSS++: the form of MOSS++ that the paper plays in its experiments.

It has no box of its own. The lines are those of Algorithm 1, with three changes, marked
(a) to (c). No theorem covers it, because its sets depend on earlier rewards.
"""

from moss import Moss
from moss_plus_plus import Mixture, iterations, real_arm
from simulate import show


def emp_moss_plus_plus(n, T, beta, luck, **options):
    """Play empMOSS++ on the arms 0, ..., n - 1 for T pulls; 1/2 <= beta <= 1."""
    mixtures = []
    t = planned = 0
    # (a) Pulls and rewards of arms and mixture-arms are kept between iterations.
    N, total = {}, {}
    # Line 1.
    p = iterations(T, beta)
    # Line 2.
    for i in range(1, max(p, 1) + 1):
        K, DT = min(2 ** (p + 2 - i), n), min(2 ** (p + i), T)
        # (b) Since statistics are kept, the horizon of the index is the total so far.
        # (Open in the paper; we follow QRM2, which keeps statistics too.)
        planned += DT
        H = min(planned, T)
        # Line 3. (c) After the first iteration, the real arms are not random but the
        # K_i of largest empirical mean. (Open in the paper: an arm without a pull
        # counts as mean 0, and ties are drawn. So where fewer than K_i arms have earned
        # anything, most places go to new arms.)
        if i == 1:
            S = luck.sample(n, K)
        else:
            means = {arm: total[arm] / N[arm] for arm in N if arm not in mixtures}
            S = luck.best(n, K, means)
        moss, choices = Moss(S + mixtures, H, luck, N, total, **options), []
        for _ in range(min(DT, T - t)):
            member = moss.choose()
            reward = yield real_arm(member, luck)
            moss.learn(member, reward)
            choices.append(member)
            t += 1
        # Line 4. The frequencies of this iteration alone.
        mixtures.append(Mixture(choices))


if __name__ == "__main__":
    show("empMOSS++ with beta 0.5", lambda n, T, luck: emp_moss_plus_plus(n, T, 0.5, luck))
