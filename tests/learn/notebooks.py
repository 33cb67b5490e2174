"""Run notebooks in CPython, without Jupyter; cells share a namespace, and outputs are text.

`python -m tests.learn.notebooks` runs the notebooks of docs/learn and stores their outputs.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LEARN = Path(__file__).parents[2] / "docs" / "learn"
NOTEBOOKS = sorted(LEARN.glob("*.ipynb"))


def read(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text(encoding="utf-8")))


def outputs(notebook: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str, str]]:
    """Run a notebook; yield each code cell, its printed text, and the value of its last line."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                value = _run("".join(cell["source"]), names)
            yield cell, printed.getvalue(), "" if value is None else repr(value)


def _run(source: str, names: dict[str, Any]) -> Any:
    body = ast.parse(source)
    last = body.body.pop() if isinstance(body.body[-1], ast.Expr) else None
    exec(compile(body, "<cell>", "exec"), names)
    if isinstance(last, ast.Expr):
        return eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
    return None


def stored(cell: dict[str, Any]) -> tuple[str, str]:
    """Return a cell's printed text and its last value, as stored in the notebook."""
    printed = value = ""
    for output in cell["outputs"]:
        if output["output_type"] == "stream":
            printed += "".join(output["text"])
        else:
            value = "".join(output["data"]["text/plain"])
    return printed, value


def renew(path: Path) -> None:
    notebook = read(path)
    for number, (cell, printed, value) in enumerate(outputs(notebook), start=1):
        cell["execution_count"] = number
        cell["outputs"] = []
        if printed:
            lines = printed.splitlines(keepends=True)
            cell["outputs"].append({"name": "stdout", "output_type": "stream", "text": lines})
        if value:
            cell["outputs"].append(
                {
                    "data": {"text/plain": value.splitlines(keepends=True)},
                    "execution_count": number,
                    "metadata": {},
                    "output_type": "execute_result",
                }
            )
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    os.chdir(LEARN)  # where Jupyter runs them
    sys.path.insert(0, str(LEARN))
    for each in NOTEBOOKS:
        renew(each)
