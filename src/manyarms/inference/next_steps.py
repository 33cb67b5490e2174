"""The advice of a verdict, worded for a handle or for the service."""

from __future__ import annotations

from typing import NamedTuple


class NextSteps(NamedTuple):
    """One text for each situation. A handle's texts contain a call that can be pasted.

    They are formatted with `pulls` (a horizon), `mean` (a target), `confidence` (an argument, empty
    for the default), `quantile` and `cost` (what the pulls cost).
    """

    few: str  # there are few arms, and some need more rewards
    easier: str  # too many arms could still be better, or the target is too high
    itself: str  # the recommended arm is the target
    extend: str  # no pulls are left, or too few
    after_search: str  # the same, with a policy that only searches
    stopped: str


HANDLE = NextSteps(
    few="To get a verdict, pull all arms equally often: "
    'live.season(policy=ma.policy("uniform"), horizon={pulls}). {cost}',
    easier="Say which mean is good enough, for example live.verdict(target={mean}{confidence}).",
    itself="To compare it with the best arm instead: "
    "live.verdict(quantile={quantile}{confidence}).",
    extend="To continue after the last pull: live.season(horizon={pulls}).",
    after_search="To continue after the last pull: "
    "live.season(policy=ma.EmpMOSSPlusPlus(), horizon={pulls}).",
    stopped="A stopped experiment cannot be resumed. To continue, create a new one.",
)
SERVICE = NextSteps(
    few="To get a verdict, pull all arms equally often: under Settings, begin a season with the "
    "policy uniform and the horizon {pulls}. {cost}",
    easier="Under Settings, enter a mean that is good enough (“Its mean is above”), for example "
    "{mean}.",
    itself="To compare it with the best arm instead, ask without a target: under Settings, leave "
    "“Its mean is above” empty.",
    extend="To continue after the last pull, begin a season under Settings, with the horizon "
    "{pulls}.",
    after_search="To continue after the last pull, begin a season under Settings, with the policy "
    "empmoss++ and the horizon {pulls}.",
    stopped="A stopped experiment cannot be resumed. To continue, use “New experiment "
    "with these settings” under Settings.",
)
