"""Mutation testing: Cosmic Ray changes the code in one place at a time, and tests should fail.

    pip install cosmic-ray                      # in this environment, or elsewhere on the PATH
    python -m tests.mutation                    every group, 24 mutants each
    python -m tests.mutation sampler --most 99  one group

A copy of the tree is changed. For each place in the code, one change is drawn, and of these a
sample, which is the same for the same code. Annotations are left out, and so are decorators, which
have no effect without the compiler. A change also counts as detected if the tests take three times
as much processor time as without it.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import json
import math
import os
import random
import shlex
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
_TREE = ("src", "tests", "examples", "conftest.py", "pyproject.toml")
_PYTEST = "-m pytest -q -x -p no:cacheprovider"
_FAST = "not compiled and not slow"
# Failing examples need not be shrunk, which would take most of the time.
_NO_SHRINKING = """
from hypothesis import Phase
settings.register_profile("mutants", settings.get_profile("fixed"), phases=[Phase.generate])
settings.load_profile("mutants")
"""
Place = tuple[str, int, int]


class Group(NamedTuple):
    """Files, and the tests, besides the files' doctests, that should detect errors in them."""

    files: list[str]
    tests: str
    chosen: str = ""  # pytest's -k


GROUPS = {
    "tournament": Group(["core/tournament.py"], "tests/core/test_tournament.py"),
    "sampler": Group(["core/sampler.py"], "tests/core/test_sampler.py"),
    "intervals": Group(
        ["inference/confidence_sequences.py", "core/statistics.py"],
        "tests/inference/test_confidence_sequences.py tests/core/test_statistics.py",
    ),
    "stores": Group(
        ["store/event_store.py", "store/reading.py", "store/sqlite.py", "store/writing.py"],
        "tests/store/test_contract.py tests/store/test_sqlite.py tests/live/test_recording.py "
        "tests/live/test_promises.py",
        "not ostgres",
    ),
    "verdict": Group(
        [
            "inference/judging.py",
            "inference/explanation.py",
            "inference/sample.py",
            "inference/uplift.py",
        ],
        "tests/inference/test_verdict.py tests/inference/test_stopping.py "
        "tests/inference/test_sample.py tests/inference/test_uplift.py "
        "tests/inference/test_wording.py tests/live/test_control.py",
    ),
    "policies": Group(
        ["policies/moss_plus_plus.py", "policies/emp_moss_plus_plus.py"],
        "tests/policies/test_oracle.py tests/policies/test_late_oracle.py "
        "tests/policies/test_contract.py tests/policies/test_parameters.py",
        "moss++ or parameter",
    ),
}


def mutate(group: Group, most: int) -> tuple[int, list[str]]:
    """Return the number of mutants, and the diffs of those that no test detected."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder, "tree")
        for name in _TREE:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, tree / name)
        config, session = Path(folder, "config.toml"), Path(folder, "session.sqlite")
        with (tree / "tests" / "conftest.py").open("a", encoding="utf-8") as file:
            file.write(_NO_SHRINKING)
        command = _command(group, _seconds(group, tree))
        config.write_text(_config(group.files, command), encoding="utf-8")
        _cosmic_ray(tree, "init", str(config), str(session))
        with contextlib.closing(sqlite3.connect(session)) as database:
            _draw(database, tree, most)
        _cosmic_ray(tree, "exec", str(config), str(session))
        with contextlib.closing(sqlite3.connect(session)) as database:
            rows = database.execute("SELECT test_outcome, diff FROM work_results").fetchall()
    return len(rows), [diff for outcome, diff in rows if outcome == "SURVIVED"]


def _command(group: Group, seconds: int) -> list[str]:
    examples = [f"src/manyarms/{file}" for file in group.files]
    words = [sys.executable, *_PYTEST.split(), "-m", _FAST, *group.tests.split(), *examples]
    words += ["-k", group.chosen] if group.chosen else []
    return ["bash", "-c", f"ulimit -t {seconds}; exec {shlex.join(words)}"]


def _seconds(group: Group, tree: Path) -> int:
    """Return the processor time that the tests of a group may take; raise if they fail."""
    before = os.times()
    subprocess.run(_command(group, 600), cwd=tree, env=_environment(tree), check=True)
    after = os.times()
    taken = after.children_user + after.children_system
    return 2 + math.ceil(3 * (taken - before.children_user - before.children_system))


def _config(files: list[str], command: list[str]) -> str:
    paths = [f"src/manyarms/{file}" for file in files]
    return (
        f"[cosmic-ray]\nmodule-path = {json.dumps(paths)}\nexcluded-modules = []\n"
        f"timeout = 600.0\ntest-command = {json.dumps(shlex.join(command))}\n"
        f'[cosmic-ray.distributor]\nname = "local"\n'
    )


def _environment(tree: Path) -> dict[str, str]:
    return os.environ | {
        "NUMBA_DISABLE_JIT": "1",
        "PYTHONPATH": str(tree / "src"),  # before the installed tree
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def _cosmic_ray(tree: Path, *words: str) -> None:
    subprocess.run(["cosmic-ray", *words], cwd=tree, env=_environment(tree), check=True)


def _draw(database: sqlite3.Connection, tree: Path, most: int) -> None:
    """Keep one change for each of at most `most` places."""
    at: dict[Place, list[str]] = {}
    left_out: dict[str, set[Place]] = {}
    rows = database.execute(
        "SELECT module_path, start_pos_row, start_pos_col, operator_name, occurrence, job_id "
        "FROM mutation_specs ORDER BY 1, 2, 3, 4, 5"
    ).fetchall()
    for file, row, column, operator, _, job in rows:
        if file not in left_out:
            left_out[file] = set(_annotations(file, (tree / file).read_text(encoding="utf-8")))
        if "Decorator" not in operator and (file, row, column) not in left_out[file]:
            at.setdefault((file, row, column), []).append(job)
    luck = random.Random(1)
    places = luck.sample(sorted(at), min(most, len(at)))
    kept = [luck.choice(at[place]) for place in places]
    marks = ",".join("?" * len(kept))
    for table in ("mutation_specs", "work_items"):
        database.execute(f"DELETE FROM {table} WHERE job_id NOT IN ({marks})", kept)
    database.commit()


def _annotations(file: str, text: str) -> list[Place]:
    """Return every position in annotations and in code for type checkers."""
    parts: list[ast.AST | None] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            parts.append(node.returns)
        elif isinstance(node, ast.arg | ast.AnnAssign):
            parts.append(node.annotation)
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            parts.append(node)
    lines = text.splitlines()
    return [
        (file, row, column)
        for part in parts
        if isinstance(part, ast.expr | ast.stmt) and part.end_lineno and part.end_col_offset
        for row in range(part.lineno, part.end_lineno + 1)
        for column in range(
            part.col_offset if row == part.lineno else 0,
            part.end_col_offset if row == part.end_lineno else len(lines[row - 1]),
        )
    ]


def main() -> None:
    """Print the score of each group, and the surviving mutants."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"{', '.join(GROUPS)}; or all")
    parser.add_argument("--most", type=int, default=24, help="mutants of a group (default: 24)")
    given = parser.parse_args()
    for name in given.groups or GROUPS:
        tried, survived = mutate(GROUPS[name], given.most)
        for diff in survived:
            sys.stdout.write(f"\n{diff.strip()}\n")
        sys.stdout.write(f"\n{name}: {tried - len(survived)} of {tried} detected\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
