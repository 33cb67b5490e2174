"""Random problems: drawn as said, scores by hand, and the numbers of the last run."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest

import manyarms as ma
from manyarms.protocol import described
from manyarms.studies.leaderboard import random_board as drawn
from manyarms.studies.leaderboard.random_board import (
    RANDOM,
    in_short,
    page,
    random_csv,
    scores,
    times_less,
)
from manyarms.studies.leaderboard.standings import Placing, placings
from manyarms.studies.study import Study, reproduce
from tests.report.made import made_result

DOCS = Path(__file__).parent.parent.parent / "docs"


# The problems


def test_problems_are_drawn_as_said() -> None:
    found = {half: list(drawn.random_problems(half)) for half in drawn.HALVES}
    assert not {p.name for p in found["tuned"]} & {p.name for p in found["held out"]}
    for problems in found.values():
        assert len(problems) == 200
        horizons = [problem.horizon for problem in problems]
        long = horizons[drawn.EVERY - 1 :: drawn.EVERY]
        assert len(long) == 8
        assert all(200_000 <= horizon <= 5_000_000 for horizon in long)
        assert sum(horizon > 200_000 for horizon in horizons) == 8
        assert 1000 <= min(horizons) < 1500
        planted = [p.instance for p in problems if p.family == "planted"]
        sizes = [arms.n_arms for arms in planted]
        assert 50 <= min(sizes) < 1000 < 10**8 < max(sizes) <= 10**9
        # 2 in 5 are planted: 80, with a standard deviation of 7
        assert 55 <= len(planted) <= 105
        assert {p.family for p in problems} == {"planted", "Beta", "uniform", "discrete"}


def test_more_problems_begin_with_the_same_ones() -> None:
    few = [problem.name for problem in drawn.random_problems("tuned", 10)]
    assert few == [problem.name for problem in drawn.random_problems("tuned", 30)][:10]


def test_everybody_is_told_nothing_and_the_slow_play_less_often() -> None:
    problem = next(drawn.random_problems("held out"))
    game = drawn.entered(problem._replace(horizon=1_000_000), 50)
    runs = {player.label: player.replications for player in game.players}
    assert runs["ss-greedy"] == 15  # as many as fit into 1.5 s of one core
    for player in game.players:
        assert described()[player.policy.name].knowledge == "none"
    assert game.players[2].policy == ma.Prospector(guess_horizon=True)


# What is made of the runs


def placed(problem: str, **means: float) -> list[Placing]:
    """Return placings by mean regret; "_" stands for a hyphen."""
    told = {"knowledge": "none", "perfect_best": 0}
    names = [name.replace("_", "-") for name in means]
    result = made_result(
        {name: np.full(4, mean) for name, mean in zip(names, means.values(), strict=True)},
        missed={names[0]: 1},
        parameters={"problem": problem, "family": "Beta"},
        told=dict.fromkeys(names, told),
    )
    return placings(result)


TABLE = [
    *placed("1: one, T = 1000", prospector=10.0, guarded_ss_greedy=5.0, ss_greedy=20.0),
    *placed("2: two, T = 20000", prospector=10.0, guarded_ss_greedy=40.0, ss_greedy=20.0),
]


def test_scores_by_hand() -> None:
    found = {score.policy: score for score in scores(TABLE)}
    assert list(found) == ["prospector", "guarded-ss-greedy", "ss-greedy"]
    best = found["prospector"]
    assert best.relative.estimate == pytest.approx(math.sqrt(2))  # of 2 and 1
    assert best.relative.low <= math.sqrt(2) <= best.relative.high
    assert (best.first, best.missed, best.worst.relative) == (1, 0.25, 2.0)
    assert best.worst.problem.startswith("1")
    assert found["ss-greedy"].relative.estimate == pytest.approx(math.sqrt(8))  # of 4 and 2
    # its guarded form is the only one with less on the first problem, and it is its own form
    assert found["ss-greedy"].alone == pytest.approx(2.0)
    assert found["prospector"].alone == pytest.approx(math.sqrt(2))


def test_times_less_is_paired() -> None:
    assert times_less(TABLE, "prospector", "ss-greedy").estimate == pytest.approx(2.0)
    assert times_less(TABLE, "ss-greedy", "prospector").estimate == pytest.approx(0.5)


def test_the_page_says_the_numbers() -> None:
    tables = {"tuned": TABLE, "held out": TABLE}
    blocks = list(page(tables, "f.svg", "manyarms reproduce random"))
    assert blocks[0] == "# Random problems"
    words = in_short(TABLE, scores(TABLE))
    assert "**Prospector** loses least of 3 policies" in words
    assert "The next policy of another kind is guarded-ss-greedy" in words
    assert words in blocks
    parts = [block for block in blocks if not isinstance(block, str)]
    assert parts[2].head[:4] == ("policy", "mean", "99 % quantile", "worst run")
    assert parts[3].head == ["policy", "Beta (2)", "T from 10^3 on (1)", "T from 10^4 on (1)"]
    first = ["prospector", "1.41", "1.41", "1.41", "25.0%", "25%", "1: one, T = 1000"]
    assert parts[2].rows[0] == first
    assert parts[3].rows[0] == ["prospector", "1.41", "2.00", "1.00"]
    lines = random_csv(tables, "c").splitlines()
    assert lines[1] == "half,family,problem,guarded-ss-greedy,prospector,ss-greedy"
    assert lines[2] == 'tuned,Beta,"1: one, T = 1000",5,10,20'


@pytest.mark.compiled
def test_a_short_run_from_end_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawn, "LONGEST", 1100)
    few = {label: drawn.ENTRANTS[label] for label in ("prospector", "ss-greedy")}
    monkeypatch.setattr(drawn, "ENTRANTS", few)
    monkeypatch.setattr(
        drawn, "random_problems", lambda half, make=drawn.random_problems: make(half, 2)
    )
    study = Study(3, drawn.experiments, RANDOM.report, name="random", title="random problems")
    report = reproduce([study], tmp_path, workers=1)
    assert {path.name for path in report.files} >= {"random.md", "random.csv", "random.svg"}
    assert "## 2 problems, held out" in (tmp_path / "random.md").read_text(encoding="utf-8")


def test_the_numbers_of_the_last_run_are_of_these_problems() -> None:
    lines = (DOCS / "random.csv").read_text(encoding="utf-8").splitlines()
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    for half in drawn.HALVES:
        names = [problem.name for problem in drawn.random_problems(half)]
        assert [row["problem"] for row in rows if row["half"] == half] == names
    assert set(drawn.ENTRANTS) <= set(rows[0])


def test_what_the_page_of_prospector_says() -> None:
    """It has the least geometric mean on the held-out half; the numbers are those of the page."""
    text = (DOCS / "prospector.md").read_text(encoding="utf-8")
    lines = (DOCS / "random.csv").read_text(encoding="utf-8").splitlines()
    rows = [row for row in csv.DictReader(lines[1:]) if row["half"] == "held out"]
    assert len(rows) >= 200
    means = {label: np.array([float(row[label]) for row in rows]) for label in drawn.ENTRANTS}
    logs = {label: np.log(regrets).mean() for label, regrets in means.items()}
    least = np.log(np.min(list(means.values()), axis=0)).mean()
    relative = {label: math.exp(log - least) for label, log in logs.items()}
    assert min(relative, key=lambda label: relative[label]) == "prospector"
    assert relative["prospector"] < 1.5
    for label in ("prospector", "prospector(no horizon)", "ss-greedy", "empmoss++"):
        assert f"{relative[label]:.2f}" in text
