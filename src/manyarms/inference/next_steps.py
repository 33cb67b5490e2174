"""The advice of a verdict, worded for a handle or for the service."""

from __future__ import annotations

from typing import NamedTuple


class NextSteps(NamedTuple):
    """One text for each situation. A handle's texts contain a call that can be pasted.

    They are formatted with `pulls` (a horizon), `mean` (a target), `epsilon` and `quantile`.
    """

    few: str  # there are few arms, and some need more rewards
    easier: str  # too many arms could still be better
    search: str  # too few arms were tried, or none of them is good enough
    wider: str  # too many arms were left out of the random sample
    itself: str  # the recommended arm is the target
    extend: str  # no pulls are left, or too few
    after_search: str  # the same, with a policy that only searches
    stopped: str


HANDLE = NextSteps(
    few="To get a verdict, pull all arms equally often: "
    'live.season(policy=ma.policy("uniform"), horizon={pulls}).',
    easier="Say which mean is good enough, for example live.verdict(target={mean}).",
    search="To search among more arms: live.season(policy=ma.EmpMOSSPlusPlus(), horizon={pulls}).",
    wider="Leave aside more of the top arms: live.verdict(epsilon={epsilon}, quantile={quantile}).",
    itself="To compare it with the best arm instead: live.verdict(quantile={quantile}).",
    extend="To continue after the last pull: live.season(horizon={pulls}).",
    after_search="To continue after the last pull: "
    "live.season(policy=ma.EmpMOSSPlusPlus(), horizon={pulls}).",
    stopped="A stopped experiment cannot be resumed. To continue, create a new one.",
)
SERVICE = NextSteps(
    few="To get a verdict, pull all arms equally often: under Settings, begin a season with the "
    "policy uniform and the horizon {pulls}.",
    easier="Under Settings, enter a mean that is good enough (“Its mean is above”).",
    search="To search among more arms, begin a season under Settings, with the policy empmoss++ "
    "and the horizon {pulls}.",
    wider="Under Settings, enter a mean that is good enough (“Its mean is above”).",
    itself="To compare it with the best arm instead, ask without a target: under Settings, leave "
    "“Its mean is above” empty.",
    extend="To continue after the last pull, begin a season under Settings, with the horizon "
    "{pulls}.",
    after_search="To continue after the last pull, begin a season under Settings, with the policy "
    "empmoss++ and the horizon {pulls}.",
    stopped="A stopped experiment cannot be resumed. To continue, use “New experiment "
    "with these settings” under Settings.",
)
