"""The pages as they are sent: who may see them, what is in them, and that names do no harm."""

from __future__ import annotations

import asyncio
import re
import time
import urllib.parse
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from manyarms.cli.main import main
from manyarms.remote import Remote
from manyarms.remote.verdict import verdict
from manyarms.serve import messages as m
from manyarms.serve.dashboard import feed, panels
from manyarms.serve.dashboard.feed import Channel
from tests.serve.gallery import HOSTILE, fill
from tests.serve.machines import TOKEN, InThread, call, in_thread, request

pytestmark = pytest.mark.interpreted

PAGES = ["/", "/new", "/tokens", "/login", "/experiments/captions", "/experiments/hostile",
         "/experiments/buttons", "/experiments/new", "/experiments/captions/arms/3",
         *(f"/experiments/hostile/arms/{k}" for k in range(len(HOSTILE))),
         "/experiments/hostile/arms?sort=arm&search=%3Cscript%3E", "/experiments/nowhere",
         "/new?like=hostile&hold=600"]  # fmt: skip


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InThread]:
    path = tmp_path_factory.mktemp("gallery") / "serve.db"
    with in_thread(fill(path, arms=2000, pulls=3000) + "?sync=never") as one:
        yield one


def get(gallery: InThread, path: str, token: str = TOKEN) -> tuple[int, str]:
    status, body = call(gallery.port, "GET", path, token=token, Accept="text/html")
    return status, body.decode() if isinstance(body, bytes) else str(body)


class Tags(HTMLParser):
    """Gathers what a browser would act on."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


@pytest.mark.parametrize("path", PAGES)
def test_pages_hold_nothing_that_names_could_use(gallery: InThread, path: str) -> None:
    status, page = get(gallery, path)
    assert status == (404 if "nowhere" in path else 200)
    found = Tags(page).tags
    scripts = [attributes for tag, attributes in found if tag == "script"]
    assert all(s.get("src") == "/static/dashboard.js" for s in scripts)
    assert not [tag for tag, _ in found if tag in ("style", "iframe", "object", "base", "img")]
    names = {name for _, attributes in found for name in attributes}
    assert not [name for name in names if name.startswith("on") or name == "style"]
    links = [v or "" for _, a in found for n, v in a.items() if n in ("href", "src", "action")]
    assert all(link.startswith(("/", "#")) and not link.startswith("//") for link in links), links
    shown = re.sub(r"<details>.*?</details>", "", page, flags=re.S)  # which has the whole name
    assert not re.search("[\u202a-\u202e\u2066-\u2069]", re.sub(r'="[^"]*"', "", shown))


def test_the_list_has_pages(gallery: InThread, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = call(gallery.port, "GET", "/v1/experiments")[1]
    names = [one["name"] for one in whole["experiments"]]
    assert whole["cursor"] is None
    monkeypatch.setattr("manyarms.serve.service._LISTED", 2)
    first = call(gallery.port, "GET", "/v1/experiments")[1]
    assert [one["name"] for one in first["experiments"]] == names[:2]
    assert first["cursor"] == names[1]
    url = f"http://127.0.0.1:{gallery.port}"
    assert [one["name"] for one in Remote.experiments(url, token=TOKEN)] == names
    seen, path = [], "/?cursor=0"
    while path:
        page = get(gallery, path)[1]
        seen += re.findall('id="to-([^"]*)"', page)
        events = re.search('data-events="/events([^"]*)"', page)
        assert events is not None
        assert events[1] == path[1:]
        following = re.search('<a href="([^"]*)">Next page', page)
        path = following[1] if following else ""
    assert seen == names


def test_pages_are_for_those_who_may(gallery: InThread) -> None:
    for path in ("/", "/experiments/captions", "/new", "/tokens"):
        status, _ = call(gallery.port, "GET", path, token=None, Accept="text/html")
        assert status == 303, "to the login"
        status, answer = call(gallery.port, "GET", path, token=None)
        assert status == 401
        home = f"http://127.0.0.1:{gallery.port}"
        assert f"sign in at {home}/login" in answer["message"], "curl says how to get in"
        assert f"{home}/v1/experiments as `Authorization: Bearer TOKEN`" in answer["message"]
    assert call(gallery.port, "GET", "/experiments/captions/events", token=None)[0] == 401
    made = call(
        gallery.port, "POST", "/v1/tokens",
        {"name": "eve", "role": "viewer", "experiment": "buttons"},
    )  # fmt: skip
    eve = made[1]["token"]
    status, page = get(gallery, "/experiments/buttons", token=eve)
    assert status == 200
    assert "data-call" not in page
    assert "captions" not in get(gallery, "/", token=eve)[1]
    for path in ("/experiments/captions", "/new", "/tokens", "/experiments/captions/events"):
        assert get(gallery, path, token=eve)[0] == 403
    assert 'data-call="POST pause"' in get(gallery, "/experiments/buttons")[1]
    new = {"name": "ann", "role": "admin", "experiment": "buttons"}
    ann = call(gallery.port, "POST", "/v1/tokens", new)[1]["token"]
    assert 'data-call="POST pause"' in get(gallery, "/experiments/buttons", token=ann)[1]
    for path in ("/new", "/new?like=captions", "/tokens"):
        assert get(gallery, path, token=ann)[0] == 403, "an admin of one sees no others"


def test_addresses_that_no_page_has(gallery: InThread) -> None:
    for hold in ("abc", "nan", "inf", "-1"):
        assert get(gallery, f"/new?hold={hold}")[0] == 422
    for number in ("9" * 30, "9" * 5000, "abc"):
        assert get(gallery, f"/experiments/captions/arms/{number}")[0] == 404
    assert get(gallery, "/experiments/captions/arms?search=%00")[0] == 400


def test_headers_let_nothing_in(gallery: InThread) -> None:
    for page, kept in (("/experiments/hostile", "no-store"), ("/nothing-here", None)):
        known = {"Authorization": f"Bearer {TOKEN}"}
        answer, _ = request(gallery.port, "GET", page, headers=known)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == kept
    for path in ("/static/page.css", "/static/dashboard.css", "/static/dashboard.js",
                 "/static/icon.svg", "/manyarms.js"):  # fmt: skip
        assert call(gallery.port, "GET", path, token=None)[0] == 200, "files need nobody"
    assert call(gallery.port, "GET", "/static/../pages.py", token=None)[0] == 404


def test_the_page_says_what_a_person_needs(gallery: InThread) -> None:
    _, page = get(gallery, "/experiments/captions")
    order = [page.index(f'id="{panel}-title"') for panel in
             ("deploy", "leaders", "reward", "exploring", "flight", "arms", "health")]  # fmt: skip
    assert order == sorted(order)
    for words_of in (
        "May I stop?",
        "What exploring has cost",
        "arms drawn may still be better by more than 10 %; to stop, at most",
        "caption 0",
    ):
        assert words_of in page
    _, hostile = get(gallery, "/experiments/hostile")
    assert "Rewards come late in a biased way." in hostile
    assert "so this may be wrong" in hostile
    assert 'href="/new?like=hostile&amp;hold=600"' in hostile
    assert "Rewards come late in a biased way." not in page
    status, form = get(gallery, "/new?like=hostile&hold=600")
    assert status == 200
    assert '<option value="hold" selected>' in form


def test_one_is_not_many(gallery: InThread) -> None:
    path = "/v1/experiments/alone"
    spec = {"policy": "moss", "n_arms": 1, "horizon": 9}
    assert call(gallery.port, "PUT", path, spec)[0] == 201
    for _ in range(2):
        assert call(gallery.port, "POST", f"{path}/asks", {})[0] == 200
    tell = {"tells": [{"pull": 0, "reward": 1.0}]}
    assert call(gallery.port, "POST", f"{path}/tells", tell)[0] == 200
    text = re.sub(r"<[^>]*>", "", get(gallery, "/experiments/alone")[1])
    for said in (
        "1 pull waits for its reward.",
        "moss, 1 arm",
        "1 of 1 arm was tried",
        "1 reward)",
    ):
        assert said in text
    assert "50 % to arms for the first time" in text, "also of the ten best"
    for step in ("stop", ""):
        assert (
            call(gallery.port, "POST" if step else "DELETE", f"{path}/{step}".rstrip("/"))[0] == 200
        )


def test_the_key_has_the_colours_of_the_picture() -> None:
    css = (panels.HERE / "static" / "dashboard.css").read_text()
    for kind in ("flying", "fresh", "gone", "other", "band", "gap"):
        (key,) = re.findall(rf"\.key \.{kind}::before {{ background: (var\(--\w+\)); }}", css)
        assert re.search(rf"\.(parts|chart) \.{kind} {{ fill: {re.escape(key)};", css), kind


def test_arms_are_found_sorted_and_turned_over(gallery: InThread) -> None:
    _, first = get(gallery, "/experiments/captions/arms?sort=arm&search=caption%200001")
    names = re.findall(r"<bdi>(caption \d+)</bdi>", first)
    assert names == [f"caption {k:06d}" for k in range(100, 125)]
    (further,) = re.findall(r'href="/experiments/captions\?([^"#]*cursor[^"#]*)#arms"', first)
    _, second = get(gallery, f"/experiments/captions/arms?{further.replace('&amp;', '&')}")
    assert re.findall(r"<bdi>(caption \d+)</bdi>", second)[0] == "caption 000125"
    _, none = get(gallery, f"/experiments/captions/arms?search={urllib.parse.quote('<b>')}")
    assert "No arm was found." in none


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "_FRESH", 0.15)


@pytest.mark.usefixtures("quick")
def test_a_panel_is_drawn_once_for_all_who_look() -> None:
    drawn = 0

    async def draw(kept: dict[str, Any]) -> dict[str, str]:
        nonlocal drawn
        drawn += 1
        await asyncio.sleep(0.01)
        return {"a": "same", "b": str(drawn)}

    async def look() -> list[list[bytes]]:
        channel = Channel(draw, tick=0.2)
        await asyncio.gather(*(channel.panels() for _ in range(20)))
        assert drawn == 1

        async def read() -> list[bytes]:
            events = []
            async for event in channel.stream(lambda: False):
                events.append(event)
                if len(events) == 3:
                    break
            return events

        return list(await asyncio.gather(*(read() for _ in range(20))))

    seen = asyncio.run(look())
    assert drawn <= 4
    assert all(events == seen[0] for events in seen)
    assert b'"a":"same"' in seen[0][0]
    assert b'"a"' not in seen[0][-1], "only what has changed is sent"


@pytest.mark.usefixtures("quick")
def test_what_another_reader_made_draw_reaches_all() -> None:
    shown = {"a": "old"}

    async def draw(kept: dict[str, Any]) -> dict[str, str]:
        return dict(shown)

    async def look() -> list[bytes]:
        channel = Channel(draw, tick=0.25)
        await channel.panels()
        stream = channel.stream(lambda: False)
        events = [await anext(stream), await anext(stream)]
        shown["a"] = "new"
        await asyncio.sleep(0.17)
        assert await channel.panels() == {"a": "new"}, "somebody opens the page"
        events.append(await anext(stream))
        await stream.aclose()
        return events

    first, nothing, last = asyncio.run(look())
    assert (b"old" in first, b"{}" in nothing, b"new" in last) == (True, True, True)


@pytest.mark.usefixtures("quick")
def test_a_page_does_not_wait_for_a_slow_drawing() -> None:
    slow = 0.0

    async def draw(kept: dict[str, Any]) -> dict[str, str]:
        await asyncio.sleep(slow)
        return {"a": f"took {slow}"}

    async def look() -> tuple[dict[str, str], dict[str, str], float]:
        nonlocal slow
        channel = Channel(draw)
        first = await channel.soon()
        await asyncio.sleep(0.17)
        slow = 5.0
        begun = time.monotonic()
        second = await channel.soon()
        return first, second, time.monotonic() - begun

    first, second, took = asyncio.run(look())
    assert first == second == {"a": "took 0.0"}
    assert took < 2.0


def test_words_for_verdicts_costs_and_delays() -> None:
    arm = m.ArmView("a", 0, 10, 10, 0.5, 0.4, 0.6)
    about: dict[str, Any] = {"name": "x", "policy": "moss", "spec": m.Spec(), "keyed": True}
    about |= {"state": "running", "recommended": arm}
    words: dict[str, Any] = {"headline": "Do it.", "advice": "Why."}
    for outcome, kind, title in (("stop", "good", "Stop"), ("go on", "open", "Go on"),
                                 ("out of tries", "part", "Out of tries")):  # fmt: skip
        told = m.ExperimentSummary(**about, **words, outcome=outcome)
        assert verdict(told) == (kind, title, "Why.", "Do it.")
    kept = m.ExperimentSummary(**about)  # by an earlier version
    assert verdict(kept)[:2] == ("part", "Not known")
    assert verdict(m.ExperimentSummary(**about | {"state": "empty"})).title == "No arms yet"
    for given, said in [((410, 690), "410 to 690"), ((-5, 7), "At most 7"), ((-9, -1), "Nothing")]:
        exploring = m.Exploring(1, 1, 1, 1, [1], given, 1)
        assert panels.cost_of_exploring(exploring, 100)[0] == said
    assert len(panels.arm_name("x" * 10_000)) == 80


def test_retired_arms_are_told_apart_from_those_in_play() -> None:
    about: dict[str, Any] = {"name": "x", "policy": "moss", "spec": m.Spec(), "keyed": True}
    summary = m.ExperimentSummary(**about, state="running", n_arms=3, untried=1)
    exploring = m.Exploring(3, 3, 1, 1, [3], None, 1)
    shown = {"summary": summary, "exploring": exploring, "histogram": [("1", 3)], "most": 3}
    page = panels.template("panels/exploring", **shown)
    said = "<strong>3</strong> arms were tried: 2 of the 3 in play (67 %), and 1 that is retired."
    assert said in page


def test_a_terminal_shows_the_same(gallery: InThread, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"http://{gallery.address}"
    assert main(["watch", url, "--token", TOKEN]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert [row.split()[:2] for row in rows[1:]] == [
        ["buttons", "finished"], ["captions", "running"], ["hostile", "running"], ["new", "empty"],
    ]  # fmt: skip
    assert main(["watch", f"{url}/experiments/hostile", "--token", TOKEN]) == 0
    shown = capsys.readouterr().out
    assert "<script>alert('arm')</script>: 6" in shown  # in percent
    assert "\u202e" not in shown
    assert main(["watch", url, "nowhere", "--token", TOKEN]) == 1


def test_files_are_small(tmp_path: Path) -> None:
    import manyarms

    folder = Path(manyarms.__file__).parent
    assert (folder / "remote" / "manyarms.js").stat().st_size < 4800
    assert (folder / "serve" / "dashboard" / "static" / "dashboard.js").stat().st_size < 12_000
