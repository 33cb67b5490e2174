"""The command line: `manyarms`, or `python -m manyarms`."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from manyarms.cli.screen import printable, wrapped
from manyarms.core.files import fix_for
from manyarms.errors import ManyarmsError, ParameterError, UnknownNameError, how_to_install


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return the exit code: 0, 1 if it failed, 2 for bad usage."""
    try:
        import click

        from manyarms.cli.app import app
    except ImportError as error:
        from manyarms import __version__

        _print_error(
            f"version {__version__}; the command line needs {error.name or error}, which is not "
            f"installed. {how_to_install('sim')} The library works without it."
        )
        return 1
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        with _plain_warnings():
            app(words, prog_name="manyarms", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        _print_error(f"interrupted.{_resumption(words)}")
        return 130
    except ManyarmsError as error:
        if "--debug" in words:
            raise
        _print_error(_with_options(str(error), app, words))
        return 2 if isinstance(error, ParameterError | UnknownNameError) else 1
    except OSError as error:  # a file that cannot be read or written
        if "--debug" in words:
            raise
        _print_error(f"{error}. {fix_for(error)}.")
        return 1
    return 0


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Show our warnings in the format of errors, without a source line."""
    usual = warnings.formatwarning

    def plain(message: Any, category: type[Warning], *place: Any, **more: Any) -> str:
        if category.__module__ == ManyarmsError.__module__:
            return f"{_formatted(str(message))}\n"
        return usual(message, category, *place, **more)

    warnings.formatwarning = plain
    try:
        yield
    finally:
        warnings.formatwarning = usual


def _with_options(text: str, command: Any, words: Sequence[str]) -> str:
    """Replace the parameters in a message of the library by the options of the command."""
    for word in words:
        command = getattr(command, "commands", {}).get(word, command)
    options = {
        one.name: next(
            (name for name in one.opts if name.startswith("--")), one.human_readable_name
        )
        for one in command.params
    }
    if "policies" in options:
        options.setdefault("name", options["policies"])  # the name of a policy

    def option(found: re.Match[str]) -> str:
        name = options.get(found["quoted"] or found["given"])
        if name is None:
            return found[0]
        return f"`{name}`" if found["quoted"] else name

    return re.sub(r"`(?P<quoted>\w+)`|\b(?P<given>\w+)=\.\.\.", option, text)


_KEPT = {
    "copy": " Experiments that were copied are kept. Copy the others with --experiment NAME.",
    "warm": " Policies that were compiled are kept.",
}


def _resumption(words: Sequence[str]) -> str:
    r"""Return a hint on how to resume a command that was interrupted.

    >>> _resumption(["data", "get", "652"])
    ' Contests that were downloaded are kept. To get the rest, run:\n  manyarms data get 652'
    >>> _resumption(["copy", "sqlite:///shop.db", "postgresql://me@db/arms"])
    ' Experiments that were copied are kept. Copy the others with --experiment NAME.'
    """
    command = next((word for word in words if not word.startswith("-")), "")
    if command == "data" and "get" in words:
        same = f"run:\n  manyarms {shlex.join(words)}"
        return f" Contests that were downloaded are kept. To get the rest, {same}"
    return _KEPT.get(command, " Nothing was kept.")


def _print_error(text: str) -> None:
    sys.stderr.write(f"{_formatted(text)}\n")


def _formatted(text: str) -> str:
    line = f"manyarms: {printable(text)}"
    return wrapped(line, shutil.get_terminal_size().columns) if sys.stderr.isatty() else line
