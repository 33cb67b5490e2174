"""A game that a service plays, for programs that may wait; it needs nothing beyond Python."""

from __future__ import annotations

import http.client
import os
import threading
import time
import warnings
import weakref
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, overload

from manyarms.live.estimates import ArmEstimate, Progress, count
from manyarms.live.game import Pull
from manyarms.live.handle import Live
from manyarms.live.verdict import CONFIDENCE, EPSILON, QUANTILE, StopVerdict
from manyarms.protocol.policy import Policy
from manyarms.remote.calls import (
    Answer,
    Attempts,
    Call,
    Calls,
    base_of,
    not_served,
    progress_of,
    spec_of,
)

if TYPE_CHECKING:
    import pandas

__all__ = ["Remote"]

T = TypeVar("T")


class Remote:
    """A game that a service plays: it asks, tells and recommends as `Live` does, with its errors.

    Parameters
    ----------
    url
        The address of the service, such as "http://127.0.0.1:8765".
    experiment
        The name of the experiment.
    token
        A token of the service, of role client or above (default: the environment variable
        MANYARMS_TOKEN).
    worker
        A name of this worker. If it dies, its next ask returns the pulls that it asked for and
        never told (default: no name).
    timeout
        The seconds that one attempt may take (default: 30).
    patience
        The seconds during which a request is sent again while the service cannot be reached or is
        changing owners (default: 60).

    Notes
    -----
    A request whose answer is lost is sent again with the same key, so nothing is asked or told
    twice. A handle may be shared between threads, each of which gets its own connection, and may be
    used after a fork. Unlike that of `Live`, `tell_many` tells all rewards that are not refused.

    Examples
    --------
    >>> import manyarms as ma
    >>> remote = ma.Remote("http://127.0.0.1:8765", "captions", token="...")
    >>> remote
    <Remote 'captions' at http://127.0.0.1:8765>

    Then as with `Live`: `pull = remote.ask()`, `remote.tell(pull, 1.0)`, `remote.recommend()`.
    """

    def __init__(
        self,
        url: str,
        experiment: str,
        *,
        token: str | None = None,
        worker: str | None = None,
        timeout: float = 30.0,
        patience: float = 60.0,
    ) -> None:
        scheme, self._host, prefix = base_of(url, timeout, patience)
        self.url, self.experiment = url, experiment
        https = scheme == "https"
        self._connection = http.client.HTTPSConnection if https else http.client.HTTPConnection
        self._calls = Calls(prefix, experiment, worker)
        token = token or os.environ.get("MANYARMS_TOKEN")
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._timeout, self._patience = timeout, patience
        self._lock = threading.Lock()
        self._idle: list[http.client.HTTPConnection] = []
        self._process = os.getpid()
        weakref.finalize(self, _close, self._idle)

    @classmethod
    def create(
        cls,
        url: str,
        experiment: str,
        policy: Policy | str = "prospector",
        *,
        n_arms: int | None = None,
        arms: Iterable[str | int] | None = None,
        token: str | None = None,
        **spec: Any,
    ) -> Remote:
        """Create an experiment on a service, or find it there if it is the same; return it.

        Parameters
        ----------
        url, experiment, token
            As for the class; creating takes role admin.
        policy
            The policy, or its name (default: "prospector").
        n_arms
            The number of arms, which are called by number.
        arms
            Names of the arms instead. If the experiment has arms already, none is added, and they
            must be among those; it warns if there are others.
        spec
            `horizon`, `seed`, `reward_range` as for `Live`; `window` (seconds that a reward may
            take), `missing` ("abandon" or a reward), `early` ("tell" or "hold").
        """
        remote = cls(url, experiment, token=token)
        found = remote._send(remote._calls.create(spec_of(policy, n_arms, **spec)))
        if arms is not None and found["n_arms"] == 0:
            remote.add_arms(arms)
        elif arms is not None and (others := remote._send(remote._calls.check_arms(arms))):
            warnings.warn(
                f"The experiment {experiment!r} was there already. Beyond the arms given, it "
                f"has {count(len(others), 'arm')}, such as {others[0]!r}. `retire` lets go of "
                f"an arm.",
                stacklevel=2,
            )
        return remote

    @classmethod
    def experiments(cls, url: str, *, token: str | None = None) -> list[dict[str, Any]]:
        """Return what a service says of each of its experiments that the token may see.

        Parameters
        ----------
        url, token
            As for the class.
        """
        with cls(url, "-", token=token, patience=5.0) as remote:
            found: list[dict[str, Any]] = []
            cursor: str | None = ""
            while cursor is not None:
                page = remote._send(remote._calls.listing(cursor))
                found += page["experiments"]
                cursor = page.get("cursor")  # services of older versions have none
            return found

    # What changes the game

    @overload
    def ask(self) -> Pull: ...
    @overload
    def ask(self, k: int) -> list[Pull]: ...

    def ask(self, k: int | None = None) -> Pull | list[Pull]:
        """Return the arm to pull next, or a list of the next `k`.

        Past the horizon, or after a stop, it raises `StoppedError`, which has the arm to deploy.

        Parameters
        ----------
        k
            The number of pulls, at most 10,000. Without it, one `Pull` is returned instead of a
            list.
        """
        pulls = self._send(self._calls.ask(k))
        return pulls[0] if k is None else pulls

    def tell(self, pull: Pull | int, reward: float, *, again: str = "refuse") -> None:
        """Report the reward of a pull, now or later, in any order. As `Live.tell`.

        Parameters
        ----------
        pull
            What `ask` returned, or its `id`.
        reward
            A number within the experiment's `reward_range`.
        again
            What to do if the pull was told or abandoned before: "refuse" raises, "ignore" does
            nothing.
        """
        for call in self._calls.tell([(pull, reward)], again, many=False):
            self._send(call)

    def tell_many(
        self, rewards: Iterable[tuple[Pull | int, float]], *, again: str = "refuse"
    ) -> None:
        """Report several rewards. If some are refused, the others are told, and it raises.

        Parameters
        ----------
        rewards
            Pairs of a pull (or its id) and its reward.
        again
            As for `tell`.
        """
        for call in self._calls.tell(rewards, again, many=True):
            self._send(call)

    def abandon(self, pull: Pull | int, *, again: str = "refuse") -> None:
        """Give up a pull whose reward will never come. As `Live.abandon`.

        Parameters
        ----------
        pull
            What `ask` returned, or its `id`.
        again
            As for `tell`.
        """
        self._send(self._calls.abandon(pull, again))

    def add_arms(self, arms: int | Iterable[str | int]) -> Sequence[Any]:
        """Add arms and return their names. The token needs the role operator.

        If the answer is lost, the call raises and is not sent again: look at `n_arms`.

        Parameters
        ----------
        arms
            The number of new arms if arms have numbers, or their names if they have names.
        """
        return self._send(self._calls.add_arms(arms))

    def retire(self, arm: str | int) -> None:
        """Never ask for an arm again, as `Live.retire`. The token needs the role operator.

        Parameters
        ----------
        arm
            The arm's number or name.
        """
        self._send(self._calls.retire(arm))

    def pause(self) -> None:
        """Let the service refuse asks until `resume`; rewards can still be told.

        The token needs the role operator.
        """
        self._send(self._calls.change("pause"))

    def resume(self) -> None:
        """Let the service answer asks again. The token needs the role operator."""
        self._send(self._calls.change("resume"))

    def stop(self) -> None:
        """Let the service refuse asks for good. The token needs the role operator."""
        self._send(self._calls.change("stop"))

    # What only looks

    @property
    def n_arms(self) -> int:
        """The number of arms now, without retired ones."""
        return self.progress().n_arms

    @property
    def pulls(self) -> int:
        """The number of pulls asked for."""
        return self.progress().pulls

    @property
    def pending(self) -> list[Pull]:
        """The first 10,000 pulls whose reward was not told yet, in the order of their asks."""
        return self._send(self._calls.pending())

    def recommend(self) -> ArmEstimate:
        """Return the arm to deploy, as `Live.recommend` does."""
        return self.top(1)[0]

    def top(self, k: int) -> list[ArmEstimate]:
        """Return the `k` best arms, or fewer if fewer are known, as `Live.top` does.

        Parameters
        ----------
        k
            The number of arms, at most 1000.
        """
        return self._send(self._calls.top(k))

    def verdict(
        self,
        *,
        epsilon: float = EPSILON,
        quantile: float = QUANTILE,
        confidence: float = CONFIDENCE,
    ) -> StopVerdict:
        """Return whether the recommended arm is good enough to stop, as `Live.verdict` does.

        Parameters
        ----------
        epsilon, quantile, confidence
            As for `Live.verdict` (default: 0.1, 0.05 and 0.95).
        """
        return self._send(self._calls.verdict(epsilon, quantile, confidence))

    def observe(self, arm: str | int, rewards: float | Iterable[float]) -> NoReturn:
        """Raise `ServiceError`: only a handle can observe rewards that no pull earned."""
        raise not_served("observe")

    def season(self, **asked: Any) -> NoReturn:
        """Raise `ServiceError`: only a handle can begin a game with what another one knows."""
        raise not_served("season")

    def restore(self, arm: str | int) -> NoReturn:
        """Raise `ServiceError`: a service retires arms for good."""
        raise not_served("restore")

    def save(self, path: str | os.PathLike[str]) -> NoReturn:
        """Raise `ServiceError`: the service keeps everything in its database."""
        raise not_served("save")

    def arms(self) -> list[ArmEstimate]:
        """Return what is known about every arm that was pulled, those with most pulls first."""
        found: list[ArmEstimate] = []
        cursor: str | None = ""
        while cursor is not None:
            some, cursor = self._send(self._calls.arms(cursor))
            found += some
        return found

    def progress(self) -> Progress:
        """Return how far the game is."""
        return progress_of(self.summary())

    def summary(self) -> dict[str, Any]:
        """Return all that the service says of the experiment at a glance."""
        return self._send(self._calls.summary())

    def to_dataframe(self) -> pandas.DataFrame:
        """Return what is known of every arm that was pulled as a pandas table."""
        return Live.to_dataframe(self)  # type: ignore[arg-type]  # it looks at arms() only

    def __repr__(self) -> str:
        return f"<Remote {self.experiment!r} at {self.url}>"

    def __str__(self) -> str:
        how = self.progress()
        return f"{self.experiment} at {self.url}, {count(how.n_arms, 'arm')}\n{how}"

    # How

    def _send(self, call: Call[T]) -> T:
        attempts = Attempts(self._patience)
        while True:
            answer, why, sent = self._attempt(call)
            settled = attempts.settle(call, answer, why, sent=sent)
            if answer is not None and answer.status < 300:
                return settled  # type: ignore[return-value]
            time.sleep(settled)  # type: ignore[arg-type]

    def _attempt(self, call: Call[T]) -> tuple[Answer | None, str, bool]:
        """Return the answer; without one, what failed, and whether the request may have arrived."""
        kept = None if call.once else self._kept()  # which may have been closed by the service
        connection = kept or self._connection(self._host, timeout=self._timeout)
        sent = False
        try:
            if connection.sock is None:
                connection.connect()
            sent = True
            connection.request(call.method, call.path, call.body, self._headers | call.headers)
            response = connection.getresponse()
            data = response.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            return None, f"{type(error).__name__} {error}".rstrip(), sent
        if response.will_close:
            connection.close()
        else:
            self._keep(connection)
        return Answer.of(response.status, data, response.headers.get("Retry-After")), "", True

    def _kept(self) -> http.client.HTTPConnection | None:
        with self._lock:
            if self._process != os.getpid():  # a fork: the sockets are the parent's
                self._process = os.getpid()
                self._idle.clear()
            return self._idle.pop() if self._idle else None

    def _keep(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            self._idle.append(connection)

    def close(self) -> None:
        """Close idle connections; the next call opens a new one."""
        with self._lock:
            _close(self._idle)

    def __enter__(self) -> Remote:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _close(idle: list[http.client.HTTPConnection]) -> None:
    while idle:
        idle.pop().close()
