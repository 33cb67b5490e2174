"""Types of request bodies and answers.

They validate requests, encode answers, and describe both in `/openapi.json`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from manyarms.live.settings import SHARE
from manyarms.protocol.policy import MOST_ARMS
from manyarms.serve.fields import (
    MOST_PULLS,
    ArmField,
    Confidence,
    ControlShare,
    EpsilonField,
    HorizonField,
    MarginField,
    PolicyField,
    QuantileField,
    RewardField,
    RewardName,
    SeedField,
    TargetField,
    WindowField,
    described,
)

State = Literal["empty", "running", "paused", "finished", "stopped"]


# Requests


class NewSeason(Struct, forbid_unknown_fields=True):
    """A season: more pulls or another policy; all rewards are kept."""

    policy: PolicyField | None = None  # its name (default: the present one)
    horizon: HorizonField | None = None  # pulls to come
    seed: SeedField | None = None  # default: the present one


class Spec(Struct, forbid_unknown_fields=True):
    """The settings of an experiment, as for `Live`.

    Without `n_arms`, arms have names, which are added before the first ask.
    """

    policy: PolicyField = "prospector"  # its name, such as "moss++" or "moss++(beta=0.6)"
    horizon: HorizonField | None = None
    n_arms: Annotated[int, Meta(ge=1), described(maximum=MOST_ARMS)] | None = None
    seed: SeedField | None = None  # drawn if it is not given
    reward_range: tuple[RewardField, RewardField] | None = (0.0, 1.0)
    window: WindowField | None = None  # seconds that a reward may take
    # the reward if none is told by then; null: the pull is abandoned
    missing: RewardField | None = None
    hold: bool = False  # whether rewards count only when their windows end
    control: ArmField | None = None  # the name of what you have today, to compare with
    share: ControlShare = SHARE  # of the pulls, for the control
    reward: RewardName | None = None  # what rewards are, such as clicks
    epsilon: EpsilonField | None = None  # how much worse than the best an arm may be, such as "10%"
    # instead of `epsilon`: the mean that an arm must exceed; "control": that of the control
    target: TargetField | None = None


class Changes(Struct, forbid_unknown_fields=True):
    """Settings that can be changed while the experiment runs; omitted ones stay the same."""

    epsilon: EpsilonField | UnsetType | None = UNSET
    target: TargetField | UnsetType | None = UNSET


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


class ArmName(Struct, forbid_unknown_fields=True):
    """An arm to retire or to restore."""

    arm: ArmField


# how many rewards, their sum, and the sum of their squares if they are not all 0 or 1
Counts = Annotated[list[int | float], Meta(min_length=2, max_length=3)]


class Observe(Struct, forbid_unknown_fields=True):
    """Rewards from elsewhere: those of an arm, or `counts` for several arms."""

    arm: ArmField | None = None
    rewards: Annotated[list[RewardField], Meta(min_length=1, max_length=MOST_PULLS)] | None = None
    counts: Annotated[dict[str, Counts], Meta(min_length=1, max_length=MOST_PULLS)] | None = None


class Question(Struct, forbid_unknown_fields=True):
    """The question that a verdict answers. Omitted fields are taken from the experiment."""

    epsilon: EpsilonField | None = None  # a number, or a share such as "10%"
    quantile: QuantileField | None = None  # the share of the arms that may be better
    confidence: Confidence | None = None
    target: float | str | None = None  # a mean, the name of an arm, or "control"
    margin: MarginField | None = None  # how much better than the target, written as `epsilon`


# Answers


class GivenPull(Struct):
    """An arm to pull now: its name, or its number if arms have no names."""

    pull: int
    arm: str | int


class Asked(Struct):
    """The pulls, in order. If there are fewer than asked for, ask again for the rest."""

    pulls: list[GivenPull]


class Told(Struct, omit_defaults=True):
    """The result of a tell or an abandon: whether it was applied, or why it was refused."""

    pull: int
    applied: bool
    held: bool = False
    status: int = 200
    code: str = ""
    message: str = ""


class ToldMany(Struct):
    """One result for each pull, in the order of the request."""

    results: list[Told]


class AddedArms(Struct):
    """The number of arms that this request added, and of all arms, retired ones included."""

    added: int
    n_arms: int
    skipped: int = 0  # names that existed already


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
    """The experiment's state after the request."""

    name: str
    state: State


class ArmChange(Done):
    """The experiment's state after the request, and whether the request changed the arm."""

    applied: bool


class Observed(Done):
    """The experiment's state after the request, and how many rewards it imported."""

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
    """Whether this process answers requests, and if not, why."""

    ready: bool
    reason: str = ""


# Views: what the API and the pages show. `seq` is the last event that a view includes.


class ArmView(Struct):
    """An arm and the estimate of its mean."""

    arm: str | int
    number: int
    pulls: int
    told: int
    estimate: float | None
    low: float | None
    high: float | None
    retired: bool = False
    recent: float | None = None  # the share of the last 1,000 pulls
    rate: bool = False  # whether means are rates, which are shown in percent


class ExperimentSummary(Struct, kw_only=True):
    """A summary of an experiment."""

    name: str
    state: State
    policy: str
    spec: Spec
    named: bool = True  # whether arms have names; otherwise they have numbers
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
    observed: int = 0  # observed rewards, which are not in `told`
    rate: bool = False  # whether means are rates, which are shown in percent
    control_pulls: int = 0
    control_mean: float | None = None  # None: the control has no rewards
    recommended: ArmView | None = None
    rivals: int = 0  # tried arms whose upper bound is above the recommended arm's lower bound
    untried: int = 0
    may_stop: bool | None = None  # None: not decided
    outcome: str = ""  # as in `Live.verdict`: "stop", "go on", …
    headline: str = ""  # what to do, in one line
    advice: str = ""  # the reasons for it
    seq: int = 0
    alarm: str = ""  # why the experiment cannot be loaded; else empty
    warning: str = ""  # what looks wrong with its rewards; else empty


class Listing(Struct):
    """A page of the experiments, sorted by name."""

    experiments: list[ExperimentSummary]
    cursor: str | None = None  # of the next page, if there is one


class Leaders(Struct):
    """The best arms: the recommended one first, then by lower bound."""

    arms: list[ArmView]
    seq: int


class VerdictView(Struct):
    """Whether the recommended arm is good enough to stop, as in `Live.verdict`."""

    arm: str | int | None
    stop: bool
    outcome: str
    epsilon: float | str
    quantile: float
    confidence: float
    target: float | str | None
    margin: float | str
    lower_bound: float | None  # of the arm's mean; None: there are no rewards
    tried: int
    beaten: int
    met: int
    unsettled: int
    n_arms: int
    at_first: bool
    more: int | None  # about how many more pulls are needed; None: no estimate
    outlook: str  # what more pulls will do
    missing: str  # what is missing
    advice: str  # what to do next
    known: str  # what is known about the arm's mean
    warning: str  # set if rewards look wrong
    rate: bool  # whether means are rates, which are shown in percent
    headline: str  # whether to stop, and with which arm
    why: str  # the other texts, joined
    seq: int


class UpliftView(Struct, kw_only=True):
    """How much better the recommended arm is than the control, as in `Live.uplift`."""

    control: str | int | None
    confidence: float
    text: str  # the result in one sentence
    missing: str  # why there is nothing to compare yet; else empty
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
    better: bool | None = None  # null: not decided
    rate: bool = False  # whether means are rates, which are shown in percent


class ArmPage(Struct):
    """A page of arms. `cursor` is that of the next page, or null on the last one."""

    arms: list[ArmView]
    cursor: str | None
    total: int
    seq: int


class Point(Struct):
    """What happened in one interval of time."""

    at: float  # start of the interval (seconds since 1970)
    asked: int
    told: int
    reward: float
    fresh: int  # arms that were pulled for the first time


class Course(Struct):
    """Pulls and rewards over time, in at most 600 points."""

    points: list[Point]
    step: int  # length of each interval (seconds)
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
    """An arm whose share of abandoned pulls differs from that of all other arms."""

    arm: str | int
    abandoned: int
    pulls: int
    others: float  # the share of abandoned pulls of all other arms


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
    """A page of the event log. `after` is that of the next page, or null on the last one."""

    events: list[EventView]
    after: int | None
