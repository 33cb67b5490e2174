"""The results that the paper's claims are about, and the comparisons the claims are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from manyarms.core.statistics import Interval, mean_interval, ratio_interval
from manyarms.report.verdicts import Part, more
from manyarms.results import Result

__all__ = ["ADAPTIVE", "PaperResults", "beats", "better_adaptive", "final", "late_growth", "ratio"]

ADAPTIVE = ("moss++", "empmoss++")

Regrets = NDArray[np.float64]


@dataclass(frozen=True)
class PaperResults:
    """The results that the claims are about; mappings are by hardness."""

    fig2a: Mapping[float, Result]
    fig2b: Result
    fig3: Result
    larger_betas: Mapping[float, Result]
    oracle_sizes: Result
    quantile_as_moss: Mapping[float, Result]
    contest_facts: tuple[Part, ...]  # of claim 10; empty for a stand-in

    def first(self, replications: int) -> PaperResults:
        """Return the same, as if only so many replications had been played."""

        def cut(results: Mapping[float, Result]) -> dict[float, Result]:
            return {alpha: result.first(replications) for alpha, result in results.items()}

        return replace(
            self,
            fig2a=cut(self.fig2a),
            fig2b=self.fig2b.first(replications),
            fig3=self.fig3.first(replications),
            larger_betas=cut(self.larger_betas),
            oracle_sizes=self.oracle_sizes.first(replications),
            quantile_as_moss=cut(self.quantile_as_moss),
        )


def final(result: Result, policy: str) -> Regrets:
    """Return the final regrets of a policy, by replication."""
    return np.asarray(result.of(policy)[:, -1])


def beats(result: Result, better: str, worse: str, where: str) -> Part:
    """Ask that one policy has lower mean regret than another."""
    gap = mean_interval(final(result, worse) - final(result, better))
    return more(f"{where}: {worse} - {better}", gap)


def ratio(result: Result, over: str, under: str) -> Interval:
    """Return the ratio of mean final regrets."""
    return ratio_interval(final(result, over), final(result, under))


def better_adaptive(result: Result) -> str:
    """Return the better of MOSS++ and empMOSS++."""
    return min(ADAPTIVE, key=lambda policy: float(final(result, policy).mean()))


def late_growth(result: Result, policy: str) -> Interval:
    """Return the share of the final mean that the last fifth of the horizon adds."""
    regret = result.of(policy)
    before = int(np.searchsorted(result.times, 0.8 * result.horizon))
    return ratio_interval(regret[:, -1] - regret[:, before], regret[:, -1])
