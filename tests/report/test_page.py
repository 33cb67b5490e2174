"""The static page: figures and tables in one file without requests, and hostile names."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

import manyarms as ma
from manyarms.core.tabular import TextTable
from manyarms.errors import ResultsError
from manyarms.report import Section, write_page, write_report
from manyarms.simulation import Sweep, cell, run

HOSTILE = '</title><script>alert("taken")</script>'


class Tags(HTMLParser):
    """Collects elements and text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def sweep(name: str, folder: Path) -> Path:
    cells = [
        cell(
            [ma.MOSS(), ma.MOSSPlusPlus()],
            ma.instances.planted(n=50, alpha=alpha, horizon=60),
            horizon=60,
            replications=4,
            checkpoints=3,
            parameters={"alpha": alpha},
        )
        for alpha in (0.2, 0.4)
    ]
    run(Sweep(name, tuple(cells)), folder, progress=False)
    return folder


@pytest.mark.patient
def test_a_report_has_figures_and_tables(tmp_path: Path) -> None:
    page = write_report(sweep(HOSTILE, tmp_path))
    assert page == tmp_path / "_report.html"
    text = page.read_text()
    read = Tags(text)
    assert read.seen.count("img") == 3  # against hardness, and over time for both
    assert read.seen.count("table") == 2
    assert "script" not in read.seen
    assert 'alert("taken")' in read.text  # as text
    assert "2 policies on 2 problems, up to 4 runs of each, seed 0." in read.text
    assert "MOSS++" in read.text
    assert not re.search(r'(src|href)="(?!data:)', text)  # no requests
    first = page.read_bytes()
    assert write_report(tmp_path).read_bytes() == first


def test_cells_with_several_lines_and_hostile_text(tmp_path: Path) -> None:
    table = TextTable(["<b>"], [["one\n<i>two</i>"], ["12"], ["many words " * 9]], title="&amp;")
    sections = [Section("A & B", ["x < y"], tables=[table])]
    text = write_page(tmp_path / "new" / "a.html", title=HOSTILE, lead=["1 > 0"], sections=sections)
    page = text.read_text()
    assert "<td>one<br>&lt;i&gt;two&lt;/i&gt;</td>" in page
    assert '<td class="number">12</td>' in page
    assert '<td class="wordy">' in page
    assert "<caption>&amp;amp;</caption>" in page
    assert {"b", "i", "script"}.isdisjoint(Tags(page).seen)


def test_a_folder_without_results_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="must contain results of manyarms"):
        write_report(tmp_path)
