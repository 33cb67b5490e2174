"""The kinds of events, with what each records."""

from __future__ import annotations

ASKED = "asked"  # a pull; before it, the policy was told `used` known rewards
TOLD = "told"  # a reward
HELD = "held"  # a reward that counts when the window of its pull ends
EXPIRED = "expired"  # a pull's window ended without a reward; it gets `missing`, if that is set
ABANDONED = "abandoned"  # a pull
OBSERVED = "observed"  # a reward that did not come from a pull
USED = "used"  # the policy was told `count` known rewards
ADDED = "added"  # `count` arms
RETIRED = "retired"  # an arm
RESTORED = "restored"  # a retired arm
SEASON = "season"  # the beginning of a season: policy, horizon and seed
