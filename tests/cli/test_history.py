"""`manyarms observe` imports a table of rewards."""

from __future__ import annotations

from pathlib import Path

import pytest

import manyarms as ma
from manyarms.cli.main import main


def test_a_table_is_imported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store, file = tmp_path / "shop.db", tmp_path / "history.csv"
    with ma.MOSS().live(arms=["red", "a, b"], horizon=9, seed=1, store=store, name="shop"):
        pass
    file.write_text('\ufeffarm,views,clicks\nred,100,5\n"a, b",50,2\n\nred,20,2\n')
    assert main(["observe", str(store), str(file)]) == 0
    assert "170 rewards of 2 arms were recorded" in capsys.readouterr().out
    with ma.load(store) as live:
        arms = {arm.arm: (arm.told, arm.estimate) for arm in live.arms()}
        assert arms == {"red": (120, 7 / 120), "a, b": (50, 0.04)}
        assert [event.kind for event in live.events()] == ["observed"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("red,10,3\nred,4\n", "Line 2 of"),
        ("red,10,3\nred,4,1,1\n", "as many columns as the other lines"),
        ("red,10,3\nblue,4,x\n", "Line 2 of"),
        ("blue,10,3\n", "Unknown arm 'blue'"),
        ("red,10,30\n", "`counts` must have a sum for arm 'red'"),
    ],
)
def test_wrong_tables_are_refused(
    text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, file = tmp_path / "shop.db", tmp_path / "history.csv"
    ma.MOSS().live(arms=["red"], horizon=9, seed=1, store=store).close()
    file.write_text(text)
    assert main(["observe", str(store), str(file)]) != 0
    assert said in " ".join(capsys.readouterr().err.split())
    with ma.load(store) as live:
        assert live.arms() == []


def test_arms_may_be_integers(tmp_path: Path) -> None:
    store, file = tmp_path / "shop.db", tmp_path / "history.csv"
    ma.MOSS().live(n_arms=3, horizon=9, seed=1, store=store).close()
    file.write_text("2,10,3,3\n")
    assert main(["observe", str(store), str(file)]) == 0
    with ma.load(store) as live:
        assert [arm.arm for arm in live.arms()] == [2]
