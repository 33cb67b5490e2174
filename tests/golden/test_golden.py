"""Results are bit for bit the same as recorded ones.

If they change, every published number changes, and CHANGELOG must say so. To record again:
`python -m tests.golden.test_golden`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import manyarms as ma
from manyarms.instances import BetaMeans, BetaRewards, Gaussian, Instance, planted, reservoir
from tests.helpers import ALL_POLICIES, unit_only

RECORD = Path(__file__).with_name("runs.json")
INSTANCES: dict[str, Instance] = {
    "planted": planted(n=2000, alpha=0.3, horizon=500),
    "gaussian": planted(n=10**9, m=10**7, rewards=Gaussian()),
    "reservoir": reservoir(BetaMeans(1, 3), rewards=BetaRewards(5.0)),
}


def _run(policy: ma.Policy, instance: Instance) -> dict[str, Any]:
    result = ma.simulate(
        policy, instance, horizon=500, replications=2, seed=2020, workers=1, record_arms=True
    )
    assert result.arms is not None
    return {
        # mainly arms, because other processors may round the last bit of a logarithm differently
        "first arms": [int(arm) for arm in result.arms[0, 0, :8]],
        "last arms": [int(arm) for arm in result.arms[0, 1, -8:]],
        "recommended": [int(arm) for arm in result.recommended[0]],
        "distinct": [int(count) for count in result.distinct_arms[0]],
        "regret": [round(float(value), 6) for value in result.regret[0, :, -1]],
    }


def _runs() -> dict[str, dict[str, Any]]:
    return {
        f"{policy} on {name}": _run(policy, instance)
        for policy in ALL_POLICIES
        for name, instance in INSTANCES.items()
        if name != "gaussian" or not unit_only(policy)
    }


@pytest.mark.parametrize("name", INSTANCES)
def test_runs_are_as_recorded(name: str) -> None:
    recorded = json.loads(RECORD.read_text())
    for policy in ALL_POLICIES:
        if name == "gaussian" and unit_only(policy):
            continue
        key = f"{policy} on {name}"
        assert _run(policy, INSTANCES[name]) == recorded[key], key


if __name__ == "__main__":
    RECORD.write_text(json.dumps(_runs(), indent=1) + "\n")
