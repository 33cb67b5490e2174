"""`manyarms reproduce rates` and `lower-bound`, on small problems."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("click", reason="the extra `lab` is not installed")

from manyarms.cli.main import main

ENDINGS = ("pdf", "svg", "png")


def small(monkeypatch: pytest.MonkeyPatch, module: str, **values: Any) -> None:
    for name, value in values.items():
        monkeypatch.setattr(f"manyarms.experiments.{module}.{name}", value)


def test_rates(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    powers = (6, 8, 10)
    small(monkeypatch, "exponents", ALPHAS=(0.3,), BETAS=(0.5,), SUBSET=powers)
    small(monkeypatch, "exponents", PLANTED={0.5: powers}, LOWER_BOUND={0.5: powers})
    assert main(["reproduce", "rates", "--replications", "2", "--out", str(tmp_path)]) == 0
    figures = {f"{stem}.{ending}" for stem in ("rates", "rates_fits") for ending in ENDINGS}
    assert {path.name for path in tmp_path.iterdir()} == figures | {"rates.md", "rates.json"}
    printed = capsys.readouterr().out
    assert "log R = a + θ log T + b log log T" in printed
    assert "Runs: 2 (planted: 8) up to T = 2^14, then fewer, as 1/T, but at least 2." in printed
    written = json.loads((tmp_path / "rates.json").read_text())
    assert written["replications"] == 2
    assert [(one["policy"], one["alpha"]) for one in written["results"]] == [
        (policy, 0.3) for policy in ("moss++(beta=0.5)", "moss-oracle", "quantile")
    ]
    assert list(written["results"][0]["fits"]) == ["planted", "lower bound"]


def test_lower_bound(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    small(monkeypatch, "lower_bound", HORIZON=2**8, DOUBLINGS=2, BETAS=(0.5,))
    assert main(["reproduce", "lower-bound", "--replications", "3", "--out", str(tmp_path)]) == 0
    figures = {f"lower-bound.{ending}" for ending in ENDINGS}
    assert {path.name for path in tmp_path.iterdir()} == figures | {
        "lower-bound.md",
        "lower-bound.json",
    }
    assert "The lower bound, checked with 3 replications" in capsys.readouterr().out
    points = json.loads((tmp_path / "lower-bound.json").read_text())["results"]
    assert [(point["budget"], point["policy"]) for point in points] == [
        (budget, policy)
        for budget in (4.0, 8.0)
        for policy in ("moss-oracle(alpha=0)", "moss++(beta=0.5)")
    ]


def test_defaults_by_target(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, int] = {}

    def note(*, target: str, replications: int, **options: Any) -> None:
        asked[target] = replications

    monkeypatch.setattr("manyarms.cli.reproduce_paper.reproduce_paper", note)
    monkeypatch.setattr("manyarms.cli.reproduce_theory.reproduce_theory", note)
    for target in ("all", "rates", "lower-bound"):
        assert main(["reproduce", target]) == 0
    assert asked == {"all": 100, "rates": 300, "lower-bound": 24}
    assert main(["reproduce", "rates", "--replications", "7"]) == 0
    assert asked["rates"] == 7


def test_one_run_is_too_few(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "rates", "--replications", "1"]) == 2
    assert "`replications` must be an integer >= 2" in capsys.readouterr().err
