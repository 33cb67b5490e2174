"""Print the changelog's section of a version; fail if files disagree about the version.

Usage: python .ci/release_notes.py v0.2.0
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def notes(tag: str, root: Path = ROOT) -> str:
    """Return the section of a tag's version, or exit with an error message."""
    version = tag.removeprefix("v")
    places = {
        "src/manyarms/__init__.py": rf'^__version__ = "{re.escape(version)}"$',
        "CITATION.cff": rf"^version: {re.escape(version)}$",
    }
    for name, line in places.items():
        if not re.search(line, (root / name).read_text(encoding="utf-8"), re.MULTILINE):
            sys.exit(f"{name} must have the version of the tag, {version}.")
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    heading = rf"^## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)\n(.*?)(?=^## |\Z)"
    section = re.search(heading, changelog, re.MULTILINE | re.DOTALL)
    if not section or not section[1].strip():
        sys.exit(f"CHANGELOG.md must have a section '## {version} (YEAR-MONTH-DAY)'.")
    return section[1].strip() + "\n"


if __name__ == "__main__":
    sys.stdout.write(notes(sys.argv[1]))
