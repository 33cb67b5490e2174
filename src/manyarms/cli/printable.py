"""Text for terminals: names and captions are data, and must not steer the terminal."""

from __future__ import annotations

import textwrap

_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))}
_ESCAPES = {code: text for code, text in _CONTROLS.items() if chr(code) not in "\n\t"}


def printable(text: str) -> str:
    r"""Return a text with its control characters written out, but for tabs and ends of lines.

    >>> printable("a\x1b[2Jb\n")
    'a\\x1b[2Jb\n'
    """
    return text.translate(_ESCAPES)


def broken(text: str, width: int) -> str:
    r"""Return a text with long lines broken between words.

    Lines with two blanks in a row are code to be copied, or belong to a table: they stay whole.

    >>> broken("To go on, run:\n  manyarms data get 652", 10)
    'To go on,\nrun:\n  manyarms data get 652'
    """
    wrapper = textwrap.TextWrapper(width, break_long_words=False, break_on_hyphens=False)
    lines = text.split("\n")
    return "\n".join(line if "  " in line else wrapper.fill(line) for line in lines)
