"""What `advise` returns: a table that prints as advice."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from manyarms.advice.candidates import code
from manyarms.errors import ParameterError
from manyarms.protocol import Policy

__all__ = ["Advice", "AdviceRow"]


@dataclass(frozen=True)
class AdviceRow:
    """One policy at one hardness.

    Attributes
    ----------
    policy, label, beta
        The policy, its name, and its beta if it has one.
    m, alpha
        The best arms that were planted, and the hardness that this makes.
    rate
        The regret grows as T^rate at most, up to logarithms; None if nothing is proven.
    mean, low, high
        The mean regret, with a 95 % interval that allows for costly runs that were not seen.
    median, miss_rate
        The median regret, and the share of runs that pulled no best arm.
    share
        The mean regret as a share of the horizon.
    excess
        The share less the lowest share at this hardness.
    ratio
        The mean regret over the lowest one at this hardness; losses below one reward count as one.
    replications
        The number of runs; 0 where the mean is known without playing.
    """

    policy: Policy
    label: str
    beta: float | None
    m: int
    alpha: float
    rate: float | None
    mean: float
    low: float
    high: float
    median: float
    miss_rate: float
    share: float
    excess: float
    ratio: float
    replications: int


@dataclass(frozen=True, repr=False)
class Advice:
    """How hard a problem is, what each policy would lose, and which one to take.

    `print` shows it in words.

    Attributes
    ----------
    n, horizon, best_mean, others
        The problem, and the means that were planted.
    bounded
        Whether a bound on the hardness was given.
    alpha
        The largest hardness that was asked about.
    within_reach
        Whether a best arm can be expected to be met even then: hardness at most 1.
    rows
        One `AdviceRow` for each hardness and policy, the easiest first.
    recommended
        The policy to take.
    confidence
        The share of bootstrap samples of the runs that recommend the same policy.
    problem, reasons, caveats
        Sentences: how hard it is, why this policy, and what would change the choice.

    Examples
    --------
    >>> import manyarms as ma
    >>> advice = ma.advise(n=500, horizon=100, m_at_least=100, replications=2)
    >>> {row.alpha for row in advice.rows if row.policy == advice.recommended} == advice.alphas
    True
    """

    n: int
    horizon: int
    best_mean: float
    others: tuple[float, ...]
    bounded: bool
    alpha: float
    within_reach: bool
    rows: tuple[AdviceRow, ...]
    recommended: Policy
    confidence: float
    problem: tuple[str, ...]
    reasons: tuple[str, ...]
    caveats: tuple[str, ...]

    @property
    def alphas(self) -> set[float]:
        """The hardnesses that were played."""
        return {row.alpha for row in self.rows}

    @property
    def code(self) -> str:
        """What to type to use the recommended policy live."""
        problem = f"n_arms={self.n:_}, horizon={self.horizon:_}"
        return f"{code(self.recommended)}.live({problem})"

    def at(self, alpha: float) -> list[AdviceRow]:
        """Return the rows of the hardness nearest to `alpha`."""
        if not alpha >= 0.0:
            raise ParameterError(f"`alpha` must be a number >= 0, got {alpha!r}.")
        # an infinite hardness is at distance 0 from itself, which subtraction does not tell
        nearest = alpha if alpha in self.alphas else min(self.alphas, key=lambda a: abs(a - alpha))
        return [row for row in self.rows if row.alpha == nearest]

    def records(self) -> list[dict[str, Any]]:
        """Return the rows as dictionaries of plain values, ready for a data frame."""
        return [{**asdict(row), "policy": code(row.policy)} for row in self.rows]

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain values; what is not finite becomes None."""
        whole = {
            **{key: value for key, value in vars(self).items() if key not in {"rows"}},
            "recommended": code(self.recommended),
            "code": self.code,
            "rows": self.records(),
        }
        return {key: _plain(value) for key, value in whole.items()}

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        from manyarms.advice.words import page

        return page(self)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and not abs(value) < float("inf"):  # so written, NaN as well
        return None
    return value
