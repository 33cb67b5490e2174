"""Plain text for terminals, at most 80 characters wide."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from manyarms.core.files import fix_for, replace_file
from manyarms.core.tabular import aligned
from manyarms.errors import FolderError, ParameterError

WIDTH = 80

_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))}
_ESCAPES = {code: text for code, text in _CONTROLS.items() if chr(code) not in "\n\t"}


def printable(text: str) -> str:
    r"""Escape control characters, so that names and captions cannot control the terminal.

    >>> printable("a\x1b[2Jb\n")
    'a\\x1b[2Jb\n'
    """
    return text.translate(_ESCAPES)


def wrapped(text: str, width: int = WIDTH) -> str:
    r"""Wrap long lines between words.

    Lines with two spaces in a row are not wrapped: they are commands to copy, or rows of a table.

    >>> wrapped("To resume, run:\n  manyarms data get 652", 10)
    'To resume,\nrun:\n  manyarms data get 652'
    """
    wrapper = textwrap.TextWrapper(width, break_long_words=False, break_on_hyphens=False)
    lines = text.split("\n")
    return "\n".join(line if "  " in line else wrapper.fill(line) for line in lines)


def show(text: str = "") -> None:
    """Print a text to standard output."""
    sys.stdout.write(f"{wrapped(printable(text))}\n")


def show_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table. If it is too wide, the first column is printed on separate lines."""
    cells = [[printable(cell) for cell in row] for row in (head, *rows)]
    lines = aligned(cells)
    if max(map(len, lines)) > WIDTH:
        rest = aligned([["", *row[1:]] for row in cells])
        lines = [line for row, own in zip(cells, rest, strict=True) for line in (row[0], own)]
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in lines))


def check_json_path(path: str | None) -> None:
    """Raise, before anything is simulated, if the file's folder does not exist."""
    if path is not None and not (folder := Path(path).parent).is_dir():
        raise ParameterError(f"`--json` must name a file in a folder that exists, got {folder}.")


def write_json(content: Any, path: str) -> None:
    """Write JSON to a file; "-" is standard output."""
    text = json.dumps(content, indent=2)
    if path == "-":
        sys.stdout.write(f"{text}\n")
        return
    try:
        replace_file(Path(path), f"{text}\n".encode())
    except OSError as error:
        raise FolderError(
            f"`--json` must name a file that can be written, got {path!r}: {error.strerror}. "
            f"{fix_for(error)}, or choose another file."
        ) from error
