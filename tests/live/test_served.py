"""A handle and the service continue each other's experiments."""

from __future__ import annotations

from pathlib import Path

import pytest

import manyarms as ma
from manyarms.store import open_store
from tests.serve.machines import call, in_thread, path_of

pytestmark = [pytest.mark.interpreted, pytest.mark.patient]
SHOP = path_of("shop")


def test_changes_by_the_service_apply_to_a_handle(tmp_path: Path) -> None:
    file = tmp_path / "shop.db"
    begin = {"arms": ["red", "blue"], "store": file, "name": "shop", "epsilon": "5%", "seed": 1}
    with ma.Prospector().live(**begin) as live:  # type: ignore[arg-type]
        live.tell_many([(pull, float(pull.arm == "red")) for pull in live.ask(50)])
        assert live.verdict().epsilon == "5%"
    with in_thread(f"sqlite:///{file}") as one:
        changes = {"epsilon": "20%", "target": 0.01}
        assert call(one.port, "PATCH", SHOP, changes)[0] == 200
        assert call(one.port, "POST", f"{SHOP}/pause")[0] == 200
    with ma.Prospector().live(**begin) as live:  # type: ignore[arg-type]
        said = live.verdict()
        assert (said.epsilon, said.target, said.stop) == ("20%", 0.01, True)
        assert live.verdict(quantile=0.0).target is None
        assert live.verdict(epsilon="5%").epsilon == "5%"
        for ask in (live.ask, lambda: live.ask(3)):
            with pytest.raises(ma.TurnError, match=r"was paused\. Call resume") as caught:
                ask()
            assert caught.value.reason == "paused"
        live.observe("red", 1.0)
        live.save(tmp_path / "saved.db")
        with ma.load(tmp_path / "saved.db") as saved:
            saved.close()
            with pytest.raises(ma.StoreError, match="is closed. Open it again"):
                saved.resume()
        live.resume()
        live.resume()  # no effect
        pull = live.ask()
    with ma.load(tmp_path / "saved.db") as saved:
        with pytest.raises(ma.TurnError, match="was paused"):
            saved.ask()
        saved.resume()
        assert saved.ask() == pull
        assert saved.verdict().epsilon == "20%"
    with in_thread(f"sqlite:///{file}") as one:
        shown = call(one.port, "GET", SHOP)[1]
        assert (shown["state"], shown["spec"]["epsilon"]) == ("running", "20%")
        assert call(one.port, "POST", f"{SHOP}/asks", {})[1]["pulls"][0]["pull"] == pull.id + 1
        assert call(one.port, "POST", f"{SHOP}/stop")[0] == 200
    with ma.load(file) as live:
        for refused in (live.ask, live.resume):
            with pytest.raises(ma.TurnError, match="Deploy the recommended arm, or begin another"):
                refused()
        live.tell(pull, 1.0)
        assert live.verdict(quantile=0.0, epsilon=1e-6).outcome in ("stop", "stopped")


def test_an_experiment_without_arms(tmp_path: Path) -> None:
    file = tmp_path / "shop.db"
    with in_thread(f"sqlite:///{file}") as one:
        assert call(one.port, "PUT", SHOP, {})[0] == 201
    with ma.load(file) as live:
        assert str(live.verdict()) == "Too early to say: there are no arms yet."
        assert str(live.uplift()).startswith("Nothing to compare yet")
        assert (live.arms(), live.n_arms, live.pulls, live.pending) == ([], 0, 0, [])
        assert "0 pulls" in str(live)
        assert "0 arms" in f"{live!r} {live._repr_html_()}"
        for refused in (live.ask, live.season, live.recommend):
            with pytest.raises(
                ma.TurnError, match=r"no arms yet\. Add some first|no available arm has"
            ):
                refused()
        live.save(tmp_path / "saved.db")
    with ma.load(tmp_path / "saved.db") as saved, ma.load(file) as live:
        saved.add_arms(["red", "blue"])
        live.add_arms(["red", "blue"])
        assert saved.ask(10) == live.ask(10)


def test_a_stopped_experiment_cannot_be_resumed(tmp_path: Path) -> None:
    place = tmp_path / "shop.db"
    with ma.Prospector().live(n_arms=5, seed=1, store=place):
        pass
    with open_store(place) as store:
        number = store.experiments()[0].id
        store.set_state(number, {"state": "paused"})
        with ma.load(place) as live:
            store.set_state(number, {"state": "stopped", "epsilon": 0.2})
            with pytest.raises(ma.TurnError, match="was stopped, and cannot be resumed"):
                live.resume()
        assert store.experiments()[0].state == {"state": "stopped", "epsilon": 0.2}
