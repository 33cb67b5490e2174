"""`manyarms simulate`."""

from __future__ import annotations

import ast
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from manyarms.cli.screen import OverallProgress, out
from manyarms.engine import simulate
from manyarms.errors import ParameterError
from manyarms.instances import Instance, planted
from manyarms.protocol import Policy, policy
from manyarms.results import Result

__all__ = ["parse_policy", "simulate_policies"]


def simulate_policies(
    *,
    policies: Sequence[str],
    instance: str,
    n: int | None,
    alpha: float | None,
    m: int | None,
    horizon: int,
    replications: int,
    seed: int,
    workers: int | None,
    checkpoints: str | None,
    json_path: str | None,
) -> None:
    """Simulate and print, or write JSON."""
    arms = _instance(instance, n=n, alpha=alpha, m=m, horizon=horizon)
    chosen = [parse_policy(name, arms, alpha) for name in policies]
    times = _times(checkpoints)
    with OverallProgress(len(chosen) * replications * horizon) as progress:
        progress.begin(f"{replications} replications on {arms.label}")
        result = simulate(
            chosen,
            arms,
            horizon=horizon,
            replications=replications,
            seed=seed,
            workers=workers,
            checkpoints=times or 1,
            progress=progress,
        )
    rows = json_rows(result, times)
    if json_path is None:
        out.print(str(result.summary()), markup=False)
    elif json_path == "-":
        out.print(json.dumps(rows, indent=2), markup=False, soft_wrap=True)
    else:
        Path(json_path).write_text(json.dumps(rows, indent=2) + "\n")


def json_rows(result: Result, times: Sequence[int]) -> list[dict[str, Any]]:
    """Return one object for each policy."""
    rows = []
    for row in result.summary().policies:
        seconds = round(result.seconds[row.policy], 6)
        entry: dict[str, Any] = {**row._asdict(), "seconds": seconds}
        if times:
            at = {time: result.summary(time=time)[row.policy] for time in times}
            entry["regret_at"] = {str(time): summary.mean for time, summary in at.items()}
        rows.append(entry)
    return rows


def parse_policy(text: str, instance: Instance, alpha: float | None) -> Policy:
    """Make a policy from "name" or "name:key=value,key=value"."""
    name, _, rest = text.partition(":")
    parameters: dict[str, Any] = {}
    for pair in filter(None, rest.split(",")):
        key, equals, value = pair.partition("=")
        if not equals:
            raise ParameterError(
                f"`--policy` must be a name, or name:key=value,key=value, got {text!r}."
            )
        try:
            parameters[key.strip()] = ast.literal_eval(value.strip())
        except (SyntaxError, ValueError):
            parameters[key.strip()] = value.strip()  # a word, such as rank=pulled
    if name == "moss-oracle" and not parameters.keys() & {"alpha", "m", "size"}:
        # an oracle is told how hard the problem is
        parameters |= {"m": instance.n_best} if alpha is None else {"alpha": alpha}
    return policy(name, **parameters)


def _instance(
    text: str, *, n: int | None, alpha: float | None, m: int | None, horizon: int
) -> Instance:
    family, _, argument = text.partition(":")
    if family == "planted":
        if n is None:
            raise ParameterError("`--n` must be given for planted arms, got None.")
        needs_horizon = horizon if alpha is not None else None
        return planted(n=n, alpha=alpha, horizon=needs_horizon, m=m)
    if family == "captions" and argument:
        from manyarms.instances.captions import captions

        return captions(argument)
    raise ParameterError(
        f"`--instance` must be planted, or captions:CONTEST (a file or a number), got {text!r}."
    )


def _times(text: str | None) -> list[int]:
    if not text:
        return []
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise ParameterError(
            f"`--checkpoints` must be times such as 12500,25000,50000, got {text!r}."
        ) from None
