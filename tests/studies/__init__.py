"""Studies draw: without matplotlib none of these tests can run."""

import pytest

pytest.importorskip("matplotlib", reason='it draws: pip install "manyarms[lab]"')
