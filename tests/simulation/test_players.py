"""Labels of policies in tables, and finding policies in results."""

from __future__ import annotations

import numpy as np
import pytest

import manyarms as ma
from manyarms.simulation import Player, Sweep, cell, run_in_memory
from manyarms.simulation.players import label_of

COINS = ma.instances.planted(n=50, m=5)


class Weighted:
    """Pulls the arm of the first largest weight."""

    def __init__(self, weights: np.ndarray) -> None:
        self.arm = int(weights.argmax()) % 50

    def ask(self) -> int:
        return self.arm

    def tell(self, arm: int, reward: float) -> None:
        pass


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


def test_a_plain_class_is_found_with_its_default_parameters() -> None:
    class Fixed:
        def __init__(self, arm: int = 0) -> None:
            self.arm = arm

        def ask(self) -> int:
            return self.arm

        def tell(self, arm: int, reward: float) -> None:
            pass

    third = ma.plain_policy(Fixed, arm=30)
    result = ma.simulate([third, Fixed, ma.MOSS()], COINS, horizon=40, replications=2)
    assert result.summary()[Fixed].policy == "Fixed"
    assert (result.of(Fixed) == result.of("Fixed")).all()
    assert result.difference(third, Fixed).estimate > 0.0
    alone = ma.simulate([third], COINS, horizon=40, replications=2)
    with pytest.raises(ma.UnknownNameError, match="Unknown policy of this result"):
        alone.of(Fixed)


def test_a_policy_that_was_not_played_is_not_found() -> None:
    played = [ma.MOSSOracle(m=20), ma.Parallel(best_mean=0.5), ma.Quantile()]
    result = ma.simulate(played, COINS, horizon=40, replications=2)
    summary = result.summary()
    others = [
        *(ma.MOSSOracle(alpha=0.9), ma.MOSSOracle(m=21), ma.MOSSOracle(size=20)),
        *(ma.Parallel(best_mean=0.9), ma.Parallel(), ma.MOSS()),
    ]
    for policy in others:
        with pytest.raises(ma.UnknownNameError, match="Unknown policy of this result: .(MOSS|Par)"):
            result.of(policy)
        with pytest.raises(ma.UnknownNameError):
            _ = summary[policy]
        with pytest.raises(ma.UnknownNameError):
            result.difference(played[0], policy)
    assert result.difference(played[0], ma.MOSSOracle(m=20)).estimate == 0.0
    assert [summary[policy].policy for policy in played] == ["moss-oracle", "parallel", "quantile"]
    with pytest.raises(ma.UnknownNameError, match=r"Did you mean .Parallel\(.*best_mean=0.5.*\)"):
        result.of(ma.Parallel(best_mean=0.9))


def test_a_policy_with_two_labels_needs_a_label() -> None:
    players = [Player(ma.MOSS(), label, 3) for label in ("first", "second")]
    result = run_in_memory(Sweep("x", (cell(players, COINS, horizon=40),)), progress=False).cells[0]
    with pytest.raises(ma.ParameterError, match="played as 'first' and 'second'. Pass a label."):
        result.of(ma.MOSS())
    assert result.difference("first", "second").estimate == 0.0  # they are the same
    mine = cell([Player(ma.MOSS(), "mine", 3)], COINS, horizon=40)
    found = run_in_memory(Sweep("x", (mine,)), progress=False).cells[0]
    assert (found.of(ma.MOSS()) == result.of("first")).all()


def test_policies_with_long_arrays_are_told_apart() -> None:
    weights, others = np.zeros(3000), np.zeros(3000)
    others[1500] = 1e-12
    players = [
        Player(ma.plain_policy(Weighted, weights=values), label, 2)
        for label, values in (("a", weights), ("b", others))
    ]
    with pytest.raises(ma.ParameterError, match=r"different labels, got .* twice.*give each a lab"):
        cell([player.policy for player in players], COINS, horizon=4)
    result = run_in_memory(Sweep("x", (cell(players, COINS, horizon=4),)), progress=False).cells[0]
    assert len(set(result.specifications)) == 2
    for player in players:
        assert label_of(
            player.policy, zip(result.policies, result.specifications, strict=True)
        ) == (player.label)


def test_figures_of_several_cells_look_up_policies_by_what_was_played() -> None:
    pytest.importorskip("matplotlib")
    from manyarms.report import regret_against_hardness

    alphas = (0.2, 0.4)
    results = {
        alpha: ma.simulate(
            [ma.MOSSOracle(alpha=alpha), ma.MOSS()],
            ma.instances.planted(n=50, alpha=alpha, horizon=40),
            horizon=40,
            replications=2,
        )
        for alpha in alphas
    }
    figure = regret_against_hardness(results, policies=["moss-oracle", ma.MOSS()])
    assert [line.get_label() for line in figure.axes[0].lines] == ["MOSS Oracle", "MOSS"]
    with pytest.raises(ma.ParameterError, match=r"played as 'moss-oracle', and so was .*Pass a la"):
        regret_against_hardness(results, policies=[ma.MOSSOracle(alpha=0.2)])
    with pytest.raises(ma.UnknownNameError):
        regret_against_hardness(results, policies=[ma.MOSSOracle(alpha=0.3)])
