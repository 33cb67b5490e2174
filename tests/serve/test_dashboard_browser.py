"""The dashboard in a real Chromium: it follows, it answers, it fits, and it stays at home."""

from __future__ import annotations

import functools
import http.server
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import manyarms as ma
from tests.report.browser import Browser, find_browser
from tests.serve.gallery import fill
from tests.serve.machines import TOKEN, Node, call, node

pytestmark = [pytest.mark.compiled, pytest.mark.slow]  # no kernels to cover: once is enough


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    path = tmp_path_factory.mktemp("gallery") / "serve.db"
    with node(fill(path, arms=2000, pulls=3000) + "?sync=never") as one:
        yield one


@pytest.fixture(scope="module")
def browser(gallery: Node) -> Iterator[Browser]:
    with Browser(find_browser()) as opened:
        opened.resize(1400)
        opened.open(f"http://{gallery.address}/experiments/captions")
        assert opened.run("location.pathname") == "/login", "who is not known is led there"
        opened.run(f"document.getElementById('token').value = '{TOKEN}'")
        opened.run("document.querySelector('main form').submit()")
        until(
            opened, "document.title.startsWith('Experiments') && document.readyState == 'complete'"
        )
        yield opened


def until(browser: Browser, condition: str, *, seconds: float = 15) -> None:
    """Wait until a condition holds in the page."""
    end = time.monotonic() + seconds
    while True:
        try:
            if browser.run(f"Boolean({condition})"):
                return
        except AssertionError:  # the page is being left
            if time.monotonic() > end:
                raise
        assert time.monotonic() < end, condition
        time.sleep(0.05)


@pytest.fixture
def visit(browser: Browser, gallery: Node) -> Callable[[str], Browser]:
    browser.resize(1400)

    def visit(path: str) -> Browser:
        browser.open(f"http://{gallery.address}{path}")
        return browser

    return visit


Visit = Callable[[str], Browser]


def home_only(browser: Browser, gallery: Node) -> bool:
    home = f"http://{gallery.address}/"
    return all(url.startswith((home, "data:")) for url in browser.requests())


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [390, 1400])
@pytest.mark.parametrize("path", ["/", "/experiments/captions", "/experiments/hostile", "/new"])
def test_pages_fit_and_complain_of_nothing(
    visit: Visit, gallery: Node, path: str, width: int, dark: bool
) -> None:
    browser = visit("/login")
    browser.resize(width)
    browser.dark(dark)
    visit(path).resize(width)
    if path != "/new":
        until(browser, "document.querySelector('[data-live=on]')")
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.run("document.querySelector('.bar-top nav a').offsetParent != null")
    assert browser.problems() == []
    assert home_only(browser, gallery)
    small = """[...document.querySelectorAll("main button, main .button, main input")].filter(
        e => e.offsetParent && e.getBoundingClientRect().height < 22 && e.type != "radio").length"""
    assert browser.run(small) == 0, "a finger must find it"


def test_the_page_follows_the_game(visit: Visit, gallery: Node) -> None:
    browser = visit("/experiments/captions")
    until(browser, "document.querySelector('[data-live=on]')")
    told = "Number(document.querySelector('.key .told strong').textContent.replace(/,/g, ''))"
    before = browser.run(told)
    browser.run("document.getElementById('audit').open = true")
    browser.run("document.getElementById('best').focus()")
    game = ma.Remote(f"http://{gallery.address}", "captions", token=TOKEN)
    game.tell_many([(pull, 1.0) for pull in game.ask(7)])
    until(browser, f"{told} >= {before + 7}")
    assert browser.run("document.activeElement.id") == "best", "what has the focus keeps it"
    assert browser.run("document.getElementById('audit').open"), "what is open stays open"


def test_buttons_do_what_they_say(visit: Visit, gallery: Node) -> None:
    browser = visit("/experiments/captions")
    press = "[...document.querySelectorAll('button')].find(b => b.textContent == '{}').click()"
    browser.run(press.format("Pause"))
    until(browser, "document.body.dataset.state == 'paused'")
    assert call(gallery.port, "POST", "/v1/experiments/captions/asks", {})[1]["code"] == "paused"
    browser.run(press.format("Resume"))
    until(browser, "document.body.dataset.state == 'running'")
    browser.run(press.format("Add arms"))
    browser.run("document.getElementById('arms-names').value = 'from a page\\n\\n<b>bold</b>'")
    browser.run("document.querySelector('#add-arms form').requestSubmit()")
    until(browser, "document.getElementById('said').textContent == '2 arms were added.'")
    browser.run("document.getElementById('search').value = '<b>'")
    browser.run("document.getElementById('sort').value = 'arm'")
    browser.run("document.querySelector('.search').requestSubmit()")
    until(browser, "document.querySelectorAll('#arms tbody tr').length == 1")
    row = "document.querySelector('#arms tbody tr')"
    assert browser.run(f"{row}.querySelector('th').textContent.trim()") == "<b>bold</b>"
    browser.run("window.confirm = () => true")
    browser.run(f"{row}.querySelector('button').click()")
    until(browser, "document.querySelector('#arms tr.retired')")
    assert browser.problems() == []
    status, arm = call(gallery.port, "GET", "/v1/experiments/captions/arms/%3Cb%3Ebold%3C%2Fb%3E")
    assert (status, arm["retired"]) == (200, True)


def test_an_experiment_is_made_from_a_file(visit: Visit, gallery: Node, tmp_path: Path) -> None:
    arms = tmp_path / "arms.csv"
    arms.write_text('key,text\n"a, b",1\nc,2\n"d ""e""",3\n', encoding="utf-8")
    browser = visit("/new")
    browser.run("document.getElementById('name').value = 'made-here'")
    browser.run("document.getElementById('policy').value = 'moss'")
    browser.run("document.getElementById('horizon').value = 50")
    root = browser.call("DOM.getDocument")["root"]["nodeId"]
    field = browser.call("DOM.querySelector", nodeId=root, selector="#file")["nodeId"]
    browser.call("DOM.setFileInputFiles", files=[str(arms)], nodeId=field)
    browser.run("document.querySelector('main form').requestSubmit()")
    until(browser, "location.pathname == '/experiments/made-here'")
    game = ma.Remote(f"http://{gallery.address}", "made-here", token=TOKEN)
    assert {pull.arm for pull in game.ask(3)} == {"a, b", "c", 'd "e"'}


def test_keys_reach_what_matters(visit: Visit) -> None:
    browser = visit("/experiments/captions")
    seen = []
    for _ in range(14):
        browser.press("Tab")
        script = "document.activeElement.id || document.activeElement.textContent.trim()"
        seen.append(browser.run(script))
    assert seen[0] == "Skip to the content"
    for name in ("Pause", "Add arms", "Settings", "best"):
        assert name in seen
    unlabelled = """[...document.querySelectorAll("input, select, textarea")].filter(
        e => !e.labels.length).length + document.querySelectorAll(
        "svg:not([aria-hidden=true]):not([aria-label])").length"""
    assert browser.run(unlabelled) == 0
    assert browser.run("document.querySelectorAll('h1').length") == 1


def test_signing_out(browser: Browser, gallery: Node, visit: Visit) -> None:
    cookies = browser.call("Network.getCookies")["cookies"]
    (session,) = [one for one in cookies if one["name"].startswith("manyarms")]
    assert session["httpOnly"]
    assert session["sameSite"] == "Strict"
    visit("/").run("document.querySelector('.bar-top form button').click()")
    until(browser, "location.pathname == '/login' && document.readyState == 'complete'")
    visit("/experiments/captions")
    assert browser.run("location.pathname") == "/login"
    browser.call("Network.setCookie", url=f"http://{gallery.address}/", **{
        key: session[key] for key in ("name", "value", "httpOnly", "sameSite", "path")
    })  # fmt: skip


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *words: Any) -> None:
        pass


def test_a_page_of_another_origin_asks_and_tells(
    browser: Browser, gallery: Node, tmp_path: Path
) -> None:
    shop = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(_Quiet, directory=str(tmp_path))
    )
    origin = f"http://127.0.0.1:{shop.server_address[1]}"
    game = ma.Remote.create(
        f"http://{gallery.address}", "shop", "moss", token=TOKEN, arms=["red", "blue"], horizon=9
    )
    new = {"name": "shop", "role": "browser", "experiment": "shop", "origins": [origin], "rate": 50}
    made = call(gallery.port, "POST", "/v1/tokens", new)[1]
    script = f'<script src="http://{gallery.address}/manyarms.js"></script>'
    (tmp_path / "index.html").write_text(f"<!doctype html><title>shop</title>{script}")
    threading.Thread(target=shop.serve_forever, daemon=True).start()
    try:
        browser.open(f"{origin}/index.html")
        browser.run(f"window.arms = new Manyarms('shop', '{made['token']}')")
        asked = browser.run("arms.ask(2)")
        assert {pull["arm"] for pull in asked} == {"red", "blue"}
        browser.run(f"arms.tell('{asked[0]['ticket']}', 1)")
        told = browser.run(f"arms.tellSurely('{asked[1]['ticket']}', 0.5)")
        assert told["applied"] is True
        forged = browser.run(f"arms.tellSurely('{asked[0]['ticket'][:-1]}x', 1)")
        assert forged["code"] == "ticket"
        end = time.monotonic() + 10
        while game.progress().told < 2 and time.monotonic() < end:
            time.sleep(0.05)
        assert game.progress().reward == 1.5
    finally:
        shop.shutdown()
        shop.server_close()
