"""Which pulls are the control's."""

from __future__ import annotations

from manyarms.core.rng import draw, unit
from manyarms.protocol.keys import control_key


class Turns:
    """Decides before each pull whether it is the control's, with a separate random stream.

    If it is, the search is not asked. So the policy chooses the arms that it would choose without a
    control.
    """

    __slots__ = ("_key", "_share")

    def __init__(self, share: float, seed: int) -> None:
        self._share, self._key = share, control_key(seed)

    def is_control(self, number: int) -> bool:
        """Return whether this pull is the control's."""
        return unit(draw(self._key, number)) < self._share
