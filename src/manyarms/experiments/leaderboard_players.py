"""Who plays on a problem of the leaderboard, what they are told, and how often they play.

A policy joins by being registered with an `about`. It is told what that says it knows, and left
out where it does not apply: rewards it is not made for, or a best mean below 1 where it takes 1
for granted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from manyarms.instances import Instance
from manyarms.protocol import About, Policy, described, policy

__all__ = ["Match", "Player", "match"]

SECONDS = 0.6  # of one core, for one policy on one problem
FEWEST = 25  # runs, however slow: in fewer, one who misses now and then may seem never to miss

# Unproved forms of our own policies, for rewards in [0, 1]: label -> (name, parameters)
_VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "hybrid-moss++(kl)": ("hybrid-moss++", {"index": "kl"}),
    "patience(kl)": ("patience", {"bound": "kl"}),
}


@dataclass(frozen=True)
class Player:
    """A policy, told what it knows; its name in tables; what it knows; how often it plays."""

    policy: Policy
    label: str
    knowledge: str
    runs: int


@dataclass(frozen=True)
class Match:
    """One problem of the suite, and who plays on it.

    Attributes
    ----------
    name, family
        What it is called, and the group of problems it belongs to.
    instance, horizon
        What is played on, and for how many pulls.
    ratio
        n/m, or one over the probability that an arm drawn at random counts as best: what those
        are told who know m.
    players
        Who plays.
    """

    name: str
    family: str
    instance: Instance
    horizon: int
    ratio: float
    players: tuple[Player, ...]

    @property
    def pulls(self) -> int:
        """The pulls of all runs."""
        return self.horizon * sum(player.runs for player in self.players)


def match(
    name: str,
    family: str,
    instance: Instance,
    horizon: int,
    *,
    most_runs: int,
    ratio: float | None = None,
    shape: tuple[float, float] | None = None,
) -> Match:
    """Find out who plays on an instance.

    Parameters
    ----------
    name, family, instance, horizon
        The problem.
    most_runs
        The runs of a policy that is quick enough; slower ones get fewer.
    ratio
        n/m, where the instance cannot tell.
    shape
        (b, w) with P(mean >= best - e) about w e^b, where means are drawn.

    Examples
    --------
    >>> import manyarms as ma
    >>> coins = ma.instances.planted(n=20_000, m=132)
    >>> players = match("coins", "coins", coins, 50_000, most_runs=100).players
    >>> [player.policy.label for player in players][:2]
    ['moss', 'moss-oracle(alpha=0.3999...)']
    """
    ratio = instance.problem(horizon).ratio if ratio is None else ratio
    players = []
    for label, registered, about, parameters in _registered():
        if _applies(about, instance):
            told = parameters | _told(registered, ratio, horizon, shape, instance)
            runs = int(SECONDS * 1e9 / (max(1, about.nanoseconds) * horizon))
            runs = min(most_runs, max(FEWEST, runs))
            players.append(Player(policy(registered, **told), label, about.knowledge, runs))
    return Match(name, family, instance, horizon, ratio, tuple(players))


def _registered() -> Iterator[tuple[str, str, About, dict[str, Any]]]:
    said = described()
    for name, about in said.items():
        if about.knowledge != "arm":  # knowing the answer is no contest
            yield name, name, about, {}
    for label, (name, parameters) in _VARIANTS.items():
        yield label, name, replace(said[name], rewards="[0, 1]"), parameters


def _applies(about: About, instance: Instance) -> bool:
    if about.rewards != "any" and not instance.rewards.bounded:
        return False
    return not about.perfect_best or instance.best_mean == 1.0


def _told(
    name: str, ratio: float, horizon: int, shape: tuple[float, float] | None, instance: Instance
) -> dict[str, Any]:
    """Return what a policy is told; the engine tells the best mean to those who ask for it."""
    if name == "moss-oracle":
        return {"alpha": min(1.0, max(0.0, math.log(ratio / 2) / math.log(horizon)))}
    if name == "ss-greedy-oracle":
        return {"alpha": min(1.0, math.log(ratio) / math.log(horizon))}
    if name == "qrm1":
        return {"rho": 1 / ratio}
    if shape is None:
        return {}
    b, weight = shape
    if name in ("ucb-f", "ucb-air"):
        return {"b": b, "perfect_best": instance.best_mean == 1.0}
    return {"b": b, "weight": weight} if name in ("two-target", "cbt") else {}
