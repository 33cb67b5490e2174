"""The control: what there is today, which gets a share of the pulls to compare with."""

from __future__ import annotations

from typing import Any

from manyarms.core.checks import check_number, shown
from manyarms.errors import ParameterError
from manyarms.live.arms import check_name

SHARE = 0.05
_MOST_SHARE = 0.5


def check_control(control: Any, share: Any) -> tuple[str | int, float] | None:
    """Return a control's name and its share of the pulls, or raise; None if there is to be none."""
    if control is None:
        if share != SHARE:
            raise ParameterError(
                f"`share` is the control's share of the pulls, and there is no control, got "
                f"{shown(share)}. Pass `control`, too."
            )
        return None
    name = check_name(control, "control", "a string or an integer")
    return name, check_number("share", share, above=0.0, at_most=_MOST_SHARE)
