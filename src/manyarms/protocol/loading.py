"""Load policies that are not registered yet: "module:Class", and entry points.

Loading a policy runs its code. Only the command line does so, and only for names that it was given.
Opening a store never does.
"""

from __future__ import annotations

import functools
import importlib
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from manyarms.core.checks import refusal
from manyarms.errors import nearest
from manyarms.protocol.plain_classes import PlainMaker, is_plain
from manyarms.protocol.policy import Policy
from manyarms.protocol.registry import is_known, register

GROUP = "manyarms.policies"  # of entry points: name = "module:Class"


def load_policy(name: str) -> str:
    """Register "module:Class", or the policy of this name in an installed package.

    Other names are returned unchanged; the caller refuses them.
    """
    if is_known(name):
        return name
    if ":" in name:
        made = load_class(name)
        if not (is_plain(made) or issubclass(made, Policy)):
            kinds = "a subclass of manyarms.Policy or a class with `ask()` and `tell(arm, reward)`"
            raise refusal("name", f"a policy, {kinds}", name)
        register(name, PlainMaker(made) if is_plain(made) else made)
    for point in _offered():
        if point.name == name:
            _load_point(point)
    return name


def load_installed() -> None:
    """Register all policies that installed packages provide."""
    for point in _offered():
        _load_point(point)


@functools.cache
def _offered() -> tuple[Any, ...]:
    return tuple(entry_points(group=GROUP))  # slow: reads the metadata of every installed package


def _load_point(point: Any) -> None:
    try:
        made = point.load()
    except Exception as error:  # the package's code may raise anything
        fix = f"Its entry point, {point.value!r}, raises {error!r}."
        raise refusal("name", "a policy that can be loaded", point.name, fix) from error
    if not is_known(point.name):  # importing its module may have registered it
        register(point.name, PlainMaker(made) if is_plain(made) else made)


def load_class(name: str) -> type:
    """Import the class "module:Class"; the current folder is searched last."""
    module, _, attribute = name.partition(":")
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.append(here)  # last, so that no file here hides a package
    try:
        found: Any = importlib.import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except Exception as error:  # the module's code may raise anything
        rule = "a class that can be imported, such as my_module:MyPolicy"
        there = vars(sys.modules.get(module, sys)) if isinstance(error, AttributeError) else {}
        classes = [key for key, one in there.items() if isinstance(one, type)]
        fix = nearest(attribute, classes) if attribute not in there and classes else ""
        raise refusal("name", rule, name, f"Import raises {error!r}. {fix}".strip()) from error
    if not isinstance(found, type):
        raise refusal("name", "a class", name)
    return found
