"""`manyarms advise`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from manyarms.advice import advise
from manyarms.cli.screen import out
from manyarms.errors import ParameterError

__all__ = ["print_advice"]


def print_advice(
    *, others: str | None, betas: str | None, json_path: str | None, **options: Any
) -> None:
    """Ask for advice and print it, or write JSON."""
    if others is not None:
        options["others"] = _numbers("others", others, "0.1,0.3,0.5")
    if betas is not None:
        options["betas"] = _numbers("betas", betas, "0.5,0.6,0.75")
    if json_path is not None and not (folder := Path(json_path).parent).is_dir():
        raise ParameterError(f"`--json` must name a file in a folder that exists, got {folder}.")
    advice = advise(**options)
    if json_path is None:
        out.print(str(advice), markup=False, soft_wrap=True)
        return
    text = json.dumps(advice.to_json(), indent=2)
    if json_path == "-":
        out.print(text, markup=False, soft_wrap=True)
    else:
        Path(json_path).write_text(text + "\n")


def _numbers(name: str, text: str, such_as: str) -> list[float]:
    try:
        return [float(word) for word in text.split(",")]
    except ValueError:
        raise ParameterError(
            f"`--{name}` must be numbers such as {such_as}, got {text!r}."
        ) from None
