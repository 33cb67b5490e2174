"""Experiments as TOML: every problem is found before anything runs.

A table is read by calling the real constructor: the keys it may have are the constructor's
parameters, and what they may be is what the constructor accepts.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from typing import Any, get_args

from manyarms.core.checks import check_choice, check_int, check_path, refusal
from manyarms.errors import SpecError
from manyarms.simulation.experiment import (
    MOST_PULLS,
    MOST_TIMES,
    Cell,
    Engine,
    Experiment,
    check_late,
    check_objective,
)
from manyarms.simulation.spec_tables import (
    Problems,
    SpecTable,
    Sweep,
    read_instance,
    read_policies,
    read_value,
    shown,
    try_values,
    values_of,
)
from manyarms.simulation.sweep import build_cells

_LARGEST_FILE = 10_000_000
_MOST_BITS = 1000  # of an integer: Python writes no larger ones into errors
_TOO_DEEP = "file: is nested too deeply. Is it a spec?"
_DEEP = re.compile(  # a key of many parts
    r"""(?<![\w-])(?:(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*){16}"""
)
_DEFAULTS: Mapping[str, Any] = {  # of [experiment]; a name and a horizon are required
    "name": None,
    "horizon": None,
    "replications": 100,
    "seed": 0,
    "checkpoints": None,
    "delay": 0,
    "batch": 1,
    "objective": "earn",
    "engine": None,
}
_SWEPT = ("horizon", "delay", "batch")
_ALWAYS = ("name", "horizon", "replications", "seed")  # written, even if they are the defaults


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
      file: cannot be read: No such file or directory. Name a TOML file.
    """
    path = check_path("path", path)
    source = repr(str(path))
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST_FILE + 1)
    except OSError as error:
        problem = f"file: cannot be read: {error.strerror}. Name a TOML file."
        raise SpecError(source, [problem]) from error
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
        What errors call it (default: "The spec").

    Examples
    --------
    >>> parse_spec("[experiment]\nname = 'x'\nhorizon = [")
    Traceback (most recent call last):
    manyarms...SpecError: The spec has 1 problem:
      file: is not valid TOML: Invalid value (at end of document).
    """
    if _DEEP.search(content):  # tomllib's memory grows with the square of a key's length
        raise SpecError(source, [_TOO_DEEP])
    try:
        tables = tomllib.loads(content)
    except RecursionError as error:
        raise SpecError(source, [_TOO_DEEP]) from error
    except ValueError as error:
        raise SpecError(source, [f"file: is not valid TOML: {error}."]) from error
    return experiment_from(tables, source=source)


def experiment_from(content: Mapping[str, Any], *, source: str = "The spec") -> Experiment:
    """Make an experiment from plain data: what the TOML would hold.

    Parameters
    ----------
    content
        Dictionaries "experiment" and "instance", and a list "policy" of dictionaries. A list of
        values is a sweep.
    source
        What errors call it (default: "The spec").

    Examples
    --------
    >>> experiment = experiment_from({
    ...     "experiment": {"name": "two sigmas", "horizon": 100, "replications": 5},
    ...     "instance": {"family": "means", "means": [0.2, 0.7]},
    ...     "policy": [{"name": "moss", "sigma": [0.25, 0.5]}],
    ... })
    >>> [player.label for player in experiment.cells[0].players]
    ['moss(sigma=0.25)', 'moss(sigma=0.5)']
    """
    try:
        return _experiment_from(_lists(content, source), source)
    except RecursionError as error:
        raise SpecError(source, [_TOO_DEEP]) from error


def _experiment_from(content: Mapping[str, Any], source: str) -> Experiment:
    problems = Problems()
    problems.check_keys("", content, known=["experiment", "instance", "policy"])
    settings = _read_settings(problems, _table(problems, content, "experiment"))
    instance = read_instance(problems, _table(problems, content, "instance"))
    policies = read_policies(problems, content)
    cells: tuple[Cell, ...] = ()
    if instance is not None and settings is not None and settings["horizon"] is not None:
        # also if something else is wrong: all errors are reported at once
        cells = build_cells(problems, settings, instance, policies)
    if problems.lines or instance is None or settings is None:
        for table in policies:  # no cell may have been made, and no policy with it
            try_values(problems, table, typed=False)
        if instance is not None:
            try_values(problems, instance, typed=True)
        raise SpecError(source, problems.lines)
    engine = settings.pop("engine")  # who plays is no part of what is played
    spec = _content(settings, instance, policies)
    objective = settings["objective"]
    return Experiment(settings["name"], cells, settings["seed"], spec, objective, engine)


def _table(problems: Problems, content: Mapping[str, Any], key: str) -> Mapping[str, Any] | None:
    table = content.get(key)
    if table is None:
        problems.add(key, f"is required. Add a table [{key}].")
    elif not isinstance(table, Mapping):
        problems.add(key, f"must be a table [{key}], got {shown(table)}.")
    return table if isinstance(table, Mapping) else None


def _lists(content: Any, source: str) -> Any:
    """Return plain data with lists for tuples, which TOML does not have but Python code may."""
    if isinstance(content, Mapping):
        return {key: _lists(value, source) for key, value in content.items()}
    if isinstance(content, int) and content.bit_length() > _MOST_BITS:
        problem = f"file: must hold integers of at most 64 bits, got {shown(content)}."
        raise SpecError(source, [problem])
    return (
        [_lists(one, source) for one in content] if isinstance(content, list | tuple) else content
    )


def _read_settings(problems: Problems, table: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Check the table [experiment]; a value is None where it is wrong, or missing."""
    if table is None:
        return None
    problems.check_keys("experiment", table, known=_DEFAULTS, required=["name", "horizon"])
    found = dict(_DEFAULTS)

    def read(key: str, check: Callable[[Any], Any]) -> None:
        value = table[key]
        if key in _SWEPT:
            value = read_value(problems, f"experiment.{key}", value, int)
        values = value.values if isinstance(value, Sweep) else (value,)
        checked = [problems.made("experiment", check, {key: one}) for one in values]
        swept = isinstance(value, Sweep) and None not in checked
        found[key] = Sweep(tuple(checked)) if swept else checked[0]

    for key, check in _setting_checks().items():
        if key in table:
            read(key, check)
    shortest = min(values_of(found["horizon"])) if found["horizon"] is not None else MOST_PULLS
    if "checkpoints" in table:
        read("checkpoints", lambda checkpoints: _check_times(checkpoints, shortest))
    return found


def _setting_checks() -> dict[str, Callable[..., Any]]:
    return {
        "name": _check_name,
        "horizon": lambda horizon: check_int("horizon", horizon, at_least=1, at_most=MOST_PULLS),
        "replications": lambda replications: check_int(
            "replications", replications, at_least=1, at_most=MOST_PULLS
        ),
        "seed": lambda seed: check_int("seed", seed, at_most=2**64 - 1),
        "delay": lambda delay: check_late(delay, 1)[0],
        "batch": lambda batch: check_late(0, batch)[1],
        "objective": check_objective,
        "engine": lambda engine: check_choice("engine", engine, get_args(Engine)),
    }


def _check_name(name: Any) -> str:
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise refusal("name", "a text in quotes", name)
    return name


def _check_times(checkpoints: Any, shortest: int) -> int | tuple[int, ...]:
    if isinstance(checkpoints, list) and checkpoints:
        times = [check_int("checkpoints", t, at_least=1, at_most=shortest) for t in checkpoints]
        return tuple(sorted(set(times)))
    return check_int("checkpoints", checkpoints, at_least=1, at_most=min(shortest, MOST_TIMES))


def _content(
    settings: Mapping[str, Any], instance: SpecTable, policies: list[SpecTable]
) -> dict[str, Any]:
    """Return the spec as plain data, with defaults filled in: `experiment_from` reads it."""
    return {
        "experiment": {
            key: _as_data(value)
            for key, value in settings.items()
            if key in _ALWAYS or value != _DEFAULTS[key]
        },
        "instance": _table_data(instance),
        "policy": [_table_data(table) for table in policies],
    }


def _table_data(table: SpecTable) -> dict[str, Any]:
    return table.fixed | {key: _as_data(value) for key, value in table.values.items()}


def _as_data(value: Any) -> Any:
    """Return plain data: lists for sweeps and tuples, a name or a table for a reward model."""
    if isinstance(value, Sweep):
        return [_as_data(one) for one in value.values]
    if isinstance(value, SpecTable):
        return _table_data(value) if value.values else value.fixed["model"]
    return list(value) if isinstance(value, tuple) else value


def as_toml(content: Mapping[str, Any]) -> str:
    """Return a spec's plain data as TOML: equal for equal hashes."""
    parts = [("[experiment]", content["experiment"]), ("[instance]", content["instance"])]
    parts += [("[[policy]]", table) for table in content["policy"]]
    return "\n".join(
        "\n".join([head, *(f"{key} = {_toml(value)}" for key, value in table.items()), ""])
        for head, table in parts
    )


def _toml(value: Any) -> str:
    """Write a value; the standard library reads TOML, but does not write it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # JSON's escapes are TOML's too, but for one control character that JSON lets pass
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {_toml(one)}' for key, one in value.items())} }}"
    return repr(value)
