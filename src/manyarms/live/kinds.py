"""The kinds of events, with what each records; and the reasons why an arm was chosen."""

from __future__ import annotations

ASKED = "asked"  # a pull; `why` its arm was chosen, unless it was drawn at random or known
TOLD = "told"  # a reward
HELD = "held"  # a reward that counts when the window of its pull ends
EXPIRED = "expired"  # a pull's window ended without a reward; it gets `missing`, if that is set
ABANDONED = "abandoned"  # a pull
OBSERVED = "observed"  # a reward that did not come from a pull, or `counts` of such rewards
ADDED = "added"  # `count` arms
RETIRED = "retired"  # an arm
RESTORED = "restored"  # a retired arm
SEASON = "season"  # the beginning of a season: policy, horizon and seed

# Why a fresh arm was chosen
AT_RANDOM = "at random"  # not recorded
NEW = "new"  # it was added in this season
RETURNED = "returned"  # it was restored in this season, and has no rewards that the policy knows
BY_NUMBER = "by number"  # by a policy that is not known to draw fresh arms at random
