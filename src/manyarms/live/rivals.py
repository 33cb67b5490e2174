"""The arm that the target of a verdict names."""

from __future__ import annotations

from manyarms.errors import ParameterError, UnknownArmError
from manyarms.inference.facts import CONTROL
from manyarms.inference.question import is_percentage
from manyarms.live.arms import ArmNames, ArmNumbers
from manyarms.live.game import LiveGame


def names_control(game: LiveGame, target: str) -> bool:
    """Whether a target is the control of a game: by its name, or as "control"."""
    return game.control is not None and target in ("control", str(game.control.name))


def rival_of(game: LiveGame, target: str) -> int:
    """Return the number of the arm that a target names, or `CONTROL`."""
    arms = game.arms
    if names_control(game, target):
        return CONTROL
    if is_percentage(target) and not _is_arm(game, target):
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


def _is_arm(game: LiveGame, name: str) -> bool:
    return isinstance(game.arms, ArmNames) and game.arms.known(name) is not None


def _is_int(text: str) -> bool:
    return text.isdecimal() and len(text) < 20
