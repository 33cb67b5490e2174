"""A fingerprint changes if and only if something changes that a policy uses."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from manyarms.core import versions
from manyarms.core.fingerprint import (
    Fingerprint,
    digest_of_data,
    digest_of_files,
    fingerprint,
)
from manyarms.core.rng import draw
from manyarms.core.versions import environment, release_of

FILES = {
    "config.py": """
import enum
from typing import NamedTuple
import numpy as np

class Colour(enum.Enum):
    RED = 31

class Pair(NamedTuple):
    left: int = 32

class Settings:
    def __init__(self, width): self.width = width

K = 33
TABLE = {"a": 34}
SCALAR = np.int64(35)
FRACTION = np.float32(36)
MANY = np.arange(3000); MANY[1500] = 37
MASKED = np.ma.array([1, 2, 3], mask=[False, False, 38 > 1])
OBJECTS = np.array([39, None], dtype=object)
RAW = bytes([40])
PAIR = Pair(41)
SETTINGS = Settings(42)
NOTHING = None
CHOICES = {"x", "y", "43"}
ALIASED = 44
UNUSED = 45
""",
    "deep.py": "from pkf import config\ndef f(): return config.K\ndef g(): return 51\n",
    "late.py": "def helper(): return 52\ndef other(): return 53\n",
    "parts/nested.py": "VALUE = 54\n",  # a package without __init__.py
    "base.py": """
import functools

class Base:
    def inherited(self): return 61

class Helper:
    def help(self): return 62

def twice(function):
    @functools.wraps(function)
    def wrapper(*args): return function(*args) * 63
    return wrapper

def closed(value):
    return lambda: value
""",
    "own.py": """
import functools
from dataclasses import dataclass, field
import numpy as np
import pkf
import pkf.config, pkf.deep, pkf.parts.nested
from pkf import base
from pkf.base import Base, Helper, closed, twice
from pkf.config import CHOICES, MANY, PAIR, SETTINGS, Colour

CLOSED = closed(71)
PART = functools.partial(max, 72)

def fresh(): return 73

@dataclass
class Mine(Base):
    items: list = field(default_factory=fresh)
    number = 74

    @property
    def width(self): return 75

    @staticmethod
    def fixed(): return 76

    @functools.cached_property
    def cached(self): return 77

    @functools.cache
    def remembered(self): return 78

    @twice
    def wrapped(self): return 79

    def ask(self, first=80, *, second=81):
        def inner(): return 82
        return pkf.deep.f() + Helper().help() + pkf.config.TABLE["a"] + pkf.parts.nested.VALUE

    def tell(self, arm, reward):
        from .late import helper
        import pkf.late as late
        config = pkf.config
        pkf.config.SCALAR, pkf.config.FRACTION, pkf.config.MASKED, pkf.config.OBJECTS
        pkf.config.RAW, pkf.config.NOTHING
        return config.ALIASED, MANY, PAIR, SETTINGS, Colour.RED, CHOICES, CLOSED, PART, np.sqrt(2)

def unrelated(): return 83
""",
}
USED = [
    *("RED = 31", "left: int = 32", "K = 33", '{"a": 34}', "np.int64(35)", "np.float32(36)"),
    *("MANY[1500] = 37", "38 > 1", "[39, None]", "bytes([40])", "Pair(41)", "Settings(42)"),
    *("NOTHING = None", '"43"', "ALIASED = 44", "return 52", "VALUE = 54", "return 61"),
    *("return 62", "* 63", "closed(71)", "max, 72", "return 73", "number = 74", "return 75"),
    *("return 76", "return 77", "return 78", "return 79", "first=80", "second=81", "return 82"),
    "np.sqrt(2)",
]
NEW = {
    "38 > 1": "38 < 1",
    "NOTHING = None": "NOTHING = 0",
    '"43"': '"44"',
    "np.sqrt(2)": "np.exp(2)",
}
NEW |= {"np.int64(35)": "np.int32(35)", "max, 72": "min, 72", "np.float32(36)": "np.float32(63)"}
UNUSED = ["UNUSED = 45", "return 51", "return 53", "return 83"]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Write the package pkf, and forget it in the end."""
    for name, text in FILES.items():
        path = tmp_path / "pkf" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield tmp_path / "pkf"
    _forget()


def _forget() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "pkf"]:
        del sys.modules[name]
    importlib.invalidate_caches()


def _of_mine() -> Fingerprint:
    _forget()
    return fingerprint([importlib.import_module("pkf.own").Mine])


def _with(package: Path, old: str, new: str) -> Fingerprint:
    """Return the fingerprint with an edit, which is undone."""
    (path,) = (path for path in package.rglob("*.py") if old in path.read_text())
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))
    found = _of_mine()
    path.write_text(text)
    return found


def test_everything_that_a_class_uses_changes_its_fingerprint(package: Path) -> None:
    before = _of_mine()
    assert before.unknown == ()
    assert {"pkf.own", "pkf.base", "pkf.config", "pkf.deep", "pkf.late"} <= before.modules
    digits = str.maketrans("0123456789", "1234567890")
    digests = {old: _with(package, old, NEW.get(old, old.translate(digits))) for old in USED}
    same = [old for old, found in digests.items() if found.digest == before.digest]
    assert same == [], "nothing that is used is ignored"
    assert len({found.digest for found in digests.values()}) == len(USED)
    for old in UNUSED:
        found = _with(package, old, old.translate(digits))
        assert found.digest == before.digest, old
    for name in FILES:  # lines move
        path = package / name
        path.write_text("# a comment\n\n" + path.read_text())
    assert _of_mine() == before


def test_files_of_imported_modules_have_a_digest(package: Path) -> None:
    modules = _of_mine().modules | {"__main__", "no_such_module"}
    before = digest_of_files(modules)
    with (package / "late.py").open("a") as file:
        file.write("# edited\n")
    edited = digest_of_files(modules)
    assert edited != before
    path = package / "late.py"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert digest_of_files(modules) == edited


def _defined(code: str, **known: Any) -> Any:
    """Return the function or class `made` of code that has no file, as in a notebook."""
    namespace: dict[str, Any] = {"__name__": "typed", **known}
    exec(code, namespace)
    return namespace["made"]


def test_code_of_a_notebook_is_followed() -> None:
    code = "K = {}\ndef helper(): return K\ndef made(): return [helper() for _ in '']"
    first, second, again = (fingerprint([_defined(code.format(k))]) for k in (1, 2, 1))
    assert first == again
    assert first.digest != second.digest
    moved = fingerprint([_defined("run = 7\n\n" + code.format(1))])
    assert moved == first


def test_what_is_installed_counts_by_its_version(monkeypatch: pytest.MonkeyPatch) -> None:
    made = _defined("def made(): return draw(1, 2) + np.sqrt(2) + arms.shape", draw=draw, np=np)
    before = fingerprint([made])
    assert before.modules == {"typed"}
    release_of.cache_clear()
    real = versions.version_of
    monkeypatch.setattr(versions, "version_of", lambda name: real(name) and "0.0")
    assert fingerprint([made]).digest != before.digest
    release_of.cache_clear()


@pytest.mark.parametrize(
    "value", [threading.Lock(), (n for n in [0]), {"a": [open]}, memoryview(b"")]
)
def test_values_that_cannot_be_compared_are_reported(value: Any) -> None:
    made = _defined("def made(): return VALUE", VALUE=value)
    found = fingerprint([made])
    if isinstance(value, dict):
        assert found.unknown == ()
    else:
        assert found.unknown == (f"`VALUE` (a {type(value).__name__}) in `made`",)


def test_cycles_sets_and_deep_values_end() -> None:
    loop: list[Any] = [1]
    loop.append(loop)
    deep: Any = 1
    for _ in range(10_000):
        deep = [deep]
    code = "def made(): return made, VALUE"
    assert fingerprint([_defined(code, VALUE=loop)]).unknown == ()
    assert "nested too deeply" in fingerprint([_defined(code, VALUE=deep)]).unknown[0]
    chain = "\n".join(f"def f{k}(): return f{k + 1}()" for k in range(3000))
    assert fingerprint([_defined(f"{chain}\nmade = f0")]).unknown == ()
    types = {ma.MOSS, ma.Prospector, int, str}
    digests = {
        fingerprint([_defined(code, VALUE={*order})]).digest for order in (types, [*types][::-1])
    }
    assert len(digests) == 1


def test_uses_of_random_modules_are_reported_where_they_are() -> None:
    import random
    import time

    known = {"random": random, "time": time, "np": np, "pick": random.choice, "clock": time.time}
    code = "def made(state): return state.time[0] + state.random + math.floor(2) + np.sqrt({})"
    for used, name in {
        "random.random()": "random.random",
        "np.random.rand()": "numpy.random",
        "pick([1])": "pick",
        "clock()": "clock",
        "alias().random()": "numpy",
    }.items():
        made = _defined(f"def alias(): return np.random\n{code.format(used)}", **known)
        (first, *_) = fingerprint([made]).unrepeatable
        assert first.startswith(f"`{name}"), used
    assert fingerprint([_defined(code.format("2"), **known)]).unrepeatable == ()


def test_data_has_a_digest_by_its_content() -> None:
    def refuse(value: Any) -> Any:
        raise TypeError

    many = [np.arange(3000.0) for _ in range(2)]
    many[1][1500] = -1.0
    values: list[Any] = [*many, many[0][::-1], many[0].astype(">f8"), np.float32(1), np.float64(1)]
    values += [
        1,
        1.0,
        True,
        "1",
        None,
        (1,),
        [1],
        {1},
        {1: 1},
        b"1",
        10**5000,
        float("nan"),
        -0.0,
        0.0,
    ]
    values += [np.array([1, "a"], dtype=object), np.array([1, "b"], dtype=object)]
    digests = [digest_of_data(value, refuse) for value in values]
    assert len({*digests}) == len(values)
    assert digests == [digest_of_data(value, refuse) for value in values]
    for value in (object(), draw, ma.MOSS, np.array([object()])):
        with pytest.raises(TypeError):
            digest_of_data(value, refuse)


def test_other_versions_of_numpy_and_numba_change_the_digest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = {environment()}
    real = versions.version_of
    for package in ("numpy", "numba"):
        monkeypatch.setattr(
            versions,
            "version_of",
            lambda name, package=package: "0" if name == package else real(name),
        )
        seen.add(environment())
    assert len(seen) == 3
