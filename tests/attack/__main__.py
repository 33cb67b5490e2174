"""Run attacks: all, or those whose names begin with a word (`python -m tests.attack handle`)."""

from __future__ import annotations

import contextlib
import sys

from tests.attack import (  # noqa: F401  importing them registers attacks
    on_databases,
    on_files,
    on_handles,
    on_http,
    on_text,
)
from tests.attack.runner import ATTACKS, run_attacks

_MOST_BYTES = 16 << 30  # so that larger allocations fail instead of exhausting the machine

if __name__ == "__main__":
    with contextlib.suppress(ImportError):  # Windows has no resource limits
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))
    sys.exit(run_attacks(ATTACKS, sys.argv[1:]))
