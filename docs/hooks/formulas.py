"""Formulas of docstrings and pages as MathML: browsers draw it by themselves, without a script.

Docstrings write :math:`x` within a sentence and a paragraph that begins with `.. math::`, so that
they read well in a terminal too. Pages have fenced blocks of the language math, which GitHub draws.
A Markdown extension turns all three into MathML when the site is built, wherever mkdocs or
mkdocstrings convert Markdown.
"""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import Element, SubElement

from latex2mathml.converter import convert
from markdown import Markdown
from markdown.blockprocessors import BlockProcessor
from markdown.extensions import Extension
from markdown.inlinepatterns import InlineProcessor
from markdown.preprocessors import Preprocessor

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig

BLOCK = ".. math::"
INLINE = r":math:`([^`]+)`"
FENCED = re.compile(r"^```math\n(.+?)\n```$", re.MULTILINE | re.DOTALL)
# The converter sets names of functions as variables, flush with what follows: log T as "logT".
_FUNCTION = re.compile(
    r"(<mi>(?:log|min|max|inf)</mi>"
    r"|<msub><mi>log</mi><mn>2</mn></msub>)(?=<m(?:i|sup|sub|sqrt|row)>)(?!<mi>&#x0230)"
)
_THIN_SPACE = '<mspace width="0.17em"/>'


def mathml(formula: str, *, display: str) -> str:
    """Return a formula, given in LaTeX, as MathML; `display` is "inline" or "block"."""
    joined = " ".join(formula.split())
    return _FUNCTION.sub(rf"\1{_THIN_SPACE}", str(convert(joined, display=display)))


class InlineFormula(InlineProcessor):  # type: ignore[misc]
    """:math:`x` within a sentence."""

    def handleMatch(self, m: re.Match[str], data: str) -> tuple[str, int, int]:  # noqa: N802
        """Return the MathML and the place of what it stands for."""
        drawn = mathml(m[1], display="inline")
        return self.md.htmlStash.store(drawn), m.start(0), m.end(0)


class BlockFormula(BlockProcessor):  # type: ignore[misc]
    """A paragraph that begins with `.. math::`."""

    def test(self, parent: Element, block: str) -> bool:
        """Say whether the paragraph is a formula."""
        return block.startswith(BLOCK)

    def run(self, parent: Element, blocks: list[str]) -> None:
        """Take it from the list, and put it into the page."""
        formula = textwrap.dedent(blocks.pop(0).removeprefix(BLOCK))
        place = SubElement(parent, "div", {"class": "formula"})
        place.text = self.parser.md.htmlStash.store(mathml(formula, display="block"))


class FencedFormula(Preprocessor):  # type: ignore[misc]
    """A fenced block whose language is math."""

    def run(self, lines: list[str]) -> list[str]:
        """Put the MathML in its place."""

        def drawn(block: re.Match[str]) -> str:
            formula = mathml(block[1], display="block")
            return str(self.md.htmlStash.store(f'<div class="formula">{formula}</div>'))

        return FENCED.sub(drawn, "\n".join(lines)).split("\n")


class Formulas(Extension):  # type: ignore[misc]
    """The Markdown extension."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802
        """Register all: before code spans (190), before lists, and before fences of code (25)."""
        md.inlinePatterns.register(InlineFormula(INLINE, md), "formula", 195)
        md.parser.blockprocessors.register(BlockFormula(md.parser), "formulas", 175)
        md.preprocessors.register(FencedFormula(md), "fenced formulas", 30)


def on_config(config: MkDocsConfig) -> None:
    """Add the extension: mkdocs calls this once, before it converts anything."""
    extensions: list[Any] = config.markdown_extensions
    extensions.append(Formulas())
