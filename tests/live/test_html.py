"""A handle's HTML in a notebook is well-formed, escaped and correct."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

import manyarms as ma
from manyarms.live.html import MOST_ARMS_SHOWN
from tests.helpers import ALL_POLICIES, label, play_live

SVG = "{http://www.w3.org/2000/svg}"


def _parsed(live: ma.Live) -> ElementTree.Element:
    return ElementTree.fromstring(live._repr_html_())


@pytest.mark.parametrize("policy", ALL_POLICIES, ids=label)
def test_the_html_is_well_formed_at_every_stage(policy: ma.Policy) -> None:
    live = policy.live(n_arms=12, horizon=40, seed=1)
    assert "No reward has been told yet." in "".join(_parsed(live).itertext())
    pull = live.ask()
    _parsed(live)
    live.tell(pull, 1.0)
    play_live(live, 39, lambda arm, k: arm / 12)
    page = _parsed(live)
    assert str(policy) in "".join(page.itertext())
    assert 1 <= len(page.findall(f".//{SVG}circle")) <= MOST_ARMS_SHOWN


def test_names_are_escaped_truncated_and_made_visible() -> None:
    names = ["<script>alert('x')</script> & \"co\"", "a\x01b\u202ec", "ü" * 5000]
    live = ma.MOSS().live(arms=names, horizon=50)
    play_live(live, 50, lambda arm, k: 0.5)
    html = live._repr_html_()
    assert "<script" not in html
    assert "\x01" not in html
    assert "\u202e" not in html
    texts = [node.text for node in _parsed(live).iter(f"{SVG}text")]
    assert "<script>alert('x')</sc"[:21] + "…" in texts
    assert "a�b�c" in texts
    assert "ü" * 21 + "…" in texts
    numbered = ma.MOSS().live(arms=[17, -3], horizon=9)
    play_live(numbered, 9, lambda arm, k: 0.5)
    assert {"arm 17", "arm -3"} <= {node.text for node in _parsed(numbered).iter(f"{SVG}text")}


def test_retired_arms_are_left_out_and_bars_are_to_scale() -> None:
    live = ma.MOSS().live(arms=["good", "bad", "gone"], horizon=600, seed=4)
    play_live(live, 300, lambda arm, k: {"good": 0.75, "bad": 0.25, "gone": 1.0}[str(arm)])
    live.retire("gone")
    play_live(live, 300, lambda arm, k: {"good": 0.75, "bad": 0.25}[str(arm)])
    page = _parsed(live)
    rows = [group for group in page.iter(f"{SVG}g") if group.find(f"{SVG}circle") is not None]
    assert [row.findtext(f"{SVG}text") for row in rows] == ["good", "bad"]
    axis = rows[0].findall(f"{SVG}line")[0]
    left, right = float(axis.attrib["x1"]), float(axis.attrib["x2"])
    for row, arm in zip(rows, live.top(2), strict=True):
        drawn = row.findall(f"{SVG}line")[1]
        places = [float(drawn.attrib["x1"]), float(drawn.attrib["x2"])]
        places.append(float(row.find(f"{SVG}circle").attrib["cx"]))  # type: ignore[union-attr]
        wanted = [left + (right - left) * value for value in (*arm.interval, arm.estimate)]
        assert places == pytest.approx(wanted, abs=0.06)
    bars = [float(bar.attrib["width"]) for bar in page.iter(f"{SVG}rect")]
    assert bars == [640.0, 640.0, 640.0]  # all pulls are made and told
