"""The lock file, the classifiers and the release notes."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytestmark = pytest.mark.compiled  # no kernels to cover, so once is enough

ROOT = Path(__file__).parents[2]
LOCK = (ROOT / "requirements" / "dev.lock").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def _notes(tag: str, root: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(root / ".ci" / "release_notes.py"), tag]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_lock_file_pins_all_requirements_and_names_no_index() -> None:
    extras = PROJECT["project"]["optional-dependencies"].values()
    groups = PROJECT["dependency-groups"].values()
    wanted = [PROJECT["project"]["dependencies"], *groups, *extras]
    for line in itertools.chain(*wanted):
        name = re.split(r"[\[<>=;]", line)[0]
        assert name == "manyarms" or re.search(rf"^{re.escape(name)}==\d", LOCK, re.MULTILINE), (
            f"{name}: `make lock`"
        )
    assert "://" not in LOCK


def test_the_notes_come_from_the_changelog(tmp_path: Path) -> None:
    for name in (".ci/release_notes.py", "src/manyarms/__init__.py", "CITATION.cff"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        text = (ROOT / name).read_text(encoding="utf-8")
        (tmp_path / name).write_text(re.sub(r"\b0\.1\.0\b", "7.8.9", text), encoding="utf-8")
    changelog = tmp_path / "CHANGELOG.md"
    changelog.write_text("# Changelog\n\n## Unreleased\n\n- Later.\n", encoding="utf-8")
    assert "section '## 7.8.9" in _notes("v7.8.9", tmp_path).stderr
    changelog.write_text("## Unreleased\n\n- Later.\n\n## 7.8.9 (2031-02-03)\n\n- Now.\n\n## 1 (a)")
    assert _notes("v7.8.9", tmp_path).stdout == "- Now.\n"
    assert "version of the tag, 7.9.0" in _notes("v7.9.0", tmp_path).stderr


def test_platforms_of_the_classifiers_must_pass() -> None:
    said = {line.rpartition(" :: ")[2] for line in PROJECT["project"]["classifiers"]}
    text = (ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8")
    tried = text.partition("python: [")[2].partition("]")[0]
    (may_fail,) = re.findall(r"continue-on-error: (.*)", text)
    for version in filter(re.compile(r"3\.\d+").fullmatch, said):
        assert f'"{version}"' in tried
        assert f"'{version}'" not in may_fail
    assert not {"MacOS", "Windows", "OS Independent"} & said  # they may fail
    assert "!= 'ubuntu-latest'" in may_fail
