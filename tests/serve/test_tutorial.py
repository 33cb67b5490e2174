"""Run every command of the tutorial as on the page, in order, in one shell."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.serve.machines import Node, free_port

pytestmark = [
    pytest.mark.interpreted,
    pytest.mark.patient,
    pytest.mark.skipif(
        shutil.which("bash") is None or shutil.which("curl") is None,
        reason="the commands of the page need bash and curl",
    ),
]
PAGE = Path(__file__).parents[2] / "docs" / "service.md"
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PORT = "8765"  # the port on the page
MARK = "-- the next command --"
# a refused request ends the shell
CURL = 'set -eo pipefail; curl() { command curl -sS --fail-with-body "$@"; }'


def commands() -> list[tuple[str, str]]:
    """Return the commands of the page, each with the shown answer or an empty string."""
    found: list[tuple[str, str]] = []
    for block in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        for line in block.splitlines():
            if line.startswith("# "):
                found[-1] = found[-1][0], line[2:]
            else:
                found.append((line, ""))
    return found


@pytest.fixture
def tutorial(tmp_path: Path) -> Iterator[tuple[Node, str]]:
    """Start the service as on the page, but on a free port; return it and its token."""
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "manyarms", "serve", "--port", str(port), "--quiet"],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if name != "MANYARMS_TOKEN"},
        stdout=subprocess.DEVNULL,
    )
    one = Node("sqlite:///manyarms.db")
    one.port, one.process = port, process
    try:
        one.wait()
        yield one, (tmp_path / "manyarms.db.token").read_text().strip()
    finally:
        one.kill()


def answer_of(text: str) -> Any:
    return json.loads(text) if text.strip() else None


def test_every_command_in_order(tutorial: tuple[Node, str], tmp_path: Path) -> None:
    one, token = tutorial
    found = commands()
    assert [line.split()[0] for line, _ in found[:2]] == ["pip", "manyarms"]
    run = [line for line, _ in found[2:]]
    assert sum("curl" in line for line in run) >= 12
    script = f"\necho; echo '{MARK}'\n".join(run).replace(f":{PORT}/", f":{one.port}/")
    done = subprocess.run(
        ["bash", "-c", f"{CURL}\n{script}"],
        cwd=tmp_path,
        env=os.environ | {"MANYARMS_TOKEN": token},
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )
    answers = done.stdout.split(f"\n{MARK}\n")
    assert done.returncode == 0, (run[len(answers) - 1], answers[-1], done.stderr)
    assert len(answers) == len(run)
    for (line, shown), text in zip(found[2:], answers, strict=True):
        if shown and "…" not in shown:
            assert answer_of(text) == answer_of(shown), line
