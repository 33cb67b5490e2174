"""The command line: `manyarms`, or `python -m manyarms`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence

from manyarms.cli.printable import printable
from manyarms.core.files import fix_for
from manyarms.errors import (
    ManyarmsError,
    ParameterError,
    SpecError,
    UnknownNameError,
    how_to_install,
)

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit code: 0, 1 for a failed run, 2 for bad usage."""
    try:
        import click

        from manyarms.cli.app import app
    except ImportError as error:
        from manyarms import __version__

        _say(
            f"version {__version__}; the command line needs {error.name or error}, which is not "
            f"installed. {how_to_install('lab')} The library works without it."
        )
        return 1
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        app(words, prog_name="manyarms", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        _say(f"interrupted.{_resumption(words)}")
        return 130
    except ManyarmsError as error:
        if "--debug" in words:
            raise
        _say(str(error))
        # whether the words of the command, or the spec it names, are at fault
        return 2 if isinstance(error, ParameterError | UnknownNameError | SpecError) else 1
    except OSError as error:  # a file that cannot be read or written
        if "--debug" in words:
            raise
        _say(f"{error}. {fix_for(error)}.")
        return 1
    return 0


def _resumption(words: Sequence[str]) -> str:
    r"""Say how a command goes on that was stopped, if it does.

    >>> _resumption(["run", "a b.toml", "--out", "out"])
    " What was played is kept. To resume, run:\n  manyarms run 'a b.toml' --out out"
    """
    command = next((word for word in words if not word.startswith("-")), "")
    same = f"run:\n  manyarms {shlex.join(words)}"
    if command in ("run", "reproduce"):
        return f" What was played is kept. To resume, {same}"
    if command == "data" and "get" in words:
        return f" Contests that were downloaded are kept. To get the rest, {same}"
    return " Nothing was kept."


def _say(text: str) -> None:
    sys.stderr.write(f"manyarms: {printable(text)}\n")
