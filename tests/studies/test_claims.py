"""The fifteen claims on made-up results, where the truth is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from manyarms.instances import from_means
from manyarms.lab.results import Result
from manyarms.report.verdicts import Verdict, exactly
from manyarms.studies.claims import (
    Paper,
    contest_facts,
    contest_ratios,
    late_growth,
    paper_claims,
)
from tests.report.made import made_result

ALPHAS = [k / 10 for k in range(1, 10)]
SIX = ("moss", "moss-oracle", "quantile", "parallel", "moss++", "empmoss++")
TIMES = np.arange(500, 50_001, 500)
FLAT = {"moss": 0.01, "moss-oracle": 0.01, "parallel": 0.01, "empmoss++": 0.01}
FACTS = (exactly("arms", 10025, "= 10025", True),)


def _result(
    finals: Mapping[str, float], late: Mapping[str, float] | None = None, **others: Any
) -> Result:
    """Regrets of 50 replications around given means; `late` is the share of the last fifth."""
    rng = np.random.default_rng(1)
    curves = {}
    for policy, final in finals.items():
        share = (late or {}).get(policy, 0.2)
        grown = np.where(TIMES <= 40_000, (1 - share) * TIMES / 40_000, 0.0)
        grown += np.where(TIMES > 40_000, 1 - share * (50_000 - TIMES) / 10_000, 0.0)
        curves[policy] = final * (1 + 0.01 * rng.normal(size=(50, 1))) * grown
    return made_result(curves, TIMES.tolist(), n_arms=20_000, **others)


def _sizes(larger: float, smaller: float) -> Result:
    told = {"few": {"size": 4}, "many": {"size": 8}}
    return _result({"few": smaller, "many": larger}, told=told)


def _six(*values: float, late: Mapping[str, float] | None = None) -> Result:
    return _result(dict(zip(SIX, values, strict=True)), late)


CONTEST = _six(20_000, 5_000, 26_000, 17_000, 12_000, 2_500, late=FLAT)


def _paper(**changes: Result) -> Paper:
    """Results on which every claim of the paper is true."""
    fig2a = {
        a: _six(
            200_000 * (1 + a) if a < 0.7 else 800_000,
            1_000 * (1 + a) if a < 0.3 else 50_000 * (1 + a),
            1_000 if a < 0.15 else 19_000 * (1 + a / 10) + 100 * a,
            300_000 * (1 + a),
            1_500 * (1 + a),
            1_000 * (1 + a),
        )
        for a in ALPHAS
    }
    told = {
        label: {"name": name, "beta": 0.9} for label, name in (("a", "moss++"), ("b", "empmoss++"))
    }
    single = {
        "fig2b": _six(30_000, 1_000, 20_000, 5_000, 3_000, 1_200, late=FLAT),
        "fig3": CONTEST,
        "oracle_sizes": _sizes(900, 500),
    }
    return {
        "fig2a": fig2a,
        "larger_betas": {
            a: _result(dict.fromkeys("ab", 9e5 if a < 0.5 else 1.0), told=told)
            for a in (0.1, 0.2, 0.8, 0.9)
        },
        "quantile_as_moss": {
            a: _result({"moss-oracle": float(r.of("quantile")[:, -1].mean())})
            for a, r in fig2a.items()
        },
        **{name: {0.25: result} for name, result in (single | changes).items()},
    }


def _verdicts(**changes: Result) -> dict[int, Verdict]:
    return {claim.number: claim.verdict for claim in paper_claims(_paper(**changes), FACTS)}


def test_where_all_is_as_the_paper_says_most_claims_hold() -> None:
    verdicts = _verdicts()
    assert sorted(verdicts) == list(range(1, 16))
    # 1: MOSS was made flat from 0.7 on; 3, 4: Quantile cannot be both much worse and at 20000
    for number in (2, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15):
        assert verdicts[number] == Verdict.HOLDS, number


def test_claims_fail_where_the_numbers_turn() -> None:
    verdicts = _verdicts(fig3=_six(20_000, 5_000, 26_000, 17_000, 12_000, 5_500))
    assert verdicts[11] == Verdict.FAILS  # not flat, and MOSS is not 7 times empMOSS++
    assert verdicts[12] == Verdict.FAILS
    assert _verdicts(oracle_sizes=_sizes(500, 900))[14] == Verdict.FAILS
    assert paper_claims(_paper(), ())[9].verdict == Verdict.OPEN


def test_ratios_on_the_contest_are_told_by_means_and_medians() -> None:
    lines = contest_ratios(CONTEST)
    assert len(lines) == 2
    assert lines[0].startswith("On made up, moss / empmoss++: means ")
    assert "medians" in lines[1]


def test_claims_on_a_stand_in_say_so() -> None:
    for stand_in, labelled in ((True, [10, 11, 12, 14]), (False, [])):
        claims = paper_claims(_paper(fig3=replace(CONTEST, is_stand_in=stand_in)), FACTS)
        assert [claim.number for claim in claims if "652 (stand-in)" in claim.text] == labelled


def test_a_beta_and_a_size_are_read_from_their_columns() -> None:
    claims = {claim.number: claim for claim in paper_claims(_paper(), FACTS)}
    assert claims[13].parts[0].what == "alpha 0.1, moss++: beta 0.9 - beta 0.5"
    assert [part.what for part in claims[14].parts] == ["many - few"]


def test_late_growth_is_the_share_of_the_last_fifth() -> None:
    result = _result({"moss": 100.0}, late={"moss": 0.07})
    growth = late_growth(result, "moss")
    assert abs(growth.estimate - 0.07) < 1e-9


def test_one_replication_decides_nothing_and_breaks_nothing() -> None:
    one = {name: {a: r.first(1) for a, r in own.items()} for name, own in _paper().items()}
    assert len(paper_claims(one, ())) == 15


def test_facts_of_a_contest() -> None:
    means = np.r_[np.ones(54), np.linspace(0.0, 0.79, 9971)]
    facts = contest_facts(from_means(means), 100_000)
    assert [part.verdict for part in facts] == [Verdict.HOLDS] * 4 + [Verdict.FAILS]
