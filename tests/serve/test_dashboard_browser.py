"""The dashboard in a real Chromium: it follows, it answers, it fits, and it stays at home."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from playwright.sync_api import Page, expect

import manyarms as ma
from tests.report.browser import PageLog, open_page, resize
from tests.serve.gallery import fill
from tests.serve.machines import TOKEN, Node, call, node

pytestmark = [pytest.mark.compiled, pytest.mark.slow]  # no kernels to cover: once is enough


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    path = tmp_path_factory.mktemp("gallery") / "serve.db"
    with node(fill(path, arms=2000, pulls=3000) + "?sync=never") as one:
        yield one


@pytest.fixture(scope="module")
def browser(gallery: Node) -> Iterator[Page]:
    with open_page() as page:
        page.goto(f"http://{gallery.address}/experiments/captions")
        assert page.evaluate("location.pathname") == "/login", "who is not known is led there"
        page.fill("#token", TOKEN)
        page.click("main form button")
        expect(page).to_have_title(re.compile("Experiments"))
        yield page


@pytest.fixture(scope="module")
def log(browser: Page) -> PageLog:
    return PageLog(browser)


Visit = Callable[[str], Page]


@pytest.fixture
def visit(browser: Page, gallery: Node) -> Visit:
    resize(browser, 1400)

    def visit(path: str) -> Page:
        browser.goto(f"http://{gallery.address}{path}")
        return browser

    return visit


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [390, 1400])
@pytest.mark.parametrize("path", ["/", "/experiments/captions", "/experiments/hostile", "/new"])
def test_pages_fit_and_complain_of_nothing(
    visit: Visit, gallery: Node, log: PageLog, path: str, width: int, dark: bool
) -> None:
    browser = visit("/login")
    resize(browser, width)
    browser.emulate_media(color_scheme="dark" if dark else "light")
    resize(visit(path), width)
    if path != "/new":
        browser.wait_for_selector("[data-live=on]")
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.evaluate("document.querySelector('.bar-top nav a').offsetParent != null")
    assert log.problems == []
    home = f"http://{gallery.address}/"
    assert all(url.startswith(home) for url in log.requests)
    small = """[...document.querySelectorAll("main button, main .button, main input")].filter(
        e => e.offsetParent && e.getBoundingClientRect().height < 22 && e.type != "radio").length"""
    assert browser.evaluate(small) == 0, "a finger must find it"


def test_the_page_follows_the_game(visit: Visit, gallery: Node) -> None:
    browser = visit("/experiments/captions")
    browser.wait_for_selector("[data-live=on]")
    told = browser.locator(".key .told strong")
    before = int(told.inner_text().replace(",", ""))
    browser.evaluate("document.getElementById('oldest').open = true")
    game = ma.Remote(f"http://{gallery.address}", "captions", token=TOKEN)
    game.tell_many([(pull, 1.0) for pull in game.ask(7)])
    expect(told).to_have_text(f"{before + 7:,}")
    assert browser.evaluate("document.getElementById('oldest').open"), "what is open stays open"


def test_buttons_do_what_they_say(visit: Visit, gallery: Node, log: PageLog) -> None:
    browser = visit("/experiments/captions")
    browser.get_by_role("button", name="Pause").click()
    browser.wait_for_selector("body[data-state=paused]")
    assert call(gallery.port, "POST", "/v1/experiments/captions/asks", {})[1]["code"] == "paused"
    browser.get_by_role("button", name="Resume").click()
    browser.wait_for_selector("body[data-state=running]")
    browser.get_by_role("button", name="Add arms").click()
    browser.fill("#arms-names", "from a page\n\n<b>bold</b>")
    browser.click("#add-arms form button.strong")
    expect(browser.locator("#said")).to_have_text("2 arms were added.")
    browser.fill("#search", "<b>")
    browser.select_option("#sort", "arm")
    browser.press("#search", "Enter")
    expect(browser.locator("#arms tbody tr")).to_have_count(1)
    expect(browser.locator("#arms tbody th")).to_have_text("<b>bold</b>")
    browser.once("dialog", lambda dialog: dialog.accept())
    browser.click("#arms tbody button")
    browser.wait_for_selector("#arms tr.retired")
    assert log.problems == []
    status, arm = call(gallery.port, "GET", "/v1/experiments/captions/arms/%3Cb%3Ebold%3C%2Fb%3E")
    assert (status, arm["retired"]) == (200, True)


def test_an_experiment_is_made_from_a_file(visit: Visit, gallery: Node, tmp_path: Path) -> None:
    arms = tmp_path / "arms.txt"
    arms.write_text('a, b\nc\nd "e"\n', encoding="utf-8")
    browser = visit("/new")
    browser.fill("#name", "made-here")
    browser.select_option("#policy", "moss")
    browser.fill("#horizon", "50")
    browser.set_input_files("#file", arms)
    browser.press("#name", "Enter")
    browser.wait_for_url("**/experiments/made-here")
    game = ma.Remote(f"http://{gallery.address}", "made-here", token=TOKEN)
    assert {pull.arm for pull in game.ask(3)} == {"a, b", "c", 'd "e"'}


def test_keys_reach_what_matters(visit: Visit) -> None:
    browser = visit("/experiments/captions")
    seen = []
    for _ in range(14):
        browser.keyboard.press("Tab")
        script = "document.activeElement.id || document.activeElement.textContent.trim()"
        seen.append(browser.evaluate(script))
    assert seen[0] == "Skip to the content"
    for name in ("Pause", "Add arms", "Settings"):
        assert name in seen
    unlabelled = """[...document.querySelectorAll("input, select, textarea")].filter(
        e => !e.labels.length).length + document.querySelectorAll(
        "svg:not([aria-hidden=true]):not([aria-label])").length"""
    assert browser.evaluate(unlabelled) == 0
    assert browser.evaluate("document.querySelectorAll('h1').length") == 1


def test_what_is_good_enough_is_a_setting(visit: Visit, gallery: Node) -> None:
    path = "/v1/experiments/captions"
    page = visit("/experiments/captions")
    page.click("text=Settings")
    page.fill("#epsilon", "lots")
    page.click("#settings form button")
    said = page.locator("[data-form=settings] .said")
    expect(said).to_contain_text("`epsilon` must be a number")
    page.fill("#epsilon", "40%")
    page.fill("#target", "0.3")
    page.click("#settings form button")
    expect(page.locator("#deploy")).to_contain_text("its mean is above 30 %, 95 % sure.")
    spec = call(gallery.port, "GET", path)[1]["spec"]
    assert (spec["epsilon"], spec["target"]) == ("40%", 0.3)
    assert call(gallery.port, "PATCH", path, {"epsilon": None, "target": None})[0] == 200


def test_going_on_in_a_season(visit: Visit, gallery: Node) -> None:
    page = visit("/experiments/buttons")
    page.click("text=Settings")
    page.click("#season summary")
    page.fill("#season-name", "buttons-2")
    page.click("#season button")
    expect(page.locator("#season .said")).to_contain_text("`horizon` must be given to moss")
    page.select_option("#season-policy", "prospector")
    page.click("#season button")
    page.wait_for_url("**/experiments/buttons-2")
    expect(page.locator("#deploy")).to_contain_text("arm 3")
    page.click("text=Settings")
    expect(page.locator("#settings")).to_contain_text("buttons, up to event 3,999")
    told = call(gallery.port, "GET", "/v1/experiments/buttons")[1]["recommended"]["told"]
    seen = call(gallery.port, "GET", "/v1/experiments/buttons-2")[1]
    assert seen["recommended"]["told"] == told


def test_signing_out(browser: Page, visit: Visit) -> None:
    (session,) = browser.context.cookies()
    assert session["name"].startswith("manyarms")
    assert session["httpOnly"]
    assert session["sameSite"] == "Strict"
    visit("/").click(".bar-top form button")
    browser.wait_for_url("**/login")
    visit("/experiments/captions")
    assert browser.evaluate("location.pathname") == "/login"
    browser.context.add_cookies([cast(Any, session)])
