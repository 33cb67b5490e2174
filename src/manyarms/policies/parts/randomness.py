"""Who draws what: each purpose has a key of its own, so a draw here never shifts one there."""

from __future__ import annotations

__all__ = [
    "BASES",
    "EPOCHS",
    "FRESH",
    "MIXTURES",
    "ORDER",
    "PHASES",
    "RANKING",
    "ROUNDING",
    "SAMPLES",
    "SUBSET",
    "TIES",
]

FRESH = 1  # which arm is drawn next: one word for each arm
TIES = 2  # the priority among equal indices: one word for each index computed
ORDER = 3  # real or mixture-arm first, while both wait for their first pull: one word each time
MIXTURES = 4  # one word for each step into a mixture-arm
RANKING = 5  # empMOSS++: ties among equal means when a set is chosen
EPOCHS = 6  # Parallel: ties among equal empirical regrets
PHASES = 7  # Doubling: the keys of its restarts
ROUNDING = 8  # rules for rewards 0 and 1: one word for each reward between them
BASES = 9  # CorralIGW: three words for each pull: base rule, random arm, which of two arms
SUBSET = 10  # SubSampled: the key of the policy within
SAMPLES = 11  # posterior samples: one word for each pull
