"""What a game that goes on needs: earlier rewards, arms that return, seasons, when to stop."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, Self

from manyarms.core.checks import by_name
from manyarms.errors import ParameterError, TurnError
from manyarms.live import estimates
from manyarms.live.game import LiveGame, check_reward
from manyarms.live.history import GameHistory
from manyarms.live.recorder import EventRecorder
from manyarms.live.season import next_season
from manyarms.live.verdict import (
    CONFIDENCE,
    EPSILON,
    QUANTILE,
    StopVerdict,
    check_question,
    give_verdict,
)
from manyarms.protocol.policy import Policy, arrive

__all__ = ["Ongoing"]


class Ongoing:
    """The half of `Live` that looks beyond the next pull."""

    _game: LiveGame
    _recorder: EventRecorder
    _lock: threading.RLock

    @classmethod
    @abstractmethod
    def _of(cls, game: LiveGame) -> Self: ...

    def restore(self, arm: str | int | Iterable[str | int]) -> None:
        """Let a retired arm come back, or several: all of them, or none if one is refused.

        The tables keep what is known about it. For the policy it is a fresh arm, and the next one
        that it draws. The policy learns only from rewards that come from now on.

        Parameters
        ----------
        arm
            The arm's number or name, or a list of them.
        """
        with self._lock, self._recorder as record:
            game = self._game
            game.check_can(arrive)
            numbers = self._numbers(arm)
            for number in numbers:
                if number not in game.retired:
                    name = game.arms.name(number)
                    raise TurnError(f"Cannot restore arm {name!r}: it is not retired.")
            if numbers:
                record.doing = "restore"
                for number in numbers:
                    game.restore(number)

    def observe(self, arm: str | int, rewards: float | Iterable[float]) -> None:
        """Report rewards of an arm that no pull of this game earned: from before, or elsewhere.

        They count as pulls that need not be made. Intervals use them at once. When the policy asks
        for this arm, the next of them answers instead of a pull. Where the policy would draw a
        fresh arm, arms with observed rewards come first. So every policy can learn from them. Each
        reward that is used takes one pull of the horizon.

        Parameters
        ----------
        arm
            The arm's number or name.
        rewards
            A reward, or several in the order in which they came. Give all there are, not only
            good ones: intervals and guarantees do not hold for rewards that were picked.
        """
        several = rewards if isinstance(rewards, Iterable) else [rewards]
        try:
            values = [check_reward(reward, self._game.reward_range) for reward in several]
        except ParameterError as error:  # there is no pull that waits
            text = str(error).replace("tell", "observe", 1).removesuffix(" The pull still waits.")
            raise ParameterError(text) from None
        with self._lock, self._recorder as record:
            number = self._game.arms.number(arm)
            if values:
                record.doing = "observe"
                self._game.observe(number, values)

    def season(
        self,
        *,
        horizon: int | None = None,
        policy: Policy | None = None,
        seed: int | None = None,
    ) -> Self:
        """Return a new game that remembers this one: for more pulls, or with another policy.

        It has all arms of this game; retired ones stay retired. All rewards that were told here are
        observed there, arm by arm in the order in which arms were met: see `observe`. This handle
        stays as it is. If rewards come later, tell them here and observe them there.

        Parameters
        ----------
        horizon
            The number of pulls to come. The pulls whose rewards are remembered are added to it. An
            anytime policy takes None.
        policy
            The policy that goes on (default: this one).
        seed
            The seed of its random choices (default: that of this game).

        Notes
        -----
        If the history is complete (see `events`), the new game is, in law, a game from its
        beginning that need not repeat the pulls it remembers. So every guarantee holds for it as a
        whole. If not, the order of each arm's rewards is not known, and is drawn at random.
        """
        if policy is not None and not isinstance(policy, Policy):
            raise ParameterError(f"`policy` must be a policy such as ma.MOSS(), got {policy!r}.")
        with self._lock, self._recorder.looking() as game:
            policy = game.policy if policy is None else policy
            seed = game.seed if seed is None else seed
            return self._of(next_season(game, self._history(), policy, horizon, seed))

    @by_name
    def verdict(
        self,
        *,
        epsilon: float = EPSILON,
        quantile: float = QUANTILE,
        confidence: float = CONFIDENCE,
    ) -> StopVerdict:
        """Return whether the recommended arm is good enough to stop.

        Good enough means: its mean is within `epsilon` of the best of all but the top `quantile` of
        the arms. With probability `confidence` no verdict of a game says "stop" wrongly, however
        often you ask, whatever the policy, and although the arm was chosen for looking best.

        Parameters
        ----------
        epsilon
            How much worse the arm may be (default: 0.1).
        quantile
            The share of the arms that may be better still (default: 0.05). With 0 the arm is
            compared with every arm, so all must have been tried. The same holds if it is less than
            one arm. Choose it before you look.
        confidence
            The probability (default: 0.95). Choose it before you look.
        """
        asked = check_question(epsilon, quantile, confidence)
        with self._lock, self._recorder.looking() as game:
            best = estimates.top(game, 1)
            return give_verdict(game, best[0] if best else None, *asked)

    def events(self) -> GameHistory:
        """Return what happened so far, event by event and as a table of pulls.

        Only a recorded handle knows it. Use `Journal(path, history=True)`, or `InMemory()` if you
        want no file.
        """
        with self._lock, self._recorder.looking():
            history = self._history()
        if history is None:
            raise TurnError(
                "Cannot list events: this handle keeps none. Record it from the beginning: "
                "recorded(InMemory(), live), or recorded(Journal(path, history=True), live)."
            )
        return history

    def _history(self) -> GameHistory | None:
        kept = getattr(self._recorder.store, "history", None)
        return None if kept is None else GameHistory(kept())

    def _numbers(self, arm: Any) -> list[int]:
        """Return the numbers of one arm or of several, each once."""
        many = isinstance(arm, Iterable) and not isinstance(arm, str | bytes)
        return list(dict.fromkeys(map(self._game.arms.number, arm if many else [arm])))
