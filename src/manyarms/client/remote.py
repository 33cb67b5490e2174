"""A blocking client of the service, which needs only the standard library."""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar, Unpack, overload

from manyarms.client.answers import (
    not_a_service,
    pulls_in,
    read_progress,
    read_uplift,
    read_verdict,
    refusals_in_words,
    refused_in,
    told_before,
)
from manyarms.client.base import Attempt, Client, carried_out
from manyarms.client.calls import PAGE, Limits, Plan, experiments, spec_of
from manyarms.client.connections import Connections
from manyarms.client.fallback import check_fallback
from manyarms.core.checks import check_choice, check_int
from manyarms.core.tabular import Library, data_frame
from manyarms.errors import (
    ManyarmsError,
    ParameterError,
    TurnError,
)
from manyarms.inference.estimates import ArmEstimate, Progress, columns_of
from manyarms.inference.question import CONFIDENCE
from manyarms.inference.uplift import Uplift, check_confidence
from manyarms.inference.verdict import StopVerdict
from manyarms.live.calls import in_list, pairs_of
from manyarms.live.checks import check_reward
from manyarms.live.pulls import Pull
from manyarms.live.synced import SyncedArms
from manyarms.protocol.policy import Policy

T = TypeVar("T")
_MOST = 10_000  # pulls or rewards in one request
_SOON = {"timeout": 1.0, "retry_for": 1.0}  # for an ask with a fallback (seconds)


class Remote(Client):
    """An experiment of a service, with most methods of `Live` and the same errors.

    Parameters
    ----------
    url
        The address of the service, such as "http://127.0.0.1:8765", or a list of the addresses of
        its processes (one leads, the others stand by).
    experiment
        The name of the experiment.
    token
        A token of the service, with the role client or admin (default: the environment variable
        MANYARMS_TOKEN).
    timeout
        How long one attempt waits for a connection, or for the answer (seconds; default: 5; 60
        for calls that send names of arms or start a season; 1 for an ask with a `fallback`).
    retry_for
        How long a failed request is retried, at the same or the next address (seconds; default: 10;
        1 for an ask with a `fallback`). The time is counted from the first failure. When it is
        over, no new attempt begins; the last one may take up to `timeout` to connect, and as long
        again for the answer. With 0 there is one attempt.

    Notes
    -----
    Every method also takes `timeout` and `retry_for`, which then apply to each request of that
    call.

    Retries are safe: an ask is sent with an idempotency key, and a tell that is repeated with the
    same reward changes nothing. `observe`, `season`, and `add_arms` with a number are not sent
    again if they may have been carried out. Each request starts with the address that answered
    last. Threads may share a client, which can also be used after a fork.

    Examples
    --------
    >>> import manyarms as ma
    >>> remote = ma.Remote("http://127.0.0.1:8765", "captions", token="...")
    >>> remote
    <Remote 'captions' at http://127.0.0.1:8765>

    Continue as with `Live`: `pull = remote.ask()`, `remote.tell(pull, 1.0)`, `remote.recommend()`.
    """

    _sleep = staticmethod(time.sleep)

    def _open(self, headers: dict[str, str]) -> None:
        self._connections = Connections(headers)

    def _run(self, plan: Plan[T], limits: Limits) -> T:
        steps, outcome = self._steps(plan, limits), None
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration as done:
                result: T = done.value
                return result
            if isinstance(step, Attempt):
                outcome = self._connections.attempt(step)
            else:
                outcome = self._sleep(step)

    def close(self) -> None:
        """Close idle connections; the next call opens a new one."""
        self._connections.close()

    def __enter__(self) -> Remote:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # Experiments

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
        timeout: float | None = None,
        retry_for: float | None = None,
        **spec: Any,
    ) -> Remote:
        """Create an experiment, or find it if it exists with the same settings; return its client.

        Parameters
        ----------
        url, experiment, token, timeout, retry_for
            As for the class. The token needs the role admin.
        policy
            The policy, or its name (default: "prospector").
        n_arms
            The number of arms, which are then called by number.
        arms
            Names of the arms, instead of `n_arms`; integers become text. If the experiment exists,
            missing names are added and no arm is retired; to retire the others, use `sync_arms`.
        spec
            `horizon`, `seed`, `reward_range`, `control`, `share`, `reward`, `window`, `missing`,
            `hold` and `epsilon` as for `Live`; and `target`, the default of `verdict`: a mean or
            "control" (default: as for `Live.verdict`). If the experiment exists, `epsilon` and
            `target` keep their values; use `change` to set them.
        """
        remote = cls(url, experiment, token=token, timeout=timeout, retry_for=retry_for)
        remote._create(spec_of(policy, n_arms, **spec), arms)
        return remote

    @carried_out
    def _create(self: Client, spec: dict[str, Any], arms: Iterable[str | int] | None) -> Plan[None]:
        if isinstance(arms, int):
            raise ParameterError(
                f"`arms` must be the names of arms, got {arms}. Pass n_arms={arms} for arms that "
                f"are called by number."
            )
        names = None if arms is None else [str(arm) for arm in arms]
        yield self._calls.send("PUT", "", spec)
        if names is not None:
            yield self._calls.send_names("POST", names)

    @classmethod
    def experiments(
        cls, url: str | Iterable[str], *, token: str | None = None, **limits: Unpack[Limits]
    ) -> list[dict[str, Any]]:
        """Return the summaries of all experiments of a service.

        Parameters
        ----------
        url, token
            As for the class.
        limits
            `timeout` and `retry_for`, as for the class.
        """
        with cls(url, "-", token=token, **limits) as remote:
            return remote._run(experiments(), {})

    @carried_out
    def season(
        self: Client,
        *,
        horizon: int | None = None,
        policy: Policy | str | None = None,
        seed: int | None = None,
        **limits: Unpack[Limits],
    ) -> Plan[None]:
        """Begin a season, as `Live.season` does. The token needs the role admin.

        Parameters
        ----------
        horizon, seed
            As for `Live.season`.
        policy
            The policy to continue with, or its name (default: the present one).
        limits
            `timeout` and `retry_for`, as for the class.
        """
        named = None if policy is None else spec_of(policy, None)["policy"]
        body = {"policy": named, "horizon": horizon, "seed": seed}
        yield self._calls.send("POST", "/season", body, timeout=60.0, once=True)

    @carried_out
    def pause(self: Client, **limits: Unpack[Limits]) -> Plan[None]:
        """Refuse asks until `resume`; rewards can still be told. The token needs the role admin."""
        yield self._calls.send("POST", "/pause", {})

    @carried_out
    def resume(self: Client, **limits: Unpack[Limits]) -> Plan[None]:
        """Answer asks again after a pause. The token needs the role admin."""
        yield self._calls.send("POST", "/resume", {})

    @carried_out
    def stop(self: Client, **limits: Unpack[Limits]) -> Plan[None]:
        """Refuse all later asks. This cannot be undone. The token needs the role admin."""
        yield self._calls.send("POST", "/stop", {})

    @carried_out
    def change(
        self: Client,
        /,
        *,
        timeout: float | None = None,
        retry_for: float | None = None,
        **settings: float | str | None,
    ) -> Plan[None]:
        """Change settings of the experiment. The token needs the role admin.

        Parameters
        ----------
        timeout, retry_for
            As for the class.
        settings
            `epsilon`: the value that `verdict` uses by default, a number or a share such as "20%";
            None restores that of `Live.verdict`. `target`: the target that `verdict` uses by
            default, a mean or "control"; None for no target.
        """
        yield self._calls.send("PATCH", "", settings)

    # Pulls and rewards

    @overload
    def ask(
        self, *, fallback: bool | str | int | None = None, **limits: Unpack[Limits]
    ) -> Pull: ...
    @overload
    def ask(
        self, k: int, *, fallback: bool | str | int | None = None, **limits: Unpack[Limits]
    ) -> list[Pull]: ...

    def ask(
        self,
        k: int | None = None,
        *,
        fallback: bool | str | int | None = None,
        **limits: Unpack[Limits],
    ) -> Any:
        """Return the next pull, or a list of the next `k` pulls.

        After the last pull of the horizon, or after a stop, it raises `StoppedError`, whose
        attribute `recommended` is the arm to deploy.

        Parameters
        ----------
        k
            The number of pulls, at most 10,000 (default: a single `Pull`, not in a list). The list
            is shorter if the service makes only some of the pulls; the next call then raises the
            error.
        fallback
            The arm to return if the service returns no pull, for example because it cannot be
            reached or the experiment is paused (default: None, raise an error). Pass the name of an
            arm, such as the control's, or True for the recommended arm. With True, the client also
            requests the recommended arm after a successful ask, at most once a minute; until it
            knows one, errors are raised. The fallback pull has `is_fallback` and the id -1; telling
            or abandoning it does nothing. A warning is logged when fallbacks begin, and when a
            fallback pull is first told or abandoned. A wrong call, such as `k=0`, always raises.
        limits
            `timeout` and `retry_for`, as for the class.
        """
        return self._ask(k, fallback, **limits)

    @carried_out
    def _ask(self: Client, k: int | None, fallback: Any, **limits: Unpack[Limits]) -> Plan[Any]:
        """Ask for pulls. All attempts of a request have one key, so that they count once."""
        instead = check_fallback(fallback)
        fix = "Pass the number of pulls, or nothing for a single one."
        if isinstance(k, int) and k > _MOST:
            fix = "For more pulls, call ask again."
        number = 1 if k is None else check_int("k", k, at_least=1, at_most=_MOST, fix=fix)
        soon = {} if instead is None else _SOON
        pulls: list[Pull] = []
        try:
            while len(pulls) < number:  # fewer are returned if known rewards were used instead
                more = {"k": number - len(pulls)}
                call = self._calls.send("POST", "/asks", more, **soon)
                call.headers["Idempotency-Key"] = secrets.token_hex(16)
                given = pulls_in((yield call).body["pulls"])
                pulls += given or [given[0]]
        except (ManyarmsError, LookupError, TypeError) as error:
            try:
                if instead is None:
                    raise
                failure = error if isinstance(error, ManyarmsError) else not_a_service()
                pulls += [self._fallback.pull(instead, failure)] * (number - len(pulls))
            except (ManyarmsError, LookupError, TypeError):
                if not pulls:
                    raise
                return pulls  # those that the service made; the next ask raises the error
            return pulls[0] if k is None else pulls
        self._fallback.answered()
        if instead is True and self._fallback.stale:
            # keep the arm, and wait a minute before the next request, even if this one fails
            self._fallback.remember(None)
            with contextlib.suppress(ManyarmsError, LookupError, TypeError):  # the ask succeeded
                self._fallback.remember((yield from self._calls.leaders(1, **soon))[0].arm)
        return pulls[0] if k is None else pulls

    @carried_out
    def tell(
        self: Client,
        pull: Pull | int,
        reward: float,
        *,
        again: str = "refuse",
        **limits: Unpack[Limits],
    ) -> Plan[None]:
        """Report the reward of a pull, now or later, in any order, as `Live.tell` does.

        Parameters
        ----------
        pull, again
            As for `Live.tell`. A fallback pull is ignored.
        reward
            A number within the experiment's `reward_range`.
        limits
            `timeout` and `retry_for`, as for the class.
        """
        check_choice("again", again, ("refuse", "ignore"))
        value = check_reward(reward, None)
        if not self._fallback.ignores(pull):
            tells = [{"pull": _number(pull), "reward": value}]
            answer = yield self._calls.send("POST", "/tells", {"tells": tells})
            for _, error in refused_in(answer, "tell", again):
                raise error

    @carried_out
    def tell_many(
        self: Client,
        rewards: Iterable[tuple[Pull | int, float]],
        *,
        again: str = "refuse",
        **limits: Unpack[Limits],
    ) -> Plan[None]:
        """Report several rewards. Unlike with `Live.tell_many`, those that are not refused count.

        If any is refused, an error is raised at the end. More than 10,000 rewards take several
        requests; if one of them fails, its error also says which rewards were told or refused
        before.

        Parameters
        ----------
        rewards, again
            As for `Live.tell_many`. Fallback pulls are ignored.
        limits
            `timeout` and `retry_for`, as for the class.
        """
        check_choice("again", again, ("refuse", "ignore"))
        tells = []
        for place, (pull, reward) in enumerate(pairs_of(rewards)):
            try:
                value = check_reward(reward, None)
                if not self._fallback.ignores(pull):
                    tells.append({"pull": _number(pull), "reward": value})
            except ParameterError as error:
                raise error.framed(f"{in_list(place, pull)}: ", " Nothing was told.") from None
        wrong: list[tuple[int, ManyarmsError]] = []
        for k in range(0, len(tells), _MOST):
            try:
                answer = yield self._calls.send("POST", "/tells", {"tells": tells[k : k + _MOST]})
            except ManyarmsError as error:
                raise error.framed("", told_before(tells[:k], wrong)) from None
            wrong += [(k + at, error) for at, error in refused_in(answer, "tell", again)]
        if wrong:
            raise type(wrong[0][1])(refusals_in_words(tells, wrong))

    @carried_out
    def abandon(
        self: Client, pull: Pull | int, *, again: str = "refuse", **limits: Unpack[Limits]
    ) -> Plan[None]:
        """Abandon a pull whose reward will never come, as `Live.abandon` does.

        Parameters
        ----------
        pull
            What `ask` returned, or its `id`. A fallback pull is ignored.
        again, limits
            As for `tell`.
        """
        check_choice("again", again, ("refuse", "ignore"))
        if not self._fallback.ignores(pull):
            answer = yield self._calls.send("POST", "/abandons", {"pulls": [_number(pull)]})
            for _, error in refused_in(answer, "abandon", again):
                raise error

    @carried_out
    def observe(
        self: Client,
        arm: str | int | None = None,
        rewards: float | Iterable[float] | None = None,
        *,
        counts: Mapping[Any, Sequence[float]] | None = None,
        **limits: Unpack[Limits],
    ) -> Plan[None]:
        """Import rewards, as `Live.observe` does.

        The token needs the role admin. If the answer is lost, the call raises an error and is not
        sent again, because the rewards might count twice.

        Parameters
        ----------
        arm
            The arm's number or name.
        rewards
            A reward, or several.
        counts
            Instead of `arm` and `rewards`: for each arm, the number of its rewards and their sum,
            and the sum of their squares if they are not all at the ends of the range.
        limits
            `timeout` and `retry_for`, as for the class.
        """
        what, key, items = "rewards", "rewards", list[Any]()
        if counts is not None:
            what, key = "arms", "counts"
            items = [(str(name), list(of)) for name, of in counts.items()]
        if (counts is None) == (arm is None or rewards is None):
            raise ParameterError("Either `arm` and `rewards` must be given, or `counts`.")
        if counts is None:
            several = rewards if isinstance(rewards, Iterable) else [rewards]
            items = [check_reward(reward, None, "observe") for reward in several]
        for k in range(0, len(items), _MOST):
            part = items[k : k + _MOST]
            body = {"arm": str(arm), key: part} if counts is None else {key: dict(part)}
            try:
                yield self._calls.send("POST", "/observations", body, once=True)
            except ManyarmsError as error:
                kept = f" The first {k} of {len(items)} {what} were recorded." if k else ""
                raise error.framed("", kept) from None

    # Arms

    @carried_out
    def add_arms(
        self: Client, arms: int | Iterable[str | int], **limits: Unpack[Limits]
    ) -> Plan[Sequence[Any]]:
        """Add arms and return their names. The token needs the role admin.

        Prospector tries them soon; other policies treat them like any unpulled arm, so they rarely
        try them after they have found a good one (docs/changing_catalogue.md).

        Names that exist are skipped, unlike in `Live.add_arms`. If arms are called by number and
        the answer is lost, the call raises an error and is not sent again. Check `n_arms` before
        you repeat it.

        Parameters
        ----------
        arms
            The number of new arms if arms have numbers, or their names if they have names.
        limits
            `timeout` and `retry_for`, as for the class.
        """
        if isinstance(arms, int):
            seen = (yield self._calls.send("POST", "/arms", {"count": arms}, once=True)).body
            return range(seen["n_arms"] - seen["added"], seen["n_arms"])
        names = list(arms)
        yield self._calls.send_names("POST", map(str, names))
        return names

    @carried_out
    def sync_arms(
        self: Client, names: Iterable[str | int], **limits: Unpack[Limits]
    ) -> Plan[SyncedArms]:
        """Make exactly these arms available, as `Live.sync_arms` does.

        The token needs the role admin. New arms are added first, all at once. Then arms are
        restored and retired in several steps: if the service stops in between, repeat the call.

        Parameters
        ----------
        names
            The names of all arms.
        limits
            `timeout` and `retry_for`, as for the class.
        """
        if isinstance(names, str | bytes | int):
            raise ParameterError(f"`names` must be a list of names, got {names!r}.")
        seen = (yield self._calls.send_names("PUT", map(str, names))).body
        return SyncedArms(seen["added"], seen["restored"], seen["retired"], seen["n_arms"])

    @carried_out
    def retire(self: Client, arm: str | int, **limits: Unpack[Limits]) -> Plan[None]:
        """Retire an arm, as `Live.retire` does. The token needs the role admin.

        Parameters
        ----------
        arm
            The arm's number or name.
        limits
            `timeout` and `retry_for`, as for the class.
        """
        answer = yield self._calls.send("POST", "/retirements", {"arm": str(arm)})
        if not (answer.body["applied"] or answer.repeated):
            raise TurnError(f"Cannot retire arm {arm!r}: it is already retired.")

    @carried_out
    def restore(self: Client, arm: str | int, **limits: Unpack[Limits]) -> Plan[None]:
        """Restore a retired arm, as `Live.restore` does. The token needs the role admin.

        Parameters
        ----------
        arm
            The arm's number or name.
        limits
            `timeout` and `retry_for`, as for the class.
        """
        answer = yield self._calls.send("POST", "/restores", {"arm": str(arm)})
        if not (answer.body["applied"] or answer.repeated):
            raise TurnError(f"Cannot restore arm {arm!r}: it is not retired.")

    # Queries

    @property
    def n_arms(self) -> int:
        """The number of available arms, without retired ones."""
        return self.progress().n_arms

    @property
    def pulls(self) -> int:
        """The number of pulls so far, without those of the control."""
        return self.progress().pulls

    @property
    def pending(self) -> list[Pull]:
        """The first 10,000 pulls whose reward has not been told yet, in the order of asks."""
        return self._pending()

    @carried_out
    def _pending(self: Client, **limits: Unpack[Limits]) -> Plan[list[Pull]]:
        """Return the first 10,000 pulls whose reward has not been told yet."""
        return pulls_in((yield self._calls.get("/pending", limit=_MOST)).body["oldest"])

    @carried_out
    def recommend(self: Client, **limits: Unpack[Limits]) -> Plan[ArmEstimate]:
        """Return the arm to deploy, as `Live.recommend` does."""
        best = (yield from self._calls.leaders(1))[0]
        self._fallback.remember(best.arm)
        return best

    @carried_out
    def top(self: Client, k: int, **limits: Unpack[Limits]) -> Plan[list[ArmEstimate]]:
        """Return the `k` best arms, or fewer if fewer have rewards, as `Live.top` does.

        Parameters
        ----------
        k
            The number of arms, at most 1000.
        limits
            `timeout` and `retry_for`, as for the class.
        """
        check_int("k", k, at_least=1, at_most=PAGE)
        return (yield from self._calls.leaders(k))

    @carried_out
    def verdict(
        self: Client,
        *,
        epsilon: float | str | None = None,
        quantile: float | None = None,
        confidence: float | None = None,
        target: float | str | None = None,
        margin: float | str | None = None,
        **limits: Unpack[Limits],
    ) -> Plan[StopVerdict]:
        """Return whether the recommended arm is good enough to stop, as `Live.verdict` does.

        Parameters
        ----------
        epsilon, quantile, confidence, target, margin
            As for `Live.verdict` (defaults: the experiment's `target`, or its `epsilon` if it has
            no target; quantile 0.05; confidence 0.95).
        limits
            `timeout` and `retry_for`, as for the class.
        """
        asked = {
            "epsilon": epsilon,
            "quantile": quantile,
            "confidence": confidence,
            "target": target,
            "margin": margin,
        }
        given = {name: value for name, value in asked.items() if value is not None}
        return read_verdict((yield self._calls.send("POST", "/verdict", given, reads=True)).body)

    @carried_out
    def uplift(
        self: Client, *, confidence: float = CONFIDENCE, **limits: Unpack[Limits]
    ) -> Plan[Uplift]:
        """Return how much better the recommended arm is than the control, as `Live.uplift` does.

        Parameters
        ----------
        confidence
            As for `Live.uplift` (default: 0.95).
        limits
            `timeout` and `retry_for`, as for the class.
        """
        call = self._calls.get("/uplift", confidence=check_confidence(confidence))
        return read_uplift((yield call).body)

    @carried_out
    def arms(self: Client, **limits: Unpack[Limits]) -> Plan[list[ArmEstimate]]:
        """Return the estimates of all arms with pulls or observed rewards, most pulled first."""
        return (yield from self._calls.arms())

    @carried_out
    def progress(self: Client, **limits: Unpack[Limits]) -> Plan[Progress]:
        """Return the progress of the experiment."""
        return read_progress((yield self._calls.get("")).body)

    @carried_out
    def summary(self: Client, **limits: Unpack[Limits]) -> Plan[dict[str, Any]]:
        """Return the service's summary of the experiment, as JSON."""
        return dict((yield self._calls.get("")).body)

    def to_dataframe(self, *, library: Library | None = None, **limits: Unpack[Limits]) -> Any:
        """Return a data frame with a row for every arm that was pulled or observed.

        Parameters
        ----------
        library
            As for `Live.to_dataframe`.
        limits
            `timeout` and `retry_for`, as for the class.
        """
        return data_frame(columns_of(self.arms(**limits)), library)


def _number(pull: Pull | int) -> int:
    number = pull.id if isinstance(pull, Pull) else pull
    return check_int("pull", number, fix="Pass what ask() returned, or its id.")
