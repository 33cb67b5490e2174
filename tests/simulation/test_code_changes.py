"""A resumed sweep never mixes results of two versions of a policy, or of two policies."""

from __future__ import annotations

import importlib
import json
import runpy
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from manyarms.errors import FolderError, OldResultsWarning
from manyarms.simulation import Sweep, cell, run
from tests.simulation.test_executors import AtOnce

pytestmark = pytest.mark.interpreted

FILES = {
    "values.py": 'TABLE = {"a": 1}\n',
    "deep.py": "def two(): return 1\n",
    "middle.py": "from swp import deep\ndef one(): return deep.two()\n",
    "late.py": "def pick(): return 1\n",
    "base.py": "class Base:\n    def inherited(self): return 1\nclass Helper:\n    step = 1\n",
    "own.py": """
import manyarms as ma
from swp import middle, values
from swp.base import Base, Helper

class Plain(Base):
    def __init__(self, n_arms): self.n_arms = n_arms
    def ask(self):
        from swp.late import pick
        arm = pick() + middle.one() + values.TABLE["a"] + Helper.step + self.inherited()
        return arm % self.n_arms
    def tell(self, arm, reward): pass

class Wide(ma.MOSS):
    @property
    def spread(self): return 0.25
""",
}
EDITS = {
    "a property in a subclass of MOSS": ("own.py", "0.25", "25.0"),
    "a base class in another module": ("base.py", "return 1", "return 4"),
    "a helper class": ("base.py", "step = 1", "step = 4"),
    "a function two modules deep": ("deep.py", "return 1", "return 4"),
    "a dict of another module": ("values.py", "1", "4"),
    "a helper imported inside the method": ("late.py", "return 1", "return 4"),
}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Write the package swp, and forget it in the end."""
    (tmp_path / "swp").mkdir()
    for name, text in FILES.items():
        (tmp_path / "swp" / name).write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield tmp_path / "swp"
    _forget()


def _forget() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "swp"]:
        del sys.modules[name]
    importlib.invalidate_caches()


def _sweep() -> Sweep:
    """Return a sweep of two cells, with the current code of the package."""
    _forget()
    swp: Any = importlib.import_module("swp.own")
    arms = ma.instances.from_means([0.9 - 0.05 * k for k in range(12)])
    return Sweep(
        "edited",
        tuple(
            cell([swp.Plain, swp.Wide()], arms, horizon=40, replications=2, parameters={"k": k})
            for k in (1, 2)
        ),
    )


def _regrets(folder: Any) -> list[list[Any]]:
    return [each.regret[:, :, -1].tolist() for each in folder.cells]


def _kill(folder: Path) -> None:
    """Leave the folder as a run that was killed in the second cell."""
    for path in folder.glob("000001-*.parquet"):
        path.unlink()
    path = folder / "_provenance.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"status": "running"}))


def _first_done(sweep: Sweep, folder: Path) -> int:
    """Run a sweep; return how many of its pulls were there already."""
    seen: list[int] = []
    run(sweep, folder, progress=lambda done, *_: seen.append(done))
    return seen[0]


@pytest.mark.patient
@pytest.mark.parametrize("name", EDITS)
def test_a_resumed_run_plays_all_with_the_new_code(
    package: Path, tmp_path: Path, name: str
) -> None:
    old = _regrets(run(_sweep(), tmp_path / "out", progress=False))
    _kill(tmp_path / "out")
    assert _first_done(_sweep(), tmp_path / "out") == 160, "the same code is not played again"
    _kill(tmp_path / "out")
    file, before, after = EDITS[name]
    text = (package / file).read_text()
    assert before in text
    (package / file).write_text(text.replace(before, after))
    resumed = _regrets(run(_sweep(), tmp_path / "out", progress=False))
    assert resumed == _regrets(run(_sweep(), tmp_path / "new", progress=False))
    assert resumed[0] != old[0]


class Listed:
    """Pulls the arms of a list, and remembers them in its class."""

    pulled: list[int] = []  # noqa: RUF012  the class changes while it plays

    def __init__(self, arms: Any = (0,), start: int = 0) -> None:
        self.arms, self.time = arms, start

    def ask(self) -> int:
        self.time += 1
        self.pulled.append(self.time)
        return int(self.arms[(self.time - 1) % len(self.arms)])

    def tell(self, arm: int, reward: float) -> None:
        pass


ARMS = ma.instances.from_means([0.9] + [0.5] * 9)


def _listed(make: Any = Listed, **parameters: Any) -> Sweep:
    policy = ma.plain_policy(make, **parameters)
    return Sweep("listed", (cell(policy, ARMS, horizon=3000, replications=1),))


def test_policies_whose_parameters_print_alike_have_their_own_results(tmp_path: Path) -> None:
    arms = [np.zeros(3000, np.int64) for _ in range(2)]
    arms[1][1500:1550] = 1
    assert repr(arms[0]) == repr(arms[1])
    sweeps = [_listed(arms=one) for one in arms]
    assert sweeps[0] == _listed(arms=arms[0].copy())
    first = run(sweeps[0], tmp_path / "out", progress=False).cells[0].regret[0, 0, -1]
    with pytest.raises(FolderError, match="which belongs to another sweep"):
        run(sweeps[1], tmp_path / "out", progress=False)
    second = run(sweeps[1], tmp_path / "other", progress=False).cells[0].regret[0, 0, -1]
    assert (first, round(second, 9)) == (0.0, 20.0)


class Opaque:
    """An object that says nothing about itself."""

    def __repr__(self) -> str:
        return "Opaque()"


@pytest.mark.parametrize("value", [Opaque(), (1, Opaque()), len, Listed, {"a": Opaque()}])
def test_parameters_that_cannot_identify_results_are_refused(tmp_path: Path, value: Any) -> None:
    match = r"`arms` must be made of numbers, strings and arrays .* Make the object in Listed from"
    with pytest.raises(ma.ParameterError, match=match) as error:
        run(_listed(arms=value), tmp_path / "out")
    assert error.value.parameter == "arms"
    assert not (tmp_path / "out").exists()
    inside = ma.plain_policy(Listed, arms=(ma.MOSS(), [ma.MOSSPlusPlus(beta=0.6)]))
    assert Sweep("s", (cell(inside, ARMS, horizon=9, replications=1),)).hash


def test_classes_of_the_same_name_in_two_modules_are_two_policies() -> None:
    other = type("Listed", (Listed,), {"__module__": "elsewhere"})
    assert _listed() != _listed(other)
    assert _listed() == _listed(type("Listed", (Listed,), {"__module__": Listed.__module__}))


@pytest.mark.parametrize("executor", [None, AtOnce], ids=["threads", "an executor"])
def test_a_class_that_changes_while_it_plays_is_compared_as_it_was_before(
    tmp_path: Path, executor: Callable[[], Any] | None
) -> None:
    Listed.pulled.clear()
    run(_listed(), tmp_path, progress=False, executor=executor and executor())
    assert len(Listed.pulled) > 3000
    Listed.pulled.clear()  # as in a new process
    _kill(tmp_path)
    assert _first_done(_listed(), tmp_path) == 3000


SCRIPT = """
import sys
import threading
import manyarms as ma
from manyarms.simulation import Sweep, cell, run

ARM = {arm}
GUARD = {guard}

def pick(): return ARM

class Mine:
    def ask(self):
        GUARD
        return pick()
    def tell(self, arm, reward): pass

def main():
    {extra}
    arms = ma.instances.planted(n=9, m=3)
    cells = [cell(Mine, arms, horizon=9, replications=2, parameters=dict(k=k)) for k in (1, 2)]
    seen = []
    run(Sweep("script", tuple(cells)), sys.argv[1], progress=lambda done, *_: seen.append(done))
    print(seen[0])

main()
"""


def test_an_edit_of_a_script_matters_if_the_policy_uses_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script, out = tmp_path / "script.py", tmp_path / "out"
    monkeypatch.setattr(sys, "argv", ["script.py", str(out)])

    def done(arm: int = 0, guard: str = "None", extra: str = "pass") -> int:
        script.write_text(SCRIPT.format(arm=arm, guard=guard, extra=extra))
        if out.exists():
            _kill(out)
        runpy.run_path(str(script), run_name="__main__")
        return int(capsys.readouterr().out)

    assert done() == 0
    assert done(extra="print(end='')") == 18, "only code around the sweep has changed"
    assert done(arm=1) == 0
    assert done(arm=1) == 18
    with pytest.warns(OldResultsWarning, match=r"uses `GUARD` \(a lock\) in `Mine.ask`"):
        assert done(arm=1, guard="threading.Lock()") == 0
    with pytest.warns(OldResultsWarning, match="Finished replications of Mine are played again"):
        assert done(arm=1, guard="threading.Lock()") == 0


def test_a_finished_run_of_what_cannot_be_compared_has_a_warning(tmp_path: Path) -> None:
    lock = threading.Lock()

    class Locked(Listed):
        def ask(self) -> int:
            with lock:
                return 0

    run(_listed(Locked), tmp_path, progress=False)
    with pytest.warns(OldResultsWarning, match=r"may have changed since .* uses `lock` \(a lock\)"):
        assert _first_done(_listed(Locked), tmp_path) == 3000
