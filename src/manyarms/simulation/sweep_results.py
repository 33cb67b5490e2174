"""The results of a sweep: one for each cell, and tables of all cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from manyarms.core.checks import check_choice
from manyarms.core.tabular import Tabular, TextTable
from manyarms.errors import ParameterError
from manyarms.simulation.results import Result
from manyarms.simulation.summary import (
    POLICY_COLUMNS,
    IntervalKind,
    PolicySummary,
    Summary,
    digits_of,
)
from manyarms.simulation.sweep import Objective, check_objective


class SweepResults(Tabular):
    """The results of a sweep, which `run` and `run_in_memory` return.

    `to_dataframe()` has a row for each policy in each cell: the parameters, and the numbers of
    `PolicySummary`.

    Attributes
    ----------
    cells
        A `Result` for each cell, in the order of the sweep.
    objective
        The objective of the sweep: "earn" or "find".
    """

    def __init__(self, cells: Sequence[Result], objective: Objective) -> None:
        self._cells, self._objective = cells, objective

    @property
    def cells(self) -> Sequence[Result]:
        return self._cells

    @property
    def objective(self) -> Objective:
        return self._objective

    def summaries(
        self,
        objective: Objective | None = None,
        *,
        interval: IntervalKind | None = None,
        confidence: float = 0.95,
    ) -> list[Summary]:
        """Return the summary of each cell at the horizon, with the paired differences.

        Parameters
        ----------
        objective
            "earn" for regret or "find" for simple regret (default: the objective of the sweep).
        interval, confidence
            As for `Result.summary`.
        """
        options: dict[str, Any] = {"interval": interval, "confidence": confidence}
        objective = check_objective(objective or self.objective)
        return [each.summary(objective=objective, **options) for each in self.cells]

    def _rows(self, **options: Any) -> Iterator[tuple[dict[str, Any], PolicySummary]]:
        """Yield the parameters of each policy in each cell, and its summary."""
        for each, summary in zip(self.cells, self.summaries(**options), strict=True):
            for own, row in zip(each.policy_parameters, summary.policies, strict=True):
                yield {**each.parameters, **own, "policy": row.policy}, row

    def _columns(self) -> dict[str, list[Any]]:
        every = list(self._rows())
        parameters = [name for keys, _ in every for name in keys if name != "policy"]
        own = PolicySummary._fields[:-2]  # without the ends of intervals, which are None
        rows = [{**keys, **row._asdict()} for keys, row in every]
        return {name: [r.get(name) for r in rows] for name in dict.fromkeys([*parameters, *own])}

    def table(
        self,
        *,
        rows: str | Sequence[str],
        columns: str = "policy",
        show: str = "mean",
        objective: Objective | None = None,
        interval: IntervalKind | None = None,
        confidence: float = 0.95,
    ) -> TextTable:
        """Return a table with one number for each policy in each cell.

        Parameters
        ----------
        rows, columns
            What distinguishes the rows, and the columns (default: "policy"): a parameter of cells
            or policies, or "policy"; for rows also several, such as `["alpha", "horizon"]`.
        show
            The number: "mean" (± its standard error; default) or another column of
            `Summary.table`.
        objective
            "earn" for regret or "find" for simple regret (default: the objective of the sweep).
        interval, confidence
            As for `Result.summary`. With "gaffke" the mean is shown with its confidence interval
            instead of its standard error (default: none).

        Examples
        --------
        >>> import manyarms as ma
        >>> from manyarms.simulation import Sweep, cell, run_in_memory
        >>> cells = [
        ...     cell(
        ...         [ma.MOSS(), ma.MOSSPlusPlus()],
        ...         ma.instances.planted(n=100, m=m),
        ...         horizon=50,
        ...         replications=3,
        ...         parameters={"m": m},
        ...     )
        ...     for m in (5, 10)
        ... ]
        >>> results = run_in_memory(Sweep("small", tuple(cells)))
        >>> table = results.table(rows="m", columns="policy")
        >>> table.head, [row[0] for row in table.rows]
        (['m', 'moss', 'moss++'], ['5', '10'])
        """
        objective = check_objective(objective or self.objective)
        numbers = tuple(name for name in POLICY_COLUMNS if name != "interval")
        check_choice("show", show, choices=numbers)
        head, text = POLICY_COLUMNS[show]
        options = {"objective": objective, "interval": interval, "confidence": confidence}
        every = list(self._rows(**options))
        if interval is not None and show == "mean":
            head = f"mean and {100 * confidence:g} % interval"

            def text(row: Any, digits: int) -> str:
                return f"{row.mean:.{digits}f} {POLICY_COLUMNS['interval'][1](row, digits)}"

        known = tuple(dict.fromkeys(name for keys, _ in every for name in keys))
        names: list[Any] = [*rows] if isinstance(rows, list | tuple) else [rows]
        for name in names or [""]:
            check_choice("rows", name, choices=known)
        check_choice("columns", columns, choices=known)
        texts: dict[tuple[tuple[Any, ...], Any], str] = {}
        for keys, row in every:
            place = tuple(map(keys.get, names)), keys.get(columns)
            if place in texts:
                pairs = zip([*names, columns], [*place[0], place[1]], strict=True)
                raise ParameterError(
                    f"`rows` and `columns` must distinguish all results, got several for "
                    f"{' and '.join(f'{name}={value}' for name, value in pairs)}. Name more "
                    f"parameters in `rows`, from {', '.join(known)}."
                )
            texts[place] = text(row, digits_of(objective))
        down, across = (list(dict.fromkeys(each)) for each in zip(*texts, strict=True))
        cells = [[*map(str, key), *(texts.get((key, one), "") for one in across)] for key in down]
        title = f"{'simple ' * (objective == 'find')}regret: {head}"
        return TextTable([*names, *map(str, across)], cells, title)
