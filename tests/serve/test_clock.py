"""If the machine's clock is set while the service runs, windows end at the right time."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.serve.machines import call, in_thread, made_token, path_of, wait

pytestmark = pytest.mark.interpreted
DAY = 86_400.0


@pytest.mark.parametrize("jump", [-400 * DAY, -3600.0, 3600.0, 400 * DAY])
def test_windows_after_a_clock_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jump: float
) -> None:
    with in_thread(f"sqlite:///{tmp_path}/serve.db") as one:
        begun, true = time.time(), time.time
        for name, window in (("long", 1800.0), ("short", 0.3)):
            spec = {"n_arms": 9, "window": window}
            assert call(one.port, "PUT", path_of(name), spec)[0] == 201
        token = made_token(one.store, "v", "viewer", expires=1800)
        assert call(one.port, "POST", f"{path_of('long')}/asks", {})[0] == 200
        monkeypatch.setattr(time, "time", lambda: true() + jump)
        assert call(one.port, "POST", f"{path_of('long')}/asks", {})[0] == 200
        assert call(one.port, "POST", f"{path_of('short')}/asks", {})[0] == 200
        # the window that began after the jump ends in time, and the earlier one continues
        wait(lambda: call(one.port, "GET", path_of("short"))[1]["abandoned"] == 1)
        facts = call(one.port, "GET", path_of("long"))[1]
        assert (facts["pending"], facts["abandoned"]) == (2, 0)
        assert call(one.port, "GET", path_of("long"), token=token)[0] == 200
        shown = call(one.port, "GET", f"{path_of('long')}/course")[1]["points"]
        assert sum(point["asked"] for point in shown) == 2
        assert all(abs(point["at"] - begun) < 1800 for point in shown)
