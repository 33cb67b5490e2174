"""Tables: as text, Markdown, LaTeX and HTML, and as data frames of pandas and polars."""

from __future__ import annotations

import importlib
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Literal

from manyarms.core.checks import check_choice
from manyarms.errors import MissingExtraError

Library = Literal["pandas", "polars"]

_LIBRARIES = ("pandas", "polars")
_LONGEST = 200  # characters of a cell
_MOST_ROWS = 20
_MINUS = re.compile(r"(?<![\w)])-(?=[\d. ])")  # a minus sign, not a hyphen
_LATEX = {letter: f"\\{letter}" for letter in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "±": r"$\pm$",
    "β": r"$\beta$",
    "μ": r"$\mu$",
}


class Tabular(ABC):
    """A table with columns, which notebooks show and `to_dataframe` converts."""

    @abstractmethod
    def _columns(self) -> Mapping[str, Sequence[Any]]:
        """Return the columns by name, all of the same length."""

    def _caption(self) -> Sequence[str]:
        """Return the lines above the table."""
        return ()

    def to_dataframe(self, *, library: Library | None = None) -> Any:
        """Return a data frame. pandas or polars must be installed.

        Parameters
        ----------
        library
            "pandas" or "polars" (default: the one that is imported, else the one that is
            installed; pandas if both are).
        """
        return data_frame(self._columns(), library)

    def _repr_html_(self) -> str:
        columns = self._columns()
        rows = list(zip(*columns.values(), strict=True))
        return html_table(list(columns), rows, self._caption())


@dataclass(frozen=True, repr=False)
class TextTable(Tabular):
    """A table of text, shown by `print` and by notebooks.

    Attributes
    ----------
    head, rows, title
        The names of the columns, the cells, row by row, and a line above the table (default: none).

    Examples
    --------
    >>> print(TextTable(["policy", "mean"], [["moss", "7666.6"]], "regret"))
    regret
    policy    mean
    moss    7666.6
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""

    def _columns(self) -> dict[str, list[str]]:
        return {name: [row[k] for row in self.rows] for k, name in enumerate(self.head)}

    def _caption(self) -> Sequence[str]:
        return (self.title,) if self.title else ()

    def __str__(self) -> str:
        return "\n".join([*self._caption(), *aligned([self.head, *self.rows])])

    def __repr__(self) -> str:
        return str(self)

    def to_markdown(self) -> str:
        """Return the table as Markdown, without the title."""
        return markdown_table(self.head, self.rows)

    def to_latex(self) -> str:
        """Return the table as LaTeX for the package booktabs, without the title."""
        return latex_table(self.head, self.rows)


def data_frame(columns: Mapping[str, Sequence[Any]], library: Library | None = None) -> Any:
    """Return columns as a data frame of pandas or polars; see `one_kind` for mixed columns.

    >>> data_frame({"arm": [7, 9], "pulls": [3, 0]}, "pandas").shape
    (2, 2)
    """
    if library is not None:
        check_choice("library", library, choices=_LIBRARIES)
    imported = [name for name in _LIBRARIES if name in sys.modules]
    for name in [library] if library else [*imported, *_LIBRARIES]:
        try:
            make = importlib.import_module(name).DataFrame
            return make({key: one_kind(column) for key, column in columns.items()})
        except ImportError:
            continue
    raise MissingExtraError(library or "pandas or polars", "for data frames", None)


def one_kind(column: Any) -> Any:
    """Return a column; if it has texts, truth values or numbers beside others, all become texts.

    >>> one_kind(["a", 7]), one_kind([7, 8.5]), one_kind([True, 8])
    (['a', '7'], [7, 8.5], ['True', '8'])
    """
    if getattr(column, "dtype", "O") != "O":
        return column  # an array of numbers
    kinds = {(isinstance(x, str), isinstance(x, bool)) for x in column if x is not None}
    return [None if one is None else str(one) for one in column] if len(kinds) > 1 else column


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows of text as lines: the first column to the left, the others to the right.

    >>> aligned([["policy", "mean"], ["moss", "7666.6"]])
    ['policy    mean', 'moss    7666.6']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            f"{cell:<{width}}" if place == 0 else f"{cell:>{width}}"
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    r"""Return a table of text as Markdown.

    >>> print(markdown_table(["policy", "mean"], [["a|b", "7"]]))
    | policy | mean |
    | --- | --- |
    | a\|b | 7 |
    """
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines
    )


def latex_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    r"""Return a table of text as LaTeX for the package booktabs, in small print.

    >>> print(latex_table(["policy", "mean ± standard error"], [["a_1 - b", "-7.1 ± 0.5"]]))
    {\footnotesize\setlength{\tabcolsep}{3pt}% SE: standard error
    \begin{tabular}{@{}lr@{}}
    \toprule
    policy & mean $\pm$ SE \\
    \midrule
    a\_1 $-$ b & $-$7.1 $\pm$ 0.5 \\
    \bottomrule
    \end{tabular}}
    """

    def line(cells: Sequence[str]) -> str:
        texts = ("".join(_LATEX.get(letter, letter) for letter in one) for one in cells)
        return rf"{' & '.join(_MINUS.sub('$-$', text) for text in texts)} \\"

    short = [name.replace("standard error", "SE") for name in head]
    note = " SE: standard error" if short != list(head) else ""
    return "\n".join(
        [
            rf"{{\footnotesize\setlength{{\tabcolsep}}{{3pt}}%{note}",
            rf"\begin{{tabular}}{{@{{}}l{'r' * (len(head) - 1)}@{{}}}}",
            r"\toprule",
            line(short),
            r"\midrule",
            *map(line, rows),
            r"\bottomrule",
            r"\end{tabular}}",
        ]
    )


def html_table(head: Sequence[str], rows: Sequence[Sequence[Any]], caption: Sequence[str]) -> str:
    """Return a small table as HTML that is also well-formed XML.

    >>> html_table(["arm"], [["<7>"]], ["one arm"]).count("&lt;7&gt;")
    1
    """
    shown = rows if len(rows) <= _MOST_ROWS else rows[: _MOST_ROWS - 1]
    lines = [*caption, *([f"the first {len(shown)} of {len(rows)} rows"] if shown != rows else [])]
    above = "".join(f"<div>{_text(line)}</div>" for line in lines)
    heads = "".join(f'<th scope="col">{_text(name)}</th>' for name in head)
    cells = ("".join(f"<td>{_text(cell)}</td>" for cell in row) for row in shown)
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    return (
        f'<div style="overflow-x: auto">{above}<table><thead><tr>{heads}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _text(value: Any) -> str:
    """Return a value as text, with few digits and without invisible characters."""
    text = f"{value:.6g}" if isinstance(value, float) else "" if value is None else str(value)
    return escape(plain(text, at_most=_LONGEST))


def plain(text: str, *, at_most: int = 60) -> str:
    r"""Format a text for one line of a screen: truncated, and without invisible characters.

    >>> plain("a\nb"), plain("too long", at_most=4)
    ('a�b', 'too…')
    """
    shown = text if len(text) <= at_most else text[: at_most - 1] + "…"
    return "".join(letter if letter.isprintable() else "�" for letter in shown)
