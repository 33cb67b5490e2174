"""Best: always pulls the arm it was given; with a best arm, no policy does better."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

from manyarms.core.checks import check_int
from manyarms.core.memory import Memory
from manyarms.protocol import About, Policy, plays
from manyarms.protocol.parameters import whole


class BestState(NamedTuple):
    """The arm."""

    arm: int


def best_reset(state: BestState, key: int, horizon: int) -> None:
    pass


def best_ask(state: BestState) -> tuple[int, int]:
    return 0, state.arm


def best_tell(state: BestState, slot: int, reward: float) -> None:
    pass


plays(BestState, reset=best_reset, ask=best_ask, tell=best_tell)


@dataclass(frozen=True, kw_only=True)
class Best(Policy):
    r"""Pull the arm that it was given, with every pull.

    .. math:: A_t = a^* \text{ for all } t

    Parameters
    ----------
    arm
        The arm. If it has the largest mean, the regret is 0.

    Notes
    -----
    It knows the answer, so it is not a rival: it shows what others lose by not knowing. Anytime.
    Cost per pull: O(1).

    Examples
    --------
    >>> from manyarms.policies.field.best import Best
    >>> Best(arm=3).live(n_arms=10).ask().arm
    3
    """

    name = "best"
    anytime = True
    about = About(
        needs="a best arm",
        guarantee="no regret",
        nanoseconds=5,
        page="docs/policies/few_arms.md",
        scaling="constant",
        good_at="the lower end of every table",
        knowledge="arm",
    )

    arm: Annotated[int, whole(at_least=0)]

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> BestState:
        fix = f"There are {n_arms} arms, numbered from 0."
        return BestState(check_int("arm", self.arm, at_most=n_arms - 1, fix=fix))
