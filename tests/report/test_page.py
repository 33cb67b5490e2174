"""The page's data, without a browser: the numbers, the limits, what is left out."""

from __future__ import annotations

import json
import platform
import re
import shutil
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from manyarms.errors import ResultsError
from manyarms.report import write_report
from manyarms.report.page.figures import summary
from manyarms.simulation import Experiment, Player, cell, read_results
from manyarms.simulation import run as play
from manyarms.studies.study import Report
from tests.report.made import made_result
from tests.report.page_samples import HOSTILE, REPLICATIONS, SIX, reproduce_paper, run_folder


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_folder(tmp_path_factory.mktemp("run") / "results")


@pytest.fixture(scope="module")
def paper(small_paper: tuple[Path, Report], tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy = tmp_path_factory.mktemp("paper") / "copy"
    return Path(shutil.copytree(small_paper[0], copy))


def data_in(page: Path) -> dict[str, Any]:
    found = re.search(
        r'<script type="application/json" id="data">(.*?)</script>', page.read_text(), re.S
    )
    assert found
    return dict(json.loads(found[1]))


def test_numbers_are_those_of_the_tables(run: Path) -> None:
    data = data_in(write_report(run))
    cells = read_results(run).cells
    assert len(data["settings"]) == len(cells) == 2
    for shown, result in zip(data["settings"], cells, strict=True):
        assert shown["name"] == f"alpha = {result.parameters['alpha']}"
        assert shown["policies"] == list(result.policies)
        summary = result.summary()
        for k, row in enumerate(summary.policies):
            series = shown["series"][k]
            for key in ("mean", "median", "q05", "q95"):
                assert series[key][-1] == pytest.approx(getattr(row, key), rel=1e-4)
            middle = np.median(result.of(row.policy), axis=0)
            assert series["median"] == pytest.approx(middle.tolist(), rel=1e-4)
            assert series["low"][-1] == pytest.approx(result.of(row.policy)[:, -1].min(), rel=1e-4)
            shown_runs = shown["runs"][k]
            assert shown_runs["count"] == row.replications
            assert len(shown_runs["lost"]) == round(row.miss_rate * row.replications)
            final = np.sort(result.of(row.policy)[:, -1]).tolist()
            ordered = sorted(shown_runs["found"] + shown_runs["lost"])
            assert ordered == pytest.approx(final, rel=1e-4)
        for k, pair in enumerate(summary.pairs):
            numbers = [number if np.isfinite(number) else None for number in pair[2:]]
            assert shown["pairs"][10 * k : 10 * k + 10] == pytest.approx(numbers, rel=1e-4)
    against, over_time = data["figures"]
    assert against["choices"][0]["x"] == [0.2, 0.5]
    assert [choice["settings"] for choice in over_time["choices"]] == [[0], [1]]


@pytest.mark.parametrize(("runs", "missed"), [(1000, 1), (2000, 3), (5000, 120), (1000, 1000)])
def test_a_histogram_of_many_runs_keeps_rare_misses(runs: int, missed: int) -> None:
    result = made_result({"moss": np.arange(runs)}, missed={"moss": missed})
    (shown,) = summary(result, 1)["runs"]
    found, lost = len(shown["found"]), len(shown["lost"])
    assert lost >= min(missed, 50)
    assert found + lost <= 460
    stands_for = shown["each"][0] * found, shown["each"][1] * lost
    assert stands_for == pytest.approx((runs - missed, missed))


@pytest.mark.slow
def test_a_page_is_the_same_each_time_and_knows_no_machine(run: Path, paper: Path) -> None:
    for folder in (run, paper):
        first = write_report(folder).read_bytes()
        assert platform.platform() not in first.decode()
        assert str(folder) not in first.decode()
        for path in folder.rglob("provenance.json"):
            provenance = json.loads(path.read_text())
            provenance["machine"] = {"system": "another"}
            provenance["started"] = provenance["finished"] = "another day"
            for each in provenance["cells"]:  # folders of earlier versions lack these
                stand_in = {"is_stand_in"} if each["is_stand_in"] else set()  # which pages tell
                for key in {"delay", "batch", "first_replication", "is_stand_in"} - stand_in:
                    del each[key]
            path.write_text(json.dumps(provenance))
        assert write_report(folder).read_bytes() == first


@pytest.mark.compiled
def test_a_page_names_no_address_but_svgs_own(paper: Path) -> None:
    text = write_report(paper).read_text()
    assert set(re.findall(r"\w+://[^\"'\s]*", text)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"<link|@import|url\(| src=", text)


def test_text_of_others_is_never_markup(run: Path) -> None:
    page = write_report(run)
    assert HOSTILE not in page.read_text()
    assert data_in(page)["title"] == HOSTILE


@pytest.mark.compiled
def test_the_paper_has_its_figures_differences_and_claims(paper: Path) -> None:
    data = data_in(write_report(paper))
    numbers = [figure["title"].split(".")[0] for figure in data["figures"]]
    assert numbers == [
        "Figure 2(a)", "Figure 2(b)", "Figure 3", "Claim 13", "Claim 14", "Claim 15", "Figure 1"
    ]  # fmt: skip
    assert [claim["number"] for claim in data["claims"]] == list(range(1, 16))
    listed = [setting for setting in data["settings"] if not setting.get("hidden")]
    assert len(listed) == 9 + 1 + 1 + 3 + 1 + 9
    assert listed[0]["policies"] == list(SIX)
    assert len(listed[0]["pairs"]) == 10 * len(list(combinations(SIX, 2)))
    # what claims 13 and 15 compare is drawn together
    betas = next(setting for setting in listed if setting["group"] == "Claim 13")
    assert {"moss++", "moss++(beta=0.6)", "empmoss++"} <= set(betas["policies"])
    quantile = next(setting for setting in listed if setting["group"] == "Claim 15")
    assert set(quantile["policies"]) == {"quantile", "moss-oracle(size=6)"}
    again, _, reading = (text for _, text in data["repeat"])
    assert again == f"manyarms reproduce all --replications {REPLICATIONS} --seed 3 --out again"
    (table,) = re.findall(r"again/(results/fig2a-.*/runs.parquet)", reading)
    assert (paper / table).is_file()
    assert table in dict(data["sums"])


@pytest.mark.compiled
def test_sets_of_claim_14_are_drawn_against_their_size(paper: Path) -> None:
    data = data_in(write_report(paper))
    figure = next(one for one in data["figures"] if one["title"].startswith("Claim 14"))
    (choice,) = figure["choices"]
    assert figure["log"]
    (folder,) = (paper / "results").glob("oracle_sizes-*")
    (result,) = read_results(folder).cells
    drawn = [data["settings"][place] for place in choice["settings"]]
    by_size = {
        own["size"]: result.of(label)[:, -1].mean()
        for label, own in zip(result.policies, result.policy_parameters, strict=True)
    }
    assert choice["x"] == sorted(by_size)
    for size, setting in zip(choice["x"], drawn, strict=True):
        assert setting["hidden"]
        assert setting["policies"] == ["moss-oracle"]
        assert setting["series"][0]["mean"] == pytest.approx([by_size[size]], rel=1e-4)


@pytest.mark.slow
def test_a_page_shows_what_was_reproduced_last(tmp_path: Path) -> None:
    reproduce_paper(tmp_path, "fig2b", "claims", replications=2)
    reproduce_paper(tmp_path, "fig2b", replications=3)
    data = data_in(tmp_path / "report.html")
    assert (tmp_path / "claims.json").is_file()
    assert data["claims"] == []  # they were of other runs
    assert [setting["group"] for setting in data["settings"]] == ["Figure 2(b)"]
    assert "3 runs of each policy" in data["lead"]


@pytest.mark.patient
def test_a_page_stays_small(run: Path) -> None:
    whole = data_in(write_report(run))
    assert len(whole["settings"][0]["times"]) == 30
    thinned = data_in(write_report(run, most_bytes=9_000))
    assert len(thinned["settings"][0]["times"]) < 30
    assert thinned["settings"][0]["times"][-1] == 300
    assert thinned["settings"][0]["pairs"] == whole["settings"][0]["pairs"]
    with pytest.raises(ResultsError, match=r"a page of 0.001 MB.* Sweep fewer values"):
        write_report(run, most_bytes=1_000)


def test_one_replication_leaves_almost_everything_open(tmp_path: Path) -> None:
    coins = ma.instances.planted(n=20, m=2)
    game = cell([ma.MOSS(), ma.MOSSPlusPlus()], coins, horizon=50, replications=1, checkpoints=1)
    experiment = Experiment("one", (game,))
    play(experiment, tmp_path)
    data = data_in(write_report(tmp_path))
    series = data["settings"][0]["series"][0]
    assert series["least"][0] < series["mean"][0] < series["most"][0]
    assert series["low"] == [None]  # of a median's interval
    low, high = data["settings"][0]["pairs"][1:3]  # of the mean
    assert low < 0 < high
    assert data["figures"] == []  # nothing over time, and nothing swept


def test_policies_that_played_differently_often_are_compared_where_both_did(tmp_path: Path) -> None:
    players = [Player(ma.MOSS(), "often", 9), Player(ma.Quantile(), "seldom", 4)]
    players.append(Player(ma.MOSSPlusPlus(), "again", 6))
    game = cell(players, ma.instances.planted(n=30, m=3), horizon=40)
    (result,) = play(Experiment("uneven", (game,)), tmp_path).cells
    data = data_in(write_report(tmp_path))
    (setting,) = data["settings"]
    assert (setting["replications"], setting["fewest"]) == (9, 4)
    gaps = result.of("often")[:4, -1] - result.of("seldom")[:, -1]
    assert setting["pairs"][0] == pytest.approx(gaps.mean(), rel=1e-4)
    for pair in result.summary().pairs:
        alone = result.difference(pair.first, pair.second)
        assert (pair.difference, pair.low, pair.high) == alone
    assert dict(data["facts"])["Runs of each policy"] == "4, 6, 9"
    assert [title for title, _ in data["repeat"]] == ["Look at the numbers"]  # there is no spec


@pytest.mark.patient
def test_folders_that_hold_no_results(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="must hold results of manyarms"):
        write_report(tmp_path)
    (tmp_path / "study.json").write_text('{"format": "another"}')
    with pytest.raises(ResultsError, match=r"study.json' is missing, .*another.* Reproduce"):
        write_report(tmp_path)
    reproduce_paper(tmp_path, "fig2b", replications=1)
    (results,) = (tmp_path / "results").iterdir()
    (results / "runs.parquet").unlink()
    with pytest.raises(ResultsError, match=r"runs.parquet' is missing"):
        write_report(tmp_path)
