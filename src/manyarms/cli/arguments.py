"""Options that several commands share, and functions that parse options."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from manyarms.errors import ParameterError

if TYPE_CHECKING:
    from manyarms.instances import Instance
    from manyarms.protocol import Policy

T = TypeVar("T", int, float)
Objective = Literal["earn", "find"]

horizon_option = click.option("--horizon", type=int, required=True, help="The number of pulls.")
json_option = click.option(
    "--json", "json_path", help="Write JSON to this file; - means standard output."
)
objective_option = click.option(
    "--objective",
    type=click.Choice(("earn", "find")),
    default="earn",
    help="earn: every reward counts. find: only the arm recommended at the end counts.",
)
seed_option = click.option("--seed", type=int, default=0, help="The seed of all random numbers.")
workers_option = click.option(
    "--workers", type=int, help="The number of threads (default: all processors)."
)


def complete_policies(context: click.Context, option: click.Parameter, begun: str) -> list[str]:
    """Complete names of policies for the shell, also after a comma."""
    from manyarms.protocol import policy_names

    before, comma, last = begun.rpartition(",")
    return [f"{before}{comma}{name}" for name in policy_names() if name.startswith(last)]


def policy_from(text: str, instance: Instance, horizon: int, alpha: float | None) -> Policy:
    """Make a policy from "name" or "name:key=value,key=value"; a name may be "module:Class"."""
    from manyarms.core.checks import check_int
    from manyarms.protocol import policy
    from manyarms.protocol.loading import load_policy
    from manyarms.protocol.registry import is_known, value_of
    from manyarms.simulation.sweep import MOST_PULLS, check_playable

    check_int("horizon", horizon, at_least=1, at_most=MOST_PULLS)
    name, _, rest = text.partition(":")
    second, _, after = rest.partition(":")
    if second and "=" not in second and not is_known(name):
        name, rest = f"{name}:{second}", after
    load_policy(name)
    parameters: dict[str, Any] = {}
    for pair in filter(None, rest.split(",")):
        key, equals, value = pair.partition("=")
        if not equals:
            raise ParameterError(
                f"`--policy` must be NAME, NAME:key=value,key=value or, for one of your own, "
                f"module:Class:key=value, got {text!r}."
            )
        if key.strip() in parameters:
            raise ParameterError(f"`--policy` must have {key.strip()!r} once, got {text!r}.")
        parameters[key.strip()] = value_of(value.strip())
    try:
        made = policy(name, **parameters, **_known(name, parameters, instance, alpha))
        check_playable(made, instance, horizon)
    except ParameterError as error:  # about a parameter of the policy, not about an option
        reason = re.sub(r"`(\w+)`", r"'\1'", str(error))
        raise ParameterError(f"`--policy` cannot be {text!r}: {reason}") from None
    return made


def _known(
    name: str, parameters: Mapping[str, Any], instance: Instance, alpha: float | None
) -> dict[str, Any]:
    """Return the hardness or the number of best arms for MOSS Oracle, if neither was given."""
    if name != "moss-oracle" or parameters.keys() & {"alpha", "m", "size"}:
        return {}
    if alpha is not None:
        return {"alpha": alpha}
    return {} if instance.n_best is None else {"m": instance.n_best}


def named_policies(text: str) -> list[Policy]:
    """Make the policies of an option, such as "moss,my_module:Mine"."""
    from manyarms.protocol import policy
    from manyarms.protocol.loading import load_policy

    return [policy(load_policy(name.strip())) for name in text.split(",")]


def instance_from(text: str) -> Instance:
    """Make an instance from data, such as "means:FILE:COLUMN"."""
    from manyarms.instances import captions, from_means, from_rewards

    family, _, argument = text.partition(":")
    data: dict[str, Callable[[str], Instance]]
    data = {"captions": captions, "means": from_means, "rewards": from_rewards}
    if family in data and argument:
        return data[family](argument)
    raise ParameterError(
        f"`--instance` must be captions:CONTEST (a file or a number), means:FILE:COLUMN or "
        f"rewards:FILE:ARM,REWARD, got {text!r}."
    )


def refuse_beside_instance(**planted: float | None) -> None:
    """Raise if options that describe planted arms are used with other instances."""
    for name, value in planted.items():
        if value is not None:
            raise ParameterError(
                f"`--{name}` must be left out with --instance, got {value}: it describes "
                f"planted arms. For MOSS Oracle, use --policy moss-oracle:m=5 or :alpha=0.3."
            )


def numbers(name: str, text: str | None, such_as: str, kind: type[T]) -> list[T]:
    """Return the numbers of an option; none if it is not given."""
    try:
        return [] if text is None else [kind(word) for word in text.split(",")]
    except ValueError:
        wrong = f"`--{name}` must be numbers such as {such_as}, got {text!r}."
        raise ParameterError(wrong) from None
