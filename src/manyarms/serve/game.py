"""An experiment as its log tells it; the leader plays it on.

The handle knows arms by number; their keys lie in the database. What happens to a game goes into
its log as rows; the same rows, read again, make the same game.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

import msgspec

from manyarms.core.gc_pause import gc_paused
from manyarms.errors import ManyarmsError, ParameterError
from manyarms.inference.question import check_setting, check_target
from manyarms.live.arms import ArmNumbers
from manyarms.live.checks import check_first_draws, check_range, check_reward, check_reward_name
from manyarms.live.control import Control, check_control
from manyarms.live.databases import Database, ExperimentRow, LogRow
from manyarms.live.databases.store import columns_of
from manyarms.live.game import LiveGame
from manyarms.live.replay import replay
from manyarms.live.saving import restored, snapshot
from manyarms.live.store import EventKind
from manyarms.protocol.policy import Policy
from manyarms.protocol.registry import policy as policy_named
from manyarms.serve import clock
from manyarms.serve.messages import PolicySpec, Spec, State

G = TypeVar("G", bound="Game")
SHORTEST_WINDOW = 0.1  # seconds: shorter ones would keep the service busy
_AT_ONCE = 20_000  # rows that are replayed at a time
_logger = logging.getLogger("manyarms.serve")
DELAYS = (1.0, 10.0, 60.0, 600.0, 3600.0, 6 * 3600.0, 24 * 3600.0)  # ends of bins, seconds


class ReplayError(Exception):
    """The log cannot be played again: the policy chooses other arms now, or the log is damaged."""


@contextlib.contextmanager
def as_replay_error(name: str) -> Iterator[None]:
    """Say of what a damaged experiment raises that it cannot be played."""
    try:
        yield
    except (
        ManyarmsError,
        msgspec.MsgspecError,
        LookupError,
        ValueError,
        TypeError,
        AttributeError,
        ArithmeticError,
    ) as error:
        raise ReplayError(f"{name} cannot be played again: {error}") from error


def policy_of(spec: PolicySpec | str | dict[str, Any]) -> Policy:
    """Return the policy that a spec names."""
    if isinstance(spec, str):
        return policy_named(spec)
    if isinstance(spec, dict):
        spec = msgspec.convert(spec, PolicySpec)
    parameters = {
        name: policy_of(value) if isinstance(value, dict) else value
        for name, value in spec.parameters.items()
    }
    return policy_named(spec.name, **parameters)


def begun(spec: Spec, n_arms: int) -> LiveGame:
    """Return a new game."""
    limits = check_range(spec.reward_range)
    policy = policy_of(spec.policy).with_reward_range(limits)
    policy.check_rewards(limits)
    game = LiveGame(policy, ArmNumbers(n_arms), spec.horizon, spec.seed or 0, limits)
    game.reward = check_reward_name(spec.reward)
    if (compared := check_control(spec.control, spec.share)) is not None:
        game.control = Control(*compared, game.seed)
    return game


def _drawn_seed(secret: str) -> int:
    """Return the seed of an experiment that was given none, a different one for each."""
    return int(hashlib.sha256(f"seed:{secret}".encode()).hexdigest()[:12], 16)


def phase_of(state: str, pulls: int, horizon: int | None) -> State:
    """Return a state as people see it.

    >>> phase_of("running", 9, 10), phase_of("running", 10, 10), phase_of("stopped", 10, 10)
    ('running', 'finished', 'stopped')
    """
    finished = state == "running" and horizon is not None and pulls >= horizon
    return "finished" if finished else state  # type: ignore[return-value]  # one of them


def check_spec(spec: Spec) -> None:
    """Raise a `ParameterError` unless an experiment can begin so."""
    policy = policy_of(spec.policy)
    if spec.horizon is None and not policy.anytime:
        raise ParameterError(
            f"`horizon` must be given to {policy}: the number of pulls there will be. A "
            f"policy that needs none is prospector.",
            parameter="horizon",
        )
    if spec.window is not None and spec.window < SHORTEST_WINDOW:
        raise ParameterError(
            f"`window` must be >= {SHORTEST_WINDOW} seconds, got {spec.window}.", parameter="window"
        )
    check_first_draws(policy, spec.n_arms or 1, spec.horizon)
    game = begun(spec, spec.n_arms or 1)
    check_setting(spec.epsilon, game.reward_range)
    check_goal(spec)
    if spec.missing != "abandon":
        check_reward(spec.missing, game.reward_range)


def check_goal(spec: Spec) -> None:
    """Raise a `ParameterError` unless the target of an experiment can be reached."""
    if spec.target == "control":
        if spec.control is None:
            raise ParameterError(
                "`target` must be a number, or null, where there is no control, got 'control'.",
                parameter="target",
            )
    elif spec.target is not None:
        check_target(spec.target, spec.reward_range)


class Game:
    """What the log up to `head` says.

    Attributes
    ----------
    live
        The game; None until the first arms are there.
    flying
        When each pull in flight was asked for, in the order of asks.
    held
        Rewards that wait for the end of their window, by pull.
    answered
        How many pulls of each arm observed rewards have answered.
    remembered
        Of a season at its first event: its game before any pull, else empty.
    """

    def __init__(self, row: ExperimentRow) -> None:
        self.id, self.name = row.id, row.name
        spec = msgspec.json.decode(row.spec, type=Spec)
        self.given = spec  # as it was given: perhaps without a seed
        drawn = _drawn_seed(row.secret) if spec.seed is None else spec.seed
        self.spec = msgspec.structs.replace(spec, seed=drawn)
        self.version = row.version
        self.state = row.state
        self.keyed = bool(row.keyed)
        self.head = 0
        self.live: LiveGame | None = None
        self.flying: dict[int, float] = {}
        self.held: dict[int, float] = {}
        self.answered: dict[int, int] = {}
        self.remembered = b""
        self.expired = 0
        self.delays = [[0, 0.0, 0.0] for _ in range(len(DELAYS) + 1)]  # count, sum, sum of squares

    @classmethod
    def load(cls: type[G], database: Database, row: ExperimentRow) -> G:
        """Return the game that a database holds, up to the head it has now.

        Where its last snapshot does not lead there, the one before it may, or the whole log.
        """
        saved = database.snapshot(row.id)
        try:
            return cls._load(database, row, saved)
        except ReplayError as error:
            if saved is not None:
                _logger.error("%s; looks further back than its last snapshot", error)
                with contextlib.suppress(ReplayError):
                    return cls._load(database, row, database.snapshot(row.id, before=saved[0]))
            version = f"manyarms {row.version}" if row.version else "the version that wrote it"
            raise ReplayError(
                f"{error} If you have changed the version: start {version} again, pause {row.name} "
                f"there, which keeps a snapshot, and then start this one. If that is refused, too, "
                f"the policy itself has changed: read the events there, and report their rewards "
                f"as observations of a new experiment. Else restore a backup."
            ) from error

    @classmethod
    def replayed(cls: type[G], database: Database, row: ExperimentRow) -> G:
        """Return the game that the whole log makes, whatever snapshots there are.

        The log of a season begins with one.
        """
        return cls._load(database, row, database.snapshot(row.id, before=1))

    @classmethod
    def _load(cls: type[G], database: Database, row: ExperimentRow, saved: Any) -> G:
        with gc_paused(), as_replay_error(row.name):
            game = cls(row)
            if saved is not None:
                game._restore(*saved[:3])
            elif game.spec.season is not None:
                raise ReplayError(f"{row.name} has lost the snapshot that it began with.")
            elif row.first_arms:
                game.live = begun(game.spec, row.first_arms)
            game.follow(database, row.head)
        if game.head != row.head:
            raise ReplayError(f"{row.name} has lost events: {game.head} of {row.head} are there.")
        return game

    def follow(self, database: Database, head: int) -> None:
        """Let all events up to `head` happen, as far as they are there."""
        while self.head < head:
            most = min(_AT_ONCE, head - self.head)
            rows = list(database.events(self.id, self.head, most=most))
            if not rows:
                return
            self.happen(rows)

    def begin(self, n_arms: int) -> None:
        """Let the first arms come."""
        self.live = begun(self.spec, n_arms)

    def happen(self, rows: Sequence[LogRow]) -> None:
        """Let the next events happen again."""
        if [row.seq for row in rows] != list(range(self.head + 1, self.head + 1 + len(rows))):
            raise ReplayError(f"{self.name} has a gap in its log after event {self.head}.")
        if self.live is None:
            raise ReplayError(f"{self.name} has events and no arms.")
        with as_replay_error(self.name):
            self.count(rows)
            plain = [row for row in rows if row.kind < EventKind.REPORTED]
            replay(self.live, columns_of(plain), self.name)
        self.head = rows[-1].seq

    def count(self, rows: Iterable[LogRow]) -> None:
        """Note what these events say beside the game itself."""
        flying, held = self.flying, self.held
        for row in rows:
            kind = row.kind
            if kind == EventKind.ASKED:
                flying[row.pull] = row.at
            elif kind == EventKind.ANSWERED:
                del flying[row.pull]
                self.answered[row.arm] = self.answered.get(row.arm, 0) + 1
            elif kind == EventKind.TOLD:
                asked = flying.pop(row.pull)
                if held.pop(row.pull, None) is None:
                    self._delayed(row.at - asked, row.reward)
                    self._expire(row.at - asked, row.reward)
            elif kind == EventKind.ABANDONED:
                asked = flying.pop(row.pull)
                held.pop(row.pull, None)
                self._expire(row.at - asked, "abandon")
            elif kind == EventKind.REPORTED:
                held[row.pull] = row.reward
                self._delayed(row.at - flying[row.pull], row.reward)

    @property
    def recent(self) -> Sequence[int]:
        """The arms of the last pulls."""
        return () if self.live is None else self.live.recent

    @property
    def phase(self) -> State:
        """The state as people see it: a running game whose horizon is over is finished."""
        return phase_of(self.state, 0 if self.live is None else self.live.pulls, self.spec.horizon)

    def _expire(self, age: float, ended_with: float | str) -> None:
        """Count a pull if its window has ended it."""
        window = self.spec.window
        self.expired += window is not None and age >= window and ended_with == self.spec.missing

    def _delayed(self, delay: float, reward: float) -> None:
        seen = self.delays[bisect_right(DELAYS, delay)]
        seen[0] += 1
        seen[1] += reward
        seen[2] += reward * reward

    # Snapshots

    def snapshot(self) -> tuple[bytes, bytes]:
        """Return the game, and what is known beside it."""
        if self.live is None:
            raise ReplayError(f"{self.name} has no arms yet.")
        more = {
            "waiting": list(self.flying.items()),
            "held": list(self.held.items()),
            "recent": list(self.recent),
            "expired": self.expired,
            "delays": self.delays,
            "answered": self.answered,
        }
        if self.remembered:
            more["remembered"] = self.remembered
        return snapshot(self.live), msgspec.msgpack.encode(more)

    def _restore(self, head: int, state: bytes, more: bytes) -> None:
        self.live = restored(state, policy_of(self.spec.policy), self.name)
        known = msgspec.msgpack.decode(more)
        self.flying = dict(map(tuple, known["waiting"]))
        self.held = dict(map(tuple, known["held"]))
        self.live.recent.extend(known["recent"])
        self.answered = known["answered"]
        self.expired = known["expired"]
        self.delays = known["delays"]
        self.head = head

    @staticmethod
    def remembered_in(more: bytes) -> bytes:
        """Return `remembered`, of the snapshot that a season begins with."""
        state: bytes = msgspec.msgpack.decode(more)["remembered"]
        return state

    @property
    def now(self) -> float:
        """The time, as logs have it."""
        return clock.now()
