"""The catalogue is complete and agrees with the policies."""

from __future__ import annotations

import json

import pytest

import manyarms as ma
from manyarms.policies import CATALOGUE
from tests.helpers import EVERY_POLICY, label, run_python


def test_it_lists_every_policy() -> None:
    # in a new process, because other tests register policies
    code = "import json, manyarms as ma; "
    code += "print(json.dumps([ma.policy_names(), list(ma.policies.CATALOGUE)]))"
    listed, said = json.loads(run_python(code).stdout)
    assert set(listed) == set(said)


@pytest.mark.parametrize("policy", EVERY_POLICY, ids=label)
def test_entries_agree_with_the_policies(policy: ma.Policy) -> None:
    entry = CATALOGUE[policy.name]
    assert policy.anytime == ("horizon" not in entry.needs)
    if not isinstance(policy, ma.Guarded):  # which needs the range of rewards
        assert policy.unit_rewards == (entry.rewards == "[0, 1]")


@pytest.mark.parametrize("name", CATALOGUE)
def test_required_parameters_are_named(name: str) -> None:
    entry = CATALOGUE[name]
    try:
        policy = ma.policy(name)
    except ma.ParameterError:  # a required parameter is missing
        assert entry.needs.endswith("hardness or m")
    else:
        assert str(policy) == policy.name == name
        takes_best_mean = policy.with_best_mean(0.625) != policy
        assert takes_best_mean == entry.needs.endswith("μ*")
