"""The sdist and the wheel: contents and metadata."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

import manyarms as ma

pytestmark = pytest.mark.compiled  # no kernels to cover, so once is enough

for package in ("build", "hatchling"):
    pytest.importorskip(package, reason="it builds: pip install --group dev")

ROOT = Path(__file__).parents[2]
UNWANTED = ("__pycache__", ".pyc", "_cache/", ".venv", ".git/", "/out/", "/dist/", "/site/")


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build both with the installed packages, as `make build` does."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def wheel(dist: Path) -> list[str]:
    (path,) = dist.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        return archive.namelist()


@pytest.fixture(scope="module")
def sdist(dist: Path) -> list[str]:
    (path,) = dist.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        return [name.partition("/")[2] for name in archive.getnames()]


@pytest.fixture(scope="module")
def metadata(dist: Path) -> Message:
    (path,) = dist.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        name = next(name for name in archive.namelist() if name.endswith("/METADATA"))
        return Parser().parsestr(archive.read(name).decode())


@pytest.mark.slow
def test_twine_accepts_both(dist: Path) -> None:
    pytest.importorskip("twine", reason="twine is not installed; see `make build`")
    command = [sys.executable, "-m", "twine", "check", "--strict", *map(str, dist.iterdir())]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("PASSED") == 2


def test_the_wheel_contains_only_the_package(wheel: list[str]) -> None:
    sources = {path.relative_to(ROOT / "src") for path in (ROOT / "src").rglob("*.py")}
    assert {path.as_posix() for path in sources} <= set(wheel)
    assert "manyarms/py.typed" in wheel
    assert any(name.endswith("/licenses/LICENSE") for name in wheel)
    information = f"manyarms-{ma.__version__}.dist-info/"
    assert all(name.startswith(("manyarms/", information)) for name in wheel)


def test_the_sdist_contains_what_a_packager_needs(sdist: list[str]) -> None:
    needed = ["pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "Makefile"]
    needed += ["CONTRIBUTING.md", "PKG-INFO", "src/manyarms/py.typed", "docs/design.md"]
    needed += ["tests/conftest.py", "tests/golden/runs.json", "examples/own_policy.py"]
    assert set(needed) <= set(sdist)


def test_no_data_and_no_caches(wheel: list[str], sdist: list[str]) -> None:
    for name in [*wheel, *sdist]:
        assert not any(part in f"/{name}" for part in UNWANTED), name
        ours = name.endswith("docs/leaderboard.csv")  # results of the project
        data = name.endswith((".csv", ".parquet", ".chunk", ".whl", ".zip"))
        assert ours or not data, name


def test_the_metadata(metadata: Message) -> None:
    assert metadata["Version"] == ma.__version__
    assert metadata["License-Expression"] == "BSD-3-Clause"
    assert metadata.get_all("License-File") == ["LICENSE"]
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["Description-Content-Type"] == "text/markdown"
    extras = ["cuda", "docs", "postgres", "serve", "sim"]
    assert sorted(metadata.get_all("Provides-Extra") or ()) == extras
    assert len(metadata.get_all("Project-URL") or ()) >= 2
    assert "Typing :: Typed" in (metadata.get_all("Classifier") or ())
    required = metadata.get_all("Requires-Dist") or ()
    core = {line.split(">")[0] for line in required if "extra ==" not in line}
    assert core == {"numpy"}
