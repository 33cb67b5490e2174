"""The documented deployments give the service no more rights than it needs."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
COMPOSE = (ROOT / "compose.yaml").read_text()
# container: its lines, without comments
_CONTAINERS = {
    name: [line.partition(" #")[0].strip() for line in block.splitlines()]
    for name, block in re.findall(
        r"^  (\w+):\n((?:    .*\n|\n)+)", COMPOSE.partition("\nservices:\n")[2], re.MULTILINE
    )
    if "image:" in block or "build:" in block
}


def test_only_the_service_reaches_the_database() -> None:
    assert [*_CONTAINERS] == ["manyarms", "database"]
    assert "user: postgres" in _CONTAINERS["database"]
    assert "networks: [inside]" in _CONTAINERS["database"]
    assert "ports:" not in _CONTAINERS["database"]
    assert "\nnetworks:\n  inside:\n    internal: true\n" in COMPOSE
    assert '- "127.0.0.1:8765:8765"' in _CONTAINERS["manyarms"]


def test_files_of_secrets_are_created_with_their_mode() -> None:
    """Others could read the file before its mode is changed."""
    text = (ROOT / "docs" / "operating.md").read_text()
    made = [line for line in text.splitlines() if "> /etc/manyarms.env" in line]
    assert made
    assert all(line.startswith("(umask 077 && ") for line in made)
