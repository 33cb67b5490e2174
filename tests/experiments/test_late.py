"""The experiments on late rewards and wrong best means, small, through the command line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from manyarms.cli import reproduce_late
from manyarms.cli.main import main
from manyarms.experiments import late_rewards, late_rewards_short, wrong_best_mean
from manyarms.instances import planted
from manyarms.policies import MOSS, Parallel

pytest.importorskip("matplotlib", reason="the extra `lab` is not installed")


def test_settings() -> None:
    for settings, horizon in ((late_rewards(), 50_000), (late_rewards_short(), 5000)):
        assert len(settings) == 14
        assert {setting.horizon for setting in settings} == {horizon}
        assert all(setting.delay == 0 or setting.batch == 1 for setting in settings)
        for setting in settings:
            for policy in setting.policies:
                assert policy.count_late == setting.count_late  # type: ignore[attr-defined]
    means = [policy.best_mean for policy in wrong_best_mean()[0].policies]  # type: ignore[attr-defined]
    assert means == sorted(means)
    assert wrong_best_mean()[0].instance.best_mean in means


def test_reproduce_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = [
        replace(
            setting,
            instance=planted(n=30, m=3),
            policies=(MOSS(count_late=setting.count_late),),
            horizon=60,
        )
        for setting in late_rewards()
    ]
    for name in ("late_rewards", "late_rewards_short"):
        monkeypatch.setattr(reproduce_late, name, lambda: small)
    assert main(["reproduce", "late", "--replications", "5", "--out", str(tmp_path)]) == 0
    names = {f"{stem}.{e}" for stem in ("late", "late_short") for e in ("md", "pdf", "svg", "png")}
    assert {path.name for path in tmp_path.iterdir()} == names
    text = (tmp_path / "late.md").read_text()
    assert "| observed rewards only | in turn | delay 10 | delay 100 | delay 1000 | " in text
    assert text.count("| MOSS | ") == 2


def test_reproduce_best_mean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = [
        replace(
            setting,
            instance=planted(n=30, m=3),
            policies=(Parallel(best_mean=0.8), Parallel(best_mean=0.9)),
            horizon=60,
        )
        for setting in wrong_best_mean()
    ]
    monkeypatch.setattr(reproduce_late, "wrong_best_mean", lambda: small)
    words = ["reproduce", "best-mean", "--replications", "4", "--out", str(tmp_path)]
    assert main(words) == 0
    assert len(list(tmp_path.iterdir())) == 4
    rows = (tmp_path / "best_mean.md").read_text().splitlines()
    assert rows[2] == "| best mean told | hardness 0.1 | hardness 0.25 | hardness 0.4 |"
    assert [row.split(" | ")[0] for row in rows[4:]] == ["| 0.8", "| 0.9"]


def test_reproduce_late_refuses_bad_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "late", "--replications", "0"]) == 2
    assert "`replications` must be an integer >= 1" in capsys.readouterr().err
