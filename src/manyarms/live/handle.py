"""The handle users hold: ask for arms, pull them, tell the rewards when they come."""

from __future__ import annotations

import os
import secrets
import weakref
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn, Self, overload

from manyarms.core.checks import by_name, check_int, check_path
from manyarms.core.files import path_errors, replace_file
from manyarms.core.gc_pause import gc_paused
from manyarms.core.tabular import Library, data_frame
from manyarms.errors import CopyError, ParameterError, TurnError
from manyarms.inference import estimates
from manyarms.inference.estimates import ArmEstimate, Progress
from manyarms.inference.question import CONFIDENCE, asked, check_setting
from manyarms.inference.uplift import Uplift, check_confidence, uplift_of
from manyarms.inference.verdict import StopVerdict, give_verdict
from manyarms.live import commands
from manyarms.live.arms import arms_of
from manyarms.live.columns import tallies_of
from manyarms.live.control import SHARE, Control, check_control
from manyarms.live.game import LiveGame, Pull, check_first_draws, check_range, check_reward_name
from manyarms.live.history import GameHistory
from manyarms.live.html import MOST_ARMS_SHOWN, handle_html
from manyarms.live.recorder import EventRecorder
from manyarms.live.rivals import rival_of
from manyarms.live.saving import restored, snapshot
from manyarms.live.season import next_season
from manyarms.live.syncing import SyncedArms, sync_arms
from manyarms.protocol.policy import Policy


class Live:
    """A policy at work on real arms. Made by `policy.live(...)`.

    Parameters
    ----------
    policy
        The policy to use.
    n_arms
        The number of arms, called 0, 1, 2 and so on.
    arms
        Names of the arms, strings or integers, instead of `n_arms`.
    horizon
        The total number of pulls; only anytime policies can do without (None).
    seed
        The seed of all random choices (default: the handle draws one, `live.seed`).
    reward_range
        The smallest and the largest possible reward (default: (0, 1)). A `sigma` of 1/2, the
        default, becomes half their distance. None accepts all rewards up to 1e100, and leaves
        `sigma` as it is.
    control
        The name of what you have today, to compare with; it need not be one of the arms. `share`
        of all pulls then go to it, and `uplift` compares (default: no control).
    share
        The control's share of the pulls, at most one half (default: 0.05). Its pulls are no
        business of the policy's: they come in addition to the horizon.
    reward
        What rewards are, such as "clicks": printed with sums of them.
    epsilon
        What `verdict` asks unless it is given another: how much worse than the best an arm may be,
        as a number or as a share such as "20%" (default: "10%"; see `verdict`).

    Notes
    -----
    The policy, the seed and the sequence of calls decide everything that the handle does. Rewards
    may come late, in any order, or never (`abandon`); if ten or more pulls are in flight at a time,
    give the policy `count_late=True`. A call takes microseconds and needs no compiler. Memory grows
    with the number of arms tried, not with `n_arms`. Handles may be shared between threads: each
    call is atomic among them. After a call that was interrupted midway, by Ctrl-C or an error of
    the policy, the handle refuses all others. `recorded(store, live)` returns a handle that loses
    nothing.

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
    ) -> None:
        given = _any_seed() if seed is None else seed
        compared = check_control(control, share)
        limits = check_range(reward_range)
        policy = policy.with_reward_range(limits)
        policy.check_rewards(limits)
        all_arms = arms_of(n_arms, arms)
        check_first_draws(policy, all_arms.count, horizon)
        game = LiveGame(policy, all_arms, horizon, given, limits)
        game.seed_drawn = seed is None
        game.reward = check_reward_name(reward)
        if compared is not None:
            game.control = Control(*compared, game.seed)
        game.epsilon = check_setting(epsilon, limits)
        self._hold(game)

    def _hold(self, game: LiveGame) -> None:
        self.policy, self.horizon = game.policy, game.horizon
        self.seed, self.reward_range = game.seed, game.reward_range
        self._game = game
        self._recorder = EventRecorder(game)
        _handles.add(self)

    # What changes the game

    @overload
    def ask(self) -> Pull: ...
    @overload
    def ask(self, k: int) -> list[Pull]: ...

    def ask(self, k: int | None = None) -> Pull | list[Pull]:
        """Return the arm to pull next, or a list of the next `k`.

        Parameters
        ----------
        k
            The number of pulls, at most a million. Without it, one `Pull` is returned instead of a
            list.
        """
        pulls: Pull | list[Pull] = self._recorder.do(commands.ask, self._game, k)
        return pulls

    def tell(self, pull: Pull | int, reward: float, *, again: str = "refuse") -> None:
        """Report the reward of a pull, now or later, in any order.

        Parameters
        ----------
        pull
            What `ask` returned, or its `id`.
        reward
            A number within `reward_range`; if that is None, one between -1e100 and 1e100.
        again
            What to do if the pull was told or abandoned before: "refuse" raises, "ignore" does
            nothing, for callers that retry.
        """
        self._recorder.do(commands.tell, self._game, pull, reward, again)

    def tell_many(
        self, rewards: Iterable[tuple[Pull | int, float]], *, again: str = "refuse"
    ) -> None:
        """Report several rewards: all of them, or, if one is refused, none.

        Parameters
        ----------
        rewards
            Pairs of a pull (or its id) and its reward.
        again
            As for `tell`.
        """
        self._recorder.do(commands.tell_many, self._game, rewards, again)

    def abandon(self, pull: Pull | int, *, again: str = "refuse") -> None:
        """Give up a pull whose reward will never come.

        The pull was made, so it counts in the horizon and in the clock of the policy's iteration,
        but the policy learns nothing from it. An arm that was never observed is pulled again.

        Parameters
        ----------
        pull
            What `ask` returned, or its `id`.
        again
            As for `tell`: its reward may come at this moment, from another thread.
        """
        self._recorder.do(commands.abandon, self._game, pull, again)

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
            good ones: intervals and guarantees do not hold for rewards that were picked, nor for
            arms that were put into an order by their rewards.
        """
        self._recorder.do(commands.observe, self._game, arm, rewards)

    def add_arms(self, arms: int | Iterable[str | int]) -> Sequence[Any]:
        """Add arms, which can then be drawn as fresh arms. Return their names.

        If arms have numbers, a `range` is returned, because there may be a billion.

        MOSS++ and empMOSS++ draw from them when their next iteration begins, Quantile when its
        next round begins, and the others at once if their set has room. The call takes time in
        proportion to the number of arms tried, so add many arms with one call.

        Parameters
        ----------
        arms
            The number of new arms if arms have numbers, or their names if they have names.
        """
        added: Sequence[Any] = self._recorder.do(commands.add_arms, self._game, arms)
        return added

    def retire(self, arm: str | int | Iterable[str | int]) -> None:
        """Never ask for an arm again, or for several: all of them, or none if one is refused.

        Rewards of its pulls in flight may still be told. They count in the tables, but the policy
        learns nothing from them. The call takes time in proportion to the number of arms tried.
        `restore` brings an arm back.

        Parameters
        ----------
        arm
            The arm's number or name, or a list of them.
        """
        self._recorder.do(commands.retire, self._game, arm)

    def restore(self, arm: str | int | Iterable[str | int]) -> None:
        """Let a retired arm come back, or several: all of them, or none if one is refused.

        The tables keep what is known about it. For the policy it is a fresh arm, and the next one
        that it draws. The policy learns only from rewards that come from now on.

        Parameters
        ----------
        arm
            As for `retire`.
        """
        self._recorder.do(commands.restore, self._game, arm)

    def sync_arms(self, names: Iterable[str | int]) -> SyncedArms:
        """Let exactly these arms be in play: add new ones, restore retired ones, retire the others.

        The same list again changes nothing, so call it with the whole catalogue, every day. Arms
        must have names. All of it happens, or nothing if something is refused; `print` the result
        to see what was done.

        Parameters
        ----------
        names
            The names of all arms, strings or integers.
        """
        done: SyncedArms = self._recorder.do(sync_arms, self._game, names)
        return done

    # What only looks

    @property
    def n_arms(self) -> int:
        """The number of arms now, without retired ones."""
        with self._recorder.looking() as game:
            return game.n_arms

    @property
    def pulls(self) -> int:
        """The number of pulls asked for."""
        with self._recorder.looking() as game:
            return game.pulls

    @property
    def pending(self) -> list[Pull]:
        """The pulls whose reward was not told yet, in the order of asks; the control's are last."""
        with self._recorder.looking() as game:
            flying = [Pull(game.arms.name(p.arm), number) for number, p in game.flight.items()]
            control = game.control
            return flying + [Pull(control.name, n) for n in control.flight] if control else flying

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
        with self._recorder.looking() as game:
            best = tallies_of(game).top(k)
        if not best:
            raise TurnError(
                "Cannot recommend an arm: no reward has been told yet for any arm in play."
            )
        return best

    def arms(self) -> list[ArmEstimate]:
        """Return what is known about every arm that was pulled, in the order of first pulls."""
        with self._recorder.looking() as game:
            return tallies_of(game).all()

    def progress(self) -> Progress:
        """Return how far the game has come."""
        with self._recorder.looking() as game:
            return tallies_of(game).progress(game.policy.stage(game.state))

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

        Without a `target`, good enough means: its mean is within `epsilon` of the best of all but
        the top `quantile` of the arms. With probability `confidence` no verdict of a game says
        "stop" wrongly, however often you ask, whatever the policy, and although the arm was chosen
        for looking best.

        Parameters
        ----------
        epsilon
            How much worse the arm may be: a number, or a share of the best mean such as "20%"
            (default: what `live(epsilon=...)` was given, else "10%"; where rewards may be negative,
            a tenth of their range, or of two sigma).
        quantile
            The share of the arms that may be better still (default: 0.05). With 0 the arm is
            compared with every arm, so all must have been tried. The same holds if it is less than
            one arm. Choose it before you look.
        confidence
            The probability (default: 0.95). Choose it before you look.
        target
            A number: the arm is good enough if its mean is above it. Or an arm's name, as text, or
            "control" if the game has one: the arm is good enough if it is better than that.
        margin
            How much better than what `target` names: a number, or a share of its mean such as "5%"
            (default: 0).
        """
        with self._recorder.looking() as game:
            tallies = tallies_of(game)
            question = asked(
                tallies.facts,
                epsilon=epsilon,
                quantile=quantile,
                confidence=confidence,
                target=target,
                margin=margin,
                rival=rival_of(game, target) if isinstance(target, str) else None,
            )
            return give_verdict(tallies, question)

    @by_name
    def uplift(self, *, confidence: float = CONFIDENCE) -> Uplift:
        """Return how much better the recommended arm is than the control.

        `print` it for "+12.4 % [8.1, 16.9] over current (3.1 % after 5210 rewards), 95 % sure
        however often you look".

        Parameters
        ----------
        confidence
            The probability with which no limits that it ever gives are wrong (default: 0.95).
            Choose it before you look.
        """
        sure = check_confidence(confidence)
        with self._recorder.looking() as game:
            return uplift_of(tallies_of(game), sure)

    def events(self) -> GameHistory:
        """Return what happened so far, event by event and as a table of pulls.

        Only a recorded handle knows it. Use `Journal(path, history=True)`, or `InMemory()` if you
        want no file.
        """
        with self._recorder.looking():
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
        pending = f", {len(game.flight)} pending" if game.flight else ""
        kept = "" if store is None else f", recorded in {store}"
        arms = f"{estimates.count(game.n_arms, 'arm')}{pending}{kept}"
        return f"<Live {game.policy.label}: {game.pulls}{of} pulls on {arms}>"

    def __str__(self) -> str:
        with self._recorder.looking() as game:
            tallies = tallies_of(game)
            how = tallies.progress(game.policy.stage(game.state))
            return estimates.summary(game.policy.label, how, tallies.top(5))

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        with self._recorder.looking() as game:
            tallies = tallies_of(game)
            how = tallies.progress(game.policy.stage(game.state))
            best = tallies.top(MOST_ARMS_SHOWN)
            return handle_html(game.policy.label, how, best, game.reward_range)

    # What outlives the game, or the process

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
        with self._recorder.looking() as game:
            policy = game.policy if policy is None else policy
            seed = game.seed if seed is None else seed
            return self._of(next_season(game, self._history(), policy, horizon, seed))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything the handle knows to a file, which `Live.load` reads.

        A crash at any moment leaves the old file or the new one. The size of the file grows with
        the number of arms tried and of pulls in flight, not with `n_arms`; if arms have names, it
        contains them all. The file has a checksum, and reading it runs no code from it.

        Parameters
        ----------
        path
            The file to write. If it exists, it is replaced.
        """
        target, data = check_path("path", path), self.to_bytes()
        with path_errors(target):
            replace_file(target, data)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, policy: Policy | None = None) -> Self:
        """Return the handle that was saved. It continues as if nothing had happened.

        Damaged, foreign and newer files raise `SavedFileError`. A file from elsewhere runs no code,
        but whoever wrote it decides what the handle believes about the arms.

        Parameters
        ----------
        path
            A file that `save` wrote.
        policy
            The policy it was saved with. Give it only if it is your own and not registered.
        """
        source = check_path("path", path)
        with path_errors(source, "Name a file that save() wrote, and that this user may read"):
            data = source.read_bytes()
        with gc_paused():
            return cls._of(restored(data, policy, str(source)))

    def to_bytes(self) -> bytes:
        """Return what `save` would write. Equal handles give equal bytes."""
        with self._recorder.looking() as game:
            return snapshot(game)

    @classmethod
    def from_bytes(cls, data: bytes, *, policy: Policy | None = None) -> Self:
        """Return the handle that `to_bytes` was called on.

        Parameters
        ----------
        data
            What `to_bytes` returned.
        policy
            As for `load`.
        """
        return cls._of(restored(data, policy, "This"))

    @classmethod
    def _of(cls, game: LiveGame) -> Self:
        live = cls.__new__(cls)
        live._hold(game)
        return live

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        """Refuse `copy`, `deepcopy` and `pickle`."""
        raise CopyError(
            "A handle cannot be copied or pickled: both would play one game. For a second game "
            "that goes on from here use Live.from_bytes(live.to_bytes())."
        )

    def compact(self) -> None:
        """Replace the events in the store of a recorded handle by all that is known.

        The store is then small and opens quickly. If this fails, everything stays as it was.
        """
        self._recorder.compact()

    def close(self) -> None:
        """Make durable what was recorded, and let others open the store.

        If at most 20000 arms were tried, the store is compacted first: then every later version of
        manyarms can go on from there, whatever it changes in the policy. The handle still answers
        calls that only look.
        """
        self._recorder.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _any_seed() -> int:
    """Return a seed that no other handle has; tests let it be 0."""
    return secrets.randbits(64)


_handles: weakref.WeakSet[Live] = weakref.WeakSet()


def _renew_in_child() -> None:
    for live in list(_handles):
        live._recorder.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_in_child)
