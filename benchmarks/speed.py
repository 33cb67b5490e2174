"""Compare speed measurements by their ratios to the floor.

    python benchmarks/run.py pulls live recorded --json new.json   measure
    python benchmarks/speed.py compare old.json new1.json new2.json
    python benchmarks/speed.py page                               update docs/speed.md

`compare` fails if a cost is 15 % worse in all of two or more new runs. Files of different machines
are not compared, because even ratios depend on the processor.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import manyarms as ma

ROOT = Path(__file__).parents[1]
HISTORY = ROOT / "benchmarks" / "history"
PAGE = ROOT / "docs" / "speed.md"
WORSE = 1.15
_BEGIN, _END = "<!-- made by benchmarks/speed.py -->", "<!-- end -->"
_SHOWN = ("moss", "moss++", "empmoss++")  # on the page; files have all
Entry = dict[str, Any]


def entry(ratios: dict[str, float], floors: dict[str, float]) -> Entry:
    """Return the results of a run, with the machine and versions.

    Parameters
    ----------
    ratios
        Costs as multiples of the floor measured alternately with them.
    floors
        The floors, in nanoseconds.
    """
    return {
        "manyarms": ma.__version__,
        "commit": _git("rev-parse", "HEAD"),
        "changed": bool(_git("status", "--porcelain", "--untracked-files=no", ".")),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "machine": {
            "processor": _processor(),
            "processors": len(os.sched_getaffinity(0)),
            "system": f"{platform.system()} {platform.machine()}",
        },
        "versions": {name: version(name) for name in ("numba", "numpy")}
        | {"python": platform.python_version()},
        "load": round(os.getloadavg()[0], 1),
        "floors": {name: round(nanoseconds, 3) for name, nanoseconds in floors.items()},
        "ratios": {name: round(ratio, 2) for name, ratio in ratios.items()},
    }


def _git(*words: str) -> str:
    """Return git's description of the tree that manyarms is imported from, if there is one."""
    place = Path(ma.__file__).parent
    done = subprocess.run(["git", *words], cwd=place, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def compare(before: Entry, after: list[Entry]) -> tuple[list[str], list[str]]:
    """Return a line for each common cost, and the names of those that got worse.

    A cost is worse if its ratio has grown by 15 % in all of two or more new runs.
    """
    for one in after:
        if one["machine"] != before["machine"]:
            raise ValueError(
                f"These runs are of different machines, {before['machine']} and {one['machine']}. "
                f"Measure both on one."
            )
    lines, worse = [], []
    for name, old in before["ratios"].items():
        new = [one["ratios"][name] for one in after if name in one["ratios"]]
        if not new:
            continue
        changes = [ratio / old for ratio in new]
        if len(new) > 1 and min(changes) > WORSE:
            worse.append(name)
        shown = ", ".join(
            f"{ratio:.1f} ({change - 1:+.0%})" for ratio, change in zip(new, changes, strict=True)
        )
        lines.append(f"{name:<28}{old:>8.1f} -> {shown}{' WORSE' * (name in worse)}")
    return lines, worse


def table(entries: list[Entry]) -> str:
    """Return the history as a table in Markdown, newest first."""
    kinds = ("simulated", "live", "recorded")
    columns = [f"{kind}/{name}" for kind in kinds for name in _SHOWN]
    head = ["version", "commit", "date", "machine", "Python, Numba, NumPy"]
    head += [f"{kind} {name}" for kind in kinds for name in _SHOWN]
    rows = [head, ["---"] * 5 + ["---:"] * len(columns)]
    for one in sorted(entries, key=lambda one: one["date"], reverse=True):
        machine, versions = one["machine"], one["versions"]
        busy = f", load {one['load']:g}" if one["load"] > machine["processors"] else ""
        rows.append(
            [
                one["manyarms"],
                one["commit"][:9] + " and changes" * one["changed"],
                one["date"],
                f"{machine['processor']}, {machine['processors']} processors{busy}",
                ", ".join(versions[name] for name in ("python", "numba", "numpy")),
                *(
                    f"{one['ratios'][name]:.1f}" if name in one["ratios"] else ""
                    for name in columns
                ),
            ]
        )
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def renewed(page: str, entries: list[Entry]) -> str:
    """Return the page with a new table of entries."""
    before, rest = page.split(_BEGIN)
    after = rest.split(_END)[1]
    return f"{before}{_BEGIN}\n\n{table(entries)}\n\n{_END}{after}"


def history() -> list[Entry]:
    """Return all recorded entries."""
    return [_read(path) for path in sorted(HISTORY.glob("*.json"))]


def _read(path: Path) -> Entry:
    kept: Entry = json.loads(path.read_text(encoding="utf-8"))
    return kept


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    comparing = commands.add_parser("compare", help="fail if costs are 15 % worse in all new runs")
    comparing.add_argument("old", type=Path)
    comparing.add_argument("new", type=Path, nargs="+")
    commands.add_parser("page", help="renew the table of docs/speed.md")
    given = parser.parse_args()
    if given.command == "page":
        text = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(renewed(text, history()), encoding="utf-8")
        return
    try:
        lines, worse = compare(_read(given.old), [_read(path) for path in given.new])
    except ValueError as error:
        parser.error(str(error))
    print("\n".join(lines))
    if worse:
        sys.exit(f"15 % slower than before in all of {len(given.new)} runs: {', '.join(worse)}.")


if __name__ == "__main__":
    main()
