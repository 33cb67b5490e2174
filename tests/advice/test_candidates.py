"""Who may be the answer: facts decide."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import manyarms as ma
from manyarms.advice.candidates import _OUTPLAYED, Candidate, candidates
from manyarms.cli.arguments import policy_from
from manyarms.instances import Gaussian, planted
from manyarms.protocol import About, described
from tests.advice.test_question import ask


def found(**given: Any) -> dict[str, Candidate]:
    return {player.label: player for player in candidates(ask(**given))}


def names(**given: Any) -> set[str]:
    return {player.policy.name for player in found(**given).values()}


def told(*knowledge: str) -> set[str]:
    return {
        name
        for name, about in described().items()
        if about.knowledge in knowledge and not about.perfect_best and "anytime" not in name
        if not about.finds
    }


def test_everybody_plays_who_is_told_no_more() -> None:
    def all_of(**given: Any) -> set[str]:
        return names(policies="all", **given)

    assert all_of() == told("none")
    assert all_of(m_at_least=30) == all_of(alpha_at_most=0.2) == told("none", "m")
    assert all_of(best_mean=0.7) == told("none", "mu*")
    assert "cbt" in all_of(best_mean=1.0)
    assert {"thompson", "kl-moss"} <= all_of()


def test_at_first_those_play_that_may_well_win() -> None:
    few = {"prospector", "ss-greedy", "guarded-ss-greedy", "empirical-cbt"}
    assert names() == few
    waiting = {one.label: one.waits_for for one in found().values() if one.waits_for}
    assert waiting["guarded-ss-greedy"] == "ss-greedy"
    assert all(label.startswith("guarded-ss-greedy") for label in waiting)
    assert not any(one.waits_for for one in found(policies="all").values())
    assert names(m_at_least=30) == few | {"moss-oracle"}
    assert names(best_mean=0.7) == few | {"patience"}
    assert names(best_mean=1.0) == few | {"patience", "cbt"}
    assert described().keys() >= _OUTPLAYED


def test_whoever_is_first_on_the_leaderboard_plays() -> None:
    """Who has the least regret on a problem, of those that know as much, is not left out."""
    text = (Path(__file__).parents[2] / "docs" / "leaderboard.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(line for line in text.splitlines() if line[0] != "#"))
    assert len(rows) > 1000
    about = described()
    for known in ({"none"}, {"none", "m"}, {"none", "mu*"}):
        least: dict[str, list[tuple[float, str]]] = {}
        for row in rows:
            name = row["policy"].partition("(")[0]
            if row["knowledge"] in known and not about[name].perfect_best:
                least.setdefault(row["problem"], []).append((float(row["mean"]), name))
        for played in least.values():
            best = min(played)[0]
            assert {name for mean, name in played if mean <= 1.001 * best} - _OUTPLAYED


def test_finders_play_where_an_arm_is_to_be_found() -> None:
    finders = {name for name, about in described().items() if about.finds}
    assert finders == {"scout", "sequential-halving"}
    here = names(objective="find", policies="all")
    assert finders <= here
    few = {"scout", "sequential-halving", "prospector"}
    assert names(objective="find") == few
    assert {"prospector", "empmoss++"} <= here
    assert "ucb1" not in here


def test_other_forms_play_too() -> None:
    labels = found(best_mean=0.7, policies="all")
    assert {"moss++", "moss++(beta=0.6)", "empmoss++(kl, beta=0.6)", "patience(kl)"} <= set(labels)
    assert {"moss++(kl++)", "empmoss++(kl)", "prospector(beta=0.55)"} <= set(labels)
    assert labels["prospector(beta=0.55, bold)"].policy.label == "prospector(beta=0.55, bold)"
    assert "empmoss++(kl, beta=0.55)" not in labels  # nothing is proven of it
    assert labels["ss-greedy(exponent=2/3)"].policy == ma.policy("ss-greedy", exponent=2 / 3)
    assert labels["moss++"].proven
    assert not labels["empmoss++(kl)"].proven


def test_rewards_outside_the_unit_interval_leave_some_out() -> None:
    normal = planted(n=100, m=5, rewards=Gaussian(0.5))
    here = found(n=None, instance=normal, policies="all")
    assert not {"kl-moss", "thompson", "empmoss++(kl)"} & set(here)
    assert {"moss", "moss++"} <= set(here)


def test_what_is_known_is_told_and_can_be_typed() -> None:
    here = found(m_at_least=30, best_mean=0.7, in_flight=5, policies="all")
    assert here["moss-oracle(count_late)"].policy == ma.MOSSOracle(m=30, count_late=True)
    assert here["patience"].policy == ma.Patience(best_mean=0.7)
    for player in here.values():
        assert eval(player.code, {"ma": ma}) == player.policy
        assert policy_from(player.word, planted(n=9, m=3), None) == player.policy


def test_a_policy_joins_by_being_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    class Newcomer(ma.MOSS):
        """A user's own."""

        about = About(needs="horizon", guarantee="none", scaling="n", good_at="all")

    known = {"moss": ma.MOSS, "newcomer": Newcomer}
    monkeypatch.setattr("manyarms.protocol.registry._makers", known)
    assert list(found()) == ["newcomer"]
    assert list(found(policies="all")) == ["moss", "newcomer"]
    told_more = replace(Newcomer.about, knowledge="mu*")
    monkeypatch.setattr(Newcomer, "about", told_more)
    assert list(found(policies="all")) == ["moss"]


def test_one_may_choose_among_some() -> None:
    mine = ma.Patience()
    here = found(policies=["moss", "moss-oracle", mine], best_mean=0.8)
    assert list(here) == ["moss", "patience"]
    assert list(found(policies=ma.MOSS())) == ["moss"]
    (tuned,) = found(policies=ma.MOSSPlusPlus(beta=0.55)).values()
    assert (tuned.code, tuned.word) == ('ma.policy("moss++", beta=0.55)', "moss++:beta=0.55")
    with pytest.raises(ma.ParameterError, match="`policies` must contain some that need to"):
        found(policies=["moss-oracle"])


def test_a_proof_is_quoted_only_where_its_conditions_hold() -> None:
    """The best mean is at most 0.05 here; the proof of empirical-cbt needs 1."""
    cbt = found(n=1000, horizon=2000, best_between=(0.01, 0.05))["empirical-cbt"]
    assert (cbt.proven, cbt.unmet) == (False, ("best mean 1",))
    assert cbt.proof == "Nothing is proved about it here: its guarantee needs best mean 1."
    sure = found(n=1000, horizon=2000, best_mean=1.0)["empirical-cbt"]
    assert sure.proven
    assert sure.proof.startswith("Proved: asymptotically optimal if μ* = 1")
    for horizon, proven in ((999, False), (1000, True)):
        assert found(n=1000, horizon=horizon, policies="moss")["moss"].proven == proven
    assert not found(n=1000, horizon=2000, policies="quantile")["quantile"].proven
    easy = found(n=1000, horizon=2000, alpha_at_most=0.2, policies="quantile")
    assert easy["quantile"].proven
    own = planted(n=50, m=5, rewards=Gaussian())
    gaussian = found(n=None, horizon=2000, instance=own, policies="moss")
    assert gaussian["moss"].proven
    here = found(n=1000, horizon=2000, policies=["prospector", "greedy"])
    assert here["prospector"].proven
    assert here["greedy"].proof == "Nothing is proved about it."


def test_words_of_a_condition_are_in_its_list() -> None:
    for about in described().values():
        if "if μ* = 1" in about.guarantee or "uniform means" in about.guarantee:
            assert about.only_if
        if about.guarantee.startswith("none"):
            assert not about.only_if
