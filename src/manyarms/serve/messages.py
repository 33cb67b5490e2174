"""What goes over the wire: every request and every answer, as types.

The same types check requests, write answers, and make the page `/openapi.json`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

MOST_PULLS = 10_000  # of one request
_NO_NUL = r"^[^\u0000]*$"  # which PostgreSQL has no place for
NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$(?!\n)"  # a $ alone lets a last newline through

State = Literal["empty", "running", "paused", "finished", "stopped"]
Role = Literal["admin", "client", "viewer"]


# Requests


class PolicySpec(Struct, forbid_unknown_fields=True):
    """A policy by its name; a parameter may be a policy, too."""

    name: str
    parameters: dict[str, Any] = {}


class NewSeason(Struct, forbid_unknown_fields=True):
    """A new experiment that remembers this one: for more pulls, or with another policy."""

    name: Annotated[str, Meta(pattern=NAME)]
    policy: PolicySpec | str | None = None  # that of this experiment
    horizon: Annotated[int, Meta(ge=1)] | None = None  # pulls to come
    seed: Annotated[int, Meta(ge=0)] | None = None  # that of this experiment


class Season(Struct, forbid_unknown_fields=True):
    """Which experiment a season remembers, up to which event, and what it was asked to change."""

    of: str
    head: int
    policy: PolicySpec | str | None = None
    horizon: int | None = None
    seed: int | None = None


class Spec(Struct, forbid_unknown_fields=True):
    """An experiment. Without `n_arms` its arms have names, and are added before the first ask."""

    policy: PolicySpec | str = "prospector"
    horizon: Annotated[int, Meta(ge=1)] | None = None
    n_arms: Annotated[int, Meta(ge=1)] | None = None
    seed: Annotated[int, Meta(ge=0)] | None = None  # drawn if it is not given
    reward_range: tuple[float, float] | None = (0.0, 1.0)
    window: Annotated[float, Meta(gt=0)] | None = None  # seconds that a reward may take
    missing: Literal["abandon"] | float = "abandon"  # what follows when it has not come
    early: Literal["tell", "hold"] = "tell"  # hold: a reward counts at the end of its window
    max_pending: Annotated[int, Meta(ge=1, le=1_000_000)] = 100_000  # pulls
    # the name of what there is today, to compare with
    control: Annotated[str, Meta(min_length=1, max_length=1000, pattern=_NO_NUL)] | int | None = (
        None
    )
    share: Annotated[float, Meta(gt=0, le=0.5)] = 0.05  # of the pulls, for the control
    reward: str | None = None  # what rewards are, such as clicks
    epsilon: float | str | None = None  # how much worse than the best an arm may be, such as "10%"
    # or: the mean that an arm must exceed; control: that of the control
    target: float | Literal["control"] | None = None
    season: Season | None = None  # set by the service


class Changes(Struct, forbid_unknown_fields=True):
    """Settings of an experiment that may be changed while it runs; others are left as they are."""

    epsilon: float | str | UnsetType | None = UNSET
    target: float | Literal["control"] | UnsetType | None = UNSET


class Ask(Struct, forbid_unknown_fields=True):
    """Ask for `k` pulls."""

    k: Annotated[int, Meta(ge=1, le=MOST_PULLS)] = 1


class Tell(Struct, forbid_unknown_fields=True):
    """The reward of a pull."""

    pull: Annotated[int, Meta(ge=0)]
    reward: float


class Tells(Struct, forbid_unknown_fields=True):
    """Several rewards; each gets its own result."""

    tells: Annotated[list[Tell], Meta(min_length=1, max_length=MOST_PULLS)]


class Abandons(Struct, forbid_unknown_fields=True):
    """Pulls whose rewards will never come."""

    pulls: Annotated[list[Annotated[int, Meta(ge=0)]], Meta(min_length=1, max_length=MOST_PULLS)]


class Restore(Struct, forbid_unknown_fields=True):
    """A retired arm that is to come back."""

    arm: str | int


class Observe(Struct, forbid_unknown_fields=True):
    """Rewards of an arm that no pull of this experiment earned, in the order they came in."""

    arm: str | int
    rewards: Annotated[list[float], Meta(min_length=1, max_length=MOST_PULLS)]


# Answers


class GivenPull(Struct):
    """An arm to pull now: its name, or its number if arms have no names."""

    pull: int
    arm: str | int


class Asked(Struct):
    """The pulls, in order."""

    pulls: list[GivenPull]


class Told(Struct, omit_defaults=True):
    """What became of a tell or an abandon: applied now, or before; else why it was refused."""

    pull: int
    applied: bool
    held: bool = False
    status: int = 200
    code: str = ""
    message: str = ""


class ToldMany(Struct):
    """A result for each, in the order of the request."""

    results: list[Told]


class AddedArms(Struct):
    """The number of arms that were added, and of all arms that were ever added."""

    added: int
    n_arms: int
    skipped: int = 0  # names that were there already


class SyncedArms(Struct):
    """The names of the arms that were added, restored and retired, and the number of arms now."""

    added: list[str]
    restored: list[str]
    retired: list[str]
    n_arms: int


class SyncPreview(Struct):
    """How many arms a sync would add, restore and retire."""

    added: int
    restored: int
    retired: int


class Done(Struct):
    """The experiment's state now."""

    name: str
    state: State


class ComeOrGone(Done):
    """The experiment's state now, and whether this request has changed the arm."""

    applied: bool


class Observed(Done):
    """The experiment's state now, and how many rewards were kept."""

    kept: int


class Failure(Struct, omit_defaults=True):
    """Why a request was refused. `code` is for programs, `message` for people."""

    code: str
    message: str
    status: int = 0
    parameter: str | None = None


class StoppedFailure(Struct):
    """No pulls are left, or the experiment was stopped. `recommended` is the arm to deploy."""

    code: str
    message: str
    recommended: ArmView | None
    status: int = 409


Failures = Failure | StoppedFailure


class Ready(Struct):
    """Whether requests are answered here, and if not, why."""

    ready: bool
    reason: str = ""


# Views: what panels and pages show. `head` is the event up to which a view has looked.


class ArmView(Struct):
    """What is known about an arm."""

    arm: str | int
    number: int
    pulls: int
    told: int
    estimate: float | None
    low: float | None
    high: float | None
    retired: bool = False
    recent: float | None = None  # its share of the last 1000 pulls
    rate: bool = False  # whether means are rates, which are shown in percent


class ExperimentSummary(Struct, kw_only=True):
    """An experiment at a glance."""

    name: str
    state: State
    policy: str
    spec: Spec
    keyed: bool
    pulls: int = 0
    horizon: int | None = None
    told: int = 0
    pending: int = 0
    abandoned: int = 0
    held: int = 0
    stage: str = ""
    arms_touched: int = 0
    n_arms: int = 0
    reward: float = 0.0
    mean_reward: float | None = None
    observed: int = 0  # observed rewards that no pull has used yet
    rate: bool = False  # whether means are rates, which are shown in percent
    control_pulls: int = 0
    control_mean: float | None = None  # None: no reward of the control is known
    recommended: ArmView | None = None
    rivals: int = 0  # tried arms whose upper limit is above the recommended arm's lower one
    untried: int = 0
    may_stop: bool | None = None  # None: not decided
    outcome: str = ""  # as `Live.verdict` says: "stop", "go on", …
    headline: str = ""  # what to do, in a line
    advice: str = ""  # and why
    last_hour: float | None = None  # mean reward of the last hour
    head: int = 0
    alarm: str = ""  # what is wrong with the experiment, if something is


class Listing(Struct):
    """A page of the experiments that the asker may see, by name."""

    experiments: list[ExperimentSummary]
    cursor: str | None = None  # of the next page, if there is one


class Leaders(Struct):
    """The best arms: the recommended one first, then by the lower limit of their intervals."""

    arms: list[ArmView]
    head: int


class VerdictView(Struct):
    """Whether the recommended arm is good enough to stop, as `Live.verdict` says."""

    arm: str | int | None
    stop: bool
    outcome: str
    epsilon: float | str
    quantile: float
    confidence: float
    target: float | str | None
    margin: float | str
    limit: float | None  # the lower limit of the arm's mean; None: none is known
    tried: int
    beaten: int
    met: int
    unsettled: int
    n_arms: int
    at_first: bool
    more: int | None  # about how many pulls it takes; None: that cannot be said
    outlook: str  # in words: what more pulls bring,
    missing: str  # what is missing,
    advice: str  # what helps,
    known: str  # and what is known
    warning: str  # set if so many pulls have no reward that `stop` could be wrong
    rate: bool  # whether means are rates, which are shown in percent
    headline: str  # what to do, in a line
    why: str  # all that is said about it
    head: int


class ArmPage(Struct):
    """A page of arms; `cursor` leads to the next one, None on the last."""

    arms: list[ArmView]
    cursor: str | None
    total: int | None  # arms there are; None where a search counts none
    head: int


class Minute(Struct):
    """What happened in a minute, or in several of them together."""

    at: float  # seconds since 1970: the beginning
    asked: int
    told: int
    abandoned: int
    reward: float
    fresh: int  # asks for arms never pulled before


class Minutes(Struct):
    """The course of an experiment, in at most 300 points."""

    points: list[Minute]
    step: int  # minutes of each point
    head: int


class DelayBin(Struct):
    """Rewards that took between `low` and `high` seconds (None: no limit)."""

    low: float
    high: float | None
    count: int
    mean_reward: float | None


class PendingPull(Struct):
    """A pull whose reward has not been told."""

    pull: int
    arm: str | int
    age: float


class UnevenLoss(Struct):
    """An arm of whose pulls another share was abandoned than of all others."""

    arm: str | int
    abandoned: int
    pulls: int
    others: float  # the share of all others


class PendingView(Struct):
    """Pending pulls, and how long rewards took."""

    count: int
    held: int
    ages: list[DelayBin]
    delays: list[DelayBin]
    expired: int  # pulls whose window ended without a reward
    oldest: list[PendingPull]
    alarm: str  # set if the mean reward differs by delay
    head: int
    uneven: list[UnevenLoss] = []  # arms that lose more or fewer rewards than by chance


class EventView(Struct):
    """One event of the log."""

    seq: int
    kind: str
    at: float  # seconds since 1970
    pull: int | None
    arm: str | int  # of an event that adds arms: how many
    reward: float | None


class EventPage(Struct):
    """A page of the event log; `after` leads to the next one, None on the last."""

    events: list[EventView]
    after: int | None
