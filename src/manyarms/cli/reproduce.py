"""`manyarms reproduce`: the table behind Figure 2(a), row by row as it is computed."""

from __future__ import annotations

import sys
import time

from manyarms.engine import simulate
from manyarms.experiments import Setting, fig2a
from manyarms.results import Result

__all__ = ["reproduce_fig2a"]

_WIDTH = 17


def reproduce_fig2a(*, replications: int, seed: int, workers: int | None) -> None:
    """Play Figure 2(a) and print mean final regrets with their standard errors."""
    settings = fig2a()
    names = [policy.name for policy in settings[0].policies]
    begun = time.perf_counter()
    _note("the first run compiles the policies (some 20 s); later runs find them on disk")
    _print(f"Figure 2(a): regret after {settings[0].horizon} pulls on n = 20000 arms,")
    _print(f"mean ± standard error and (median) of {replications} replications, seed {seed}")
    _print("")
    _print(f"{'alpha':>5} {'m':>5} " + "".join(f"{name:>{_WIDTH}}" for name in names))
    for number, setting in enumerate(settings, 1):
        result = simulate(
            setting.policies,
            setting.instance,
            horizon=setting.horizon,
            replications=replications,
            seed=seed,
            workers=workers,
            checkpoints=1,
        )
        for line in _rows(setting, result):
            _print(line)
        _note(f"alpha = {setting.alpha} done, {number} of {len(settings)}")
    _print("")
    _print(f"{time.perf_counter() - begun:.1f} s")


def _rows(setting: Setting, result: Result) -> list[str]:
    summary = result.summary()
    means = "".join(f"{f'{row.mean:.0f} ± {row.se:.0f}':>{_WIDTH}}" for row in summary.policies)
    medians = "".join(f"{f'({row.median:.0f})':>{_WIDTH}}" for row in summary.policies)
    return [
        f"{setting.alpha:>5} {setting.instance.n_best:>5} {means}",
        f"{'':>5} {'':>5} {medians}",
    ]


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _note(text: str) -> None:
    if not sys.stderr.isatty():  # on a terminal the progress line says more
        sys.stderr.write(f"manyarms: {text}\n")
