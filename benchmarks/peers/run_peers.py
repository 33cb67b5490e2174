"""Time other bandit libraries, each in its own environment, with a line of JSON for each.

Usage: python3.11 benchmarks/peers/run_peers.py [--environments FOLDER] [--arms N]

The pinned requirements are for Python 3.11. This script needs only the standard library; pip
downloads the peers. A peer that cannot be installed or measured gives a line with the reason.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PEERS = ("smpybandits", "mabwiser", "river")
INSTALL_SECONDS = 900
MEASURE_SECONDS = 300

Row = dict[str, Any]


class PeerError(Exception):
    """A peer could not be installed or measured; the message says why."""


def last_line(text: str) -> str:
    """Return the last line that is not blank."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no message"


def run_command(task: str, command: list[str], seconds: int) -> str:
    """Run a command and return its standard output, or raise PeerError naming the task."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=True)
    except subprocess.TimeoutExpired:
        raise PeerError(f"{task}: took more than {seconds} s") from None
    except subprocess.CalledProcessError as error:
        raise PeerError(f"{task}: {last_line(error.stderr or error.stdout)}") from None
    except OSError as error:
        raise PeerError(f"{task}: {error}") from None
    return done.stdout


def environment_python(folder: Path) -> str:
    """Return the interpreter of a virtual environment."""
    return str(folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))


def install(peer: str, folder: Path) -> None:
    """Create or update the peer's environment."""
    run_command("venv", [sys.executable, "-m", "venv", str(folder)], INSTALL_SECONDS)
    pip = [environment_python(folder), "-m", "pip", "--disable-pip-version-check", "install"]
    wanted = ["--only-binary=:all:", "--requirement", str(HERE / f"requirements-{peer}.txt")]
    run_command("install", [*pip, *wanted], INSTALL_SECONDS)


def measure(peer: str, folder: Path, n_arms: int) -> Row:
    """Run the peer's script in its environment and read the line it prints."""
    script = str(HERE / f"measure_{peer}.py")
    command = [environment_python(folder), script, str(n_arms)]
    line = last_line(run_command("measure", command, MEASURE_SECONDS))
    try:
        row = json.loads(line)
    except json.JSONDecodeError:
        raise PeerError(f"measure: printed no JSON but: {line}") from None
    if not isinstance(row, dict):
        raise PeerError(f"measure: printed no JSON object but: {line}")
    return row


def row_of(peer: str, environments: Path, n_arms: int) -> Row:
    """Install and measure one peer; a failure becomes a row with a reason."""
    folder = environments / peer
    try:
        install(peer, folder)
        return measure(peer, folder, n_arms)
    except PeerError as error:
        return {"peer": peer, "n_arms": n_arms, "reason": str(error)}


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Time other bandit libraries with many arms.")
    parser.add_argument(
        "--environments",
        type=Path,
        default=HERE / ".venv-peers",
        help="folder for the virtual environments, one per peer",
    )
    parser.add_argument("--arms", type=int, default=20_000, help="number of arms")
    return parser.parse_args()


def main() -> None:
    """Measure all peers."""
    arguments = parse_arguments()
    environments = arguments.environments.resolve()
    for peer in PEERS:
        print(json.dumps(row_of(peer, environments, arguments.arms)), flush=True)


if __name__ == "__main__":
    main()
