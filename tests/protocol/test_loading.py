"""Policies by "module:Class" and by entry points, which are not stored."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import manyarms as ma
from manyarms.cli.main import main
from manyarms.protocol import loading, registry

MODULE = """
import manyarms as ma

class First:
    def __init__(self, n_arms, skip=0):
        self.arm = skip
    def ask(self):
        return self.arm
    def tell(self, arm, reward):
        pass

class Mine(ma.MOSS):
    name = "mine"

def no_class(**given):
    raise SystemExit("called")

class Neither:
    def __init__(self, **given):
        raise SystemExit("called")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "own_module.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p])
    assert ma.policy_names()  # loads the package's policies
    monkeypatch.setattr(registry, "_makers", dict(registry._makers))
    monkeypatch.delitem(sys.modules, "own_module", raising=False)
    return tmp_path


def test_on_the_command_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["simulate", "--n", "5", "--m", "2", "--horizon", "9", "--replications", "2"]
    assert main([*words, "--policy", "own_module:First:skip=4", "--policy", "uniform"]) == 0
    assert "First(skip=4) - uniform" in capsys.readouterr().out
    (folder / "log.csv").write_text("item,paid\na,1\nb,0\n")
    words = ["simulate", "--instance", "rewards:log.csv:item,paid", "--horizon", "9"]
    assert main([*words, "--policy", "own_module:First:skip=1"]) == 0
    assert "regret on log.csv(n=2, 2 rewards) after 9 pulls" in capsys.readouterr().out
    assert main([*words, "--policy", "own_module:Frist"]) != 0
    assert "can be imported, such as my_module:MyPolicy, got" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("own_module:no_class", "must be a class, got"),
        ("own_module:Neither", "must be a policy, a subclass of manyarms.Policy or"),
        ("own_module:", "must be a class that can be imported"),
        ("no_such_module:Mine", "must be a class that can be imported"),
        (":Mine", "must be a class that can be imported"),
    ],
)
def test_only_policies_are_called(folder: Path, name: str, message: str) -> None:
    with pytest.raises(ma.ParameterError, match=message):
        loading.load_policy(name)


def test_a_file_in_the_folder_does_not_shadow_a_package(folder: Path) -> None:
    (folder / "pyarrow.py").write_text("raise SystemExit")
    loading.load_policy("own_module:Mine")
    assert sys.path[-1] == str(folder)


def test_entry_points(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    points = [EntryPoint("theirs", "own_module:Mine", loading.GROUP)]
    points += [EntryPoint("broken", "own_module:Missing", loading.GROUP)]
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr(loading, "_offered", lambda: points)
    with pytest.raises(ma.UnknownNameError):  # not before it is named where names are loaded
        ma.policy("theirs")
    assert loading.load_policy("theirs") == "theirs"
    assert ma.policy("theirs").name == "mine"
    with pytest.raises(ma.ParameterError, match="that can be loaded, got 'broken'. Its entry"):
        loading.load_policy("broken")


def test_a_recorded_experiment_imports_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loading.load_policy("own_module:Mine")
    ma.policy("own_module:Mine").live(n_arms=3, horizon=9, store=folder / "shop.db").close()
    monkeypatch.delitem(registry._makers, "own_module:Mine")
    monkeypatch.delitem(sys.modules, "own_module")
    with pytest.raises(ma.SavedFileError, match="Register it first, or pass `policy`"):
        ma.load(folder / "shop.db")
    assert "own_module" not in sys.modules
