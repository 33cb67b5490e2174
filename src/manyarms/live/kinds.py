"""The kinds of events."""

from __future__ import annotations

ASKED = "asked"  # for a pull; `used` known rewards were told to the policy before it
TOLD = "told"  # a reward
HELD = "held"  # a reward that counts when the window of its pull ends
EXPIRED = "expired"  # the window of a pull; it gets the reward for missing ones, if there is one
ABANDONED = "abandoned"  # a pull
OBSERVED = "observed"  # a reward of an arm that no pull earned
USED = "used"  # so many known rewards were told to the policy
ADDED = "added"  # so many arms
RETIRED = "retired"  # an arm
RESTORED = "restored"  # a retired arm
SEASON = "season"  # another policy or horizon
