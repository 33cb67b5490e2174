"""Words of the command line into numbers, policies and instances."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from manyarms.errors import ParameterError
from manyarms.instances import Instance, captions, from_means, from_rewards, planted
from manyarms.protocol import Policy, policy
from manyarms.protocol.loading import load_policy
from manyarms.protocol.registry import is_registered
from manyarms.simulation.results import Result
from manyarms.simulation.sweep import Objective

T = TypeVar("T", int, float)

_OPTIONS = {"policies='all'": "all", "instance": "means"}  # that have other names than in Python


def as_options(text: str) -> str:
    """Return advice with parameters of Python as options of the command line.

    >>> as_options("give `m_at_least`, `alpha_at_most=0.9` or `policies='all'`")
    'give --m-at-least, --alpha-at-most=0.9 or --all'
    """

    def option(found: re.Match[str]) -> str:
        return f"--{_OPTIONS.get(found[1], found[1].replace('_', '-'))}"

    return re.sub("`([a-z_]+(?:=[^`]+)?)`", option, text)


def policy_from(text: str, instance: Instance, alpha: float | None) -> Policy:
    """Make a policy from "name" or "name:key=value,key=value"; a name may be "module:Class"."""
    name, _, rest = text.partition(":")
    second, _, after = rest.partition(":")
    if second and "=" not in second and not is_registered(name):
        name, rest = load_policy(f"{name}:{second}"), after
    load_policy(name)
    parameters: dict[str, Any] = {}
    for pair in filter(None, rest.split(",")):
        key, equals, value = pair.partition("=")
        if not equals:
            raise ParameterError(
                f"`--policy` must be NAME, NAME:key=value,key=value or, for one of your own, "
                f"module:Class:key=value, got {text!r}."
            )
        try:
            parameters[key.strip()] = ast.literal_eval(value.strip())
        except (SyntaxError, ValueError):
            parameters[key.strip()] = value.strip()  # a word, such as rank=pulled
    return policy(name, **parameters, **_known(name, parameters, instance, alpha))


def _known(
    name: str, parameters: Mapping[str, Any], instance: Instance, alpha: float | None
) -> dict[str, Any]:
    """Return what MOSS Oracle is given unless the option says it: the hardness, or m."""
    if name != "moss-oracle" or parameters.keys() & {"alpha", "m", "size"}:
        return {}
    if alpha is not None:
        return {"alpha": alpha}
    return {} if instance.n_best is None else {"m": instance.n_best}


def named_policies(text: str) -> list[Policy]:
    """Make the policies of an option, such as "moss,my_module:Mine"."""
    return [policy(load_policy(name.strip())) for name in text.split(",")]


def instance_from(
    text: str, *, n: int | None, alpha: float | None, m: int | None, horizon: int
) -> Instance:
    """Make an instance from "planted" and its options, or from data: "means:FILE:COLUMN"."""
    family, _, argument = text.partition(":")
    if family == "planted":
        if n is None:
            raise ParameterError("`--n` is required for planted arms.")
        return planted(n=n, alpha=alpha, horizon=horizon, m=m)
    data: dict[str, Callable[[str], Instance]]
    data = {"captions": captions, "means": from_means, "rewards": from_rewards}
    if family in data and argument:
        return data[family](argument)
    raise ParameterError(
        f"`--instance` must be planted, captions:CONTEST (a file or a number), means:FILE:COLUMN "
        f"or rewards:FILE:ARM,REWARD, got {text!r}."
    )


def own_arms(contest: str | None, means: str | None) -> Instance | None:
    """Make an instance of a contest, or of a column of a file; None if neither is given."""
    if contest is not None and means is not None:
        raise ParameterError("`--means` must be left out with `--contest`. Give one of them.")
    if means is not None:
        return from_means(means)
    return None if contest is None else captions(contest)


def numbers(name: str, text: str | None, such_as: str, kind: type[T]) -> list[T]:
    """Return the numbers of an option; none if it is not given."""
    try:
        return [] if text is None else [kind(word) for word in text.split(",")]
    except ValueError:
        what = "times" if kind is int else "numbers"
        wrong = f"`--{name}` must be {what} such as {such_as}, got {text!r}."
        raise ParameterError(wrong) from None


def check_json_path(path: str | None) -> None:
    """Refuse a file in a folder that does not exist, before anything is played."""
    if path is not None and not (folder := Path(path).parent).is_dir():
        raise ParameterError(f"`--json` must name a file in a folder that exists, got {folder}.")


def json_rows(result: Result, wanted: Sequence[int], objective: Objective) -> list[dict[str, Any]]:
    """Return one object for each policy, with its regret at the times asked for."""
    rows = []
    for row in result.summary(objective=objective).policies:
        measured = {name: value for name, value in row._asdict().items() if value is not None}
        entry: dict[str, Any] = {**measured, "seconds": round(result.seconds[row.policy], 6)}
        if wanted:
            at = {time: result.summary(time=time)[row.policy] for time in wanted}
            entry["regret_at"] = {str(time): summary.mean for time, summary in at.items()}
        rows.append(entry)
    return rows
