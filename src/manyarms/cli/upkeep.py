"""`manyarms backup`, `check`, `copy` and `export`: maintenance of stores."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

_PAGE = 50_000  # events written at once


@click.command()
@click.argument("store")
@click.argument("file", type=click.Path(path_type=Path))
def backup(store: str, file: Path) -> None:
    """Copy a store to a new SQLite FILE, even while it is in use.

    The copy is one consistent state of the store.

    Example: manyarms backup sqlite:///shop.db shop-monday.db
    """
    from manyarms.store import backup as back_up
    from manyarms.store import open_store

    click.echo(f"copying {store} ...", err=True)
    with open_store(store, create=False, read_only=True) as opened:
        size = back_up(opened, file)
    click.echo(f"{file} is a copy of {opened}, {size / 1e6:.1f} MB. It contains hashes of tokens.")


@click.command()
@click.argument("store")
def check(store: str) -> None:
    """Verify the checksums of a store, and replay every event log.

    This shows whether this version of manyarms chooses the recorded arms, so that it can continue
    the experiments. Nothing is changed.

    Example: manyarms check sqlite:///shop.db
    """
    from manyarms.live.opening import replayed
    from manyarms.store import check as verified
    from manyarms.store import open_store

    wrong = 0
    with open_store(store, create=False, read_only=True) as opened:
        for one in verified(opened):
            trouble = one.trouble or replayed(opened, one.name)
            wrong += bool(trouble)
            click.echo(f"{one.name}: {one.events} events; {trouble or 'replays as recorded'}")
    if wrong:
        click.echo(f"{wrong} of the experiments cannot be continued.", err=True)
        raise SystemExit(1)


@click.command()
@click.argument("source")
@click.argument("target")
@click.option("--experiment", "names", multiple=True, help="Copy only this one. Repeatable.")
def copy(source: str, target: str, names: tuple[str, ...]) -> None:
    """Copy experiments to another store.

    All experiments and tokens are copied, unless you name experiments. Stop the service first:
    later events are not copied.

    Example: manyarms copy sqlite:///shop.db postgresql://me@db/arms
    """
    from manyarms.store import copy as copied
    from manyarms.store import open_store

    click.echo(f"copying {source} ...", err=True)
    with open_store(source, create=False, read_only=True) as old, open_store(target) as new:
        done = copied(old, new, names or None)
        click.echo(f"{new} now has {len(done)} more: {', '.join(done) or 'none'}")


@click.command()
@click.argument("store")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--experiment", "name", help="The name of the experiment (default: the only one).")
def export(store: str, file: Path, name: str | None) -> None:
    """Write the events of an experiment to a FILE that ends in .csv or .parquet.

    The columns are seq, at (seconds since 1970), kind, pull, arm, reward and detail (JSON).

    Example: manyarms export sqlite:///shop.db events.csv
    """
    from manyarms.core.files import replacing
    from manyarms.errors import ParameterError
    from manyarms.live.opening import find_experiment
    from manyarms.store import open_store

    if file.suffix not in (".csv", ".parquet"):
        raise ParameterError(f"`file` must end in .csv or .parquet, got {str(file)!r}.")
    write = _write_csv if file.suffix == ".csv" else _write_parquet
    with open_store(store, create=False, read_only=True) as opened:
        record = find_experiment(opened, name)
        rows = _rows(opened, record.id, record.spec.get("control"))
        with replacing(file) as part:
            count = write(part, rows)
    click.echo(f"{file}: {count} events of {record.name}")


def _rows(store: Any, experiment: int, control: Any) -> Iterator[tuple[Any, ...]]:
    import json

    from manyarms.inference.facts import CONTROL

    for seq, at, kind, pull, arm, reward, detail in store.history(experiment):
        name = control if arm == CONTROL else arm
        more = None if detail is None else json.dumps(detail)
        yield seq, at, kind, pull, None if name is None else str(name), reward, more


def _write_csv(path: Path, rows: Iterator[tuple[Any, ...]]) -> int:
    import csv

    from manyarms.store import HistoryRow

    count = 0
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(HistoryRow._fields)
        for row in rows:
            writer.writerow(row)
            count += 1
    return count


def _write_parquet(path: Path, rows: Iterator[tuple[Any, ...]]) -> int:
    from itertools import islice

    from manyarms.core.optional import need
    from manyarms.store import HistoryRow

    arrow = need("pyarrow", "to write Parquet", "sim")
    parquet = need("pyarrow.parquet", "to write Parquet", "sim")
    types = ("int64", "float64", "string", "int64", "string", "float64", "string")
    schema = arrow.schema(list(zip(HistoryRow._fields, types, strict=True)))
    count = 0
    with parquet.ParquetWriter(path, schema) as writer:
        while some := list(islice(rows, _PAGE)):
            columns = [list(column) for column in zip(*some, strict=True)]
            writer.write_table(
                arrow.table(dict(zip(HistoryRow._fields, columns, strict=True)), schema)
            )
            count += len(some)
    return count
