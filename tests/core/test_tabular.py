"""Tables for notebooks and data frames: contents and escaping."""

from __future__ import annotations

import sys
from xml.etree import ElementTree

import pytest

import manyarms as ma
from manyarms.core.tabular import Library, Tabular, data_frame, html_table


def _result() -> ma.Result:
    arms = ma.instances.planted(n=40, m=3)
    return ma.simulate([ma.MOSS(), ma.MOSSPlusPlus()], arms, horizon=30, replications=4, seed=1)


def _single() -> list[Tabular]:
    live = ma.MOSS().live(arms=["<b>", "two"], horizon=9)
    for pull in live.ask(5):
        live.tell(pull, 1.0)
    return [ma.instances.planted(n=40, m=3), *live.arms(), live.progress()]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames_are_the_same_in_both_libraries(library: Library) -> None:
    pytest.importorskip(library)
    result = _result()
    assert result.to_dataframe(library=library)["regret"].sum() == pytest.approx(
        result.regret[:, :, -1].sum()
    )
    summary = result.summary()
    means = summary.to_dataframe(library=library)["mean"]
    assert list(means) == [row.mean for row in summary.policies]
    for thing in _single():
        frame = thing.to_dataframe(library=library)
        assert list(frame.columns) == list(thing._columns())
        assert len(frame) == 1


def test_a_result_has_a_row_for_each_run_or_checkpoint() -> None:
    result = _result()
    frame = result.to_dataframe("regret", library="pandas")
    assert list(frame.columns) == ["policy", "replication", "time", "regret"]
    chosen = frame[(frame["policy"] == "moss++") & (frame["replication"] == 2)]
    assert chosen["regret"].tolist() == result.of("moss++")[2].tolist()
    assert chosen["time"].tolist() == result.times.tolist()
    runs = result.to_dataframe(library="pandas")
    assert runs["distinct_arms"].tolist() == result.distinct_arms.ravel().tolist()
    with pytest.raises(ma.ParameterError, match="`table` must be one of 'runs', 'regret'"):
        result.to_dataframe("both")  # type: ignore[arg-type]


def test_notebooks_get_well_formed_and_escaped_html() -> None:
    for thing in [_result(), _result().summary(), *_single()]:
        page = thing._repr_html_()
        assert ElementTree.fromstring(page).find(".//td") is not None
        assert "<b>" not in page
    long = ElementTree.fromstring(html_table(["x"], [[k] for k in range(50)], []))
    assert len(long.findall(".//td")) == 19
    assert "the first 19 of 50 rows" in "".join(long.itertext())


def test_without_a_library_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pandas", "polars"):
        monkeypatch.setitem(sys.modules, name, None)  # Python refuses to import it then
    with pytest.raises(ma.MissingExtraError, match="Run `pip install pandas`"):
        data_frame({"arm": [1]})
    with pytest.raises(ma.MissingExtraError, match="Run `pip install polars`"):
        data_frame({"arm": [1]}, "polars")


def test_the_imported_library_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    polars = pytest.importorskip("polars")
    monkeypatch.delitem(sys.modules, "pandas", raising=False)
    assert isinstance(data_frame({"arm": [1]}), polars.DataFrame)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_values_of_both_kinds_become_text(library: Library) -> None:
    pytest.importorskip(library)
    assert list(data_frame({"target": ["a", 7]}, library)["target"]) == ["a", "7"]
