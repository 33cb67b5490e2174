"""What a handle shows: calls that only look at the game."""

from __future__ import annotations

import threading
from typing import Any

from manyarms.core.checks import by_name, check_int
from manyarms.core.tabular import Library, data_frame
from manyarms.errors import TurnError
from manyarms.live import estimates
from manyarms.live.estimates import ArmEstimate, Progress
from manyarms.live.game import LiveGame, Pull
from manyarms.live.history import GameHistory
from manyarms.live.html import MOST_ARMS_SHOWN, handle_html
from manyarms.live.recorder import EventRecorder
from manyarms.live.verdict import (
    CONFIDENCE,
    EPSILON,
    QUANTILE,
    StopVerdict,
    check_question,
    give_verdict,
)

__all__ = ["Views"]


class Views:
    """The half of `Live` that changes nothing."""

    _game: LiveGame
    _recorder: EventRecorder
    _lock: threading.RLock

    @property
    def n_arms(self) -> int:
        """The number of arms now, without retired ones."""
        with self._lock, self._recorder.looking() as game:
            return game.n_arms

    @property
    def pulls(self) -> int:
        """The number of pulls asked for."""
        with self._lock, self._recorder.looking() as game:
            return game.pulls

    @property
    def pending(self) -> list[Pull]:
        """The pulls whose reward was not told yet, in the order of their asks."""
        with self._lock, self._recorder.looking() as game:
            return [Pull(game.arms.name(p.arm), number) for number, p in game.flight.items()]

    def recommend(self) -> ArmEstimate:
        """Return the arm to deploy, by the same rule as in simulations.

        A policy that is made for finding names its own arm. For all others it is the arm with the
        largest lower limit at 99.9 %, so that an arm that was lucky a few times does not win.
        Rewards that came too late for the policy count here. A retired arm is never recommended.
        """
        return self.top(1)[0]

    def top(self, k: int) -> list[ArmEstimate]:
        """Return the `k` best arms, or fewer if fewer are known.

        The recommended one comes first, then the others in the order of their lower limits.

        Parameters
        ----------
        k
            The number of arms.
        """
        k = check_int("k", k, at_least=1)
        with self._lock, self._recorder.looking() as game:
            best = estimates.top(game, k)
        if not best:
            raise TurnError(
                "Cannot recommend an arm: no reward has been told yet for any arm in play."
            )
        return best

    def arms(self) -> list[ArmEstimate]:
        """Return what is known about every arm that was pulled, in the order of first pulls."""
        with self._lock, self._recorder.looking() as game:
            return estimates.known_arms(game)

    def progress(self) -> Progress:
        """Return how far the game has come."""
        with self._lock, self._recorder.looking() as game:
            return estimates.progress(game)

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

    def to_dataframe(self, *, library: Library | None = None) -> Any:
        """Return a data frame with a row for every arm that was pulled, retired ones too.

        pandas or polars must be installed.

        Parameters
        ----------
        library
            As for `Result.to_dataframe`.
        """
        return data_frame(estimates.columns_of(self.arms()), library)

    def __repr__(self) -> str:
        game, store = self._game, self._recorder.store
        of = "" if game.horizon is None else f" of {game.horizon}"
        waiting = f", {len(game.flight)} pending" if game.flight else ""
        kept = "" if store is None else f", recorded in {store}"
        arms = f"{estimates.count(game.n_arms, 'arm')}{waiting}{kept}"
        return f"<Live {game.policy.label}: {game.pulls}{of} pulls on {arms}>"

    def __str__(self) -> str:
        with self._lock, self._recorder.looking() as game:
            return estimates.summary(game)

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        with self._lock, self._recorder.looking() as game:
            best = estimates.top(game, MOST_ARMS_SHOWN)
            return handle_html(game.policy.label, estimates.progress(game), best, game.reward_range)
