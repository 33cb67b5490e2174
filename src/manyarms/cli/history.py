"""`manyarms observe`: import a table of rewards from before an experiment."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click


@click.command()
@click.argument("store")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--experiment", "name", help="The name of the experiment (default: the only one).")
def observe(store: str, file: Path, name: str | None) -> None:
    """Import the rewards in a CSV FILE into an experiment.

    Each line has the name of an arm, the number of its rewards, and their sum, such as
    "bold,120,7" for 120 views and 7 clicks. If rewards are not 0 or 1, a fourth column has the sum
    of their squares. A first line with titles is skipped. Lines of the same arm are added up. Stop
    the service first.

    Example: manyarms observe shop.db history.csv
    """
    from manyarms.core.files import path_errors
    from manyarms.live import load

    with path_errors(file), load(store, name=name) as live:
        with file.open(newline="", encoding="utf-8-sig") as lines:
            counts = _read_counts(lines, file, whole=not isinstance(live.arm_name(0), str))
        live.observe(counts=counts)
    rewards = sum(int(numbers[0]) for numbers in counts.values())
    click.echo(f"{rewards} rewards of {len(counts)} arms were recorded in {store}")


def _read_counts(lines: Iterable[str], file: Path, *, whole: bool) -> dict[Any, list[float]]:
    """Return the numbers of each arm; if `whole`, arms are integers."""
    import csv

    from manyarms.errors import ParameterError

    counts: dict[Any, list[float]] = {}
    for number, row in enumerate(csv.reader(lines), 1):
        if not row:
            continue
        try:
            arm: Any = int(row[0]) if whole else row[0]
            count, *sums = int(row[1]), *map(float, row[2:])
            if not 1 <= len(sums) <= 2:
                raise ValueError
        except (ValueError, IndexError):
            if number == 1:  # titles
                continue
            raise ParameterError(
                f"Line {number} of {file} must have an arm, a number of rewards, and their sum, "
                f"such as bold,120,7, got {','.join(row)[:100]!r}. Nothing was recorded.",
                parameter="file",
            ) from None
        before = counts.setdefault(arm, [0] * (1 + len(sums)))
        if len(before) != 1 + len(sums):
            raise ParameterError(
                f"Line {number} of {file} must have as many columns as the other lines of arm "
                f"{arm!r}, got {len(row)}. Nothing was recorded.",
                parameter="file",
            )
        counts[arm] = [a + b for a, b in zip(before, (count, *sums), strict=True)]
    return counts
