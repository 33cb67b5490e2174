"""Everything that can be wrong with a spec has its sentence, and costs no time."""

from __future__ import annotations

import pickle
import re
import time
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import manyarms as ma
from manyarms.errors import SpecError
from manyarms.simulation import Experiment, experiment_from, load_spec, parse_spec
from manyarms.simulation.spec import as_toml
from manyarms.simulation.spec_tables import SpecTable, Sweep
from manyarms.simulation.sweep import _entries
from tests.simulation.bad_specs import BAD, GOOD, changed, problems_of


@pytest.mark.parametrize("name", BAD)
def test_bad_specs(name: str) -> None:
    text, problem = BAD[name]
    # dots stand for words of Python's, and for bounds that belong to policies and instances
    pattern = ".*".join(re.escape(part) for part in problem.split("..."))
    found = problems_of(text)
    assert any(re.fullmatch(pattern, line) for line in found), found


def test_all_problems_are_told_at_once() -> None:
    text = changed(
        ("horizon = 500", "horizon = -1"),
        ("seed = 1", "sed = 1"),
        ("[0.1, 0.2]", "[0.1, 7, 8]"),
        ('"bernoulli"', '"coin"'),
        ("beta = [0.5, 0.7]", "beta = 2\nsigma = -1\nexplore = 3"),
        ('"moss-oracle"', '"moss-orakle"'),
    )
    wanted = (
        "experiment.sed: unknown key. Did you mean 'seed'?",
        "experiment.horizon: must be an integer >= 1 and <= 1099511627776, got -1.",
        "instance.rewards: unknown model 'coin'. Known: bernoulli, beta, gaussian.",
        "instance.alpha: must be a number >= 0 and <= 1, got 7.",
        "instance.alpha: must be a number >= 0 and <= 1, got 8.",
        "policy[1].explore: unknown key. Did you mean 'exploration'?",
        "policy[1].beta: must be a number",
        "policy[1].sigma: must be a number",
        "policy[2].name: unknown policy 'moss-orakle'. Did you mean 'moss-oracle'?",
    )
    for line, start in zip(sorted(problems_of(text)), sorted(wanted), strict=True):
        assert line.startswith(start)


def test_what_is_built_is_checked_even_if_other_things_are_wrong() -> None:
    text = changed(("seed = 1", "seed = -1"), ("n = 2000", "n = 2000\nm = 3"))
    found = problems_of(text)
    assert [line.partition(":")[0] for line in found[:2]] == ["experiment.seed", "instance.alpha"]


def test_errors_may_cross_processes() -> None:
    with pytest.raises(SpecError) as caught:
        parse_spec("")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.problems) == (str(caught.value), caught.value.problems)


def _file(folder: Path, data: bytes) -> Path:
    path = folder / "spec.toml"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (bytes(range(256)), "file: must be text, got a binary file (NUL at byte 0)."),
        (GOOD.encode("utf-16"), "file: must be text, got a binary file (NUL at byte 3)."),
        ("name = 'Zürich'".encode("latin-1"), "file: must be UTF-8 text, got byte 0xfc at 9. "),
        (b"#" * 10_000_001, "file: must be at most 10000000 bytes. Is it a spec?"),
        (b"", "experiment: is required. Add a table [experiment]."),
        (b"PAR1 is no TOML", "file: is not valid TOML: "),
    ],
)
def test_bad_files(tmp_path: Path, data: bytes, problem: str) -> None:
    path = _file(tmp_path, data)
    with pytest.raises(SpecError) as caught:
        load_spec(path)
    assert str(caught.value).startswith(f"{str(path)!r} has ")
    assert any(line.startswith(problem) for line in caught.value.problems)


def test_unreadable_files(tmp_path: Path) -> None:
    for path, reason in (
        (tmp_path / "missing.toml", "No such file or directory"),
        (tmp_path, "Is a directory"),
    ):
        with pytest.raises(SpecError, match=f"file: cannot be read: {reason}"):
            load_spec(path)


@pytest.mark.parametrize("path", [5, None, b"spec.toml", "a\0b", ["spec.toml"]])
def test_what_is_no_path_is_refused(path: Any) -> None:
    with pytest.raises(ma.ParameterError, match="`path` must be a path, got "):
        load_spec(path)


NESTED = {
    "arrays": lambda n: changed(("n = 2000", f"n = {'[' * n}1{']' * n}")),
    "tables": lambda n: changed(("n = 2000", f"n = {'{a=' * n}1{'}' * n}")),
    "dotted keys": lambda n: changed(("n = 2000", f"{'.'.join('a' * n)} = 1")),
    "quoted keys": lambda n: changed(
        ("n = 2000", " . ".join(["'a b'", '"c"'] * (n // 2)) + " = 1")
    ),
    "heads": lambda n: f"{GOOD}\n[[{'.'.join('a' * n)}]]\n",
}


@pytest.mark.parametrize("kind", NESTED)
@pytest.mark.parametrize("depth", [100, 300, 400, 600, 100_000])
def test_deep_nesting_is_refused_whatever_is_nested(kind: str, depth: int) -> None:
    # tomllib alone would take 40 GB for a key of 100,000 parts
    for problem in problems_of(NESTED[kind](depth)):
        assert problem.startswith(("instance.n: must be a number", "file: is nested too deeply"))


def test_data_that_holds_itself_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(SpecError, match="nested too deeply"):
        experiment_from({"experiment": {"name": endless}, "instance": {}, "policy": [endless]})


@pytest.mark.parametrize(
    "change",
    [
        ("horizon = 500", "horizon = 0x" + "f" * 6000),
        ("beta = [0.5, 0.7]", "beta = [0.5, 0b1" + "0" * 20000 + "]"),
        ('rewards = "bernoulli"', "rewards = 0o7" + "0" * 9000),
    ],
)
def test_integers_that_python_does_not_write_are_refused(change: tuple[str, str]) -> None:
    (problem,) = problems_of(changed(change))
    assert re.fullmatch("file: must hold integers of at most 64 bits, got an .* bits.", problem)


@pytest.mark.slow
def test_large_sweeps_are_read_in_linear_time() -> None:
    values = ", ".join(f"0.{k}" for k in range(500_000, 510_000))
    begun = time.process_time()
    text = changed(("alpha = [0.1, 0.2]", "alpha = 0.1"), ("[0.5, 0.7]", f"[{values}, 0.50]"))
    assert problems_of(text) == ("policy[1].beta: must contain different values, got 0.5 twice.",)
    assert len(_entries([_many(30_000)])) == 30_000
    assert time.process_time() - begun < 6  # it was minutes


def _many(count: int) -> SpecTable:
    return SpecTable("policy[1]", {"name": "moss"}, ma.MOSS, {"sigma": Sweep(tuple(range(count)))})


@pytest.mark.patient
@given(st.data())
def test_whatever_is_written_there_are_problems_or_an_experiment(data: st.DataObject) -> None:
    content: Any = tomllib.loads(GOOD)
    junk = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
        max_leaves=5,
    )
    for _ in range(data.draw(st.integers(1, 3))):
        table: Any = data.draw(
            st.sampled_from([content["experiment"], content["instance"], *content["policy"]])
        )
        if table:
            table[data.draw(st.sampled_from(sorted(table)))] = data.draw(junk)
    try:
        experiment = experiment_from(content)
    except SpecError:
        return
    assert isinstance(experiment, Experiment)
    assert experiment.spec is not None
    assert parse_spec(as_toml(experiment.spec)).hash == experiment.hash


def test_all_values_are_checked_whatever_else_is_wrong() -> None:
    """Neither a wrong horizon nor wrong arms keep the parameters of policies from being checked."""
    policies = [{"name": "moss++", "beta": 2, "sigma": -1}, {"name": "ss-greedy", "exponent": [7]}]
    wrong = {
        "policy[1].beta: must be a number >= 0.5 and <= 1, got 2.",
        "policy[1].sigma: must be a number > 0",
        "policy[2].exponent: must be a number >= 0 and <= 1, got 7.",
    }
    planted = {"family": "planted", "n": 0, "alpha": 3, "best": 2}
    arms = {"instance.n: must be", "instance.alpha: must be", "instance.best: must be"}
    for horizon, instance, more in (
        (0, planted, {"experiment.horizon: must be", *arms}),
        (100, planted, arms),
        (100, {"family": "planted", "n": 50, "m": 60}, {"instance.m: must be"}),
        (100, {"family": "nope"}, {"instance.family: unknown"}),
        ("long", {"family": "planted", "n": 0, "m": 5000}, {"experiment.horizon", "instance.n"}),
    ):
        content = {"experiment": {"name": "x", "horizon": horizon}, "instance": instance}
        with pytest.raises(SpecError) as caught:
            experiment_from({**content, "policy": policies})
        lines = str(caught.value).splitlines()[1:]
        for start in wrong | more:
            assert any(line.strip().startswith(start) for line in lines), (start, lines)
        assert len(lines) == len(wrong | more)
