"""Chromium from the PATH, driven by Playwright."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, Request, expect, sync_playwright

_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
# Playwright starts it without a sandbox (root cannot use one), extensions, updates and background
# requests.
_OPTIONS = (
    "--disable-gpu",
    "--disable-sync",
    # only 127.0.0.1 is resolved
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
# generous, because the machine may be busy
_DEADLINE = 120_000  # milliseconds
expect.set_options(timeout=_DEADLINE)


def find_browser() -> str:
    """Return the browser's path; without one, skip the test, or fail if it must run."""
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


@contextlib.contextmanager
def open_page() -> Iterator[Page]:
    """Start a browser with one empty page."""
    program = find_browser()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program, args=_OPTIONS, timeout=_DEADLINE
        )
        page = browser.new_page()
        page.set_default_timeout(_DEADLINE)
        yield page
        browser.close()


class PageLog:
    """The requests and console messages of a page since it was opened."""

    def __init__(self, page: Page) -> None:
        self.requests: list[str] = []
        self.problems: list[str] = []
        page.on("request", self._add_request)
        page.on("console", lambda message: self.problems.append(message.text))
        page.on("pageerror", lambda error: self.problems.append(str(error)))

    def _add_request(self, request: Request) -> None:
        if request.is_navigation_request():
            self.requests.clear()
            self.problems.clear()
        self.requests.append(request.url)


def resize(page: Page, width: int) -> None:
    """Set the page's width, and wait until it is redrawn."""
    page.set_viewport_size({"width": width, "height": 900})
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
