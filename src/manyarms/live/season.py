"""A new game that remembers an old one."""

from __future__ import annotations

from typing import Any

from manyarms.core.checks import check_int
from manyarms.core.rng import draw
from manyarms.errors import ParameterError
from manyarms.live.arms import ArmNames, ArmNumbers
from manyarms.live.checks import check_first_draws, exchangeable
from manyarms.live.game import LiveGame
from manyarms.live.history import GameHistory
from manyarms.protocol.keys import memory_key
from manyarms.protocol.policy import Policy, retire


def next_season(
    game: LiveGame, history: GameHistory | None, policy: Policy, horizon: Any, seed: Any
) -> LiveGame:
    """Return a new game in which all rewards of this one were observed.

    Arms are observed in the order in which they were met, and of each its rewards in the order in
    which they came, if the history has them all.
    """
    told = history.rewards() if history is not None and history.complete else None
    rewards = {}
    for arm in game.tally:
        known, total = game.known(arm)
        if known > 0:
            rewards[arm] = _shuffled(game, arm, known, total) if told is None else told[arm]
    if horizon is not None:
        horizon = check_int("horizon", horizon, at_least=1) + sum(map(len, rewards.values()))
    arms = game.arms
    again = ArmNames(arms.names) if isinstance(arms, ArmNames) else ArmNumbers(arms.count)
    policy = policy.with_reward_range(game.reward_range)
    check_first_draws(policy, again.count, horizon)
    new = LiveGame(policy, again, horizon, seed, game.reward_range)
    policy.check_rewards(new.reward_range)
    if game.control is not None:
        new.control = game.control.next_season(new.seed)
    new.met, new.reward = _drawn(game), game.reward
    new.epsilon = game.epsilon
    for arm, some in rewards.items():
        new.observe(arm, some)
    _retire_again(new, game)
    if not game.met and new.met.keys() <= rewards.keys():
        new.met = {}  # `tally` has them, in this order
    return new


def _drawn(game: LiveGame) -> dict[int, None]:
    """Return the arms that a game drew at random, in this order, also those without a reward.

    They stay a sample of the arms only if none is left out, and none moves: the best arms may be
    those that answer late. There is no sample if the policy may have chosen arms by their numbers,
    or if arms were added, because then arms were drawn from fewer.
    """
    if game.arms.count > game.first_arms or not exchangeable(game.policy):
        return {}
    return game.met | dict.fromkeys(arm for arm in game.tally if arm not in game.named)


def _retire_again(new: LiveGame, old: LiveGame) -> None:
    try:
        if old.retired:
            new.check_can(retire)
    except ParameterError as error:
        raise ParameterError(f"`policy` must be able to do without retired arms. {error}") from None
    for arm in sorted(old.retired):
        new.retire(arm)
    new.skipped = max(new.skipped, old.skipped)


def _shuffled(game: LiveGame, arm: int, count: int, total: float) -> list[float]:
    """Return `count` rewards of the sum `total`, whose order is not known.

    They are 0 and 1 in a random order if that can be; else all are equal.
    """
    ones = round(total)
    if game.reward_range != (0.0, 1.0) or ones != total:
        return [total / count] * count
    key = draw(memory_key(game.seed), arm)
    order = sorted(range(count), key=lambda k: draw(key, k))
    first = set(order[:ones])
    return [float(k in first) for k in range(count)]
