"""Retired words are not used in the source and the docs; CONTRIBUTING.md has the vocabulary."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.compiled  # no kernels to cover, so once is enough

ROOT = Path(__file__).parents[2]
CHECKED = (
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "ROADMAP.md",
    "SECURITY.md",
    "docs",
    "examples",
    "benchmarks",
    "paper",
    "src",
)

RETIRED = {
    r"\b(?:Live)?[Gg]ames?\b": "experiment, or replication (in simulations)",
    r"\b[Ii]n[-\s]flight\b|\b[Ff]lying\b|\b[Ff]lights?\b": "pending",
    r"\b[Jj]ournal(?:s|ed|ing)?\b": "event log",
    r"\bLogRows?\b|\bHappenings?\b": "event",
    r"\b(?:[Uu]pper|[Ll]ower|[Cc]onfidence) limits?\b": "confidence interval, upper or lower bound",
    r"\b[Tt]old (?:nothing|the (?:best mean|hardness|horizon)|how many|alpha|μ\*)": "known",
    r"\b[Tt]all(?:y|ies)\b": "estimate",
    r"\b[Ww]orkbench\b": "sweep",
    r"\b[Cc]ompaction\b": "snapshot",
    r"\b[Ww]hoever\b": "the actor: a client, a user, a process",
    r"\bfor good\b": "permanently",
    r"\b[Dd]ear\b": "expensive",
    r"\b\d+ % sure\b|\bfor sure\b": "a confidence of 95 %",
    r"\b(?:no|some)body\b|\b(?:No|Some)body\b": "the actor: a client, a user, a process",
    r"\b[Tt]ime-outs?\b": "timeout",
    r"\b[Hh]orizon is over\b": "all pulls of the horizon are made",
    r"\bchanges? its mind\b": "what the policy does",
    r"\banew\b": "again",
    r"\b(?:[Ii]ts|[Tt]he paper's) box\b": "algorithm, pseudocode",
    r"^\*For .* minutes\.\*": "After reading this page you can ...",
}

# Exceptions: a file and a pattern that contains the match, with the reason.
ALLOWED = {
    ("src/manyarms/store/sqlite.py", r"-journal"): "the ending that SQLite gives a file",
}


def _prose(text: str) -> str:
    """Return a page without code, link targets and HTML."""
    for pattern in (r"^```.*?^```$", r"<[^>]+>", r"`[^`]+`", r"(?<=\])\([^)]*\)"):
        text = re.sub(pattern, "", text, flags=re.MULTILINE | re.DOTALL)
    return text


def retired_words(*folders: str) -> Iterator[str]:
    """Yield a line for each retired word in some files or folders."""
    for folder in folders:
        found = [ROOT / folder, *(ROOT / folder).rglob("*")]
        for path in sorted(
            path for path in found if path.suffix in (".md", ".py", ".ipynb", ".js", ".html")
        ):
            name = path.relative_to(ROOT).as_posix()
            if folder == "docs" and path.suffix == ".py":
                continue
            text = path.read_text(encoding="utf-8")
            if path.suffix == ".ipynb":
                cells = json.loads(text)["cells"]
                text = "\n\n".join(
                    "".join(c["source"]) for c in cells if c["cell_type"] == "markdown"
                )
            text = _prose(text) if path.suffix in (".md", ".ipynb") else text
            for page, pattern in ALLOWED:
                text = re.sub(pattern, "", text) if page == name else text
            for pattern, instead in RETIRED.items():
                for match in re.finditer(pattern, text):
                    yield f"{name}: {match[0]!r}; write {instead}"


@pytest.mark.parametrize("folder", CHECKED)
def test_retired_words_are_not_used(folder: str) -> None:
    assert list(retired_words(folder)) == []


def test_retired_words_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "page.md").write_text("A game.\n\n```\na flight\n```\n\nPulls\nin\nflight.\n")
    (tmp_path / "a.py").write_text("tally = 1\n")
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    assert [line.split("'")[1] for line in retired_words("page.md", "a.py")] == [
        "game",
        "in\\nflight",
        "tally",
    ]


def test_exceptions_are_needed() -> None:
    for page, pattern in ALLOWED:
        assert re.search(pattern, (ROOT / page).read_text(encoding="utf-8")), (page, pattern)
