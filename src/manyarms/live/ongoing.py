"""What a game that goes on needs: earlier rewards, arms that return, seasons, when to stop."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, Self

from manyarms.errors import TurnError
from manyarms.live import estimates
from manyarms.live.game import LiveGame, check_reward
from manyarms.live.history import GameHistory
from manyarms.live.recorder import EventRecorder
from manyarms.live.season import next_season
from manyarms.live.verdict import StopVerdict, check_question, give_verdict
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

        What is known of it stays in the tables. To the policy it is a fresh arm, which comes up
        where it would otherwise draw a new one; it learns of its rewards from now on.

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
                    raise TurnError(f"Cannot restore arm {name!r}: it was not retired.")
            if numbers:
                record.doing = "restore"
                for number in numbers:
                    game.restore(number)

    def observe(self, arm: str | int, rewards: float | Iterable[float]) -> None:
        """Report rewards of an arm that were seen before, or elsewhere: not by a pull of this game.

        They count as pulls that need not be made. Intervals know of them at once. When the policy
        asks for this arm it is given the next of them in place of a pull, and arms of which rewards
        were observed come up first where it would draw a fresh one. So every policy can learn
        from them. Each that is used takes one pull of the horizon.

        Parameters
        ----------
        arm
            The arm's number or name.
        rewards
            A reward, or several in the order they came: all there are, not only good ones, because
            intervals and guarantees hold for rewards that were not picked.
        """
        several = rewards if isinstance(rewards, Iterable) else [rewards]
        values = [check_reward(reward, self._game.reward_range) for reward in several]
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

        Its arms are those that ever were here, and retired ones stay so. All rewards that were told
        are observed in it, arms in the order in which they were met: see `observe`. This handle
        stays as it is; rewards that come later are told here, and observed there.

        Parameters
        ----------
        horizon
            The number of pulls to come; those that rewards are remembered of are added to it. None
            only for anytime policies.
        policy
            The policy that goes on (default: this one).
        seed
            Decides its random choices (default: that of this game).

        Notes
        -----
        With a complete history (see `events`) the new game is, in law, one that begins anew and
        need not make again the pulls that it remembers: every guarantee holds for it as a whole.
        Without, the order of each arm's rewards is not known, and is drawn at random.
        """
        with self._lock, self._recorder.looking() as game:
            policy = game.policy if policy is None else policy
            seed = game.seed if seed is None else seed
            return self._of(next_season(game, self._history(), policy, horizon, seed))

    def verdict(
        self, *, epsilon: float = 0.1, quantile: float = 0.05, confidence: float = 0.95
    ) -> StopVerdict:
        """Return whether the recommended arm is good enough to stop.

        It is where its mean is for sure within `epsilon` of the best of all but the top `quantile`
        of the arms. With probability `confidence` no verdict says "stop" wrongly, however often
        one asks, whatever the policy, and although the arm was chosen for looking best.

        Parameters
        ----------
        epsilon
            What the arm may be worse (default: 0.1).
        quantile
            The share of the arms that may be better still; 0 compares with every arm, and takes
            having tried them all (default: 0.05). Decide before you look.
        confidence
            The probability (default: 0.95). Decide before you look.
        """
        asked = check_question(epsilon, quantile, confidence)
        with self._lock, self._recorder.looking() as game:
            best = estimates.top(game, 1)
            return give_verdict(game, best[0] if best else None, *asked)

    def events(self) -> GameHistory:
        """Return what happened so far, event by event and as a table of pulls.

        Only a handle that is recorded knows: in `Journal(path, history=True)`, or in `InMemory()`
        if no file is wanted.
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
