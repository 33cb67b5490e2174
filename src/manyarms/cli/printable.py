"""Text for terminals: names and captions are data, and must not steer the terminal."""

from __future__ import annotations

__all__ = ["printable"]

_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))}
_ESCAPES = {code: text for code, text in _CONTROLS.items() if chr(code) not in "\n\t"}


def printable(text: str) -> str:
    r"""Return a text with its control characters written out, but for tabs and ends of lines.

    >>> printable("a\x1b[2Jb\n")
    'a\\x1b[2Jb\n'
    """
    return text.translate(_ESCAPES)
