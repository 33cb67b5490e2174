"""A game that a service plays, for programs that may wait; it needs nothing beyond Python."""

from __future__ import annotations

import contextlib
import http.client
import os
import threading
import time
import warnings
import weakref
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

from manyarms.core.checks import by_name
from manyarms.errors import ServiceError
from manyarms.inference.estimates import ArmEstimate, Progress, count
from manyarms.inference.question import CONFIDENCE
from manyarms.inference.uplift import Uplift
from manyarms.inference.verdict import StopVerdict
from manyarms.live.handle import Live
from manyarms.live.pulls import Pull
from manyarms.live.synced import SyncedArms
from manyarms.protocol.policy import Policy
from manyarms.remote.answers import Answer
from manyarms.remote.calls import Call, Plan, spec_of
from manyarms.remote.client import Client, Lost, Run
from manyarms.remote.fallback import check_fallback

if TYPE_CHECKING:
    import pandas

T = TypeVar("T")
_CONNECTIONS = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}


class Remote(Client):
    """A game that a service plays: it asks, tells and recommends as `Live` does, with its errors.

    Parameters
    ----------
    url
        The address of the service, such as "http://127.0.0.1:8765"; or a list of the addresses of
        its processes, one of which leads while the others stand by.
    experiment
        The name of the experiment.
    token
        A token of the service, of role client or above (default: the environment variable
        MANYARMS_TOKEN).
    worker
        A name of this worker. If it dies, its next ask returns the pulls that it asked for and
        never told (default: no name).
    timeout
        The seconds that one attempt may take (default: 30). If a process is frozen, the next
        address is tried after this time.
    patience
        The seconds during which a request is sent again, to the same or the next address, while
        no process that leads can be reached (default: 60).

    Notes
    -----
    A request whose answer is lost is sent again with the same key, so nothing is asked or told
    twice. Each request begins with the address that answered last. A handle may be shared between
    threads, each of which gets its own connection, and may be used after a fork. Unlike that of
    `Live`, `tell_many` tells all rewards that are not refused.

    Examples
    --------
    >>> import manyarms as ma
    >>> remote = ma.Remote("http://127.0.0.1:8765", "captions", token="...")
    >>> remote
    <Remote 'captions' at http://127.0.0.1:8765>

    Then as with `Live`: `pull = remote.ask()`, `remote.tell(pull, 1.0)`, `remote.recommend()`.
    """

    def _open(self) -> None:
        self._lock = threading.Lock()
        self._idle: dict[int, list[http.client.HTTPConnection]] = {}  # by the address's place
        self._process = os.getpid()
        weakref.finalize(self, _close, self._idle)

    @classmethod
    def create(
        cls,
        url: str | Iterable[str],
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
            `horizon`, `seed`, `reward_range`, `control`, `share`, `reward` as for `Live`; `window`
            (seconds that a reward may take), `missing` ("abandon" or a reward), `early` ("tell" or
            "hold"), `epsilon` and `target` (for verdicts). What `change` can change is left as it
            is if the experiment is there.
        """
        remote = cls(url, experiment, token=token)
        others = remote._run(remote._calls.create(spec_of(policy, n_arms, **spec), arms))
        if others:
            warnings.warn(
                f"The experiment {experiment!r} was there already. Beyond the arms given, it "
                f"has {count(len(others), 'arm')}, such as {others[0]!r}. `retire` lets go of "
                f"an arm.",
                stacklevel=2,
            )
        return remote

    @classmethod
    def experiments(
        cls, url: str | Iterable[str], *, token: str | None = None
    ) -> list[dict[str, Any]]:
        """Return what a service says of each of its experiments that the token may see.

        Parameters
        ----------
        url, token
            As for the class.
        """
        with cls(url, "-", token=token, patience=5.0) as remote:
            return remote._run(remote._calls.listing())

    # What changes the game

    @overload
    def ask(
        self, *, timeout: float | None = None, fallback: bool | str | int | None = None
    ) -> Pull: ...
    @overload
    def ask(
        self, k: int, *, timeout: float | None = None, fallback: bool | str | int | None = None
    ) -> list[Pull]: ...

    def ask(
        self,
        k: int | None = None,
        *,
        timeout: float | None = None,
        fallback: bool | str | int | None = None,
    ) -> Pull | list[Pull]:
        """Return the arm to pull next, or a list of the next `k`.

        Past the horizon, or after a stop, it raises `StoppedError`, which has the arm to deploy.

        Parameters
        ----------
        k
            The number of pulls, at most 10,000. Without it, one `Pull` is returned instead of a
            list.
        timeout
            The seconds that all of it may take (default: the handle's `timeout` and `patience`).
        fallback
            What to return if the service cannot be reached in time: the name of an arm, such as
            the control's, or True for the last recommended one that this handle has heard of,
            which it then asks for once a minute. Such a pull has `is_fallback` and the id -1,
            and to tell its reward does nothing (default: raise `ServiceError`).
        """
        within, instead = check_fallback(timeout, fallback)
        end = None if within is None else time.monotonic() + within
        try:
            pulls = self._run(self._calls.ask(k), within)
        except ServiceError as error:
            if instead is None:
                raise
            return self._fallback.pulls(k, instead, error)
        if instead is True and self._fallback.stale:
            left = self._attempt_within(end)
            with contextlib.suppress(ServiceError):
                self._fallback.remember(self._run(self._calls.best(), left))
        return pulls

    def tell(self, pull: Pull | int, reward: float, *, again: str = "refuse") -> None:
        """Report the reward of a pull, now or later, in any order. As `Live.tell`.

        Parameters
        ----------
        pull, again
            As for `Live.tell`.
        reward
            A number within the experiment's `reward_range`.
        """
        self._run(self._calls.tell(pull, reward, again))

    def tell_many(
        self, rewards: Iterable[tuple[Pull | int, float]], *, again: str = "refuse"
    ) -> None:
        """Report several rewards, as `Live.tell_many`; but it tells all that are not refused."""
        self._run(self._calls.tell_many(rewards, again))

    def abandon(self, pull: Pull | int, *, again: str = "refuse") -> None:
        """Give up a pull whose reward will never come. As `Live.abandon`.

        Parameters
        ----------
        pull
            What `ask` returned, or its `id`.
        again
            As for `tell`.
        """
        self._run(self._calls.abandon(pull, again))

    def add_arms(self, arms: int | Iterable[str | int]) -> Sequence[Any]:
        """Add arms and return their names. The token needs the role operator.

        If the answer is lost, the call raises and is not sent again: look at `n_arms`.

        Parameters
        ----------
        arms
            The number of new arms if arms have numbers, or their names if they have names.
        """
        return self._run(self._calls.add_arms(arms))

    def sync_arms(self, names: Iterable[str | int]) -> SyncedArms:
        """Let exactly these arms be in play, as `Live.sync_arms`.

        The token needs the role operator. New arms come first, and all at once. Arms then go some
        at a time: if the service ends midway, the same call does the rest.

        Parameters
        ----------
        names
            The names of all arms.
        """
        return self._run(self._calls.sync_arms(names))

    def retire(self, arm: str | int) -> None:
        """Never ask for an arm again, as `Live.retire`. The token needs the role operator.

        Parameters
        ----------
        arm
            The arm's number or name.
        """
        self._run(self._calls.retire(arm))

    def restore(self, arm: str | int) -> None:
        """Let a retired arm come back, as `Live.restore`. The token needs the role operator.

        Parameters
        ----------
        arm
            The arm's number or name.
        """
        self._run(self._calls.restore(arm))

    def observe(self, arm: str | int, rewards: float | Iterable[float]) -> None:
        """Report rewards of an arm that no pull of this experiment earned, as `Live.observe`.

        The token needs the role operator. If the answer is lost, the call raises and is not sent
        again, because the rewards would count twice.

        Parameters
        ----------
        arm
            The arm's number or name.
        rewards
            A reward, or several in the order in which they came.
        """
        self._run(self._calls.observe(arm, rewards))

    def season(
        self,
        experiment: str,
        *,
        horizon: int | None = None,
        policy: Policy | str | None = None,
        seed: int | None = None,
    ) -> Remote:
        """Create an experiment that remembers this one, as `Live.season`, and return it.

        The token needs the role admin. Settings, the control and the names of arms are those of
        this experiment, which stays as it is: stop it if it is to answer no asks any more. If
        rewards come later, tell them here and observe them there.

        Parameters
        ----------
        experiment
            The name of the new experiment. If it is there already as this very season, it is
            returned as it is.
        horizon, seed
            As for `Live.season`.
        policy
            The policy that goes on, or its name (default: that of this experiment).
        """
        self._run(self._calls.season(experiment, policy, horizon=horizon, seed=seed))
        return self._beside(experiment)

    def pause(self) -> None:
        """Let the service refuse asks until `resume`; rewards can still be told.

        The token needs the role operator.
        """
        self._run(self._calls.change("pause"))

    def resume(self) -> None:
        """Let the service answer asks again. The token needs the role operator."""
        self._run(self._calls.change("resume"))

    def stop(self) -> None:
        """Let the service refuse asks for good. The token needs the role operator."""
        self._run(self._calls.change("stop"))

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
        return self._run(self._calls.pending())

    def recommend(self) -> ArmEstimate:
        """Return the arm to deploy, as `Live.recommend` does."""
        best = self._run(self._calls.recommend())
        self._fallback.remember(best.arm)
        return best

    def top(self, k: int) -> list[ArmEstimate]:
        """Return the `k` best arms, or fewer if fewer are known, as `Live.top` does.

        Parameters
        ----------
        k
            The number of arms, at most 1000.
        """
        return self._run(self._calls.top(k))

    @by_name
    def verdict(
        self,
        *,
        epsilon: float | str | None = None,
        quantile: float | None = None,
        confidence: float | None = None,
        target: float | str | None = None,
        margin: float | str | None = None,
    ) -> StopVerdict:
        """Return whether the recommended arm is good enough to stop, as `Live.verdict` does.

        Parameters
        ----------
        epsilon, quantile, confidence, target, margin
            As for `Live.verdict` (default: the experiment's `target`, or else its `epsilon`, 0.05
            and 0.95).
        """
        return self._run(
            self._calls.verdict(
                epsilon=epsilon,
                quantile=quantile,
                confidence=confidence,
                target=target,
                margin=margin,
            )
        )

    def change(self, **settings: float | str | None) -> None:
        """Change settings of the experiment. The token needs the role operator.

        Parameters
        ----------
        settings
            `epsilon`: how much worse than the best an arm may be, so that verdicts say stop, as a
            number or a share such as "20%"; None is the default. `target`: the mean that it must
            exceed instead, or "control", to be better than the control; None for no target.
        """
        self._run(self._calls.change_settings(**settings))

    @by_name
    def uplift(self, *, confidence: float = CONFIDENCE) -> Uplift:
        """Return how much better the recommended arm is than the control, as `Live.uplift` does.

        Parameters
        ----------
        confidence
            As for `Live.uplift` (default: 0.95).
        """
        return self._run(self._calls.uplift(confidence))

    def arms(self) -> list[ArmEstimate]:
        """Return what is known about every arm that was pulled, those with most pulls first."""
        return self._run(self._calls.arms())

    def progress(self) -> Progress:
        """Return how far the game is."""
        return self._run(self._calls.progress())

    def summary(self) -> dict[str, Any]:
        """Return all that the service says of the experiment at a glance."""
        return self._run(self._calls.summary())

    def to_dataframe(self) -> pandas.DataFrame:
        """Return what is known of every arm that was pulled as a pandas table."""
        return Live.to_dataframe(self)  # type: ignore[arg-type]  # it looks at arms() only

    def __str__(self) -> str:
        how = self.progress()
        return f"{self.experiment} at {self.url}, {count(how.n_arms, 'arm')}\n{how}"

    # How

    def _run(self, plan: Plan[T], within: float | None = None) -> T:
        run = Run(plan, self._addresses, self._patience if within is None else within)
        end = None if within is None else time.monotonic() + within
        for step in run:
            if isinstance(step, Call):
                run.came = self._attempt(step, run.at, self._attempt_within(end))
            else:
                time.sleep(step)
        return run.result

    def _attempt(self, call: Call, at: int, seconds: float) -> Answer | Lost:
        kept = None if call.once else self._kept(at)  # which may have been closed by the service
        to = self._addresses.all[at]
        connection = kept or _CONNECTIONS[to.scheme](to.host, timeout=seconds)
        if kept is not None and kept.sock is not None:
            kept.timeout = seconds
            kept.sock.settimeout(seconds)
        path, headers = to.prefix + call.path, self._headers | call.headers
        sent = False
        try:
            if connection.sock is None:
                connection.connect()
            sent = True
            connection.request(call.method, path, call.body, headers)
            response = connection.getresponse()
            data = response.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            stale = kept is not None and not isinstance(error, TimeoutError)
            if stale:
                self.close()  # the others were closed too, most likely
            return Lost(f"{type(error).__name__} {error}".rstrip(), sent, stale)
        if response.will_close:
            connection.close()
        else:
            self._keep(at, connection)
        return Answer.of(response.status, data, response.headers.get("Retry-After"))

    def _kept(self, at: int) -> http.client.HTTPConnection | None:
        with self._lock:
            if self._process != os.getpid():  # a fork: the sockets are the parent's
                self._process = os.getpid()
                self._idle.clear()
            idle = self._idle.get(at)
            return idle.pop() if idle else None

    def _keep(self, at: int, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            self._idle.setdefault(at, []).append(connection)

    def close(self) -> None:
        """Close idle connections; the next call opens a new one."""
        with self._lock:
            _close(self._idle)

    def __enter__(self) -> Remote:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _close(idle: dict[int, list[http.client.HTTPConnection]]) -> None:
    for connections in idle.values():
        while connections:
            connections.pop().close()
