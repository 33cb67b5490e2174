"""The dashboard's pages: access, contents, and hostile names."""

from __future__ import annotations

import asyncio
import re
import urllib.parse
from collections.abc import Iterator
from functools import partial
from html.parser import HTMLParser
from types import SimpleNamespace
from typing import Any

import pytest

from manyarms.client import Remote
from manyarms.serve import messages as m
from manyarms.serve.dashboard import panels
from manyarms.serve.dashboard.judgement import verdict
from manyarms.serve.dashboard.pages import PagePanels, _panels_of
from manyarms.serve.view_data import ViewData
from tests.serve.gallery import fill
from tests.serve.machines import TOKEN, InThread, call, in_thread, made_token, path_of, request

pytestmark = pytest.mark.interpreted

PAGES = ["/", "/new", "/login", "/experiments/captions", "/experiments/hostile",
         "/experiments/buttons", "/experiments/new", "/experiments/hostile/arms?sort=arm",
         "/experiments/hostile/arms?sort=arm&search=%3Cscript%3E", "/experiments/nowhere",
         "/new?like=hostile&hold=600"]  # fmt: skip


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InThread]:
    path = tmp_path_factory.mktemp("gallery") / "serve.db"
    with in_thread(fill(path, arms=2000, pulls=3000) + "") as one:
        yield one


def get(gallery: InThread, path: str, token: str = TOKEN) -> tuple[int, str]:
    status, body = call(gallery.port, "GET", path, token=token, Accept="text/html")
    return status, body.decode() if isinstance(body, bytes) else str(body)


class Tags(HTMLParser):
    """Collects the elements that a browser would act on."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


@pytest.mark.parametrize("path", PAGES)
def test_hostile_names_are_escaped(gallery: InThread, path: str) -> None:
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
    assert not re.search("[\u202a-\u202e\u2066-\u2069]", re.sub(r'="[^"]*"', "", page))


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
        polled = re.search('data-panels="(/panels[^"]*)"', page)
        assert polled is not None
        assert polled[1] == f"/panels{path[1:]}"
        assert call(gallery.port, "GET", polled[1])[1]["list"].strip() in page
        following = re.search('<a href="([^"]*)">Next page', page)
        path = following[1] if following else ""
    assert seen == names


def test_panels_of_many_pages_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every text is a cursor, so each request could leave a page behind."""
    monkeypatch.setattr("manyarms.serve.dashboard.pages._MOST_PAGES", 3)
    service: Any = SimpleNamespace(panels={})

    async def draw(kept: dict[str, Any]) -> dict[str, str]:
        return {}

    async def play() -> None:
        first = _panels_of(service, "first", draw)
        await first.now()
        for k in range(99):
            await _panels_of(service, f"list after {k}", draw).now()
            assert _panels_of(service, "first", draw) is first  # it is in use
        assert [*service.panels] == ["list after 97", "list after 98", "first"]
        for shown in service.panels.values():
            shown.at -= 61
        _panels_of(service, "another", draw)
        assert [*service.panels] == ["another"]

    asyncio.run(play())


def test_results_for_many_questions_do_not_fill_the_memory() -> None:
    experiment = SimpleNamespace(seq=1)
    data = ViewData(SimpleNamespace(experiment=experiment))  # type: ignore[arg-type]
    for k in range(1000):
        assert data._once(f"uplift {k}", partial(int, k)) == k
        assert data._once(f"uplift {k}", int) == k  # it was computed before
    assert len(data._cache) <= 30
    experiment.seq = 2
    assert data._once("uplift 999", int) == 0
    assert len(data._cache) == 1


def test_an_open_page_follows_an_experiment_that_is_created_again(served: InThread) -> None:
    """Also if it has as many events, and within the second that panels are reused."""
    for winner, loser in (("red", "blue"), ("blue", "red")):
        path = path_of("again")
        assert call(served.port, "PUT", path, {"seed": 1})[0] == 201
        names = {"names": [winner, loser]}
        assert call(served.port, "POST", f"{path}/arms", names)[0] == 200
        observed = {"arm": winner, "rewards": [1, 1, 1]}
        assert call(served.port, "POST", f"{path}/observations", observed)[0] == 200
        pulls = call(served.port, "POST", f"{path}/asks", {"k": 2})[1]["pulls"]
        tells = [{"pull": one["pull"], "reward": float(one["arm"] == winner)} for one in pulls]
        assert call(served.port, "POST", f"{path}/tells", {"tells": tells})[0] == 200
        best = call(served.port, "GET", f"{path}/leaders")[1]["arms"][0]["arm"]
        assert best == winner
        shown = call(served.port, "GET", "/experiments/again/panels")[1]["leaders"]
        assert (shown + winner).index(winner) < (shown + loser).index(loser)
        assert call(served.port, "POST", f"{path}/stop", {})[0] == 200
        assert call(served.port, "DELETE", path)[0] == 200


def test_pages_need_a_token(gallery: InThread) -> None:
    for path in ("/", "/experiments/captions", "/new"):
        status, _ = call(gallery.port, "GET", path, token=None, Accept="text/html")
        assert status == 303, "to the login"
        status, answer = call(gallery.port, "GET", path, token=None)
        assert status == 401
        home = f"http://127.0.0.1:{gallery.port}"
        assert f"sign in with a token at {home}/login" in answer["message"], (
            "curl says how to get in"
        )
        assert f"{home}/v1/experiments as `Authorization: Bearer TOKEN`" in answer["message"]
    assert call(gallery.port, "GET", "/experiments/captions/panels", token=None)[0] == 401
    eve = made_token(gallery.store, "eve", "viewer")
    status, page = get(gallery, "/experiments/buttons", token=eve)
    assert status == 200
    assert "data-call" not in page
    assert get(gallery, "/new", token=eve)[0] == 403
    assert 'data-call="POST pause"' in get(gallery, "/experiments/buttons")[1]


def test_security_headers(gallery: InThread) -> None:
    for page in ("/experiments/hostile", "/nothing-here"):
        known = {"Authorization": f"Bearer {TOKEN}"}
        answer, _ = request(gallery.port, "GET", page, headers=known)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
    for path in ("/static/page.css", "/static/dashboard.css", "/static/dashboard.js",
                 "/static/icon.svg"):  # fmt: skip
        answer, _ = request(gallery.port, "GET", path)
        assert answer.status == 200, "files need no token"
        known = {"If-None-Match": answer.headers["etag"]}
        assert request(gallery.port, "GET", path, headers=known)[0].status == 304
    assert call(gallery.port, "GET", "/static/../pages.py", token=None)[0] == 404


def test_the_contents_of_an_experiments_page(gallery: InThread) -> None:
    _, page = get(gallery, "/experiments/captions")
    order = [page.index(f'id="{panel}-title"') for panel in
             ("deploy", "leaders", "reward", "pending", "arms")]  # fmt: skip
    assert order == sorted(order)
    for words_of in (
        "Verdict",
        "arms tried at random; to stop, this must be ruled out for all",
        "caption 0",
    ):
        assert words_of in page
    _, hostile = get(gallery, "/experiments/hostile")
    assert "Late rewards differ from early ones." in hostile
    assert "so this may be wrong" in hostile
    assert 'href="/new?like=hostile&amp;hold=600"' in hostile
    assert "Late rewards differ from early ones." not in page
    status, form = get(gallery, "/new?like=hostile&hold=600")
    assert status == 200
    assert '<option value="hold" selected>' in form


def test_arms_are_searched_sorted_and_paged(gallery: InThread) -> None:
    _, first = get(gallery, "/experiments/captions/arms?sort=arm&search=caption%200001")
    names = re.findall(r"<bdi>(caption \d+)</bdi>", first)
    assert names == [f"caption {k:06d}" for k in range(100, 125)]
    (further,) = re.findall(r'href="/experiments/captions\?([^"#]*cursor[^"#]*)#arms"', first)
    _, second = get(gallery, f"/experiments/captions/arms?{further.replace('&amp;', '&')}")
    assert re.findall(r"<bdi>(caption \d+)</bdi>", second)[0] == "caption 000125"
    _, none = get(gallery, f"/experiments/captions/arms?search={urllib.parse.quote('<b>')}")
    assert "No arm was found." in none


def test_a_panel_is_rendered_once_for_all_viewers(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = 0

    async def draw(kept: dict[str, Any]) -> dict[str, str]:
        nonlocal drawn
        drawn += 1
        await asyncio.sleep(0)
        return {"a": str(drawn)}

    async def look() -> None:
        shown = PagePanels(draw)
        seen = await asyncio.gather(*(shown.now() for _ in range(20)))
        assert seen == [{"a": "1"}] * 20
        monkeypatch.setattr("manyarms.serve.dashboard.pages._FRESH", -1.0)
        assert await shown.now() == {"a": "2"}

    asyncio.run(look())


def test_panels_agree_with_the_page(gallery: InThread) -> None:
    status, shown = call(gallery.port, "GET", "/experiments/hostile/panels")
    assert status == 200
    assert shown.keys() == {*panels.PANELS, "state"}
    page = get(gallery, "/experiments/hostile")[1]
    assert shown["leaders"].strip() in page
    assert call(gallery.port, "GET", "/experiments/nowhere/panels")[0] == 404


def test_texts_for_verdicts() -> None:
    arm = m.ArmView("a", 0, 10, 10, 0.5, 0.4, 0.6)
    about: dict[str, Any] = {"name": "x", "policy": "moss", "spec": m.Spec()}
    about |= {"state": "running", "recommended": arm}
    words: dict[str, Any] = {"headline": "Do it.", "advice": "Why."}
    for outcome, kind, title in (("stop", "good", "Stop"), ("go on", "open", "Go on"),
                                 ("out of pulls", "part", "Out of pulls")):  # fmt: skip
        told = m.ExperimentSummary(**about, **words, outcome=outcome)
        assert verdict(told) == (kind, title, "Why.", "Do it.")
    kept = m.ExperimentSummary(**about)  # not loaded since its creation
    assert verdict(kept)[:2] == ("part", "Not known")
    assert verdict(m.ExperimentSummary(**about | {"state": "empty"})).title == "No arms yet"
    assert len(panels.arm_name("x" * 10_000)) == 80
