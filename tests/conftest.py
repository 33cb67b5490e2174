"""One compile cache for the whole run, and none of the user's."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from hypothesis import settings

# Kept between runs, so that only changed kernels compile.
os.environ.setdefault("MANYARMS_CACHE", str(Path(tempfile.gettempdir()) / "manyarms-tests"))

settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=100)
settings.load_profile("fixed")
