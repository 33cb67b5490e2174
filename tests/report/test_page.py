"""The page's data, without a browser: the numbers, the limits, what is left out."""

from __future__ import annotations

import json
import platform
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from manyarms.cli.main import main
from manyarms.report import write_report
from manyarms.report.from_tables import cells_as_results
from manyarms.lab.tables import ResultsError, read_results
from tests.report.page_samples import HOSTILE, REPLICATIONS, SIX, paper_folder, run_folder


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_folder(tmp_path_factory.mktemp("run") / "results")


@pytest.fixture(scope="module")
def paper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return paper_folder(tmp_path_factory.mktemp("paper"))


def data_in(page: Path) -> dict[str, Any]:
    found = re.search(
        r'<script type="application/json" id="data">(.*?)</script>', page.read_text(), re.S
    )
    assert found
    return dict(json.loads(found[1]))


def test_numbers_are_those_of_the_tables(run: Path) -> None:
    data = data_in(write_report(run))
    cells = cells_as_results(read_results(run))
    assert len(data["settings"]) == len(cells) == 2
    for shown, (values, result) in zip(data["settings"], cells, strict=True):
        assert shown["name"] == f"alpha = {values['alpha']}"
        assert shown["policies"] == list(result.policies)
        summary = result.summary()
        for k, row in enumerate(summary.policies):
            series = shown["series"][k]
            for key in ("mean", "median", "q05", "q95"):
                assert series[key][-1] == pytest.approx(getattr(row, key), rel=1e-4)
            middle = np.median(result.of(row.policy), axis=0)
            assert series["median"] == pytest.approx(middle.tolist(), rel=1e-4)
            assert series["low"][-1] == pytest.approx(result.of(row.policy)[:, -1].min(), rel=1e-4)
        for k, pair in enumerate(summary.pairs):
            difference, half = shown["pairs"][2 * k : 2 * k + 2]
            assert difference == pytest.approx(pair.difference, rel=1e-4)
            assert half == pytest.approx((pair.high - pair.low) / 2, rel=1e-4)
    against, over_time = data["figures"]
    assert against["choices"][0]["x"] == [0.2, 0.5]
    assert [choice["settings"] for choice in over_time["choices"]] == [[0], [1]]


def test_a_page_is_the_same_each_time_and_knows_no_machine(run: Path, paper: Path) -> None:
    for folder in (run, paper):
        first = write_report(folder).read_bytes()
        provenance = json.loads((folder / "provenance.json").read_text())
        provenance["machine"] = {"system": "another"}
        provenance["started"] = provenance["ended"] = "another day"
        (folder / "provenance.json").write_text(json.dumps(provenance))
        assert write_report(folder).read_bytes() == first
        assert platform.platform() not in first.decode()
        assert str(folder) not in first.decode()


def test_a_page_names_no_address_but_svgs_own(paper: Path) -> None:
    text = write_report(paper).read_text()
    assert set(re.findall(r"\w+://[^\"'\s]*", text)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"<link|@import|url\(| src=", text)


def test_text_of_others_is_never_markup(run: Path) -> None:
    page = write_report(run)
    assert HOSTILE not in page.read_text()
    assert data_in(page)["title"] == HOSTILE


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
    assert len(listed[0]["pairs"]) == 2 * len(list(combinations(SIX, 2)))
    # what claims 13 and 15 compare is drawn together
    betas = next(setting for setting in listed if setting["group"] == "Claim 13")
    assert {"moss++", "moss++(beta=0.6)", "empmoss++"} <= set(betas["policies"])
    quantile = next(setting for setting in listed if setting["group"] == "Claim 15")
    assert set(quantile["policies"]) == {"quantile", "moss-oracle(size=43)"}
    commands = " ".join(text for _, text in data["repeat"])
    assert f"manyarms reproduce --replications {REPLICATIONS} --seed 3" in commands


def test_verdicts_on_other_runs_are_left_out(tmp_path: Path) -> None:
    folder = paper_folder(tmp_path)
    provenance = json.loads((folder / "provenance.json").read_text())
    (folder / "provenance.json").write_text(json.dumps(provenance | {"seed": 4}))
    assert data_in(write_report(folder))["claims"] == []


def test_a_page_stays_small(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = data_in(write_report(run))
    assert len(whole["settings"][0]["times"]) == 30
    monkeypatch.setattr("manyarms.report.html_report._MOST", 9_000)
    thinned = data_in(write_report(run))
    assert len(thinned["settings"][0]["times"]) < 30
    assert thinned["settings"][0]["times"][-1] == 300
    assert thinned["settings"][0]["pairs"] == whole["settings"][0]["pairs"]
    monkeypatch.setattr("manyarms.report.html_report._MOST", 1_000)
    with pytest.raises(ResultsError, match="Sweep fewer values"):
        write_report(run)


def test_one_replication_has_no_interval(tmp_path: Path) -> None:
    spec = tmp_path / "one.toml"
    spec.write_text(
        '[experiment]\nname = "one"\nhorizon = 50\nreplications = 1\ncheckpoints = 1\n'
        '[instance]\nfamily = "planted"\nn = 20\nm = 2\n'
        '[[policy]]\nname = "moss"\n[[policy]]\nname = "moss++"\n'
    )
    assert main(["run", str(spec), "--out", str(tmp_path / "out")]) == 0
    data = data_in(tmp_path / "out" / "report.html")
    assert data["settings"][0]["series"][0]["half"] == [None]
    assert data["settings"][0]["pairs"][1] is None
    assert data["figures"] == []  # nothing over time, and nothing swept


def test_the_command(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run / "report.html").unlink(missing_ok=True)
    assert main(["report", str(run)]) == 0
    assert str(run / "report.html") in capsys.readouterr().out.replace("\n", "")
    assert (run / "report.html").is_file()
    assert main(["report", str(tmp_path)]) == 1
    assert "must hold results of manyarms" in capsys.readouterr().err
    (tmp_path / "provenance.json").write_text('{"settings": {}}')
    assert main(["report", str(tmp_path)]) == 1
    assert "must hold the tables of one `manyarms reproduce`" in capsys.readouterr().err
