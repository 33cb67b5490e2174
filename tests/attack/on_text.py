"""Attacks on readers of contest files and results, which may raise only the package's errors."""

from __future__ import annotations

import functools
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from manyarms.errors import ContestFileError, ParameterError, ResultsError
from manyarms.instances import from_means, from_rewards, read_contest
from manyarms.simulation import read_results, run
from tests.attack.runner import Attempt, Workspace, attack, survives
from tests.simulation.runs import small

BITS = ["\0", "\x1b[2J", "\ud800", "9" * 5000, "0x" + "f" * 5000, "nan", "-inf", "1e400", "[[", "{"]
BITS += ["}", "]", '"', "'''", "=", ".", "\n", "\r", "#", "a." * 3000, "[" * 3000, "é" * 300]
BITS += [
    "true",
    "1979-05-27T07:32:00Z",
    "\ufeff",
    "$\\frac{",
]


def _mutations(workspace: Workspace, text: str, count: int) -> Iterator[tuple[str, bytes]]:
    """Yield changed texts, with parts cut, doubled or swapped, and special characters inserted."""
    for number in range(count):
        changed = text
        for _ in range(workspace.chance.randint(1, 4)):
            first, last = sorted(workspace.chance.randrange(len(changed) + 1) for _ in range(2))
            last = min(last, first + workspace.chance.choice([0, 1, 10, 1000]))
            new = workspace.chance.choice(
                [*BITS, "", changed[first:last] * 2, changed[last:first:-1]]
            )
            changed = changed[:first] + new + changed[last:]
            changed = changed or " "
        yield f"mutation {number}: {changed[:300]!r}", changed.encode("utf-8", "surrogatepass")


@attack("means: mutations of a table")
def mutated_tables(workspace: Workspace) -> Iterator[Attempt]:
    text = "item,clicks,views\n" + "\n".join(f"item {k},{k % 3},{k + 3}" for k in range(40))
    path = workspace.folder / "items.csv"
    for what, data in _mutations(workspace, text, 500):
        path.write_bytes(data)
        for columns, read in (("clicks/views", from_means), ("item,clicks", from_rewards)):
            held = survives(functools.partial(read, f"{path}:{columns}"), ParameterError)
            yield f"{read.__name__}, {what}", held


@attack("contest: mutations")
def mutated_contests(workspace: Workspace) -> Iterator[Attempt]:
    rows = "\n".join(f'"caption {k}, ""quoted""",{k},1.5,10,3,4,3' for k in range(40))
    text = f"caption,rank,mean,votes,not_funny,somewhat_funny,funny\n{rows}\n"
    path = workspace.folder / "7.csv"
    for what, data in _mutations(workspace, text, 3000):
        path.write_bytes(data)
        yield what, survives(lambda: read_contest(path), ContestFileError)


@attack("results: mutations of every file")
def mutated_results(workspace: Workspace) -> Iterator[Attempt]:
    whole = workspace.folder / "whole"
    run(small(), whole, progress=False)
    copy = workspace.folder / "copy"
    for path in sorted(whole.iterdir()):
        data = path.read_bytes()
        shutil.copytree(whole, copy)
        for number in range(150):
            damaged = bytearray(data)
            for _ in range(workspace.chance.randint(1, 3)):
                position = workspace.chance.randrange(len(damaged))
                damaged[position] ^= 1 << workspace.chance.randrange(8)
            cut = workspace.chance.randrange(len(data)) if number % 3 == 0 else len(data)
            (copy / path.name).write_bytes(damaged[:cut])

            yield f"{path.name}, damage {number}", survives(lambda: _read(copy), ResultsError)
        shutil.rmtree(copy)


def _read(folder: Path) -> None:
    results = read_results(folder)
    _ = results.cells, results.summaries(), results._columns()


@attack("results: crafted provenance")
def crafted_provenance(workspace: Workspace) -> Iterator[Attempt]:
    folder = workspace.folder / "out"
    run(small(), folder, progress=False)
    said = json.loads((folder / "_provenance.json").read_text())
    values: list[Any] = [
        None,
        3,
        -1,
        "x",
        [],
        {},
        [[]],
        {"": {}},
        "9" * 5000,
        1e400,
        [{"policies": {}}],
    ]
    for key in said:
        for value in values:
            (folder / "_provenance.json").write_text(json.dumps(said | {key: value}))
            said_so = f"{key} = {str(value)[:30]}"
            yield said_so, survives(lambda: read_results(folder).cells, ResultsError)
    for text in ("[" * 100_000, '{"a":' * 100_000, "9" * 5000, "null", "", "\ud800"):
        data = text.encode("utf-8", "surrogatepass")
        (folder / "_provenance.json").write_bytes(data)
        yield repr(text[:30]), survives(lambda: read_results(folder), ResultsError)
