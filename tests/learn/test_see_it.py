"""The page "See it" in a real Chromium: its games are the package's, and anyone can use it."""

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

import manyarms as ma
from manyarms.core.theme import DARK, LIGHT
from tests.report.browser import Browser, find_browser

pytestmark = pytest.mark.compiled  # what the page plays is compared with simulations

LEARN = Path(__file__).parents[2] / "docs" / "learn"
FILES = ("games.js", "see_it.js", "see_it.css")
MOST = 150_000  # bytes of the page and all its files
KEYS = {"Tab": 9, "Enter": 13, "ArrowLeft": 37, "ArrowRight": 39, "ArrowDown": 40, "Home": 36}

POLICIES: list[tuple[str, dict[str, Any], ma.Policy]] = [
    ("moss", {}, ma.MOSS()),
    ("moss", {"size": 64}, ma.MOSSOracle(size=64)),
    ("moss-oracle", {"alpha": 0.3}, ma.MOSSOracle(alpha=0.3)),
    ("quantile", {}, ma.Quantile()),
    ("moss++", {"beta": 0.5}, ma.MOSSPlusPlus(beta=0.5)),
    ("moss++", {"beta": 0.7}, ma.MOSSPlusPlus(beta=0.7)),
    ("empmoss++", {"beta": 0.5}, ma.EmpMOSSPlusPlus(beta=0.5)),
    ("empmoss++", {"beta": 0.7}, ma.EmpMOSSPlusPlus(beta=0.7)),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser(find_browser()) as opened:
        yield opened


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page as the site has it, but for the frame around it."""
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
def opened(browser: Browser, page: Path) -> Browser:
    browser.resize(1400)
    browser.open(page)
    return browser


def press(browser: Browser, key: str) -> None:
    for kind in ("rawKeyDown", "keyUp"):
        browser.call(
            "Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=KEYS[key]
        )
    browser.run("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")


def shown(browser: Browser, selector: str) -> str:
    return str(browser.run(f"document.querySelector({json.dumps(selector)}).textContent"))


def finish(browser: Browser, part: str) -> list[list[str]]:
    """Scroll to a part, wait until its games are played, and return its table."""
    browser.run(
        f"""new Promise(done => {{
            const part = document.getElementById("{part}");
            part.scrollIntoView();
            const look = () => part.dataset.done ? done() : setTimeout(look, 20);
            look();
        }})"""
    )
    rows = f"[...document.querySelectorAll('#{part} tbody tr')]"
    cells = f"{rows}.map(row => [...row.cells].map(cell => cell.textContent))"
    return [[text.replace("\u202f", "") for text in row] for row in browser.run(cells)]


def simulated(policy: ma.Policy, instance: Any, horizon: int, seed: int, runs: int = 2) -> Any:
    return ma.simulate(
        policy, instance, horizon=horizon, replications=runs, seed=seed, record_arms=True
    )


def check_arms(browser: Browser, world: str, instance: Any, horizon: int, seed: int) -> None:
    for name, parameters, policy in POLICIES:
        result = simulated(policy, instance, horizon, seed)
        assert result.arms is not None
        for replication in (0, 1):
            asked = {"policy": name, "horizon": horizon, "seed": seed, "replication": replication}
            script = f"Games.play({{...{json.dumps(asked | parameters)}, world: {world}}})"
            arms, regret = browser.run(f"(g => [[...g.arms], g.regret[{horizon}]])({script})")
            case = (name, parameters, replication)
            assert arms == result.arms[0, replication].tolist(), case
            assert regret == pytest.approx(result.regret[0, replication, -1]), case


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "m", "horizon", "seed"),
    [(300, 5, 700, 3), (5_000, 195, 5_000, 2**40 + 17), (3, 1, 50, 4), (60, 1, 20_000, 9)],
)
def test_it_pulls_the_arms_of_the_package(
    opened: Browser, n: int, m: int, horizon: int, seed: int
) -> None:
    instance = ma.instances.planted(n=n, m=m)
    check_arms(opened, f"Games.planted({n}, {m})", instance, horizon, seed)


@pytest.mark.slow
def test_it_does_with_normal_rewards(opened: Browser) -> None:
    sizes, means = [41, 1, 39], [0.06, 0.12, 0.0]
    instance = ma.instances.grouped(
        sizes=sizes, means=means, rewards=ma.instances.Gaussian(sigma=0.5)
    )
    world = f"new Games.World({{sizes: {sizes}, means: {means}, sigma: 0.5}})"
    check_arms(opened, world, instance, 3_000, 5)


def test_a_hundred_thousand_arms(opened: Browser) -> None:
    result = simulated(ma.MOSSPlusPlus(), ma.instances.planted(n=100_000, m=2_000), 20_000, 8, 1)
    script = (
        "[...Games.play({policy: 'moss++', beta: 0.5, world: Games.planted(100000, 2000), "
        "horizon: 20000, seed: 8}).arms]"
    )
    assert opened.run(script) == result.arms[0, 0].tolist()


def test_the_line_of_python_plays_the_game_that_is_shown(opened: Browser) -> None:
    for policy in ("moss++", "empmoss++"):
        opened.run(f"document.querySelector('input[value=\"{policy}\"]').click()")
        line = shown(opened, "#python")
        arms = eval(line, {"ma": ma})
        instance = eval(re.findall(r"ma\.instances\.planted\([^)]*\)", line)[0], {"ma": ma})
        regret = sum(0.9 - instance.mean(int(arm)) for arm in arms)
        told = shown(opened, f'#game .policies [data-policy="{policy}"] b')
        assert int(told.replace("\u202f", "")) == round(regret)
        best = np.mean([instance.mean(int(arm)) == 0.9 for arm in arms])
        drawn = opened.run(
            """[...document.querySelectorAll("#rows .phase div:first-child")].map(
                each => each.textContent.match(/(\\d+) % of ([\\d\\u202f]+) pulls/).slice(1))"""
        )
        parts = [(int(share), int(pulls.replace("\u202f", ""))) for share, pulls in drawn]
        assert sum(pulls for _, pulls in parts) == len(arms)
        assert sum(share * pulls for share, pulls in parts) / len(arms) == pytest.approx(
            100 * best, abs=0.5
        )


@pytest.mark.slow
def test_the_price_of_adapting_is_what_the_package_pays(opened: Browser) -> None:
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
    # what the text says of the picture
    few, many = table["MOSS on 16 arms"], table["MOSS on 256 arms"]
    assert int(few[0]) < int(many[0])
    assert int(many[1]) < int(few[1])


@pytest.mark.slow
def test_the_two_worlds_are_the_packages(opened: Browser) -> None:
    table = {row[0]: row[1:] for row in finish(opened, "worlds")}
    assert len(table) == 5
    for k, (sizes, means) in enumerate(
        [([41, 0, 40], [0.06, 0.0, 0.0]), ([41, 1, 39], [0.06, 0.12, 0.0])]
    ):
        instance = ma.instances.grouped(
            sizes=sizes, means=means, rewards=ma.instances.Gaussian(sigma=0.5)
        )
        result = simulated(ma.MOSSPlusPlus(), instance, 20_000, 1, runs=10)
        assert int(table["MOSS++"][k]) == round(result.regret[0, :, -1].mean())
    for left, right, bound in table.values():
        asked = 1200 * (1 - 1 / 40 - (2 * 0.12 * int(left) / 40) ** 0.5)
        assert bound == "nothing" if asked < -2 else int(bound[2:]) == pytest.approx(asked, abs=2)
        assert asked < int(right)
    said = re.search(r"until pull (\d+)", shown(opened, "#worlds .said").replace("\u202f", ""))
    assert said is not None


def test_it_is_small_quiet_and_asks_for_nothing(opened: Browser, page: Path) -> None:
    assert opened.problems() == []
    asked = {request.rpartition("/")[2] for request in opened.requests()}
    assert asked == {page.name, *FILES}
    total = sum((LEARN / name).stat().st_size for name in (*FILES, "see_it.md"))
    assert total < MOST


def test_a_keyboard_is_enough(opened: Browser) -> None:
    opened.run("document.getElementById('beta').focus()")
    press(opened, "ArrowRight")
    assert shown(opened, "#beta-shown") == "0.55"
    assert "beta=0.55" in shown(opened, "#python")
    press(opened, "Tab")  # the seed
    press(opened, "Tab")  # the policies, at the chosen one
    press(opened, "ArrowRight")
    assert "EmpMOSSPlusPlus" in shown(opened, "#python")
    opened.run("document.getElementById('t').focus()")
    press(opened, "Home")
    assert shown(opened, "#said") == "Nothing is pulled yet."
    opened.run("document.getElementById('on').focus()")
    opened.press("Enter")
    assert "In iteration 1 no member was pulled twice." in shown(opened, "#said")
    assert shown(opened, "#t-shown").replace("\u202f", "") == "pull 256"


def test_playing_goes_through_time_and_can_be_stopped(opened: Browser) -> None:
    opened.run(
        """new Promise(done => {
            const time = document.getElementById("t");
            const look = () => time.value !== "5000" ? done() : setTimeout(look, 5);
            document.getElementById("run").click();
            look();
        })"""
    )
    assert shown(opened, "#run") == "Stop"
    opened.run("document.getElementById('run').click()")
    assert shown(opened, "#run") == "Play"


@pytest.mark.parametrize("width", [390, 1400])
def test_it_fits_in_light_and_dark(opened: Browser, width: int) -> None:
    opened.resize(width)
    for scheme, colours in (("default", LIGHT), ("slate", DARK)):
        opened.run(f"document.body.dataset.mdColorScheme = '{scheme}'")
        assert opened.run("document.documentElement.scrollWidth") <= width
        assert opened.run("document.querySelector('#regret svg').clientWidth") > 0.7 * min(
            width, 800
        )
        seen = opened.run("getComputedStyle(document.getElementById('game')).backgroundColor")
        assert [int(part) for part in re.findall(r"\d+", seen)] == [
            int(colours["card"][k : k + 2], 16) for k in (1, 3, 5)
        ]
    labels = opened.run(
        """[...document.querySelectorAll(".see text, .see label, .see .phase")].map(
            each => parseFloat(getComputedStyle(each).fontSize))"""
    )
    assert min(labels) >= 10
