"""The page "See it" in Chromium plays like the package, and works with a keyboard."""

from __future__ import annotations

import importlib
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page

import manyarms as ma
from manyarms.core.theme import DARK, LIGHT
from tests.report.browser import PageLog, open_page, resize

pytestmark = pytest.mark.compiled  # the page is compared with simulations

LEARN = Path(__file__).parents[2] / "docs" / "learn"
FILES = ("simulations.js", "see_it.js", "see_it.css")
MOST = 150_000  # bytes of the page and all its files

POLICIES: list[tuple[str, dict[str, Any], ma.Policy]] = [
    ("moss", {}, ma.MOSS()),
    ("moss", {"size": 64}, ma.MOSSOracle(size=64)),
    ("moss-oracle", {"alpha": 0.3}, ma.MOSSOracle(alpha=0.3)),
    ("quantile", {}, ma.Quantile()),
    ("parallel", {}, ma.Parallel()),
    ("parallel", {"bestMean": 0.7}, ma.Parallel(best_mean=0.7)),
    ("moss++", {"beta": 0.5}, ma.MOSSPlusPlus(beta=0.5)),
    ("moss++", {"beta": 0.7}, ma.MOSSPlusPlus(beta=0.7)),
    ("empmoss++", {"beta": 0.5}, ma.EmpMOSSPlusPlus(beta=0.5)),
    ("empmoss++", {"beta": 0.7}, ma.EmpMOSSPlusPlus(beta=0.7)),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Page]:
    with open_page() as page:
        yield page


@pytest.fixture(scope="module")
def log(browser: Page) -> PageLog:
    return PageLog(browser)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page as on the site, without the navigation."""
    markdown = pytest.importorskip("markdown", reason='the site needs pip install ".[docs]"')
    pytest.importorskip("mkdocs", reason='the site needs pip install ".[docs]"')
    folder = tmp_path_factory.mktemp("see_it")
    for name in FILES:
        shutil.copy(LEARN / name, folder)
    theme = importlib.import_module("theme").made()["theme.css"]
    style = (LEARN.parent / "style.css").read_text(encoding="utf-8")
    text = markdown.markdown(
        (LEARN / "see_it.md").read_text(encoding="utf-8"), extensions=["md_in_html", "attr_list"]
    )
    file = folder / "see_it.html"
    file.write_text(
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>See it</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{theme}{style} body {{ font: 16px system-ui; }}</style>"
        f'<body class="md-typeset" data-md-color-scheme="default">{text}</body></html>',
        encoding="utf-8",
    )
    return file


@pytest.fixture
def opened(browser: Page, log: PageLog, page: Path) -> Page:
    resize(browser, 1400)
    browser.goto(page.as_uri())
    return browser


def press(browser: Page, key: str) -> None:
    """Press a key, and wait until the page is redrawn."""
    browser.keyboard.press(key)
    browser.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")


def shown(browser: Page, selector: str) -> str:
    return browser.inner_text(selector)


def finish(browser: Page, part: str) -> list[list[str]]:
    """Scroll to a part, wait until its runs are finished, and return its table."""
    browser.locator(f"#{part}").scroll_into_view_if_needed()
    browser.wait_for_selector(f"#{part}[data-done]")
    rows = f"[...document.querySelectorAll('#{part} tbody tr')]"
    cells = f"{rows}.map(row => [...row.cells].map(cell => cell.textContent))"
    return [[text.replace("\u202f", "") for text in row] for row in browser.evaluate(cells)]


def simulated(policy: ma.Policy, instance: Any, horizon: int, seed: int, runs: int = 2) -> Any:
    return ma.simulate(
        policy, instance, horizon=horizon, replications=runs, seed=seed, record_arms=True
    )


def check_arms(browser: Page, instance_js: str, instance: Any, horizon: int, seed: int) -> None:
    for name, parameters, policy in POLICIES:
        result = simulated(policy, instance, horizon, seed)
        assert result.arms is not None
        for replication in (0, 1):
            asked = {"policy": name, "horizon": horizon, "seed": seed, "replication": replication}
            script = (
                f"Simulation.play({{...{json.dumps(asked | parameters)}, instance: {instance_js}}})"
            )
            arms, regret = browser.evaluate(f"(g => [[...g.arms], g.regret[{horizon}]])({script})")
            case = (name, parameters, replication)
            assert arms == result.arms[0, replication].tolist(), case
            assert regret == pytest.approx(result.regret[0, replication, -1]), case


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "m", "horizon", "seed"),
    [(300, 5, 700, 3), (5_000, 195, 5_000, 2**40 + 17), (3, 1, 50, 4), (60, 1, 20_000, 9)],
)
def test_the_page_pulls_the_arms_of_the_package(
    opened: Page, n: int, m: int, horizon: int, seed: int
) -> None:
    instance = ma.instances.planted(n=n, m=m)
    check_arms(opened, f"Simulation.planted({n}, {m})", instance, horizon, seed)


@pytest.mark.slow
def test_the_page_pulls_the_same_arms_with_normal_rewards(opened: Page) -> None:
    sizes, means = [41, 1, 39], [0.06, 0.12, 0.0]
    instance = ma.instances.grouped(
        sizes=sizes, means=means, rewards=ma.instances.Gaussian(sigma=0.5)
    )
    instance_js = f"new Simulation.Instance({{sizes: {sizes}, means: {means}, sigma: 0.5}})"
    check_arms(opened, instance_js, instance, 3_000, 5)


def test_a_hundred_thousand_arms(opened: Page) -> None:
    result = simulated(ma.MOSSPlusPlus(), ma.instances.planted(n=100_000, m=2_000), 20_000, 8, 1)
    script = (
        "[...Simulation.play({policy: 'moss++', beta: 0.5, instance: "
        "Simulation.planted(100000, 2000), horizon: 20000, seed: 8}).arms]"
    )
    assert opened.evaluate(script) == result.arms[0, 0].tolist()


def test_the_line_of_python_plays_the_shown_run(opened: Page) -> None:
    for policy in ("moss++", "empmoss++", "parallel"):
        opened.evaluate(f"document.querySelector('input[value=\"{policy}\"]').click()")
        line = shown(opened, "#python")
        arms = eval(line, {"ma": ma})
        instance = eval(re.findall(r"ma\.instances\.planted\([^)]*\)", line)[0], {"ma": ma})
        regret = sum(0.9 - instance.mean(int(arm)) for arm in arms)
        told = shown(opened, f'#simulation .policies [data-policy="{policy}"] b')
        assert int(told.replace("\u202f", "")) == round(regret)
        best = np.mean([instance.mean(int(arm)) == 0.9 for arm in arms])
        drawn = opened.evaluate(
            """[...document.querySelectorAll("#rows .phase div:first-child")].map(
                each => each.textContent.match(/(\\d+) % of ([\\d\\u202f]+) pulls/).slice(1))"""
        )
        parts = [(int(share), int(pulls.replace("\u202f", ""))) for share, pulls in drawn]
        assert sum(pulls for _, pulls in parts) == len(arms)
        assert sum(share * pulls for share, pulls in parts) / len(arms) == pytest.approx(
            100 * best, abs=0.5
        )


@pytest.mark.slow
def test_the_cost_of_adapting_agrees_with_the_package(opened: Page) -> None:
    table = {row[0]: row[1:] for row in finish(opened, "price")}
    assert len(table) == 7
    for title, policy in {
        "MOSS on 64 arms": ma.MOSSOracle(size=64),
        "empMOSS++, beta 0.5": ma.EmpMOSSPlusPlus(),
    }.items():
        for alpha, told in zip((0.1, 0.4), table[title], strict=True):
            instance = ma.instances.planted(n=5_000, alpha=alpha, horizon=5_000)
            result = simulated(policy, instance, 5_000, 1, runs=10)
            assert int(told) == round(result.regret[0, :, -1].mean())
    # the text about the picture
    few, many = table["MOSS on 16 arms"], table["MOSS on 256 arms"]
    assert int(few[0]) < int(many[0])
    assert int(many[1]) < int(few[1])


@pytest.mark.slow
def test_the_two_instances_agree_with_the_package(opened: Page) -> None:
    table = {row[0]: row[1:] for row in finish(opened, "problems")}
    assert len(table) == 6
    for k, (sizes, means) in enumerate(
        [([61, 0, 60], [0.05, 0.0, 0.0]), ([61, 1, 59], [0.05, 0.1, 0.0])]
    ):
        instance = ma.instances.grouped(
            sizes=sizes, means=means, rewards=ma.instances.Gaussian(sigma=0.5)
        )
        result = simulated(ma.MOSSPlusPlus(), instance, 20_000, 1, runs=10)
        assert int(table["MOSS++"][k]) == round(result.regret[0, :, -1].mean())
    assert table.pop("Parallel")[2] == "nothing"  # it knows more than the proof allows
    for left, right, bound in table.values():
        asked = 1000 * (1 - 1 / 60 - (2 * 0.1 * int(left) / 60) ** 0.5)
        assert bound == "nothing" if asked < -2 else int(bound[2:]) == pytest.approx(asked, abs=2)
        assert asked < int(right)
    said = re.search(r"until pull (\d+)", shown(opened, "#problems .said").replace("\u202f", ""))
    assert said is not None


def test_the_page_is_small_and_requests_nothing(opened: Page, log: PageLog, page: Path) -> None:
    assert log.problems == []
    asked = {request.rpartition("/")[2] for request in log.requests}
    assert asked == {page.name, *FILES}
    total = sum((LEARN / name).stat().st_size for name in (*FILES, "see_it.md"))
    assert total < MOST


def test_the_page_works_with_a_keyboard(opened: Page) -> None:
    opened.focus("#beta")
    press(opened, "ArrowRight")
    assert shown(opened, "#beta-shown") == "0.55"
    assert "beta=0.55" in shown(opened, "#python")
    press(opened, "Tab")  # the seed
    press(opened, "Tab")  # the policies, at the chosen one
    press(opened, "ArrowRight")
    assert "EmpMOSSPlusPlus" in shown(opened, "#python")
    opened.focus("#t")
    press(opened, "Home")
    assert shown(opened, "#said") == "Nothing is pulled yet."
    opened.focus("#on")
    press(opened, "Enter")
    assert "In iteration 1 no member was pulled twice." in shown(opened, "#said")
    assert shown(opened, "#t-shown").replace("\u202f", "") == "pull 256"


def test_playing_advances_and_can_be_stopped(opened: Page) -> None:
    # a millisecond per frame, so that it does not end while the machine is busy
    opened.evaluate(
        """let now = 0;
        window.requestAnimationFrame = (draw) => setTimeout(() => draw(now += 1), 16);
        window.cancelAnimationFrame = clearTimeout;"""
    )
    opened.click("#run")
    opened.wait_for_function("document.getElementById('t').value !== '5000'", polling=100)
    assert shown(opened, "#run") == "Stop"
    opened.click("#run")
    assert shown(opened, "#run") == "Play"


@pytest.mark.parametrize("width", [390, 1400])
def test_the_page_fits_in_light_and_dark(opened: Page, width: int) -> None:
    resize(opened, width)
    for scheme, colours in (("default", LIGHT), ("slate", DARK)):
        opened.evaluate(f"document.body.dataset.mdColorScheme = '{scheme}'")
        assert opened.evaluate("document.documentElement.scrollWidth") <= width
        chart = opened.evaluate("document.querySelector('#regret svg').clientWidth")
        assert chart > 0.7 * min(width, 800)
        seen = opened.evaluate(
            "getComputedStyle(document.getElementById('simulation')).backgroundColor"
        )
        assert [int(part) for part in re.findall(r"\d+", seen)] == [
            int(colours["card"][k : k + 2], 16) for k in (1, 3, 5)
        ]
    labels = opened.evaluate(
        """[...document.querySelectorAll(".see text, .see label, .see .phase")].map(
            each => parseFloat(getComputedStyle(each).fontSize))"""
    )
    assert min(labels) >= 10
