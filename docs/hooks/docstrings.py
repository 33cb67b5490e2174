"""Docstrings as mkdocstrings wants them; what they say stays the same.

Parameters that share a text (`sigma, exploration`) are given one entry each: all of them would be
shown with the type and default of the first. Examples that stand without a heading get a fence.
Methods of the client are written as plans, and shown with the type that callers get.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

_HEADING = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)
_SHARED = re.compile(r"^(\w+(?:, \w+)+)\n((?:[ \t]+\S.*\n?|\n(?=[ \t]))+)", re.MULTILINE)
_BARE = re.compile(r"(?:\A|(?<=\n\n))(>>> (?:.+\n?)+)")


def rewritten(text: str) -> str:
    """Return a docstring with shared entries told apart and bare examples fenced."""
    pieces = _HEADING.split(text)
    whole = [_fenced(pieces[0])]
    for heading, body in zip(pieces[1::2], pieces[2::2], strict=True):
        if heading in ("Parameters", "Attributes"):
            told = _SHARED.sub(_apart, body)
        else:
            told = body if heading == "Examples" else _fenced(body)
        whole.append(f"{heading}\n{'-' * len(heading)}{told}")
    return "".join(whole)


def _apart(entry: re.Match[str]) -> str:
    text = entry[2] if entry[2].endswith("\n") else entry[2] + "\n"
    return "".join(f"{name}\n{text}" for name in entry[1].split(", "))


def _fenced(text: str) -> str:
    return _BARE.sub(lambda bare: f"```pycon\n{bare[1].rstrip()}\n```\n", text)


class Rewrite(griffe.Extension):
    """The extension, called for every module, class, function and attribute."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Rewrite one docstring, before it is parsed."""
        if obj.docstring:
            obj.docstring.value = rewritten(obj.docstring.value)

    def on_function(self, *, func: griffe.Function, **kwargs: Any) -> None:
        """Show `Plan[T]`, which a decorator turns into T, as T."""
        if isinstance(func.returns, griffe.ExprSubscript) and str(func.returns.left) == "Plan":
            func.returns = func.returns.slice
