"""Parallel: Algorithms 2 and 3 of the paper, if the best mean is known.

Theorem 4: its regret is at most C (log T)^2 T^((1 + alpha)/2), which is minimax but for
logarithms at every hardness alpha at once. By Theorem 2, no policy that
knows neither the best mean nor alpha can do this.
"""

import math

from moss import Moss
from simulate import show


def subroutine(n, T, alpha, luck, factor=2, **options):
    """Return Algorithm 2 (SR): MOSS on ceil(2 T^alpha log sqrt(T)) random arms."""
    size = math.ceil(factor * T**alpha * math.log(T) / 2)
    return Moss(luck.sample(n, max(1, min(size, T, n))), T, luck, **options)


def parallel(n, T, best_mean, luck, **options):
    """Play Algorithm 3 on the arms 0, ..., n - 1 for T pulls, told the best mean."""
    # Line 1. Set p = ceil(log T) and D = ceil(sqrt(T)).
    p, D = max(1, math.ceil(math.log(T))), math.ceil(math.sqrt(T))
    # Lines 2 and 3. For i = 1, ..., p do: begin the subroutine for hardness i / p.
    SR = [subroutine(n, T, i / p, luck, **options) for i in range(1, p + 1)]
    pulls, rewards = [0] * p, [0.0] * p
    t = 0
    # Line 4. For each epoch do. (The box has D - 1 epochs, which may fall short of T
    # pulls. We go on to T, and cut the last one.)
    while t < T:
        # Line 5. Select the subroutine of lowest empirical regret. (Ties are drawn.)
        regret = {i: pulls[i] * best_mean - rewards[i] for i in range(p)}
        k = luck.lowest(regret)
        # Line 6. Resume it for D rounds, and count its pulls and rewards.
        for _ in range(min(D, T - t)):
            arm = SR[k].choose()
            reward = yield arm
            SR[k].learn(arm, reward)
            pulls[k] += 1
            rewards[k] += reward
            t += 1


if __name__ == "__main__":
    show("Parallel", lambda n, T, luck: parallel(n, T, 0.9, luck))
