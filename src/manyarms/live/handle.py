"""The handle of an experiment: ask for pulls and tell their rewards."""

from __future__ import annotations

import math
import os
import secrets
import time
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NoReturn, Self, overload

from manyarms.core.checks import by_name, check_int, check_path
from manyarms.core.files import path_errors
from manyarms.core.tabular import Library, data_frame
from manyarms.errors import CopyError, ParameterError, RewardWarning, TurnError
from manyarms.inference import estimates
from manyarms.inference.estimates import ArmEstimate, Progress
from manyarms.inference.facts import CONTROL
from manyarms.inference.question import CONFIDENCE
from manyarms.inference.reported import only_best_reported
from manyarms.inference.tried_arms import TriedArms
from manyarms.inference.uplift import Uplift, check_confidence, uplift_of
from manyarms.inference.verdict import StopVerdict, give_verdict
from manyarms.live import arm_calls, calls
from manyarms.live.answers import question_of, stage_of, tried_arms_of
from manyarms.live.arms import ArmNames, arms_of
from manyarms.live.calls import Context
from manyarms.live.experiment import Experiment, check_time
from manyarms.live.html import MOST_ARMS_SHOWN, handle_html
from manyarms.live.opening import NAME, begin_or_continue, continue_experiment, opened, save
from manyarms.live.pulls import Pull
from manyarms.live.recorder import Recorder, Recording
from manyarms.live.settings import SHARE, check_settings
from manyarms.live.synced import SyncedArms
from manyarms.protocol.policy import Policy
from manyarms.store import Event

_CHECK_EVERY = 250  # pulls between checks for whether only the best rewards are told


class Live:
    """Run an experiment: a policy chooses among real arms. Created by `policy.live(...)`.

    Parameters
    ----------
    policy
        The policy to use.
    n_arms
        The number of arms, called 0, 1, 2 and so on.
    arms
        Names of the arms, strings or integers, instead of `n_arms`.
    horizon
        The total number of pulls (default: None, for policies that need none).
    seed
        The seed of all random choices (default: the handle draws one, `live.seed`).
    reward_range
        The smallest and the largest possible reward (default: (0, 1)). A `sigma` of 1/2, the
        default, is replaced by half the width of the range. None accepts all rewards from -1e100 to
        1e100, and does not change `sigma`.
    control
        The name of what you have today, which need not be one of the arms (default: no control).
        It gets a fraction `share` of the pulls, and `uplift` compares the recommended arm with it.
    share
        The control's share of the pulls, at most one half (default: 0.05). Its pulls do not count
        toward the horizon, and the policy does not learn from them.
    reward
        The word printed after sums of rewards, such as "clicks".
    epsilon
        The default of `epsilon` in `verdict`: how much worse than the best arm the recommended arm
        may be, as a difference (0.02) or as a share ("20%"; default: "10%").
    window
        How long a reward may take (seconds; default: no limit). If it ends without a reward, the
        pull gets the reward `missing`, or is abandoned if that is None.
    missing
        The reward of pulls whose window ended without one, such as 0 for "no click" (default: None;
        such pulls are abandoned).
    hold
        Whether rewards count only when their window ends, so that arms with quick rewards do not
        look better than they are (default: False).
    store
        Where to record every event before a call returns: a file such as "shop.db", or
        postgresql://HOST/DATABASE (default: nothing is recorded). If the store has an experiment
        with this name, it is continued, and its settings must be the same.
    name
        The experiment's name in the store (default: "experiment").
    durable
        The failures that a recorded event survives: the end of the process at any moment
        ("process", the default), or also a power failure ("power").
    now
        A function that returns the time (seconds since 1970; default: `time.time`).

    Notes
    -----
    The same policy, seed and sequence of calls give the same arms. Rewards may come late, in any
    order, or never (`abandon`). If ten or more pulls are usually pending, pass `count_late=True` to
    the policy (not needed by Prospector and Scout). An ask or a tell takes microseconds, and no
    compiler is needed. Memory grows with the number of arms tried, not with `n_arms`. Threads may
    share a handle: each call is atomic.

    If a call is interrupted while it changes the experiment, by Ctrl-C or an error of the policy,
    the handle refuses all later calls. If a write to the store fails, the call raises `StoreError`,
    and so do all later calls that change something, until you load the experiment again; queries
    still work. If two handles record the same experiment, the second one to write gets a
    `WriteConflictError`, and overwrites nothing.

    Examples
    --------
    >>> import manyarms as ma
    >>> live = ma.EmpMOSSPlusPlus(beta=0.5).live(n_arms=1_000_000, horizon=20_000, seed=7)
    >>> first, second = live.ask(2)
    >>> live.tell(second, reward=1.0)  # in any order
    >>> live.tell(first.id, reward=0.0)
    >>> live.pulls
    2
    """

    def __init__(
        self,
        policy: Policy,
        *,
        n_arms: int | None = None,
        arms: Iterable[str | int] | None = None,
        horizon: int | None = None,
        seed: int | None = None,
        reward_range: tuple[float, float] | None = (0.0, 1.0),
        control: str | int | None = None,
        share: float = SHARE,
        reward: str | None = None,
        epsilon: float | str | None = None,
        window: float | None = None,
        missing: float | None = None,
        hold: bool = False,
        store: str | os.PathLike[str] | None = None,
        name: str | None = None,
        durable: Literal["process", "power"] = "process",
        now: Callable[[], float] = time.time,
    ) -> None:
        check_time(now())
        all_arms = arms_of(n_arms, arms)
        settings = check_settings(
            policy,
            n_arms=all_arms.count,
            names=all_arms.kind if isinstance(all_arms, ArmNames) else None,
            horizon=horizon,
            seed=_any_seed() if seed is None else seed,
            reward_range=reward_range,
            control=control,
            share=share,
            reward=reward,
            epsilon=epsilon,
            window=window,
            missing=missing,
            hold=hold,
        )
        if store is None:
            if name is not None:
                raise ParameterError(
                    f"`name` needs `store`, got name={name!r} without a store. Pass `store`, too."
                )
            self._set_up(Context(Experiment(settings, now), all_arms))
            return
        recorded = opened("store", store, durable, create=True)
        try:
            given = seed is not None
            self._set_up(
                *begin_or_continue(
                    recorded,
                    NAME if name is None else name,
                    settings,
                    all_arms,
                    seed_given=given,
                    now=now,
                )
            )
        except BaseException:
            recorded.close()
            raise

    def _set_up(self, context: Context, recording: Recording | None = None) -> None:
        self._context, self._experiment = context, context.experiment
        self._next_check: float = _CHECK_EVERY
        self._recorder = Recorder(context, recording)
        _handles.add(self)

    @classmethod
    def _of(cls, context: Context, recording: Recording | None = None) -> Self:
        live = cls.__new__(cls)
        live._set_up(context, recording)
        return live

    # Commands

    @overload
    def ask(self) -> Pull: ...
    @overload
    def ask(self, k: int) -> list[Pull]: ...

    def ask(self, k: int | None = None) -> Pull | list[Pull]:
        """Return the next pull, or a list of the next `k` pulls.

        Parameters
        ----------
        k
            The number of pulls, at most a million (default: a single `Pull`, not in a list).
        """
        if self._experiment.ledger.next >= self._next_check:
            self._warn_of_rewards()
        pulls: Pull | list[Pull] = self._recorder.do(calls.ask, k)
        return pulls

    def _warn_of_rewards(self) -> None:
        """Warn, once, if it looks as if only the best rewards are told.

        Call it before a pull is made, because the warning may be raised as an error.
        """
        with self._recorder.reading() as (experiment, _):
            ledger = experiment.ledger
            warning = only_best_reported(
                experiment.settings.reward_range,
                pulls=ledger.pulls,
                told=ledger.told,
                earned=ledger.earned,
            )
            self._next_check = math.inf if warning else ledger.next + _CHECK_EVERY
        if warning:
            warnings.warn(warning, RewardWarning, stacklevel=3)

    def _tried_arms(self) -> TriedArms:
        return tried_arms_of(self._experiment, self._context.arms.name)

    def tell(self, pull: Pull | int, reward: float, *, again: str = "refuse") -> None:
        """Report the reward of a pull, now or later, in any order.

        Parameters
        ----------
        pull
            What `ask` returned, or its `id`.
        reward
            A number within `reward_range`; if that is None, one between -1e100 and 1e100.
        again
            What to do if the pull was already told or abandoned: "refuse" raises an error; "ignore"
            does nothing, for callers that retry.
        """
        self._recorder.do(calls.tell, pull, reward, again)

    def tell_many(
        self, rewards: Iterable[tuple[Pull | int, float]], *, again: str = "refuse"
    ) -> None:
        """Report several rewards: all of them, or none if one is refused.

        Parameters
        ----------
        rewards
            Pairs of a pull (or its id) and its reward.
        again
            As for `tell`.
        """
        self._recorder.do(calls.tell_many, rewards, again)

    def abandon(self, pull: Pull | int, *, again: str = "refuse") -> None:
        """Abandon a pull whose reward will never come.

        The pull counts toward the horizon (with MOSS++ and empMOSS++, also toward the iteration),
        but the policy learns nothing from it. An arm without any reward is pulled again.

        Parameters
        ----------
        pull
            What `ask` returned, or its `id`.
        again
            As for `tell`. Pass "ignore" if another thread may have told the reward.
        """
        self._recorder.do(calls.abandon, pull, again)

    @overload
    def observe(self, arm: str | int, rewards: float | Iterable[float]) -> None: ...
    @overload
    def observe(self, *, counts: Mapping[Any, Sequence[float]]) -> None: ...

    def observe(
        self,
        arm: str | int | None = None,
        rewards: float | Iterable[float] | None = None,
        *,
        counts: Mapping[Any, Sequence[float]] | None = None,
    ) -> None:
        """Import rewards that did not come from pulls of this experiment.

        Confidence intervals use them at once, and the policy is told them before the next pull.
        They use no pull of the horizon. Pass all rewards, not only good ones: intervals and
        guarantees do not hold for selected rewards, nor if the list of arms was sorted by their
        rewards.

        Parameters
        ----------
        arm
            The arm's number or name.
        rewards
            A reward, or several.
        counts
            Instead of `arm` and `rewards`: for each arm, the number of its rewards and their sum,
            such as `{"bold": (120, 7)}` for 120 views and 7 clicks. If rewards are not all at the
            ends of `reward_range`, add the sum of their squares as a third number. Without it, the
            largest possible one is assumed, so that the rewards seem to vary more than they did. If
            `reward_range` is None, it must be given.
        """
        if counts is not None:
            if arm is not None or rewards is not None:
                raise ParameterError(
                    "`counts` cannot be combined with `arm` and `rewards`. Make two calls."
                )
            self._recorder.do(calls.observe_counts, counts)
        elif arm is None or rewards is None:
            raise ParameterError("`arm` and `rewards` must be given, or `counts`.")
        else:
            self._recorder.do(calls.observe, arm, rewards)

    def add_arms(self, arms: int | Iterable[str | int]) -> Sequence[Any]:
        """Add arms and return their names (a `range` if arms have numbers).

        Prospector tries new arms, with at most 2 % of the pulls (its parameter `trials`). All other
        policies treat them like any unpulled arm, so they rarely try them after they have found a
        good one. MOSS++ and empMOSS++ try none before their next iteration, and Quantile none
        before its next round. See docs/changing_catalogue.md. Arms that come between two pulls are
        one group, whatever calls add or restore them. The next pull takes time in proportion to the
        number of arms tried.

        Parameters
        ----------
        arms
            The number of new arms if arms have numbers, or their names if they have names.
        """
        added: Sequence[Any] = self._recorder.do(arm_calls.add_arms, arms)
        return added

    def retire(self, arm: str | int | Iterable[str | int]) -> None:
        """Retire one or several arms, so that they are not chosen again.

        If one of them is refused, none is retired.

        Rewards of pending pulls may still be told. They count in the estimates; the policy learns
        them only if the arm is restored. `restore` makes an arm available again.

        Parameters
        ----------
        arm
            The arm's number or name, or a list of them.
        """
        self._recorder.do(arm_calls.retire, arm)

    def restore(self, arm: str | int | Iterable[str | int]) -> None:
        """Make one or several retired arms available again.

        If one of them is refused, none is restored. All earlier rewards of an arm count, in the
        estimates and for the policy. An arm without rewards is like one that was just added.

        Parameters
        ----------
        arm
            As for `retire`.
        """
        self._recorder.do(arm_calls.restore, arm)

    def sync_arms(self, names: Iterable[str | int]) -> SyncedArms:
        """Make exactly these arms available: add new ones, restore retired ones, retire the rest.

        Passing the same list again changes nothing, so pass the whole catalogue every day. Arms
        must have names. If something is refused, nothing changes. `print` the result to see what
        was done. Use Prospector if new arms are to be tried: see `add_arms`.

        Parameters
        ----------
        names
            The names of all arms, strings or integers.
        """
        done: SyncedArms = self._recorder.do(arm_calls.sync_arms, names)
        return done

    # Queries

    @property
    def policy(self) -> Policy:
        """The policy of the present season."""
        return self._experiment.policy

    @property
    def horizon(self) -> int | None:
        """The total number of pulls, including those already made; None without a horizon."""
        ledger = self._experiment.ledger
        return None if ledger.left is None else ledger.pulls + ledger.left

    @property
    def seed(self) -> int:
        """The seed of the present season."""
        return self._experiment.seed

    @property
    def reward_range(self) -> tuple[float, float] | None:
        """The smallest and the largest possible reward."""
        return self._experiment.settings.reward_range

    @property
    def n_arms(self) -> int:
        """The number of available arms, without retired ones."""
        with self._recorder.reading() as context:
            return context.experiment.ledger.n_arms

    @property
    def pulls(self) -> int:
        """The number of pulls so far, without those of the control."""
        with self._recorder.reading() as context:
            return context.experiment.ledger.pulls

    @property
    def pending(self) -> list[Pull]:
        """The pulls whose reward has not been told yet, in the order of asks."""
        with self._recorder.reading() as context:
            ledger = context.experiment.ledger
            pending, held = ledger.pending, ledger.held
            return [Pull(context.name(p.arm), n) for n, p in pending.items() if n not in held]

    def recommend(self) -> ArmEstimate:
        """Return the arm to deploy, by the same rule as in simulations.

        A policy for finding one good arm, such as Scout, chooses it by its own rule (after the
        first pull of a season). Otherwise it is the arm with the largest lower
        bound (99.9 %), so that a few lucky rewards are not enough. Rewards that came too late for
        the policy count here. A retired arm is never recommended.
        """
        return self.top(1)[0]

    def top(self, k: int) -> list[ArmEstimate]:
        """Return the `k` best arms, or fewer if fewer have rewards.

        The recommended arm comes first, then the others by decreasing lower bound.

        Parameters
        ----------
        k
            The number of arms.
        """
        k = check_int("k", k, at_least=1)
        with self._recorder.reading():
            best = self._tried_arms().top(k)
        if not best:
            raise calls.nothing_to_recommend()
        return best

    def arms(self) -> list[ArmEstimate]:
        """Return the estimates of all arms with pulls or observed rewards, the earliest first."""
        with self._recorder.reading():
            return self._tried_arms().all()

    def progress(self) -> Progress:
        """Return the progress of the experiment."""
        with self._recorder.reading():
            return self._progress()

    def _progress(self) -> Progress:
        experiment = self._experiment
        stage = "no arms yet" if experiment.search is None else stage_of(experiment)
        return self._tried_arms().progress(stage)

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
        """Return whether the recommended arm is good enough to stop.

        Without a `target`, good enough means: leaving aside the top `quantile` of the arms, none is
        better by more than `epsilon`. With probability `confidence`, no verdict of an experiment
        says "stop" wrongly. This holds at any time, for any policy, and even though the arm was
        chosen because it looks best.

        Parameters
        ----------
        epsilon
            How much worse the arm may be: a difference (0.02), or a share of the best mean ("20%").
            The default is the `epsilon` of the experiment. If none was given, it is "10%". If
            rewards may be negative, it is a tenth of the width of `reward_range` instead, or
            0.2 `sigma` if `reward_range` is None.
        quantile
            The share of the arms that may be better by more than `epsilon` (default: 0.05). If it
            is 0, or amounts to less than one arm, the recommended arm is compared with every arm,
            so all arms must have been tried. Choose it before you see results.
        confidence
            The probability (default: 0.95). Choose it before you see results.
        target
            A number: the arm is good enough if its mean is above it. Or a string, the name of an
            arm or "control": the arm is good enough if its mean is above that of the named arm. If
            neither this nor `epsilon` nor `quantile` is given, here or to the experiment, the
            default is "control" if there is one.
        margin
            By how much it must be above the arm that `target` names: a number, or a share of that
            arm's mean such as "5%" (default: 0).
        """
        with self._recorder.reading() as context:
            tried = self._tried_arms()
            question = question_of(
                context,
                tried.facts,
                epsilon=epsilon,
                quantile=quantile,
                confidence=confidence,
                target=target,
                margin=margin,
            )
            stopped = context.experiment.status.get("state") == "stopped"
            return give_verdict(tried, question, stopped=stopped)

    @by_name
    def uplift(self, *, confidence: float = CONFIDENCE) -> Uplift:
        """Return how much better the recommended arm is than the control.

        `print` the result to see a line such as "+12.4 % over current, with 95 % confidence from
        +8.1 % to +16.9 % (valid at any time; current: 3.1 % after 5210 rewards)".

        Parameters
        ----------
        confidence
            The probability that all intervals it returns, at any time, are right (default: 0.95).
            Choose it before you see results.
        """
        sure = check_confidence(confidence)
        with self._recorder.reading():
            return uplift_of(self._tried_arms(), sure)

    def events(self, *, after: int = 0) -> Iterator[Event]:
        """Yield the recorded events in order. Arms are numbers; `arm_name` returns their names.

        Parameters
        ----------
        after
            The number of the event after which to begin (default: 0, the beginning).
        """
        recording = self._recorder.recording
        if recording is None:
            raise TurnError(
                "Cannot list events: this handle is not recorded, or it was closed. To record "
                "events, begin with live(..., store=PATH), or open the store again with load(PATH)."
            )
        return recording.store.events(recording.record.id, check_int("after", after))

    def arm_name(self, number: int) -> Any:
        """Return the name of an arm, given its number in an event.

        Parameters
        ----------
        number
            The number, from 0; -1 is the control.
        """
        with self._recorder.reading() as context:
            return context.name(
                check_int("number", number, at_least=CONTROL, at_most=context.arms.count - 1)
            )

    def to_dataframe(self, *, library: Library | None = None) -> Any:
        """Return a data frame with a row for every arm that was pulled or observed.

        Retired arms are included. pandas or polars must be installed.

        Parameters
        ----------
        library
            As for `Result.to_dataframe`.
        """
        return data_frame(estimates.columns_of(self.arms()), library)

    def __repr__(self) -> str:
        experiment, recording = self._experiment, self._recorder.recording
        horizon = self.horizon
        of = "" if horizon is None else f" of {horizon}"
        ledger = experiment.ledger
        pending = f", {len(ledger.pending)} pending" if ledger.pending else ""
        kept = "" if recording is None else f", recorded in {recording}"
        arms = f"{estimates.count(ledger.n_arms, 'arm')}{pending}{kept}"
        return f"<Live {experiment.policy}: {ledger.pulls}{of} pulls on {arms}>"

    def __str__(self) -> str:
        with self._recorder.reading():
            return estimates.summary(str(self.policy), self._progress(), self._tried_arms().top(5))

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        with self._recorder.reading():
            best = self._tried_arms().top(MOST_ARMS_SHOWN)
            return handle_html(str(self.policy), self._progress(), best, self.reward_range)

    # Seasons, files, closing

    def season(
        self,
        *,
        horizon: int | None = None,
        policy: Policy | None = None,
        seed: int | None = None,
    ) -> None:
        """Begin a season: continue with more pulls or another policy, and keep the estimates.

        Arms, names and pending pulls do not change; retired arms stay retired. The policy begins
        with all that is known: before its first pull it is told the number and the sum of each
        arm's rewards, which use no pull. Rewards of pending pulls follow when they come. A policy
        of your own without `credit_known` begins with nothing, as `progress` says.

        Parameters
        ----------
        horizon
            The number of pulls to come (default: None, for policies that need none).
        policy
            The policy to continue with (default: the present one). If rewards have no bounds, it
            must have the same `sigma`, or none.
        seed
            The seed of its random choices (default: the present one).

        Notes
        -----
        A season changes no interval and no verdict. What known rewards mean for a policy's
        guarantee is on the policy's page.
        """
        self._recorder.do(calls.season, policy, horizon, seed)

    def resume(self) -> None:
        """Resume an experiment that was paused in the service, so that `ask` works again.

        A stopped experiment cannot be resumed.
        """
        with self._recorder.reading() as context:
            recording = self._recorder.recording
            found = None if recording is None else recording.store.find(recording.record.name)
            if found is not None:  # the service may have changed it since
                context.experiment.status = dict(found.state)

        def keep(status: dict[str, Any]) -> None:
            if recording is not None:
                recording.store.set_state(recording.record.id, status)

        self._recorder.do(calls.resume, keep)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the experiment to a file, without its events; `load` continues it.

        A crash at any moment leaves the old file or the new one. The size of the file grows with
        the number of arms tried, the number of pending pulls, and the names of arms.

        Parameters
        ----------
        path
            The file to write. An existing file is replaced; it must not be open elsewhere.
        """
        target = check_path("path", path)
        with self._recorder.reading() as context, path_errors(target):
            recording = self._recorder.recording
            save(context, target, NAME if recording is None else recording.record.name)

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        """Refuse `copy`, `deepcopy` and `pickle`."""
        raise CopyError(
            "A handle cannot be copied or pickled: two handles would continue one experiment. To "
            "begin a second experiment from this state, use live.save(path) and load(path)."
        )

    def close(self) -> None:
        """Close the store, so that another process can continue the experiment.

        If at most 20,000 arms were tried, a snapshot is stored first. Queries still work on a
        closed handle.
        """
        self._recorder.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def load(
    path: str | os.PathLike[str],
    *,
    name: str | None = None,
    policy: Policy | None = None,
    durable: Literal["process", "power"] = "process",
    now: Callable[[], float] = time.time,
) -> Live:
    """Continue an experiment that was recorded, or that `Live.save` wrote.

    It continues in the same state, and later events are recorded in the same store.

    Parameters
    ----------
    path
        A file, or postgresql://HOST/DATABASE.
    name
        The experiment's name (default: the only experiment in the store).
    policy
        The experiment's policy. It is needed only for a policy of your own that is not registered.
    durable, now
        As for `Live`.

    Examples
    --------
    >>> import manyarms as ma
    >>> path = getfixture("tmp_path") / "shop.db"
    >>> with ma.MOSS().live(arms=["a", "b"], horizon=100, store=path, name="shop") as live:
    ...     first, second = live.ask(2)
    ...     live.tell(second, reward=1.0)
    >>> with ma.load(path) as live:  # later, in another process
    ...     live.tell(first, reward=0.0)
    ...     live.pulls
    2
    """
    check_time(now())
    store = opened("path", path, durable, create=False)
    try:
        return Live._of(*continue_experiment(store, name, policy, now))
    except BaseException:
        store.close()
        raise


def _any_seed() -> int:
    """Return a random seed; tests replace this function."""
    return secrets.randbits(64)


_handles: weakref.WeakSet[Live] = weakref.WeakSet()


def _renew_in_child() -> None:
    for live in list(_handles):
        live._recorder.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_in_child)
