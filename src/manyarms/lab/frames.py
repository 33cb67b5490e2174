"""A result as data frames, with the columns of the tables on disk."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from manyarms.core.checks import check_choice
from manyarms.core.tabular import Library, Tabular, data_frame

__all__ = ["ResultFrames"]


class ResultFrames(Tabular):
    """What a `Result` shows in notebooks and hands on to pandas or polars."""

    policies: tuple[str, ...]
    rows: tuple[NDArray[Any], ...]
    times: NDArray[np.int64]
    first_replication: int

    @abstractmethod
    def summary(self) -> Tabular:
        """Summarise the regrets at the last checkpoint."""

    def _columns(self) -> dict[str, Any]:
        return self._tidy(over_time=False)

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()

    def to_dataframe(
        self, table: Literal["runs", "regret"] = "runs", *, library: Library | None = None
    ) -> Any:
        """Return what was measured as a data frame, with the columns of the tables on disk.

        pandas or polars must be installed; the extra `lab` contains neither.

        Parameters
        ----------
        table
            "runs" has a row for each policy and replication (default); "regret" has one for each
            checkpoint too.
        library
            "pandas" or "polars" (default: the one that is imported already, else the one that is
            installed, and pandas if both are).

        Examples
        --------
        >>> import manyarms as ma
        >>> coins = ma.instances.planted(n=50, m=5)
        >>> result = ma.simulate([ma.MOSS(), ma.Quantile()], coins, horizon=100, replications=3)
        >>> result.to_dataframe(library="pandas").groupby("policy")["regret"].count().to_dict()
        {'moss': 3, 'quantile': 3}
        """
        check_choice("table", table, choices=("runs", "regret"))
        return data_frame(self._tidy(over_time=table == "regret"), library)

    def _tidy(self, *, over_time: bool) -> dict[str, Any]:
        """Return a column for each thing measured, with a row for each run, or run and time."""
        each = len(self.times) if over_time else 1
        runs = [len(rows) for rows in self.rows]
        first = self.first_replication
        numbers = np.concatenate([np.arange(first, first + count) for count in runs])
        found: dict[str, Any] = {
            "policy": np.repeat(np.array(self.policies, object), np.multiply(runs, each)),
            "replication": np.repeat(numbers, each),
        }
        if over_time:
            found["time"] = np.tile(self.times, sum(runs))
            found["regret"] = np.concatenate([rows["regret"].ravel() for rows in self.rows])
            return found
        found["regret"] = np.concatenate([rows["regret"][:, -1] for rows in self.rows])
        others = (name for name in self.rows[0].dtype.names or () if name != "regret")
        return found | {name: np.concatenate([rows[name] for rows in self.rows]) for name in others}
