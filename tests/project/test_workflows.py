"""Workflows run pinned actions with minimal permissions."""

import re
from pathlib import Path

import pytest

WORKFLOWS = sorted((Path(__file__).parents[2] / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned_by_hash_with_their_version(path: Path) -> None:
    for action in re.findall(r"uses: (.+)", path.read_text()):
        pinned = re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action)
        assert pinned or action.startswith("./"), action


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_may_only_read_by_default(path: Path) -> None:
    assert "\npermissions:\n  contents: read\n" in path.read_text()


def test_the_publishing_job_runs_no_project_code_and_has_one_permission() -> None:
    text = (WORKFLOWS[0].parent / "release.yml").read_text()
    job = re.split(r"^  \w+:\n", text[text.index("\n  publish:\n") + 1 :], flags=re.M)[1]
    rights = job[job.index("permissions:") : job.index("steps:")]
    assert re.findall(r"[\w-]+: write", rights) == ["id-token: write"]
    assert "run:" not in job.replace("runs-on:", "")
