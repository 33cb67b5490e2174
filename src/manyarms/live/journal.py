"""A handle whose every event is in a file before the caller hears of it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, overload

from manyarms.core.checks import check_int, check_number
from manyarms.core.files import FileLock, LockedError
from manyarms.errors import JournalError, ParameterError
from manyarms.live.handle import Live
from manyarms.live.pull import Pull
from manyarms.live.reopening import reopen
from manyarms.live.saving import collector_paused
from manyarms.live.views import ArmEstimate, Progress
from manyarms.live.writer import Writer

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped]

__all__ = ["Journal"]


class Journal:
    """Use a handle through a file that never loses an event.

    Every ask and tell is in the file before the call returns. Opening the file again, after a
    crash, a kill or a deploy, plays them once more and goes on as if nothing had happened.

    Parameters
    ----------
    path
        The file. What was recorded there is played again; where there is none it is created.
    live
        The handle to begin with: needed to create the file. If the file exists the handle must
        be new and of the same game (policy, arms, horizon, seed), and takes over what is
        recorded; so the same script serves the first start and every other.
    sync
        When the disk is told to keep what was written. "always": before the call returns. A
        number: at most so many milliseconds later. "never": when the system likes. A process
        that dies loses nothing in any case; this is about computers that lose power.
    compact_every
        After so many events the file is replaced by a new one that begins with all that is
        known. It bounds the file's size, and the time that opening takes.

    Notes
    -----
    One journal has one writer, which a lock beside the file (`path`.lock) sees to; within that
    process any number of threads may use it. Calls on the handle itself are recorded as well.
    If writing fails, the disk being full, the call raises `JournalError`, and so do all further
    ones until the journal is opened again; so they do after a call that Ctrl-C or a signal ended
    midway. A reward whose tell failed may then be told again, with `again="ignore"`. Adding and
    retiring arms compacts the file.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import manyarms as ma
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "shop.journal"
    >>> with ma.Journal(path, ma.MOSSPlusPlus().live(n_arms=1000, horizon=500)) as journal:
    ...     first, second = journal.ask(2)
    ...     journal.tell(second, reward=1.0)
    >>> with ma.Journal(path) as journal:  # later, in another process
    ...     journal.tell(first, reward=0.0)
    ...     journal.pulls
    2
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        live: Live | None = None,
        *,
        sync: str | float = 100,
        compact_every: int = 1_000_000,
    ) -> None:
        pause = _check_sync(sync)
        most = check_int("compact_every", compact_every, at_least=1)
        self.path = Path(os.path.realpath(path))
        if live is not None and not isinstance(live, Live):
            raise ParameterError(f"`live` must be what policy.live(...) returns, got {live!r}.")
        if live is not None and live._observer is not None:
            raise ParameterError("`live` must be a handle without a journal, got one that has one.")
        if live is None and not self.path.exists():
            raise JournalError(
                f"There is no journal {self.path}. To create it, pass a handle: "
                f"Journal(path, policy.live(...))."
            )
        self._lock = _locked(self.path)
        try:
            if self.path.exists():
                with collector_paused():
                    self.live, self._writer = reopen(self.path, live, pause, most)
            elif live is not None:
                self.live = live
                self._writer = Writer(self.path, live, pause=pause, most=most)
                self._writer.compact()
        except BaseException:
            self._lock.release()
            raise
        self.live._observer = self._writer

    @overload
    def ask(self) -> Pull: ...
    @overload
    def ask(self, k: int) -> list[Pull]: ...

    def ask(self, k: int | None = None) -> Pull | list[Pull]:
        """Return the arm to pull next, or a list of the next `k`; see `Live.ask`."""
        if k is None:
            with self.live._lock:
                self._writer.refuse_if_unfit()
                return self.live.ask()
        with self._writer.together():
            return self.live.ask(k)

    def tell(self, pull: Pull | int, reward: float, *, again: str = "refuse") -> None:
        """Report the reward of a pull, now or later, in any order; see `Live.tell`."""
        with self.live._lock:
            self._writer.refuse_if_unfit()
            self.live.tell(pull, reward, again=again)

    def tell_many(
        self, rewards: Iterable[tuple[Pull | int, float]], *, again: str = "refuse"
    ) -> None:
        """Report several rewards; see `Live.tell_many`. A crash may leave the first of them."""
        with self._writer.together():
            self.live.tell_many(rewards, again=again)

    def abandon(self, pull: Pull | int, *, again: str = "refuse") -> None:
        """Go on without the reward of a pull: it will never come; see `Live.abandon`."""
        with self.live._lock:
            self._writer.refuse_if_unfit()
            self.live.abandon(pull, again=again)

    def add_arms(self, arms: int | Iterable[str | int]) -> list[Any]:
        """Add arms, and return their names; see `Live.add_arms`."""
        with self.live._lock:
            self._writer.refuse_if_unfit()
            return self.live.add_arms(arms)

    def retire(self, arm: str | int) -> None:
        """Never ask for an arm again; see `Live.retire`."""
        with self.live._lock:
            self._writer.refuse_if_unfit()
            self.live.retire(arm)

    def compact(self) -> None:
        """Replace the file by one that begins with all that is known: small, quickly opened."""
        with self.live._lock:
            self._writer.compact()

    def close(self) -> None:
        """Make the file durable, and let others open it. The views still work."""
        try:
            self._writer.close()
        finally:
            self._lock.release()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def pulls(self) -> int:
        """The number of pulls asked for."""
        return self._seen().pulls

    @property
    def n_arms(self) -> int:
        """The number of arms there are now, retired ones apart."""
        return self._seen().n_arms

    @property
    def pending(self) -> list[Pull]:
        """The pulls whose reward was not told yet, in the order they were asked for."""
        return self._seen().pending

    def recommend(self) -> ArmEstimate:
        """Return the arm to deploy; see `Live.recommend`."""
        return self._seen().recommend()

    def top(self, k: int) -> list[ArmEstimate]:
        """Return the `k` best arms, best first; see `Live.top`."""
        return self._seen().top(k)

    def arms(self) -> list[ArmEstimate]:
        """Return what is known of every arm that was pulled; see `Live.arms`."""
        return self._seen().arms()

    def progress(self) -> Progress:
        """Return how far the game is; see `Live.progress`."""
        return self._seen().progress()

    def to_dataframe(self) -> pandas.DataFrame:
        """Return what is known of every arm that was pulled as a pandas table."""
        return self._seen().to_dataframe()

    def __repr__(self) -> str:
        return f"<Journal {str(self.path)!r} of {self.live!r}>"

    def __str__(self) -> str:
        return str(self._seen())

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        return self._seen()._repr_html_()

    def _seen(self) -> Live:
        with self.live._lock:
            self._writer.refuse_after_failure()  # else a pull could be seen that no file knows
        return self.live


def _locked(path: Path) -> FileLock:
    # beside the file, because the file itself is replaced
    try:
        return FileLock(path.with_name(path.name + ".lock"))
    except LockedError as error:
        where = "" if error.holder is None else f" in process {error.holder}"
        if error.holder == os.getpid():
            where = " in this process"
        raise JournalError(
            f"{path} is open already{where}: a journal has one writer. Close it there, or let "
            f"that process do the asking."
        ) from error


def _check_sync(sync: Any) -> float | None:
    """Return after how many seconds written events are synced: 0 at once, None never."""
    if isinstance(sync, str):
        if sync not in ("always", "never"):
            raise ParameterError(
                f"`sync` must be 'always', 'never' or a number of milliseconds, got {sync!r}."
            )
        return 0.0 if sync == "always" else None
    return check_number("sync", sync, above=0.0) / 1000
