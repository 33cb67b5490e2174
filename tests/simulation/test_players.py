"""Labels of policies in tables, and finding policies in results."""

from __future__ import annotations

import pytest

import manyarms as ma
from manyarms.simulation import cell

COINS = ma.instances.planted(n=50, m=5)


def _labels(*policies: ma.Policy) -> list[str]:
    return [player.label for player in cell(list(policies), COINS, horizon=50).players]


def test_labels_show_parameters_that_are_not_the_defaults() -> None:
    assert _labels(ma.MOSSPlusPlus(), ma.EmpMOSSPlusPlus(beta=0.6, count_late=True)) == [
        "moss++",
        "empmoss++(count_late=True, beta=0.6)",
    ]
    assert _labels(ma.MOSSPlusPlus(index="kl")) == ["moss++(index='kl')"]
    assert _labels(ma.Patience(best_mean=0.9, bound="kl")) == ["patience(bound='kl')"]
    assert _labels(ma.Doubling(ma.MOSSPlusPlus(index="kl++"))) == ["anytime-moss++(index='kl++')"]
    assert _labels(ma.Guarded(ma.MOSSPlusPlus(beta=0.6))) == ["guarded-moss++(beta=0.6)"]


def test_known_parameters_are_shown_if_they_distinguish_policies() -> None:
    low, high = ma.MOSSOracle(alpha=0.2), ma.MOSSOracle(alpha=0.4)
    assert _labels(low, ma.MOSS()) == ["moss-oracle", "moss"]
    assert _labels(low, high) == ["moss-oracle(alpha=0.2)", "moss-oracle(alpha=0.4)"]


def test_policies_are_found_by_label_name_and_value() -> None:
    oracle, wide = ma.MOSSOracle(m=5), ma.MOSSPlusPlus(beta=0.6)
    result = ma.simulate([oracle, wide], COINS, horizon=40, replications=2)
    summary = result.summary()
    for policy, label in ((oracle, "moss-oracle"), (wide, "moss++(beta=0.6)")):
        for name in (policy, policy.name, label):
            assert summary[name].policy == label
            assert result.interval(name).estimate == summary[label].mean
    with pytest.raises(ma.UnknownNameError, match="Unknown policy of this result"):
        summary[ma.MOSSPlusPlus(beta=0.7)]
    both = ma.simulate([wide, ma.MOSSPlusPlus(beta=0.7)], COINS, horizon=40, replications=2)
    with pytest.raises(ma.UnknownNameError):
        both.of("moss++")  # ambiguous
