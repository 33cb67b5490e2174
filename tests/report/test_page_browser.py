"""The page in a real Chromium: it draws, it answers, it fits, it prints, and it stays at home."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page

from manyarms.protocol.colours import page_css
from manyarms.report import write_report
from manyarms.report.style import policy_title
from manyarms.report.text import part_of_page
from manyarms.studies.study import Report
from tests.report.browser import PageLog, open_page, resize
from tests.report.page_samples import HOSTILE, SIX, run_folder

pytestmark = pytest.mark.compiled  # no kernels to cover: once is enough

MOST = 6_000_000  # bytes
OVER_TIME = "#figure-1"  # Figure 2(b), of the paper's page


@pytest.fixture(scope="module")
def browser() -> Iterator[Page]:
    with open_page() as page:
        resize(page, 1600)
        yield page


@pytest.fixture(scope="module")
def log(browser: Page) -> PageLog:
    return PageLog(browser)


@pytest.fixture(scope="module")
def pages(
    small_paper: tuple[Path, Report], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    run = run_folder(tmp_path_factory.mktemp("run") / "results")
    return {"run": write_report(run), "paper": small_paper[0] / "report.html"}


@pytest.fixture
def paper(browser: Page, pages: dict[str, Path]) -> Page:
    resize(browser, 1600)
    browser.goto(pages["paper"].as_uri())
    return browser


def lines(browser: Page, figure: str = OVER_TIME) -> dict[str, str]:
    """Return the path of each policy's line."""
    found = browser.evaluate(
        f"""Object.fromEntries([...document.querySelectorAll("{figure} .plot > svg > .series")].map(
        g => [g.dataset.policy, g.querySelector(".line").getAttribute("d")]))"""
    )
    return dict(found)


def choose(browser: Page, value: str, nth: int = 0) -> None:
    """Press one of the bar's switches."""
    script = f"""document.querySelectorAll('.chooser input[value="{value}"]')[{nth}].click()"""
    browser.evaluate(script)


def legend(policy: str) -> str:
    return f"""document.querySelector('.chooser .legend button[data-policy="{policy}"]')"""


def shown_rows(where: str) -> str:
    return (
        f"""[...document.querySelectorAll("{where} > [data-policy]")].map(r => r.dataset.policy)"""
    )


def middle_of(browser: Page, script: str) -> tuple[float, float]:
    """Bring something to the middle of the window, and return where it is."""
    browser.evaluate(f'({script}).scrollIntoView({{block: "center", behavior: "instant"}})')
    x, y = browser.evaluate(
        f"(r => [r.left + r.width / 2, r.top + r.height / 2])(({script}).getBoundingClientRect())"
    )
    return x, y


@pytest.mark.parametrize("name", ["run", "paper"])
def test_it_loads_without_complaint_and_asks_for_nothing(
    browser: Page, log: PageLog, pages: dict[str, Path], name: str
) -> None:
    path = pages[name]
    browser.goto(path.as_uri())
    assert browser.evaluate('document.querySelectorAll(".plot .line").length') > 5
    assert log.problems == []
    assert log.requests == [path.as_uri()]
    assert path.stat().st_size < MOST


def test_even_a_page_that_wants_to_may_not_ask(paper: Page) -> None:
    directive = paper.evaluate(
        """new Promise(done => {
            document.addEventListener("securitypolicyviolation", e => done(e.violatedDirective));
            fetch("http://127.0.0.1:9/").catch(() => setTimeout(() => done("none"), 2000));
        })"""
    )
    assert directive == "connect-src"


def test_names_of_others_are_text(browser: Page, pages: dict[str, Path]) -> None:
    browser.goto(pages["run"].as_uri())
    assert browser.evaluate('document.querySelector("h1").textContent') == HOSTILE
    assert browser.evaluate("document.title") == f"{HOSTILE} · manyarms"


def test_hiding_a_policy_changes_the_whole_page(paper: Page) -> None:
    before = lines(paper)
    assert list(before) == list(SIX)
    for policy in ("parallel", "moss++"):  # which lose most
        paper.evaluate(f"{legend(policy)}.click()")
        assert paper.evaluate(f"{legend(policy)}.getAttribute('aria-pressed')") == "false"
    after = lines(paper)
    assert list(after) == [policy for policy in SIX if policy not in ("parallel", "moss++")]
    assert after["moss"] != before["moss"]  # the axis fits what is left
    assert "moss++" not in lines(paper, "#figure-2")
    assert {"parallel", "moss++"}.isdisjoint(paper.evaluate(shown_rows("#runs .runs")))
    assert {"parallel", "moss++"}.isdisjoint(paper.evaluate(shown_rows("#differences .duel")))
    for policy in ("parallel", "moss++"):
        paper.evaluate(f"{legend(policy)}.click()")
    assert lines(paper) == before


def test_a_double_click_leaves_one_policy(paper: Page) -> None:
    paper.mouse.dblclick(*middle_of(paper, legend("quantile")))
    assert list(lines(paper)) == ["quantile"]
    paper.evaluate("document.querySelector('.chooser .all').click()")
    assert len(lines(paper)) == len(SIX)


def test_all_hidden_says_so(paper: Page, log: PageLog) -> None:
    for policy in SIX:
        paper.evaluate(f"{legend(policy)}.click()")
    said = paper.evaluate(f'document.querySelector("{OVER_TIME} .plot > svg").textContent')
    assert "hidden" in said
    paper.evaluate(f'document.querySelector("{OVER_TIME} .plot > svg").focus()')
    paper.keyboard.press("ArrowRight")
    paper.mouse.move(*middle_of(paper, f'document.querySelector("{OVER_TIME} .plot > svg")'))
    assert log.problems == []


def shown_data(browser: Page) -> dict[str, Any]:
    return dict(json.loads(browser.evaluate('document.getElementById("data").textContent')))


def figure_2b(browser: Page) -> dict[str, Any]:
    settings = shown_data(browser)["settings"]
    return dict(next(setting for setting in settings if setting.get("group") == "Figure 2(b)"))


def curve(browser: Page) -> dict[str, Any]:
    """Return the series of MOSS++ over time, and where its line is drawn for each of them."""
    setting = figure_2b(browser)
    points = re.findall(r"[ML]([-\d.]+) ([-\d.]+)", lines(browser)["moss++"])
    times = setting["times"]
    drawn = np.array(points[-len(times) :], float)  # over a linear time there is (0, 0) too
    series = setting["series"][setting["policies"].index("moss++")]
    return {**series, "time": times, "x": drawn[:, 0], "y": drawn[:, 1]}


def lies_along(places: Any, values: Any) -> bool:
    """Whether places on the screen are a linear function of values, but for rounding."""
    places, values = np.asarray(places), np.asarray(values)
    return bool(np.abs(np.polyval(np.polyfit(values, places, 1), values) - places).max() < 0.2)


def test_switches_move_the_lines_to_where_they_belong(paper: Page, log: PageLog) -> None:
    before = curve(paper)
    assert lies_along(before["y"], before["mean"])
    assert not lies_along(before["y"], before["median"])
    assert lies_along(before["x"], before["time"])
    choose(paper, "median")
    assert lies_along(curve(paper)["y"], before["median"])
    choose(paper, "log", 0)
    assert lies_along(curve(paper)["y"], np.log(before["median"]))
    choose(paper, "log", 1)
    assert lies_along(curve(paper)["x"], np.log(before["time"]))
    for value, nth in (("mean", 0), ("linear", 0), ("linear", 1)):
        choose(paper, value, nth)
    assert curve(paper)["y"].tolist() == before["y"].tolist()
    assert log.problems == []


def test_bands_can_be_chosen(paper: Page) -> None:
    bands = f"""[...document.querySelectorAll("{OVER_TIME} .band")].map(b => b.getAttribute("d"))"""
    caption = f'document.querySelector("{OVER_TIME} .caption").textContent'
    assert "interval of the mean" in paper.evaluate(caption)
    choose(paper, "median")
    assert "interval of the median" in paper.evaluate(caption)
    narrow = paper.evaluate(bands)
    assert len(narrow) == len(SIX)
    choose(paper, "spread")
    wide = paper.evaluate(bands)
    assert len(wide) == len(SIX)
    assert wide != narrow
    choose(paper, "none")
    assert paper.evaluate(bands) == []
    assert "Shaded" not in paper.evaluate(caption)


def test_pointing_reads_the_values(paper: Page) -> None:
    plot = f'document.querySelector("{OVER_TIME} .plot > svg")'
    tip = f'document.querySelector("{OVER_TIME} .tip")'
    assert paper.evaluate(f"{tip}.hidden")
    paper.mouse.move(*middle_of(paper, plot))
    text = paper.evaluate(f"{tip}.innerText")
    time = int(re.findall(r"t = (\d+)", text)[0])
    setting = figure_2b(paper)
    for k, policy in enumerate(setting["policies"]):
        mean = setting["series"][k]["mean"][setting["times"].index(time)]
        title = paper.evaluate(f"{legend(policy)}.textContent")
        row = next(row for row in text.splitlines() if row.split("\t")[1:2] == [title])
        assert float(row.split("\t")[2]) == pytest.approx(mean, rel=0.01, abs=0.5)
    paper.mouse.move(2, 2)
    assert paper.evaluate(f"{tip}.hidden")


def test_keys_read_the_values_aloud(paper: Page) -> None:
    paper.evaluate(f'document.querySelector("{OVER_TIME} .plot > svg").focus()')
    spoken = f'document.querySelector("{OVER_TIME} [aria-live]").textContent'
    heard = []
    for key in ("End", "ArrowLeft", "Home"):
        paper.keyboard.press(key)
        heard.append(paper.evaluate(spoken))
    series = figure_2b(paper)["series"]
    ends = {policy: one["mean"][-1] for policy, one in zip(SIX, series, strict=True)}
    worst = max(ends, key=lambda policy: ends[policy])
    assert heard[0].startswith(f"t = 120: {policy_title(worst)} {ends[worst]:.3g}")
    assert len(set(heard)) == 3
    paper.keyboard.press("Escape")
    assert paper.evaluate(spoken) == ""


def test_everything_can_be_reached_by_keyboard_and_has_a_name(paper: Page) -> None:
    nameless = paper.evaluate(
        """[...document.querySelectorAll("button, select, input, [tabindex]")].filter(e =>
        !(e.getAttribute("aria-label") || e.labels?.[0]?.textContent.trim()
          || e.matches("button") && e.textContent.trim())
        || e.tabIndex < 0).map(e => e.outerHTML.slice(0, 80))"""
    )
    assert nameless == []


def test_differences_follow_the_chosen_policy(paper: Page) -> None:
    rows = """Object.fromEntries([...document.querySelectorAll("#differences .duel > div")].map(
        row => [row.dataset.policy, row.querySelector(".gap strong").textContent]))"""
    setting = shown_data(paper)["settings"][0]
    finals = [series["mean"][-1] for series in setting["series"]]
    best = finals.index(min(finals))
    before = paper.evaluate(rows)
    assert set(before) == set(SIX) - {SIX[best]}  # compared with the best
    assert before["moss"].startswith("+")  # the median; that of others may be below 0
    paper.evaluate(
        """(s => { s.value = 0; s.dispatchEvent(new Event("change")); })(
        document.querySelectorAll(".chooser select")[1])"""
    )
    after = paper.evaluate(rows)
    assert set(after) == set(SIX) - {"moss"}
    assert after[SIX[best]] == before["moss"].replace("+", "\N{MINUS SIGN}")
    pair = setting["pairs"][10 * (best - 1) : 10 * best]  # (moss, the best)
    assert float(before["moss"]) == pytest.approx(pair[3], rel=0.01)
    said = paper.evaluate(
        """document.querySelector('#differences [data-policy="moss++"]').textContent"""
    )
    assert re.search(r"more in \d+ of \d+ runs", said)
    assert "on average" in said


def test_runs_show_what_means_hide(paper: Page) -> None:
    setting = shown_data(paper)["settings"][0]
    order = sorted(SIX, key=lambda p: setting["series"][SIX.index(p)]["mean"][-1])
    assert paper.evaluate(shown_rows("#runs .runs")) == order
    assert "never pulled a best arm" in paper.evaluate(
        'document.getElementById("runs").textContent'
    )
    for policy in SIX:
        row = f"""document.querySelector('#runs [data-policy="{policy}"]')"""
        share, runs = setting["missed"][SIX.index(policy)], setting["runs"][SIX.index(policy)]
        assert paper.evaluate(f"{row}.querySelector('strong').textContent").startswith(
            f"{share:.3%}"[0]
        )
        drawn = paper.evaluate(
            f"[...{row}.querySelectorAll('rect')].map(r => r.getAttribute('class'))"
        )
        assert ("lost" in drawn) == bool(runs["lost"]) == (share > 0)
        assert ("found" in drawn) == bool(runs["found"])
        tops = paper.evaluate(f"[...{row}.querySelectorAll('rect')].map(r => r.getAttribute('y'))")
        assert min(map(float, tops)) == 8.0, "the tallest column fills its strip"
    before = paper.evaluate('document.querySelector("#runs .strip rect").getAttribute("x")')
    choose(paper, "log", 0)
    assert paper.evaluate('document.querySelector("#runs .strip rect").getAttribute("x")') != before
    choose(paper, "linear", 0)


def test_the_page_has_one_bar(paper: Page) -> None:
    choices = "select, input, .legend button"
    assert paper.evaluate('document.querySelectorAll(".chooser").length') == 1
    assert paper.evaluate(
        f'[...document.querySelectorAll("{choices}")].every(c => c.closest(".chooser"))'
    )


def test_claims_are_shown_and_sifted(paper: Page) -> None:
    visible = '[...document.querySelectorAll(".claim")].filter(c => c.offsetHeight > 0).length'
    assert paper.evaluate(visible) == 15
    claims = shown_data(paper)["claims"]
    verdicts = [claim["verdict"] for claim in claims]
    buttons = paper.evaluate(
        '[...document.querySelectorAll(".filters button")].map(b => b.textContent)'
    )
    assert [int(text.split()[1]) for text in buttons] == [
        verdicts.count(kind) for kind in ("holds", "holds in part", "fails", "undecided")
    ]
    words = paper.evaluate('[...document.querySelectorAll(".claim")].map(c => c.textContent)')
    for claim, text in zip(claims, words, strict=True):
        assert claim["said"] in text
        assert claim["reading"] in text
        assert claim["why"] in text
    paper.evaluate('document.querySelector(".filters .good").click()')
    assert paper.evaluate(visible) == 15 - verdicts.count("holds")
    paper.evaluate('document.querySelector(".claim:not([hidden]) details").open = true')
    resize(paper, 1600)
    assert paper.evaluate('document.querySelectorAll(".claim[data-verdict] tbody tr").length') > 0


def _table_page(path: Path, rows: Sequence[Sequence[str]]) -> Path:
    """Write a page with a table and the script that the site's tables have."""
    head, *body = (f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    head, script = head.replace("td>", "th>"), part_of_page("tables.js")
    table = f"<table><thead>{head}</thead><tbody>{''.join(body)}</tbody></table>"
    page = (
        f"<!doctype html><style>{page_css()}</style><main>{table}</main><script>{script}</script>"
    )
    path.write_text(page, encoding="utf-8")
    return path


def test_tables_of_the_site_are_sorted_by_click_and_by_key(
    browser: Page, log: PageLog, tmp_path: Path
) -> None:
    rows = [["moss", "12.5 (3%)"], ["greedy", "-"], ["empmoss++", "7"], ["a", "1,000 [9, 2000]"]]
    browser.goto(_table_page(tmp_path / "page.html", [["policy", "regret"], *rows]).as_uri())
    first = '[...document.querySelectorAll("table tbody")[0].rows].map(r => r.cells[0].textContent)'
    regret = 'document.querySelectorAll("th button")[1]'
    browser.evaluate(f"{regret}.click()")
    assert browser.evaluate(first) == ["empmoss++", "moss", "a", "greedy"]  # nothing comes last
    browser.evaluate(f"{regret}.focus()")
    browser.keyboard.press("Enter")
    assert browser.evaluate(first) == ["a", "moss", "empmoss++", "greedy"]
    assert browser.evaluate(f'{regret}.parentElement.getAttribute("aria-sort")') == "descending"
    browser.evaluate('document.querySelectorAll("th button")[0].click()')
    assert browser.evaluate(first) == ["a", "empmoss++", "greedy", "moss"]
    assert browser.evaluate(f'{regret}.parentElement.hasAttribute("aria-sort")') is False
    assert log.problems == []


def test_long_tables_of_the_site_can_be_searched(
    browser: Page, log: PageLog, tmp_path: Path
) -> None:
    rows = [[name, "1"] for name in ("moss", "moss++(beta=0.6)", *(f"mine-{k}" for k in range(9)))]
    browser.goto(_table_page(tmp_path / "long.html", [["policy", "regret"], *rows]).as_uri())
    browser.evaluate("""(i => { i.value = "MOSS beta"; i.dispatchEvent(new Event("input")); })(
        document.querySelector(".find input"))""")
    left = """[...document.querySelectorAll("tbody tr")].filter(r => r.offsetHeight)
        .map(r => r.cells[0].textContent)"""
    assert browser.evaluate(left) == ["moss++(beta=0.6)"]
    assert browser.evaluate('document.querySelector("[role=status]").textContent') == "1 of 11 rows"
    assert browser.evaluate('document.querySelector("td.policy").textContent') == "moss"
    assert log.problems == []


@pytest.mark.parametrize("width", [400, 1600])
@pytest.mark.parametrize("name", ["run", "paper"])
def test_nothing_sticks_out(browser: Page, pages: dict[str, Path], name: str, width: int) -> None:
    resize(browser, width)
    browser.goto(pages[name].as_uri())
    browser.evaluate('for (const d of document.querySelectorAll("details")) d.open = true')
    resize(browser, width)
    beyond = browser.evaluate(
        """[...document.body.querySelectorAll("*")].filter(e =>
        !e.closest(".scroll, .skip, .unseen")
        && e.getBoundingClientRect().right > document.documentElement.clientWidth + 1
        ).map(e => e.outerHTML.slice(0, 80))"""
    )
    assert beyond == []
    assert browser.evaluate(
        "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    )
    plots = browser.evaluate(
        '[...document.querySelectorAll(".plot > svg")].map(s => s.clientWidth)'
    )
    assert min(plots) > 0.7 * min(width, 700)
    tops = browser.evaluate(
        '[...document.querySelectorAll("#figures .card")].map(c => c.offsetTop)'
    )
    assert (tops[0] == tops[1]) == (width == 1600)  # side by side where there is room


def test_it_prints(paper: Page) -> None:
    printed = paper.pdf()
    assert printed.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) in range(4, 15)
    paper.emulate_media(media="print")
    hidden = 'getComputedStyle(document.querySelector("{}")).display'
    shown = {name: paper.evaluate(hidden.format(name)) for name in (".chooser", ".places", ".plot")}
    paper.emulate_media(media="screen")
    assert shown == {".chooser": "none", ".places": "none", ".plot": "block"}


@pytest.mark.slow
def test_dark_screens_get_colours_that_can_be_seen(paper: Page) -> None:
    colour = f"""getComputedStyle(document.querySelector('{OVER_TIME}
        .plot [data-policy="moss-oracle"]')).color""".replace("\n", "")
    assert paper.evaluate(colour) == "rgb(0, 0, 0)"
    paper.emulate_media(color_scheme="dark")
    seen = paper.evaluate(colour)
    paper.emulate_media(color_scheme="light")
    assert seen == "rgb(255, 255, 255)"
