"""What is known of arms, to be compared."""

from __future__ import annotations

from typing import Any

import manyarms as ma


def plain(arms: list[ma.ArmEstimate]) -> list[Any]:
    """Return what is known of arms; limits but for the last digit, which follows the processor."""
    return [
        (a.arm, a.estimate, a.pulls, a.told, a.retired, *(f"{x:.12g}" for x in a.interval))
        for a in arms
    ]
