"""Error messages of the API use its own terms, not Python's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import manyarms as ma
from tests.serve.machines import InThread, call, in_thread, opened, path_of

pytestmark = [pytest.mark.interpreted, pytest.mark.patient]

PYTHON = re.compile(
    r"\w\(\)|live\(|\bNone\b|\bTrue\b|\bFalse\b|import|\bma\.|=\.\.\.|\(\.\.\.|=\[|again=|\bdict\b|\bbool\b|"
    r"\bhandle\b|season\(|observe\(|verdict\(|<class|Error\b|\bself\b|\w+\(\w*=|traceback"
)

# The experiments: names (arms red and blue; red is retired, pull 0 told, pull 1 abandoned), numbers
# (finished), mine (recorded by a script, with integers as names), empty, still (paused), stopped,
# windowed, and own, whose policy has no changing arms.
PUTS: tuple[dict[str, Any], ...] = (
    {"policy": "moss"},
    {"policy": "moss", "n_arms": 9},
    {"policy": "nothing"},
    {"policy": "moss(beta=3)"},
    {"policy": "moss(gamma=3)"},
    {"policy": "moss(", "horizon": 9},
    {"policy": "my_module:Mine", "horizon": 9},
    {"policy": "moss++(beta=2)", "n_arms": 9, "horizon": 9},
    {"policy": "moss-oracle", "n_arms": 9, "horizon": 9},
    {"policy": "doubling", "n_arms": 9},
    {"policy": "guarded", "n_arms": 9},
    {"policy": "parallel", "n_arms": 9, "horizon": 9},
    {"policy": "patience", "n_arms": 9, "horizon": 9},
    {"policy": "sequential-halving", "n_arms": 10**9, "horizon": 10**9},
    {"policy": "kl-ucb", "n_arms": 9, "horizon": 9, "reward_range": [-1, 1]},
    {"horizon": 2**62},
    {"n_arms": 2**62},
    {"seed": 2**70},
    {"reward_range": [1, 0]},
    {"reward_range": [0]},
    {"reward_range": [0, 1e200]},
    {"reward_range": "x"},
    {"window": 0.01},
    {"window": -1},
    {"window": 10, "missing": 7},
    {"missing": 0},
    {"hold": True},
    {"hold": "yes"},
    {"share": 0.2},
    {"control": "today", "share": 0.9},
    {"control": "", "share": 0.1},
    {"control": True},
    {"reward": "\n"},
    {"reward": 3},
    {"reward": "x" * 99},
    {"epsilon": "lots"},
    {"epsilon": -1},
    {"epsilon": "0%"},
    {"epsilon": True},
    {"target": "today"},
    {"target": "control"},
    {"target": 7},
    {"unknown": 1},
)
REQUESTS: tuple[tuple[str, str, Any], ...] = (
    *(("PUT", f"new-{k}", body) for k, body in enumerate(PUTS)),
    ("PUT", "names", {"policy": "moss", "horizon": 5}),
    ("PUT", "names", {"n_arms": 5}),
    ("PUT", "numbers", {"policy": "moss", "horizon": 3}),
    ("PUT", "numbers", {"policy": "moss", "horizon": 3, "n_arms": 8}),
    ("PUT", "x" * 201, {}),
    ("PUT", "a%00b", {}),
    ("GET", "nowhere", None),
    ("POST", "nowhere/asks", {}),
    ("PATCH", "names", {"epsilon": "x"}),
    ("PATCH", "names", {"target": "control"}),
    ("PATCH", "names", {"target": 99}),
    ("PATCH", "names", {"policy": "moss"}),
    ("DELETE", "names", None),
    ("POST", "empty/asks", {}),
    ("POST", "numbers/asks", {}),
    ("POST", "almost/asks", {"k": 3}),
    ("POST", "still/asks", {}),
    ("POST", "stopped/asks", {}),
    ("POST", "stopped/resume", None),
    ("POST", "stopped/pause", None),
    *(("POST", "names/asks", {"k": k}) for k in (0, -1, 10_001, "x", 1.5, None, True)),
    ("POST", "names/asks", b"{"),
    ("POST", "names/asks", [1]),
    *(
        ("POST", "names/tells", {"tells": [one]})
        for one in (
            {"pull": 0, "reward": 1},
            {"pull": 0, "reward": 0},
            {"pull": 1, "reward": 1},
            {"pull": 99, "reward": 1},
            {"pull": 2, "reward": 7},
            {"pull": 2, "reward": None},
            {"pull": 2},
            {"pull": "x", "reward": 1},
            {"pull": -1, "reward": 1},
        )
    ),
    ("POST", "wide/tells", {"tells": [{"pull": 0, "reward": 1e300}]}),
    ("POST", "windowed/tells", {"tells": [{"pull": 0, "reward": 1}]}),
    ("POST", "names/tells", {"tells": []}),
    ("POST", "names/abandons", {"pulls": [0, 1, 99]}),
    ("POST", "names/abandons", {"pulls": []}),
    ("POST", "names/arms", {"count": 3}),
    ("POST", "names/arms", {"names": [""]}),
    ("POST", "names/arms", {"names": ["x" * 20_001]}),
    ("POST", "names/arms", {"names": [None]}),
    ("POST", "names/arms", {"count": -1}),
    ("POST", "numbers/arms", {"names": ["x"]}),
    ("POST", "numbers/arms", {"count": 2**62}),
    ("POST", "numbers/arms", {"count": 0}),
    ("POST", "mine/arms", {"names": ["x"]}),
    ("POST", "mine/arms", {"names": [10**900]}),
    ("POST", "own/arms", {"count": 1}),
    ("PUT", "names/arms", {"names": []}),
    ("PUT", "names/arms", {"count": 2}),
    ("PUT", "numbers/arms", {"names": ["x"]}),
    ("PUT", "mine/arms", {"names": ["x"]}),
    ("POST", "names/retirements", {"arm": "blue"}),
    ("POST", "names/retirements", {"arm": "blu"}),
    ("POST", "names/retirements", {}),
    ("POST", "numbers/retirements", {"arm": 99}),
    ("POST", "mine/retirements", {"arm": "x"}),
    ("POST", "own/retirements", {"arm": 1}),
    ("POST", "names/restores", {"arm": "nobody"}),
    ("POST", "names/observations", {"arm": "blue", "rewards": [7]}),
    ("POST", "names/observations", {"arm": "nobody", "rewards": [1]}),
    ("POST", "names/observations", {"arm": "blue", "rewards": []}),
    ("POST", "empty/season", {}),
    ("POST", "names/season", {"policy": "moss"}),
    ("POST", "names/season", {"policy": "nothing", "horizon": 9}),
    ("POST", "names/season", {"policy": "parallel", "horizon": 9}),
    ("POST", "names/season", {"horizon": 0}),
    ("POST", "names/season", {"seed": 2**70}),
    ("POST", "numbers/season", {"policy": "moss"}),
    ("POST", "numbers/season", {}),
    ("POST", "names/verdict", {"epsilon": "x"}),
    ("POST", "names/verdict", {"epsilon": 0.1, "target": 0.5}),
    ("POST", "names/verdict", {"quantile": 2}),
    ("POST", "names/verdict", {"confidence": 1}),
    ("POST", "names/verdict", {"target": "nobody"}),
    ("POST", "names/verdict", {"target": "control"}),
    ("POST", "names/verdict", {"target": "5%"}),
    ("POST", "names/verdict", {"target": 9}),
    ("POST", "names/verdict", {"margin": "x", "target": "blue"}),
    ("POST", "names/verdict", {"margin": "5%"}),
    ("POST", "numbers/verdict", {"target": "99"}),
    ("POST", "empty/verdict", {}),
    ("GET", "names/uplift?confidence=2", None),
    ("GET", "names/uplift?confidence=x", None),
    ("GET", "names/arms?sort=x", None),
    ("GET", "names/arms?cursor=x", None),
    ("GET", "names/arms?limit=0", None),
    ("GET", "names/arms/nobody", None),
    ("GET", "numbers/arms/99", None),
    ("GET", "names/leaders?k=0", None),
    ("GET", "names/events?after=-1", None),
    ("GET", "names/pending?limit=x", None),
    ("GET", "names/nothing", None),
    ("POST", "names", None),
)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InThread]:
    path: Path = tmp_path_factory.mktemp("refusals") / "x.db"
    ma.MOSS().live(arms=[10, 20], horizon=9, store=path, name="mine").close()
    with in_thread(f"sqlite:///{path}") as one:
        for name, spec in {
            "names": {}, "empty": {}, "numbers": {"policy": "moss", "n_arms": 9, "horizon": 3},
            "almost": {"policy": "moss", "n_arms": 9, "horizon": 2}, "still": {"n_arms": 9},
            "stopped": {"n_arms": 9}, "windowed": {"n_arms": 9, "window": 0.1},
            "wide": {"policy": "ucb(sigma=1.0)", "n_arms": 9, "reward_range": None, "horizon": 9},
            "own": {"policy": "ss-greedy", "n_arms": 9, "horizon": 9},
        }.items():  # fmt: skip
            assert call(one.port, "PUT", path_of(name), spec)[0] == 201
        for name, what, body in (
            ("names", "arms", {"names": ["red", "blue"]}), ("names", "asks", {"k": 5}),
            ("names", "tells", {"tells": [{"pull": 0, "reward": 1}]}),
            ("names", "abandons", {"pulls": [1]}), ("names", "retirements", {"arm": "red"}),
            ("numbers", "asks", {"k": 3}), ("still", "pause", None), ("stopped", "stop", None),
            ("windowed", "asks", {}), ("wide", "asks", {}),
        ):  # fmt: skip
            assert call(one.port, "POST", f"{path_of(name)}/{what}", body)[0] == 200, what
        yield one


def test_no_error_mentions_python(served: InThread) -> None:
    for method, path, body in REQUESTS:
        status, answer = call(served.port, method, f"/v1/experiments/{path}", body)
        assert status >= 400 or "results" in answer, (path, body, answer)
        for one in answer.get("results", [answer]):
            assert PYTHON.search(one.get("message", "")) is None, one


def test_an_experiment_with_an_unknown_policy(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    ma.MOSS().live(n_arms=9, horizon=9, store=path, name="x").close()
    with opened(f"sqlite:///{path}") as store, store.writing() as link:
        link.run("UPDATE experiments SET spec = replace(spec, 'moss', 'mine')")
    with in_thread(f"sqlite:///{path}") as one:
        status, answer = call(one.port, "POST", f"{path_of('x')}/asks", {})
        assert (status, answer["code"]) == (503, "replay")
        (listed,) = call(one.port, "GET", "/v1/experiments")[1]["experiments"]
        for said in (answer["message"], listed["alarm"]):
            assert "policy" in said
            assert PYTHON.search(said) is None, said
