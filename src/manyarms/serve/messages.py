"""What goes over the wire: every request and every answer, as types.

The same types check requests, write answers, and make the page `/openapi.json`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

MOST_PULLS = 10_000  # of one request

State = Literal["empty", "running", "paused", "finished", "stopped"]
Role = Literal["admin", "client", "viewer"]


# Requests


class NewSeason(Struct, forbid_unknown_fields=True):
    """A season: more pulls, or another policy, which knows all rewards."""

    policy: str | None = None  # its name (default: the present one)
    horizon: Annotated[int, Meta(ge=1)] | None = None  # pulls to come
    seed: Annotated[int, Meta(ge=0)] | None = None  # default: the present one


class Spec(Struct, forbid_unknown_fields=True):
    """The settings of an experiment, as for `Live`.

    Without `n_arms` its arms have names, and are added before the first ask.
    """

    policy: str = "prospector"  # its name, such as "moss++" or "moss++(beta=0.6)"
    horizon: Annotated[int, Meta(ge=1)] | None = None
    n_arms: Annotated[int, Meta(ge=1)] | None = None
    seed: Annotated[int, Meta(ge=0)] | None = None  # drawn if it is not given
    reward_range: tuple[float, float] | None = (0.0, 1.0)
    window: float | None = None  # seconds that a reward may take
    missing: float | None = None  # the reward if none has come by then; null: the pull is abandoned
    hold: bool = False  # whether rewards count only when their windows end
    control: str | int | None = None  # the name of what there is today, to compare with
    share: float = 0.05  # of the pulls, for the control
    reward: str | None = None  # what rewards are, such as clicks
    epsilon: float | str | None = None  # how much worse than the best an arm may be, such as "10%"
    # or: the mean that an arm must exceed; control: that of the control
    target: float | Literal["control"] | None = None


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

    added: list[str | int]
    restored: list[str | int]
    retired: list[str | int]
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


# Views: what panels and pages show. `seq` is the last event that a view has seen.


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
    named: bool = True  # whether arms have names, or numbers
    season: int = 1
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
    rivals: int = 0  # tried arms whose upper bound is above the recommended arm's lower one
    untried: int = 0
    may_stop: bool | None = None  # None: not decided
    outcome: str = ""  # as `Live.verdict` says: "stop", "go on", …
    headline: str = ""  # what to do, in a line
    advice: str = ""  # and why
    seq: int = 0
    alarm: str = ""  # what is wrong with the experiment, if something is


class Listing(Struct):
    """A page of the experiments that the asker may see, by name."""

    experiments: list[ExperimentSummary]
    cursor: str | None = None  # of the next page, if there is one


class Leaders(Struct):
    """The best arms: the recommended one first, then by lower bound."""

    arms: list[ArmView]
    seq: int


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
    lower_bound: float | None  # of the arm's mean; None: no reward is known
    tried: int
    beaten: int
    met: int
    unsettled: int
    n_arms: int
    at_first: bool
    more: int | None  # about how many more pulls are needed; None: no estimate
    outlook: str  # texts: what more pulls will do,
    missing: str  # what is missing,
    advice: str  # what to do next,
    known: str  # and what is known about the arm's mean
    warning: str  # set if rewards look wrong
    rate: bool  # whether means are rates, which are shown in percent
    headline: str  # whether to stop, and with which arm
    why: str  # the other texts, joined
    seq: int


class UpliftView(Struct, kw_only=True):
    """How much better the recommended arm is than the control, as `Live.uplift` says."""

    control: str | int | None
    confidence: float
    text: str  # all of it in a sentence
    missing: str  # why there is nothing to compare, in words; else empty
    seq: int
    arm: str | int | None = None
    mean: float | None = None
    control_mean: float | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    ratio: float | None = None  # null: rewards may be negative, or the control has earned nothing
    ratio_low: float | None = None
    ratio_high: float | None = None  # null: no bound
    told: int = 0
    control_told: int = 0
    better: bool | None = None  # null: not sure
    rate: bool = False  # whether means are rates, which are shown in percent


class ArmPage(Struct):
    """A page of arms; `cursor` leads to the next one, None on the last."""

    arms: list[ArmView]
    cursor: str | None
    total: int
    seq: int


class Point(Struct):
    """What happened in one interval of time."""

    at: float  # seconds since 1970: its beginning
    asked: int
    told: int
    reward: float
    fresh: int  # arms that were pulled for the first time


class Course(Struct):
    """What happened when, in at most 600 points."""

    points: list[Point]
    step: int  # seconds of each interval
    seq: int


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


class PendingView(Struct, kw_only=True):
    """Pending pulls, and how long rewards took."""

    count: int
    held: int
    ages: list[DelayBin]
    delays: list[DelayBin]
    expired: int  # pulls whose window ended without a reward
    oldest: list[PendingPull]
    alarm: str  # set if the mean reward differs by delay
    seq: int
    uneven: list[UnevenLoss] = []  # arms that lose more or fewer rewards than by chance


class EventView(Struct):
    """One event of the log."""

    seq: int
    kind: str
    at: float  # seconds since 1970
    pull: int | None
    arm: str | int | None
    reward: float | None
    detail: dict[str, Any] | None


class EventPage(Struct):
    """A page of the event log; `after` leads to the next one, None on the last."""

    events: list[EventView]
    after: int | None
