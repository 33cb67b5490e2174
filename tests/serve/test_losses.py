"""The panel about unevenly lost rewards."""

from __future__ import annotations

import pytest

from tests.serve.machines import InThread, call, new_name, path_of


@pytest.mark.parametrize("uneven", [False, True])
def test_the_panel(served: InThread, uneven: bool) -> None:
    port, name = served.port, new_name()
    path = path_of(name)
    keys = [f"item <{k}>" for k in range(4)]
    assert call(port, "PUT", path, {"policy": "uniform", "horizon": 4000, "seed": 1})[0] == 201
    assert call(port, "POST", f"{path}/arms", {"names": keys})[0] == 200
    for key in keys[:1]:
        call(port, "POST", f"{path}/observations", {"arm": key, "rewards": [1.0] * 50})
    pulls = call(port, "POST", f"{path}/asks", {"k": 400})[1]["pulls"]
    gone = [p["pull"] for k, p in enumerate(pulls) if (p["arm"] == keys[2] and uneven) or k % 9 < 1]
    tells = [{"pull": p["pull"], "reward": 1} for p in pulls if p["pull"] not in gone]
    call(port, "POST", f"{path}/abandons", {"pulls": gone})
    call(port, "POST", f"{path}/tells", {"tells": tells})
    seen = call(port, "GET", f"{path}/pending")[1]["uneven"]
    page = call(port, "GET", f"/experiments/{name}")[1].decode()
    if not uneven:
        assert seen == []
        assert "lost unevenly" not in page
        return
    assert [one["arm"] for one in seen] == [keys[2]]
    assert "100 % of the pulls of item &lt;2&gt; were abandoned, but 1" in page
    assert "at most 1.0 % of experiments" in page
    assert "But rewards are lost unevenly, so this may be wrong." in page
