"""From a file to an experiment: every problem is found before anything runs."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from manyarms.core.checks import check_int
from manyarms.specs.experiment import Experiment
from manyarms.specs.families import InstanceSpec, read_instance
from manyarms.specs.players import PolicySpec, entries, read_policy
from manyarms.specs.problems import Problems, SpecError
from manyarms.specs.sweep import Cell, build_cells, size_of
from manyarms.specs.values import Sweep, read_value, shown, text, whole, whole_numbers

__all__ = ["experiment_from", "load_spec", "parse_spec"]

_MOST_PULLS = 1 << 40  # of one replication, as for `simulate`
_MOST_IN_ALL = 10**15  # a year of a fast processor
_MOST_ROWS = 10**10
_MOST_TIMES = 10**6
_MOST_PAIRS = 100_000
_LARGEST_FILE = 10_000_000

_EXPERIMENT = ("name", "horizon", "replications", "seed", "checkpoints")
_ELSEWHERE = {key: "[experiment]" for key in _EXPERIMENT if key != "name"}
_ELSEWHERE |= {"family": "[instance]", "rewards": "[instance]"}


def load_spec(path: str | os.PathLike[str]) -> Experiment:
    """Read an experiment from a TOML file, and check all of it.

    Parameters
    ----------
    path
        The file.

    Examples
    --------
    >>> load_spec("no such file.toml")
    Traceback (most recent call last):
    manyarms...SpecError: 'no such file.toml' has 1 problem:
      file: cannot be read: No such file or directory.
    """
    source = repr(os.fspath(path))
    try:
        with Path(path).open("rb") as file:
            data = file.read(_LARGEST_FILE + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = getattr(error, "strerror", None) or error
        raise SpecError(source, [f"file: cannot be read: {reason}."]) from error
    if len(data) > _LARGEST_FILE:
        raise SpecError(source, [f"file: must be at most {_LARGEST_FILE} bytes. Is it a spec?"])
    if b"\0" in data:
        place = data.index(b"\0")
        raise SpecError(source, [f"file: must be text, got a binary file (NUL at byte {place})."])
    try:
        return parse_spec(data.decode("utf-8-sig"), source=source)
    except UnicodeDecodeError as error:
        wrong = f"byte {data[error.start]:#04x} at {error.start}"
        problem = f"file: must be UTF-8 text, got {wrong}. Save it as UTF-8."
        raise SpecError(source, [problem]) from error


def parse_spec(content: str, *, source: str = "The spec") -> Experiment:
    r"""Read an experiment from TOML text, and check all of it.

    Parameters
    ----------
    content
        The text.
    source
        What errors call it.

    Examples
    --------
    >>> parse_spec("[experiment]\nname = 'x'\nhorizon = [")
    Traceback (most recent call last):
    manyarms...SpecError: The spec has 1 problem:
      file: is not valid TOML: Invalid value (at end of document).
    """
    try:
        plain = tomllib.loads(content)
    except RecursionError as error:
        raise SpecError(source, ["file: is not valid TOML: nested too deeply."]) from error
    except ValueError as error:
        raise SpecError(source, [f"file: is not valid TOML: {error}."]) from error
    return experiment_from(plain, source=source)


def experiment_from(content: Mapping[str, Any], *, source: str = "The spec") -> Experiment:
    """Make an experiment from plain data: what the TOML would hold.

    Parameters
    ----------
    content
        Dictionaries "experiment" and "instance", and a list "policy" of dictionaries.
    source
        What errors call it.

    Examples
    --------
    >>> experiment = experiment_from({
    ...     "experiment": {"name": "two sigmas", "horizon": 100, "replications": 5},
    ...     "instance": {"family": "means", "means": [0.2, 0.7]},
    ...     "policy": [{"name": "moss", "sigma": [0.25, 0.5]}],
    ... })
    >>> [player.label for player in experiment.cells()[0].players]
    ['moss(sigma=0.25)', 'moss(sigma=0.5)']
    """
    problems = Problems()
    content = _lists(content)
    problems.check_keys("", content, known=["experiment", "instance", "policy"])
    settings = _read_settings(problems, _table(problems, content, "experiment"))
    table = _table(problems, content, "instance")
    instance = None if table is None else read_instance(problems, table, _ELSEWHERE)
    policies = _read_policies(problems, content)
    cells: tuple[Cell, ...] = ()
    if instance is not None and settings.get("horizon") is not None:
        # also where other things are wrong: all is to be said at once
        cells = _build(problems, settings, instance, policies)
    if problems.lines or instance is None:
        raise SpecError(source, problems.lines)
    ready = tuple(spec for _, spec in policies)
    return Experiment(**settings, instance=instance, policies=ready, _cells=cells)


def _build(
    problems: Problems,
    settings: Mapping[str, Any],
    instance: InstanceSpec,
    policies: list[tuple[str, PolicySpec]],
) -> tuple[Cell, ...]:
    """Build all cells, unless there are too many; a slip of the pen makes many."""
    horizon, checkpoints = settings["horizon"], settings["checkpoints"]
    replications = settings["replications"] or 1
    pairs, pulls = size_of(horizon, instance, [spec for _, spec in policies])
    times = len(checkpoints) + 1 if isinstance(checkpoints, tuple) else checkpoints or 100
    before = problems.count
    for count, most, what in (
        (pairs, _MOST_PAIRS, "combinations of swept values"),
        (pulls * replications, _MOST_IN_ALL, "pulls in all"),
        (pairs * times * replications, _MOST_ROWS, "rows of regret"),
    ):
        if count > most:
            problems.add("experiment", f"must make at most {most:.0e} {what}, got {count:.3g}.")
    if problems.count > before:
        return ()
    return build_cells(
        problems,
        horizon=horizon,
        checkpoints=checkpoints,
        instance=instance,
        players=entries(policies),
    )


def _lists(content: Any) -> Any:
    """Return plain data with lists for tuples, which TOML does not have but Python code may."""
    if isinstance(content, Mapping):
        return {key: _lists(value) for key, value in content.items()}
    return [_lists(one) for one in content] if isinstance(content, list | tuple) else content


def _table(problems: Problems, content: Mapping[str, Any], key: str) -> Mapping[str, Any] | None:
    table = content.get(key)
    if table is None:
        problems.add(key, f"must be given, got nothing. Add a table [{key}].")
    elif not isinstance(table, Mapping):
        problems.add(key, f"must be a table [{key}], got {shown(table)}.")
    return table if isinstance(table, Mapping) else None


def _read_settings(problems: Problems, table: Mapping[str, Any] | None) -> dict[str, Any]:
    """Check the table [experiment]; a value is None where it is wrong, or missing."""
    if table is None:
        return {}
    problems.check_keys("experiment", table, known=_EXPERIMENT, required=["name", "horizon"])
    found: dict[str, Any] = {"name": None, "horizon": None, "replications": 100, "seed": 0}
    found["checkpoints"] = None
    if "horizon" in table:
        check = whole(at_least=1, at_most=_MOST_PULLS)
        found["horizon"] = read_value(problems, "experiment.horizon", table["horizon"], check)
    horizon = found["horizon"]
    shortest = min(horizon.values) if isinstance(horizon, Sweep) else horizon

    def times(name: str, value: Any) -> int | tuple[int, ...]:
        most = shortest or _MOST_PULLS
        if isinstance(value, list):
            found: tuple[int, ...] = whole_numbers(at_least=1, at_most=most)(name, value)
            return tuple(sorted(set(found)))
        return check_int(name, value, at_least=1, at_most=min(most, _MOST_TIMES))

    checks = {
        "name": text,
        "replications": whole(at_least=1, at_most=_MOST_PULLS),
        "seed": whole(at_most=2**64 - 1),
        "checkpoints": times,
    }
    for key, one in checks.items():
        if key in table:
            found[key] = None
            with problems.at(f"experiment.{key}"):
                found[key] = one(key, table[key])
    return found


def _read_policies(problems: Problems, content: Mapping[str, Any]) -> list[tuple[str, PolicySpec]]:
    """Check the tables [[policy]]; return those without a problem, with their places."""
    tables = content.get("policy")
    if not isinstance(tables, list) or not tables:
        got = "nothing" if "policy" not in content else shown(tables)
        problems.add("policy", f"must be given, got {got}. Add a table [[policy]] for each policy.")
        return []
    found = []
    for number, table in enumerate(tables, 1):
        spec = read_policy(problems, f"policy[{number}]", table, _ELSEWHERE)
        if spec is not None:
            found.append((f"policy[{number}]", spec))
    return found
