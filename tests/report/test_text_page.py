"""A page of text and tables is the same in Markdown and in HTML, and needs no network."""

from __future__ import annotations

import re

from manyarms.report.text import Block, Table, Warm, as_html, as_markdown

PAGE: list[Block] = [
    "# A title",
    "Some **strong** words & `code`.",
    "![What is <seen>](figures/f.svg)",
    Table(["a", "b"], [["<x>", Warm("`y`", 0.5)]]),
    Table(["a"], [["1"]], "all numbers"),
]


def test_markdown_leaves_out_what_is_folded_away() -> None:
    assert as_markdown(PAGE).split("\n\n") == [
        *PAGE[:3],
        "| a | b |\n| --- | --- |\n| <x> | `y` |",
    ]


def test_html_is_escaped_coloured_and_folded_and_needs_no_network() -> None:
    text = as_html(PAGE, title="A & B", pictures={"figures/f.svg": "<?xml?><svg></svg>"})
    assert "<title>A &amp; B</title>" in text
    assert "<h1>A title</h1>" in text
    assert "<p>Some <strong>strong</strong> words &amp; <code>code</code>.</p>" in text
    caption = "<figcaption>What is &lt;seen&gt;</figcaption>"
    assert f'<figure><div class="wide"><svg></svg></div>{caption}</figure>' in text
    assert "<td>&lt;x&gt;</td>" in text
    assert re.search(r'<td class="warm" style="--warmth:\d+%"><code>y</code></td>', text)
    assert "<details><summary>all numbers</summary>" in text
    assert not re.search(r"https?://|src=|<link|@import|url\(|fetch|XMLHttp", text)
