"""The catalogue: what each policy needs to know, its guarantee and its cost.

`manyarms policies`, the page "The policies" and the leaderboard show it in this order.
"""

from __future__ import annotations

from typing import Literal, NamedTuple


class Entry(NamedTuple):
    """A short description of a policy.

    Attributes
    ----------
    kind
        "paper" (*On Regret with Multiple Best Arms*), "ours", or "field" (all others).
    needs
        What the policy must be given, including the horizon, or "nothing".
    guarantee, good_at, source
        Its regret guarantee, the problems it suits, and where it was published.
    scaling
        What the time per pull grows with.
    page
        The documentation page with its algorithm, guarantee, cost and an example.
    rewards
        "any", or "[0, 1]" if rewards must lie there.

    Examples
    --------
    >>> import manyarms as ma
    >>> ma.policies.CATALOGUE["parallel"].needs
    'horizon, μ*'
    """

    kind: Literal["paper", "ours", "field"]
    needs: str
    guarantee: str
    scaling: str
    good_at: str
    page: str
    source: str = "\N{EN DASH}"  # none
    rewards: Literal["any", "[0, 1]"] = "any"


CATALOGUE: dict[str, Entry] = {
    "moss": Entry(
        kind="paper",
        needs="horizon",
        guarantee="minimax over n arms for T ≥ n",
        scaling="log of arms pulled",
        good_at="few arms, many pulls",
        source="Audibert & Bubeck 2009",
        page="docs/policies/moss.md",
    ),
    "moss-oracle": Entry(
        kind="paper",
        needs="horizon, hardness or m",
        guarantee="minimax up to a logarithm",
        scaling="log of arms pulled",
        good_at="problems whose share of best arms is known",
        source="Zhu & Nowak 2020",
        page="docs/policies/moss_oracle.md",
    ),
    "quantile": Entry(
        kind="paper",
        needs="nothing",
        guarantee="sublinear below hardness 0.35",
        scaling="log of arms pulled",
        good_at="many good arms, no horizon",
        source="Chaudhuri & Kalyanakrishnan 2018 (QRM2)",
        page="docs/policies/quantile.md",
    ),
    "moss++": Entry(
        kind="paper",
        needs="horizon",
        guarantee="Pareto optimal, every beta in [1/2, 1)",
        scaling="log of arms in the set",
        good_at="a guarantee at every hardness",
        source="Zhu & Nowak 2020",
        page="docs/policies/moss_plus_plus.md",
    ),
    "empmoss++": Entry(
        kind="paper",
        needs="horizon",
        guarantee="none proven",
        scaling="log of arms in the set",
        good_at="wide gaps, rare best arms",
        source="Zhu & Nowak 2020",
        page="docs/policies/emp_moss_plus_plus.md",
    ),
    "parallel": Entry(
        kind="paper",
        needs="horizon, μ*",
        guarantee="near minimax at every hardness, (log T)²",
        scaling="log of arms pulled",
        good_at="a known best mean",
        source="Zhu & Nowak 2020",
        page="docs/policies/parallel.md",
    ),
    "anytime-moss++": Entry(
        kind="paper",
        needs="nothing",
        guarantee="as MOSS++, larger constant",
        scaling="log of arms in the set",
        good_at="MOSS++ without a horizon",
        source="Zhu & Nowak 2020",
        page="docs/policies/doubling.md",
    ),
    "anytime-parallel": Entry(
        kind="paper",
        needs="μ*",
        guarantee="as Parallel, larger constant",
        scaling="log of arms pulled",
        good_at="Parallel without a horizon",
        source="Zhu & Nowak 2020",
        page="docs/policies/doubling.md",
    ),
    "prospector": Entry(
        kind="ours",
        needs="nothing",
        guarantee="Pareto optimal, as MOSS++, constant 10",
        scaling="log of arms opened",
        good_at="little is known about the arms; many best arms or few",
        source="ours, docs/guard.md",
        page="docs/policies/prospector.md",
        rewards="[0, 1]",
    ),
    "guarded-ss-greedy": Entry(
        kind="ours",
        needs="horizon",
        guarantee="Pareto optimal, as MOSS++, constant 10",
        scaling="log of arms in the subset",
        good_at="SS-Greedy with a guarantee",
        source="ours, docs/guard.md",
        page="docs/policies/guarded.md",
        rewards="[0, 1]",
    ),
    "guarded-empmoss++": Entry(
        kind="ours",
        needs="horizon",
        guarantee="Pareto optimal, as MOSS++, constant 10",
        scaling="log of arms in the set",
        good_at="empMOSS++ with a guarantee",
        source="ours, docs/guard.md",
        page="docs/policies/guarded.md",
        rewards="[0, 1]",
    ),
    "patience": Entry(
        kind="ours",
        needs="horizon, μ*",
        guarantee="near minimax at every hardness, √log T",
        scaling="constant",
        good_at="a known best mean; statistics of one arm only",
        source="ours; the rule as in UCB-TP (2022)",
        page="docs/policies/patience.md",
    ),
    "scout": Entry(
        kind="ours",
        needs="horizon",
        guarantee="none: measured only",
        scaling="log of arms opened",
        good_at="keeping one good arm of very many; many pending pulls",
        page="docs/policies/scout.md",
        rewards="[0, 1]",
    ),
    "ucb1": Entry(
        kind="field",
        needs="nothing",
        guarantee="log T regret for fixed gaps",
        scaling="arms tried",
        good_at="few arms; a standard baseline",
        source="Auer et al. 2002",
        page="docs/policies/few_arms.md",
        rewards="[0, 1]",
    ),
    "ucb": Entry(
        kind="field",
        needs="nothing",
        guarantee="asymptotically optimal, Gaussian rewards",
        scaling="arms tried",
        good_at="few arms, no horizon",
        source="Lattimore & Szepesvári 2020",
        page="docs/policies/few_arms.md",
    ),
    "kl-ucb": Entry(
        kind="field",
        needs="nothing",
        guarantee="asymptotically optimal, rewards 0 and 1",
        scaling="arms tried",
        good_at="few arms, means near 0 or 1",
        source="Garivier & Cappé 2011",
        page="docs/policies/few_arms.md",
        rewards="[0, 1]",
    ),
    "kl-moss": Entry(
        kind="field",
        needs="horizon",
        guarantee="none claimed",
        scaling="log of arms pulled",
        good_at="few arms, means near 0 or 1",
        source="Garivier et al. 2022",
        page="docs/policies/few_arms.md",
        rewards="[0, 1]",
    ),
    "kl-ucb++": Entry(
        kind="field",
        needs="horizon",
        guarantee="minimax and asymptotically optimal, rewards 0 and 1",
        scaling="log of arms pulled",
        good_at="few arms, means near 0 or 1, with a guarantee",
        source="Ménard & Garivier 2017",
        page="docs/policies/few_arms.md",
        rewards="[0, 1]",
    ),
    "kl-ucb-switch": Entry(
        kind="field",
        needs="horizon",
        guarantee="optimal per problem and minimax over n arms",
        scaling="log of arms pulled",
        good_at="few arms, best of both guarantees",
        source="Garivier et al. 2022",
        page="docs/policies/few_arms.md",
        rewards="[0, 1]",
    ),
    "thompson": Entry(
        kind="field",
        needs="nothing",
        guarantee="asymptotically optimal, rewards 0 and 1",
        scaling="arms tried",
        good_at="few arms, rewards 0 and 1",
        source="Thompson 1933; Agrawal & Goyal 2012",
        page="docs/policies/few_arms.md",
        rewards="[0, 1]",
    ),
    "ss-greedy": Entry(
        kind="field",
        needs="horizon",
        guarantee="Bayesian, for means dense near the best",
        scaling="log of arms in the subset",
        good_at="many good arms; hard to beat there",
        source="Bayati et al. 2020",
        page="docs/policies/subsets.md",
    ),
    "ss-ucb": Entry(
        kind="field",
        needs="horizon",
        guarantee="Bayesian, for means dense near the best",
        scaling="arms in the subset",
        good_at="many good arms",
        source="Bayati et al. 2020",
        page="docs/policies/subsets.md",
    ),
    "cbt": Entry(
        kind="field",
        needs="horizon, μ* = 1, shape b",
        guarantee="asymptotically optimal for known shape",
        scaling="constant",
        good_at="best arms that never fail, known shape",
        source="Chan & Hu 2018",
        page="docs/policies/never_fail.md",
        rewards="[0, 1]",
    ),
    "empirical-cbt": Entry(
        kind="field",
        needs="horizon",
        guarantee="asymptotically optimal if μ* = 1, shape unknown",
        scaling="log of arms opened",
        good_at="best arms that seldom fail, unknown shape",
        source="Chan & Hu 2018",
        page="docs/policies/never_fail.md",
        rewards="[0, 1]",
    ),
    "sequential-halving": Entry(
        kind="field",
        needs="horizon",
        guarantee="finds the best of its K arms with high probability",
        scaling="log of arms in the subset",
        good_at="keeping one arm, where K fits the problem",
        source="Karnin et al. 2013",
        page="docs/policies/finders.md",
    ),
    "uniform": Entry(
        kind="field",
        needs="nothing",
        guarantee="none: regret grows with T",
        scaling="constant",
        good_at="a baseline: the regret of not learning",
        page="docs/policies/few_arms.md",
    ),
}
