"""Tables of text: the one form that pages in Markdown and the terminal are made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Table"]


@dataclass(frozen=True)
class Table:
    r"""A head, rows and a title, all text.

    Examples
    --------
    >>> print(Table(["policy", "regret"], [["moss", "12"], ["a|b", "7"]]).markdown())
    | policy | regret |
    | --- | --- |
    | moss | 12 |
    | a\|b | 7 |
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""

    def markdown(self) -> str:
        """Return the table as Markdown, without the title."""
        lines = [self.head, ["---"] * len(self.head), *self.rows]
        return "\n".join(
            f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines
        )
