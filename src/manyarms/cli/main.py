"""`python -m manyarms`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from manyarms import __version__
from manyarms.errors import ManyarmsError

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit code."""
    options = _parser().parse_args(arguments)
    try:
        from manyarms.cli.reproduce import reproduce_fig2a

        reproduce_fig2a(
            replications=options.replications, seed=options.seed, workers=options.workers
        )
    except ManyarmsError as error:
        sys.stderr.write(f"manyarms: {error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("\nmanyarms: interrupted\n")
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="manyarms", description="Bandits with more arms than time."
    )
    parser.add_argument("--version", action="version", version=f"manyarms {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    reproduce = commands.add_parser(
        "reproduce",
        help="play the paper's experiments and print their tables",
        description="Play an experiment of the paper and print its table.",
        epilog="Example: python -m manyarms reproduce fig2a --replications 1000",
    )
    reproduce.add_argument("experiment", nargs="?", default="fig2a", choices=["fig2a"])
    reproduce.add_argument("--replications", type=int, default=100, help="100, as in the paper")
    reproduce.add_argument("--seed", type=int, default=0, help="decides everything random: 0")
    reproduce.add_argument("--workers", type=int, default=None, help="threads: all processors")
    return parser
