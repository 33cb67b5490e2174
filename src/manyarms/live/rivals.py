"""The arm that the target of a verdict names."""

from __future__ import annotations

from manyarms.errors import ParameterError, UnknownArmError
from manyarms.inference.facts import CONTROL
from manyarms.inference.question import is_percentage
from manyarms.live.arms import ArmNames, ArmNumbers
from manyarms.live.calls import Arena


def rival_of(arena: Arena, target: str) -> int:
    """Return the number of the arm that a target names; that of the control is `CONTROL`."""
    arms, control = arena.arms, arena.experiment.settings.control
    if control is not None and target in ("control", str(control)):
        return CONTROL
    is_arm = isinstance(arms, ArmNames) and arms.known(target) is not None
    if is_percentage(target) and not is_arm:
        raise ParameterError(
            f"`target` must be a number such as 0.7, or the name of an arm, got {target[:100]!r}. "
            f"To be better than an arm by a share, name the arm, and pass it as `margin`."
        )
    if isinstance(arms, ArmNumbers):
        return arms.number(int(target) if _is_int(target) else target)
    try:
        return arms.number(target)
    except UnknownArmError:
        if _is_int(target):  # names may be integers
            return arms.number(int(target))
        raise


def _is_int(text: str) -> bool:
    return text.isdecimal() and len(text) < 20
