"""Experiments as TOML: what a spec means, and a sentence for everything that can be wrong."""

from __future__ import annotations

import json
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
from manyarms.lab import Experiment, experiment_from, load_spec, parse_spec
from manyarms.lab.chunks import plan
from manyarms.lab.spec import as_toml
from manyarms.lab.spec_tables import SpecTable, Sweep
from manyarms.lab.sweep import _entries
from tests.helpers import run_python
from tests.lab.bad_specs import BAD, GOOD, changed, with_instance, with_policies

EXAMPLES = Path(__file__).parents[2] / "examples"


def _problems(text: str) -> tuple[str, ...]:
    with pytest.raises(SpecError) as caught:
        parse_spec(text)
    assert isinstance(caught.value, ma.ManyarmsError)
    assert isinstance(caught.value, ValueError)
    for line in caught.value.problems:
        assert f"\n  {line}" in str(caught.value)
    return caught.value.problems


@pytest.mark.parametrize("name", BAD)
def test_bad_specs(name: str) -> None:
    text, problem = BAD[name]
    # dots stand for words of Python's, and for bounds that belong to policies and instances
    pattern = ".*".join(re.escape(part) for part in problem.split("..."))
    found = _problems(text)
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
    for line, start in zip(sorted(_problems(text)), sorted(wanted), strict=True):
        assert line.startswith(start)


def test_what_is_built_is_checked_even_if_other_things_are_wrong() -> None:
    text = changed(("seed = 1", "seed = -1"), ("n = 2000", "n = 2000\nm = 3"))
    found = _problems(text)
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
    for problem in _problems(NESTED[kind](depth)):
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
    (problem,) = _problems(changed(change))
    assert re.fullmatch("file: must hold integers of at most 64 bits, got an .* bits.", problem)


@pytest.mark.slow
def test_large_sweeps_are_read_in_linear_time() -> None:
    values = ", ".join(f"0.{k}" for k in range(500_000, 530_000))
    begun = time.process_time()
    text = changed(("alpha = [0.1, 0.2]", "alpha = 0.1"), ("[0.5, 0.7]", f"[{values}, 0.50]"))
    assert _problems(text) == ("policy[1].beta: must contain different values, got 0.5 twice.",)
    assert len(_entries([_many(100_000)])) == 100_000
    assert time.process_time() - begun < 30  # it was minutes


def _many(count: int) -> SpecTable:
    return SpecTable("policy[1]", {"name": "moss"}, ma.MOSS, {"sigma": Sweep(tuple(range(count)))})


def test_a_byte_order_mark_does_no_harm(tmp_path: Path) -> None:
    assert load_spec(_file(tmp_path, GOOD.encode("utf-8-sig"))) == parse_spec(GOOD)


def test_cells() -> None:
    experiment = parse_spec(changed(("horizon = 500", "horizon = [500, 100]")))
    cells = experiment.cells
    assert [cell.parameters for cell in cells] == [
        {"horizon": horizon, "alpha": alpha} for horizon in (500, 100) for alpha in (0.1, 0.2)
    ]
    assert cells[0].label == "horizon=500, alpha=0.1"
    assert cells[0].times == (100, 200, 300, 400, 500)
    # m follows from alpha and the cell's own horizon
    planted = ma.instances.planted(n=2000, alpha=0.2, horizon=100)
    assert repr(cells[3].instance) == repr(planted)
    labels = ["moss++(beta=0.5)", "moss++(beta=0.7)", "moss-oracle"]
    for cell in cells:
        assert [player.label for player in cell.players] == labels
        alpha = float(cell.parameters["alpha"])
        assert cell.players[2].policy == ma.MOSSOracle(alpha=alpha)
    assert experiment.pulls == 20 * 3 * (500 + 500 + 100 + 100)
    assert experiment.columns == {"horizon": "int64", "alpha": "double", "beta": "double"}
    row = experiment.row(cells[0], cells[0].players[2])
    assert row == {"horizon": 500, "alpha": 0.1, "beta": None}


def test_defaults() -> None:
    text = changed(("replications = 20\nseed = 1\ncheckpoints = 5\n", ""))
    experiment = parse_spec(text)
    assert (experiment.replications, experiment.seed) == (100, 0)
    assert len(experiment.cells[0].times) == 100
    said = changed(("replications = 20\nseed = 1\ncheckpoints = 5", "replications = 100\nseed = 0"))
    assert parse_spec(said).hash == experiment.hash


INSTANCES: list[tuple[list[str], ma.instances.Instance]] = [
    (['family = "planted"', "n = 50", "m = 3"], ma.instances.planted(n=50, m=3)),
    (
        ['family = "planted"', "n = 50", "m = 3", "best = 0.7", "others = [0.2, 0.6]"],
        ma.instances.planted(n=50, m=3, best=0.7, others=[0.2, 0.6]),
    ),
    (
        ['family = "groups"', "sizes = [3, 9]", "means = [0.7, 0.5]", 'rewards = "beta"'],
        ma.instances.grouped(sizes=[3, 9], means=[0.7, 0.5], rewards=ma.instances.BetaRewards()),
    ),
    (
        [
            'family = "means"',
            "means = [0.1, 1.7]",
            'rewards = { model = "gaussian", sigma = 0.25 }',
        ],
        ma.instances.from_means([0.1, 1.7], rewards=ma.instances.Gaussian(0.25)),
    ),
    (
        ['family = "reservoir"', 'distribution = "beta"', "a = 1", "b = 2", "epsilon = 0.1"],
        ma.instances.reservoir(ma.instances.BetaMeans(1.0, 2.0), epsilon=0.1),
    ),
    (
        ['family = "reservoir"', 'distribution = "uniform"', "high = 0.5"],
        ma.instances.reservoir(ma.instances.UniformMeans(high=0.5)),
    ),
    (
        [
            'family = "reservoir"',
            'distribution = "discrete"',
            "values = [0.9, 0.5]",
            "probabilities = [0.25, 0.75]",
        ],
        ma.instances.reservoir(ma.instances.DiscreteMeans((0.9, 0.5), (0.25, 0.75))),
    ),
]


@pytest.mark.parametrize(("lines", "instance"), INSTANCES)
def test_families(lines: list[str], instance: ma.instances.Instance) -> None:
    text = with_instance(*lines)
    (cell,) = parse_spec(text.replace('"moss-oracle"', '"moss"')).cells
    assert repr(cell.instance) == repr(instance)
    assert repr(cell.instance.world(500)) == repr(instance.world(500))


def test_contests(tmp_path: Path) -> None:
    path = tmp_path / "7.csv"
    path.write_text("caption,votes,not_funny,somewhat_funny,funny\nHi!,9,3,4,2\nNo.,8,7,1,0\n")
    lines = ['family = "captions"', f"contest = {json.dumps(str(path))}", "threshold = [0.1, 0.8]"]
    cells = parse_spec(with_instance(*lines)).cells
    assert [cell.parameters for cell in cells] == [{"threshold": 0.1}, {"threshold": 0.8}]
    assert [cell.instance.n_best for cell in cells] == [2, 1]
    assert cells[1].players[2].policy == ma.MOSSOracle(m=1)  # no alpha: the number of best arms


def test_what_the_instance_tells_a_policy() -> None:
    lines = ['name = "parallel"', "[[policy]]", 'name = "anytime-parallel"']
    lines += ["[[policy]]", 'name = "parallel"', "best_mean = 0.8"]
    players = parse_spec(with_policies("[[policy]]", *lines)).cells[0].players
    assert [player.policy for player in players] == [
        ma.Parallel(best_mean=0.9),
        ma.Doubling(ma.Parallel(best_mean=0.9)),
        ma.Parallel(best_mean=0.8),
    ]
    assert [p.label for p in players] == ["parallel", "anytime-parallel", "parallel(best_mean=0.8)"]


def test_an_oracle_that_is_told_otherwise_is_left_alone() -> None:
    tables = ["[[policy]]", 'name = "moss-oracle"', "size = [7, 9]"]
    tables += ["[[policy]]", 'name = "moss-oracle"', "alpha = 0.1"]
    tables += ["[[policy]]", 'name = "moss-oracle"']
    cell = parse_spec(with_policies(*tables)).cells[1]
    assert [player.policy for player in cell.players] == [
        ma.MOSSOracle(size=7),
        ma.MOSSOracle(size=9),
        ma.MOSSOracle(alpha=0.1),
        ma.MOSSOracle(alpha=0.2),
    ]


def test_lists_by_nature_are_swept_as_lists_of_lists() -> None:
    lines = ['family = "groups"', "sizes = [[1, 9], [5, 5]]", "means = [[0.9, 0.1], [0.6, 0.5]]"]
    experiment = parse_spec(with_instance(*lines))
    first, *_, last = experiment.cells
    assert first.parameters == {"sizes": "[1, 9]", "means": "[0.9, 0.1]"}
    assert (last.instance.n_best, last.instance.best_mean) == (5, 0.6)
    assert experiment.columns == {"sizes": "string", "means": "string", "beta": "double"}


def test_sweeps_of_rewards() -> None:
    models = changed(('"bernoulli"', '["bernoulli", { model = "gaussian", sigma = 0.5 }]'))
    names = [cell.parameters["rewards"] for cell in parse_spec(models).cells]
    assert names == ["bernoulli", "gaussian(sigma=0.5)"] * 2
    inner = changed(
        ('"bernoulli"', '{ model = "gaussian", sigma = [0.5, 1] }'),
        ("beta = [0.5, 0.7]", "sigma = [0.5, 1]"),
    )
    experiment = parse_spec(inner)
    assert [cell.instance.rewards for cell in experiment.cells[:2]] == [
        ma.instances.Gaussian(0.5),
        ma.instances.Gaussian(1.0),
    ]
    # the policies' sigma is another one than the rewards'
    assert experiment.columns == {"alpha": "double", "sigma": "double", "policy_sigma": "double"}


def test_the_hash_is_that_of_the_content() -> None:
    plain = parse_spec(GOOD)
    tables = tomllib.loads(GOOD)
    turned = {key: tables[key] for key in reversed(tables)}
    turned["instance"] = dict(reversed(tables["instance"].items()))
    turned["policy"] = [dict(reversed(table.items())) for table in tables["policy"]]
    assert experiment_from(turned).hash == plain.hash
    assert [c.parameters for c in experiment_from(turned).cells] == [
        c.parameters for c in plain.cells
    ]
    # recorded: a folder of results must be known again by later versions
    assert plain.hash == "1bc84a17befc2dc617b99378560fa525bdbe6ce2fe9a3bb5d27fc582bb94eed1"
    others = [
        changed(("seed = 1", "seed = 2")),
        changed(("[0.1, 0.2]", "[0.2, 0.1]")),
        changed(("horizon = 500", "horizon = [500]")),
        changed(("beta = [0.5, 0.7]", "beta = [0.5, 0.8]")),
        changed(('"beta-sweep"', '"other"')),
    ]
    hashes = {parse_spec(other).hash for other in others}
    assert len(hashes | {plain.hash}) == 6


def test_canonical_forms_can_be_read_again() -> None:
    nasty = 'Zoë\'s \\ "β" # 1'
    specs = [GOOD, *(path.read_text() for path in EXAMPLES.glob("*.toml"))]
    specs += [with_instance(*lines).replace('"moss-oracle"', '"moss"') for lines, _ in INSTANCES]
    specs += [changed(('"beta-sweep"', json.dumps(nasty, ensure_ascii=False)))]
    for text in specs:
        experiment = parse_spec(text)
        assert experiment.spec is not None
        for again in (
            parse_spec(as_toml(experiment.spec)),
            experiment_from(json.loads(json.dumps(experiment.spec))),
        ):
            assert again == experiment
            assert again.spec is not None
            assert as_toml(again.spec) == as_toml(experiment.spec)
    assert parse_spec(specs[-1]).name == nasty


def test_python_may_write_tuples() -> None:
    content: dict[str, Any] = tomllib.loads(GOOD)
    content["instance"]["alpha"] = (0.1, 0.2)
    assert experiment_from(content) == parse_spec(GOOD)


def test_an_experiment_cannot_bechanged() -> None:
    with pytest.raises(AttributeError):
        parse_spec(GOOD).seed = 3  # type: ignore[misc]


def test_a_policy_of_the_users_own() -> None:
    def make(*, strength: float) -> ma.Policy:
        return ma.MOSS(exploration=strength)

    ma.register("tests-own", make)
    text = with_policies("[[policy]]", 'name = "tests-own"', "strength = [1, 2]")
    experiment = parse_spec(text)
    assert [p.policy for p in experiment.cells[0].players] == [
        ma.MOSS(exploration=1),
        ma.MOSS(exploration=2),
    ]
    assert experiment.columns["strength"] == "int64"
    assert _problems(with_policies("[[policy]]", 'name = "tests-own"')) == (
        "policy[1].strength: is required.",
    )
    (problem,) = _problems(with_policies("[[policy]]", 'name = "tests-own"', 'strength = "x"'))
    assert "policy[1]" in problem


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.stem)
def test_examples(path: Path) -> None:
    experiment = load_spec(path)
    assert experiment.name.replace("-", "_") == path.stem
    assert experiment.pulls < 50_000_000  # a second or two
    assert path.read_text().startswith("# ")


def test_the_three_examples_are_there() -> None:
    names = {path.stem for path in EXAMPLES.glob("*.toml")}
    assert {"beta_sweep", "gaps", "infinite_arms"} <= names


def test_chunks_cover_every_replication_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("manyarms.lab.chunks.CHUNK_PULLS", 3500)
    experiment = parse_spec(GOOD)
    seen = [
        (chunk.number, chunk.player.label, chunk.first + k)
        for chunk in plan(experiment)
        for k in range(chunk.replications)
    ]
    assert len(seen) == len(set(seen)) == 2 * 3 * 20
    assert seen == sorted(seen, key=lambda one: one[0])
    assert sum(chunk.pulls for chunk in plan(experiment)) == experiment.pulls
    assert max(chunk.replications for chunk in plan(experiment)) == 7
    names = [chunk.file_name for chunk in plan(experiment)]
    assert len(set(names)) == len(names)


def test_long_replications_are_a_chunk_each() -> None:
    text = changed(("horizon = 500", "horizon = 30000000"))
    assert {chunk.replications for chunk in plan(parse_spec(text))} == {1}


def test_specs_need_neither_numba_nor_pyarrow() -> None:
    code = (
        "import sys; from manyarms.lab import parse_spec\n"
        f"parse_spec({GOOD!r})\n"
        "assert not {'numba', 'pyarrow'} & set(sys.modules)"
    )
    run_python(code)


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
