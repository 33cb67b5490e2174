"""Experiments as TOML: what a spec means."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

import manyarms as ma
from manyarms.simulation import experiment_from, load_spec, parse_spec
from manyarms.simulation.chunks import plan
from manyarms.simulation.spec import as_toml
from tests.helpers import run_python
from tests.simulation.bad_specs import GOOD, changed, problems_of, with_instance, with_policies

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_a_byte_order_mark_does_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "spec.toml"
    path.write_bytes(GOOD.encode("utf-8-sig"))
    assert load_spec(path) == parse_spec(GOOD)


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


INSTANCES = [
    ('"planted"; n = 50; m = 3', ma.instances.planted(n=50, m=3)),
    (
        '"planted"; n = 50; m = 3; best = 0.7; others = [0.2, 0.6]',
        ma.instances.planted(n=50, m=3, best=0.7, others=[0.2, 0.6]),
    ),
    (
        '"groups"; sizes = [3, 9]; means = [0.7, 0.5]; rewards = "beta"',
        ma.instances.grouped(sizes=[3, 9], means=[0.7, 0.5], rewards=ma.instances.BetaRewards()),
    ),
    (
        '"means"; means = [0.1, 1.7]; rewards = { model = "gaussian", sigma = 0.25 }',
        ma.instances.from_means([0.1, 1.7], rewards=ma.instances.Gaussian(0.25)),
    ),
    (
        '"reservoir"; distribution = "beta"; a = 1; b = 2; epsilon = 0.1',
        ma.instances.reservoir(ma.instances.BetaMeans(1.0, 2.0), epsilon=0.1),
    ),
    (
        '"reservoir"; distribution = "uniform"; high = 0.5',
        ma.instances.reservoir(ma.instances.UniformMeans(high=0.5)),
    ),
    (
        '"reservoir"; distribution = "discrete"; values = [1, 0.5]; probabilities = [0.25, 0.75]',
        ma.instances.reservoir(ma.instances.DiscreteMeans((1.0, 0.5), (0.25, 0.75))),
    ),
]


@pytest.mark.parametrize(("lines", "instance"), INSTANCES)
def test_families(lines: str, instance: ma.instances.Instance) -> None:
    text = with_instance(lines)
    (cell,) = parse_spec(text.replace('"moss-oracle"', '"moss"')).cells
    assert repr(cell.instance) == repr(instance)
    assert repr(cell.instance.world(500)) == repr(instance.world(500))


def test_contests(tmp_path: Path) -> None:
    path = tmp_path / "7.csv"
    path.write_text("caption,votes,not_funny,somewhat_funny,funny\nHi!,9,3,4,2\nNo.,8,7,1,0\n")
    lines = f'"captions"; contest = {json.dumps(str(path))}; threshold = [0.1, 0.8]'
    cells = parse_spec(with_instance(lines)).cells
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
    lines = '"groups"; sizes = [[1, 9], [5, 5]]; means = [[0.9, 0.1], [0.6, 0.5]]'
    experiment = parse_spec(with_instance(lines))
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
    specs += [with_instance(lines).replace('"moss-oracle"', '"moss"') for lines, _ in INSTANCES]
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


def test_an_experiment_cannot_be_changed() -> None:
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
    assert problems_of(with_policies("[[policy]]", 'name = "tests-own"')) == (
        "policy[1].strength: is required.",
    )
    (problem,) = problems_of(with_policies("[[policy]]", 'name = "tests-own"', 'strength = "x"'))
    assert "policy[1]" in problem


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.stem)
def test_examples(path: Path) -> None:
    experiment = load_spec(path)
    assert experiment.name.replace("-", "_") == path.stem
    assert experiment.pulls < 50_000_000  # a second or two
    assert path.read_text().startswith("# ")


def test_chunks_cover_every_replication_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("manyarms.simulation.chunks.CHUNK_PULLS", 3500)
    experiment = parse_spec(GOOD)
    seen = [
        (chunk.cell_number, chunk.player.label, chunk.first + k)
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


@pytest.mark.patient
def test_specs_need_neither_numba_nor_pyarrow() -> None:
    code = (
        "import sys; from manyarms.simulation import parse_spec\n"
        f"parse_spec({GOOD!r})\n"
        "assert not {'numba', 'pyarrow'} & set(sys.modules)"
    )
    run_python(code)
