"""The fifteen claims on made-up results, where the truth is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from manyarms.instances import from_means
from manyarms.lab.results import Result
from manyarms.report.verdicts import Verdict, exactly
from manyarms.studies.claims.inequalities import (
    PaperResults,
    contest_facts,
    contest_ratios,
    late_growth,
    paper_claims,
)
from tests.report.test_figures import made_up

ALPHAS = [k / 10 for k in range(1, 10)]
SIX = ("moss", "moss-oracle", "quantile", "parallel", "moss++", "empmoss++")


def _result(
    finals: Mapping[str, float],
    *,
    late: Mapping[str, float] | None = None,
    parameters: Sequence[Mapping[str, Any]] = (),
) -> Result:
    """Regrets of 50 replications around given means; `late` is the share of the last fifth."""
    rng = np.random.default_rng(1)
    times = np.arange(500, 50_001, 500)
    curves = []
    for policy, final in finals.items():
        share = (late or {}).get(policy, 0.2)
        grown = np.where(times <= 40_000, (1 - share) * times / 40_000, 0.0)
        grown += np.where(times > 40_000, 1 - share * (50_000 - times) / 10_000, 0.0)
        curves.append(final * (1 + 0.01 * rng.normal(size=(50, 1))) * grown)
    made = made_up(tuple(finals), curves, tuple(times))
    return replace(made, n_arms=20_000, policy_parameters=tuple(parameters))


def _sizes(larger: float, smaller: float) -> Result:
    sizes = [{"name": "moss-oracle", "size": size} for size in (4, 8)]
    return _result({"few": smaller, "many": larger}, parameters=sizes)


def _six(values: Sequence[float]) -> dict[str, float]:
    return dict(zip(SIX, values, strict=True))


def _paper(**changes: object) -> PaperResults:
    """Results on which every claim of the paper is true."""
    fig2a = {
        a: _result(
            _six(
                [
                    200_000 * (1 + a) if a < 0.7 else 800_000,
                    1_000 * (1 + a) if a < 0.3 else 50_000 * (1 + a),
                    1_000 if a < 0.15 else 19_000 * (1 + a / 10) + 100 * a,
                    300_000 * (1 + a),
                    1_500 * (1 + a),
                    1_000 * (1 + a),
                ]
            )
        )
        for a in ALPHAS
    }
    flat = {"moss": 0.01, "moss-oracle": 0.01, "parallel": 0.01, "empmoss++": 0.01}
    adaptive = [{"name": name, "beta": 0.9} for name in ("moss++", "empmoss++")]
    betas = {
        a: _result(dict.fromkeys("ab", 9e5 if a < 0.5 else 1.0), parameters=adaptive)
        for a in (0.1, 0.2, 0.8, 0.9)
    }
    parts = {
        "fig2a": fig2a,
        "fig2b": _result(_six([30_000, 1_000, 20_000, 5_000, 3_000, 1_200]), late=flat),
        "fig3": _result(_six([20_000, 5_000, 26_000, 17_000, 12_000, 2_500]), late=flat),
        "larger_betas": betas,
        "oracle_sizes": _sizes(900, 500),
        "quantile_as_moss": {
            a: _result({"moss-oracle": float(r.of("quantile")[:, -1].mean())})
            for a, r in fig2a.items()
        },
        "contest_facts": (exactly("arms", 10025, "= 10025", True),),
    }
    return PaperResults(**(parts | changes))  # type: ignore[arg-type]


def _verdicts(paper: PaperResults) -> dict[int, Verdict]:
    return {claim.number: claim.verdict for claim in paper_claims(paper)}


def test_where_all_is_as_the_paper_says_most_claims_hold() -> None:
    verdicts = _verdicts(_paper())
    assert sorted(verdicts) == list(range(1, 16))
    # 1: MOSS was made flat from 0.7 on; 3, 4: Quantile cannot be both much worse and at 20000
    for number in (2, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15):
        assert verdicts[number] == Verdict.HOLDS, number


def test_claims_fail_where_the_numbers_turn() -> None:
    worse = _result(_six([20_000, 5_000, 26_000, 17_000, 12_000, 5_500]))
    verdicts = _verdicts(_paper(fig3=worse))
    assert verdicts[11] == Verdict.FAILS  # not flat, and MOSS is not 7 times empMOSS++
    assert verdicts[12] == Verdict.FAILS
    assert _verdicts(_paper(oracle_sizes=_sizes(500, 900)))[14] == Verdict.FAILS
    assert _verdicts(_paper(contest_facts=()))[10] == Verdict.OPEN


def test_ratios_on_the_contest_are_told_by_means_and_medians() -> None:
    lines = contest_ratios(_result(_six([20_000, 5_000, 26_000, 17_000, 12_000, 2_500])))
    assert len(lines) == 2
    assert lines[0].startswith("On made up, moss / empmoss++: means ")
    assert "medians" in lines[1]


def test_claims_on_a_stand_in_say_so() -> None:
    paper = _paper()
    claims = paper_claims(replace(paper, fig3=replace(paper.fig3, is_stand_in=True)))
    labelled = [claim.number for claim in claims if "652 (stand-in)" in claim.text]
    assert labelled == [10, 11, 12, 14]
    assert not any("stand-in" in claim.text for claim in paper_claims(paper))


def test_a_beta_and_a_size_are_read_from_their_columns() -> None:
    claims = {claim.number: claim for claim in paper_claims(_paper())}
    assert claims[13].parts[0].what == "alpha 0.1, moss++: beta 0.9 - beta 0.5"
    assert [part.what for part in claims[14].parts] == ["many - few"]


def test_late_growth_is_the_share_of_the_last_fifth() -> None:
    result = _result({"moss": 100.0}, late={"moss": 0.07})
    growth = late_growth(result, "moss")
    assert abs(growth.estimate - 0.07) < 1e-9


def test_fewer_replications_are_the_first_ones() -> None:
    paper = _paper()
    assert paper.first(10).fig2b.replications == 10
    np.testing.assert_array_equal(paper.first(10).fig3.regret, paper.fig3.regret[:, :10])
    assert len(paper_claims(paper.first(1))) == 15  # nothing can be told, nothing breaks


def test_facts_of_a_contest() -> None:
    means = np.r_[np.ones(54), np.linspace(0.0, 0.79, 9971)]
    facts = contest_facts(from_means(means), 100_000)
    assert [part.verdict for part in facts] == [Verdict.HOLDS] * 4 + [Verdict.FAILS]
