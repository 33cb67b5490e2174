"""Drives a real Chromium through its debugging pipe: two descriptors, nothing to install."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
_PATIENCE = 60.0  # seconds: a busy machine starts a browser slowly

# Chromium reads commands from descriptor 3 and answers on 4, each message ended by a zero byte.
_START = """
import os, sys
ends = [os.dup(int(word)) for word in sys.argv[1:3]]  # out of the way of 3 and 4
for end, number in zip(ends, (3, 4)):
    os.dup2(end, number)
    os.set_inheritable(number, True)  # which dup2 leaves undone if both are the same
os.execvp(sys.argv[3], sys.argv[3:])
"""

_OPTIONS = (
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-sandbox",  # which root, as in containers, may not use; the pages are our own
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--disable-sync",
    "--no-first-run",
    "--no-default-browser-check",
    # no name leads anywhere, but to what tests serve here
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)


def find_browser() -> str:
    """Return the browser's path; without one, the test is skipped, or fails if it must run."""
    found = next((path for name in _NAMES if (path := shutil.which(name))), None)
    if found is None:
        how = (
            "No Chromium was found. Install Debian's with `apt-get install chromium`, or put any "
            "Chromium or Chrome on the PATH."
        )
        if os.environ.get("MANYARMS_NEEDS_BROWSER"):
            pytest.fail(how)
        pytest.skip(how)
    return found


class Browser:
    """One browser with one tab; `events` keeps all that it reports."""

    def __init__(self, program: str) -> None:
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-c", _START, str(theirs_in), str(theirs_out)),
                *(program, *_OPTIONS, f"--user-data-dir={self._profile.name}", "about:blank"),
            ],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._unread = b""
        self._number = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> Browser:
        try:
            tab = self.call("Target.createTarget", url="about:blank")["targetId"]
            attached = self.call("Target.attachToTarget", targetId=tab, flatten=True)
            self._session = attached["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network"):
                self.call(f"{domain}.enable")
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the browser."""
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._in)
        os.close(self._out)
        self._profile.cleanup()

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and wait for its answer."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return dict(answer["result"])
            self.events.append(answer)

    def _receive(self) -> dict[str, Any]:
        until = time.monotonic() + _PATIENCE
        while b"\0" not in self._unread:
            ready, _, _ = select.select([self._in], [], [], max(0.0, until - time.monotonic()))
            read = os.read(self._in, 1 << 20) if ready else b""
            assert read, "Chromium does not answer."
            self._unread += read
        message, _, self._unread = self._unread.partition(b"\0")
        return dict(json.loads(message))

    def open(self, page: Path | str) -> None:
        """Load a file or an address, and wait until it is there; earlier events are forgotten."""
        self.events.clear()
        self.call("Page.navigate", url=page if isinstance(page, str) else page.as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._receive())

    def run(self, script: str) -> Any:
        """Return what an expression in the page gives, or fail with its error."""
        done = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def resize(self, width: int, height: int = 900) -> None:
        """Give the page a width, and wait until it is drawn for it."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        frame = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
        self.run(f"{frame}.then(() => null)")

    def press(self, key: str) -> None:
        """Press a key and let it go."""
        more = {"text": "\r", "windowsVirtualKeyCode": 13} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, **more)

    def move(self, x: float, y: float) -> None:
        """Move the mouse."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def dark(self, dark: bool = True) -> None:
        """Let the reader prefer dark pages, or light ones."""
        value = "dark" if dark else "light"
        features = [{"name": "prefers-color-scheme", "value": value}]
        self.call("Emulation.setEmulatedMedia", features=features)

    def picture(self) -> bytes:
        """Return the whole page as a PNG."""
        width, height = self.run("[innerWidth, document.documentElement.scrollHeight]")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        return base64.b64decode(shot["data"])

    def pdf(self) -> bytes:
        """Return the page as it would be printed."""
        return base64.b64decode(self.call("Page.printToPDF", printBackground=False)["data"])

    def problems(self) -> list[str]:
        """Return what the page complained of: errors, and whatever else reached the console."""
        kinds = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
        return [json.dumps(event) for event in self.events if event.get("method") in kinds]

    def requests(self) -> list[str]:
        """Return the addresses that the page asked for."""
        kind = "Network.requestWillBeSent"
        found = [event["params"] for event in self.events if event.get("method") == kind]
        return [str(params["request"]["url"]) for params in found]
