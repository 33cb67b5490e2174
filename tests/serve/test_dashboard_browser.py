"""The dashboard in Chromium: updates, buttons, layout, and no requests to other hosts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from playwright.sync_api import Dialog, Page, expect

import manyarms as ma
from tests.report.browser import PageLog, open_page, resize
from tests.serve.gallery import fill
from tests.serve.machines import TOKEN, Node, call, node

pytestmark = [pytest.mark.compiled, pytest.mark.slow]  # no kernels to cover, so once is enough


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    path = tmp_path_factory.mktemp("gallery") / "serve.db"
    with node(fill(path, arms=2000, pulls=3000) + "") as one:
        yield one


@pytest.fixture(scope="module")
def browser(gallery: Node) -> Iterator[Page]:
    with open_page() as page:
        page.goto(f"http://{gallery.address}/experiments/captions")
        assert page.evaluate("location.pathname") == "/login", "without a token: login"
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
def test_pages_fit_and_log_no_errors(
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
    assert browser.evaluate(small) == 0, "it must be large enough for a finger"


def test_the_page_is_updated(visit: Visit, gallery: Node) -> None:
    browser = visit("/experiments/captions")
    browser.wait_for_selector("[data-live=on]")
    told = browser.locator(".key .told strong")
    before = int(told.inner_text().replace(",", ""))
    browser.evaluate("document.getElementById('oldest').open = true")
    remote = ma.Remote(f"http://{gallery.address}", "captions", token=TOKEN)
    remote.tell_many([(pull, 1.0) for pull in remote.ask(7)])
    expect(told).to_have_text(f"{before + 7:,}")
    assert browser.evaluate("document.getElementById('oldest').open"), "open details stay open"


def test_buttons(visit: Visit, gallery: Node, log: PageLog) -> None:
    browser = visit("/experiments/captions")
    said = list[str]()

    def answer(*, accept: bool) -> None:
        """Answer the page's next dialog."""

        def reply(dialog: Dialog) -> None:
            said.append(dialog.message)
            (dialog.accept if accept else dialog.dismiss)()

        browser.once("dialog", reply)

    answer(accept=False)
    browser.get_by_role("button", name="Pause").click()
    assert "refused with status 409 and code “paused”" in said[0]
    assert call(gallery.port, "GET", "/v1/experiments/captions")[1]["state"] == "running"
    answer(accept=True)
    browser.get_by_role("button", name="Pause").click()
    browser.wait_for_selector("body[data-state=paused]")
    assert call(gallery.port, "POST", "/v1/experiments/captions/asks", {})[1]["code"] == "paused"
    answer(accept=True)
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
    answer(accept=True)
    browser.click("#arms tbody button")
    browser.wait_for_selector("#arms tr.retired")
    arm = "/v1/experiments/captions/arms/%3Cb%3Ebold%3C%2Fb%3E"
    assert call(gallery.port, "GET", arm)[1]["retired"]
    browser.click("#arms tbody button")
    browser.wait_for_selector("#arms tr:not(.retired) th[scope=row]")
    assert not call(gallery.port, "GET", arm)[1]["retired"]
    assert log.problems == []
    assert len(said) == 4


def test_a_catalogue_is_synced(visit: Visit, gallery: Node) -> None:
    path = "/v1/experiments/synced"
    assert call(gallery.port, "PUT", path, {})[0] == 201
    assert call(gallery.port, "POST", f"{path}/arms", {"names": ["a", "b", "c"]})[0] == 200
    browser, said = visit("/experiments/synced"), list[str]()
    browser.get_by_role("button", name="Sync arms").click()
    browser.fill("#sync-names", "a\nd\n")

    def sync(*, accept: bool) -> None:
        def reply(dialog: Dialog) -> None:
            said.append(dialog.message)
            (dialog.accept if accept else dialog.dismiss)()

        browser.once("dialog", reply)
        browser.click("#sync-arms form button.strong")

    sync(accept=False)
    expect(browser.locator("#sync-arms .said")).to_have_text("Nothing was changed.")
    assert call(gallery.port, "GET", path)[1]["n_arms"] == 3
    sync(accept=True)
    counts = "1 arm is added, 0 arms are restored and 2 arms are retired."
    expect(browser.locator("#said")).to_have_text(counts)
    assert said == [f"{counts} Change the arms?"] * 2
    page = call(gallery.port, "GET", f"{path}/arms?sort=arm")[1]
    assert {arm["arm"] for arm in page["arms"] if not arm["retired"]} == {"a", "d"}


def test_buttons_of_arms_fit_on_a_phone(visit: Visit) -> None:
    browser = visit("/experiments/hostile")
    resize(browser, 390)
    browser.wait_for_selector("#arms tbody button")
    cut_off = """[...document.querySelectorAll("#arms tbody button")].filter((button) => {
        const seen = button.getBoundingClientRect();
        const box = button.closest(".scroll").getBoundingClientRect();
        return seen.right > box.right || seen.left < box.left || seen.right > innerWidth;
    }).length"""
    assert browser.evaluate(cut_off) == 0


def test_an_experiment_is_created_from_a_file(visit: Visit, gallery: Node, tmp_path: Path) -> None:
    arms = tmp_path / "arms.txt"
    arms.write_text('a, b\nc\nd "e"\n', encoding="utf-8")
    browser = visit("/new")
    browser.fill("#name", "made-here")
    assert browser.locator("input[name=policy]").count() == 4
    assert browser.is_checked("input[value=prospector]")
    browser.check("input[value=moss]")
    browser.fill("#horizon", "50")
    browser.set_input_files("#file", arms)
    browser.press("#name", "Enter")
    browser.wait_for_url("**/experiments/made-here")
    remote = ma.Remote(f"http://{gallery.address}", "made-here", token=TOKEN)
    assert {pull.arm for pull in remote.ask(3)} == {"a, b", "c", 'd "e"'}


def test_the_dashboard_works_with_a_keyboard(visit: Visit) -> None:
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


def test_the_target_is_a_setting(visit: Visit, gallery: Node) -> None:
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
    expect(page.locator("#deploy")).to_contain_text("its mean is above 30 % (95 % confidence).")
    spec = call(gallery.port, "GET", path)[1]["spec"]
    assert (spec["epsilon"], spec["target"]) == ("40%", 0.3)
    assert call(gallery.port, "PATCH", path, {"epsilon": None, "target": None})[0] == 200


def test_continuing_with_a_season(visit: Visit, gallery: Node) -> None:
    path = "/v1/experiments/buttons"
    told = call(gallery.port, "GET", path)[1]["recommended"]["told"]
    page = visit("/experiments/buttons")
    page.click("text=Settings")
    page.click("#season summary")
    page.click("#season button")
    expect(page.locator("#season .said")).to_contain_text("`horizon` must be given to moss")
    page.fill("#season-policy", "prospector")
    page.click("#season button")
    expect(page.locator("#said")).to_have_text("A season has begun.")
    seen = call(gallery.port, "GET", path)[1]
    assert (seen["season"], seen["policy"], seen["recommended"]["told"]) == (2, "prospector", told)
    visit("/experiments/buttons").click("text=Settings")
    expect(page.locator("#settings")).to_contain_text("Season")


def test_an_experiment_is_stopped(visit: Visit, gallery: Node) -> None:
    path = "/v1/experiments/doomed"
    assert call(gallery.port, "PUT", path, {"n_arms": 5})[0] == 201
    (pull,) = call(gallery.port, "POST", f"{path}/asks", {})[1]["pulls"]
    told = {"tells": [{"pull": pull["pull"], "reward": 1}]}
    assert call(gallery.port, "POST", f"{path}/tells", told)[0] == 200
    page, said = visit("/experiments/doomed"), list[str]()
    page.click("text=Settings")

    def stop(*, accept: bool) -> None:
        def reply(dialog: Dialog) -> None:
            said.append(dialog.message)
            (dialog.accept if accept else dialog.dismiss)()

        page.once("dialog", reply)
        page.get_by_role("button", name="Stop").click()

    stop(accept=False)
    assert call(gallery.port, "GET", path)[1]["state"] == "running"
    stop(accept=True)
    page.wait_for_selector("body[data-state=stopped]")
    assert len(said) == 2
    assert "This cannot be undone" in said[0]
    assert "status 409" in said[0]
    status, answer = call(gallery.port, "POST", f"{path}/asks", {})
    assert (status, answer["code"], answer["recommended"]["arm"]) == (409, "stopped", pull["arm"])
    expect(page.locator("button.danger:visible")).to_have_text("Delete")
    told["tells"][0]["pull"] = 99
    assert call(gallery.port, "POST", f"{path}/tells", told)[1]["results"][0]["status"] == 404
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Delete").click()
    expect(page).to_have_title(re.compile("Experiments"))
    assert call(gallery.port, "GET", path)[0] == 404


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
