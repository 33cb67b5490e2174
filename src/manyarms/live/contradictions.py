"""Whether what a file says of a game can be true.

A checksum shows that a file is as it was written, not that manyarms wrote it.
"""

from __future__ import annotations

from manyarms.live.game import MOST_REWARD, ROOM, LiveGame
from manyarms.protocol.policy import arrive, generation, retire
from manyarms.protocol.soundness import Known, holds, sound
from manyarms.protocol.state_dump import Columns, classes_in


def find_contradiction(game: LiveGame, columns: Columns) -> str:
    """Return what cannot be of a game that comes from a file; "" if all is in order.

    `columns` are those of its state.
    """
    return (
        _of_arms(game)
        or _of_names(game, columns)
        or _of_tallies(game)
        or _of_stock(game)
        or _of_flight(game)  # what the state is compared with stands now
        or _of_state(game)
    )


def _of_arms(game: LiveGame) -> str:
    count = game.arms.count
    if not game.first_arms <= count or not all(0 <= arm < count for arm in game.retired):
        return "it has arms that never came"
    if game.n_arms < 1:
        return "all its arms are retired"
    came, went = count > game.first_arms or game.seats.left, game.retired or game.seats.left
    if (came and not game.can(arrive)) or (went and not game.can(retire)):
        return "arms came or went, and the policy cannot do that"
    return ""


def _of_names(game: LiveGame, columns: Columns) -> str:
    """In states of ours a number that is called so is an arm; below 0, a member is a mixture."""
    if any(not kind.__module__.startswith("manyarms.") for kind in classes_in(game.state)):
        return ""
    arms = [column for name, column in columns.items() if name.endswith("/arm")]
    members = [column for name, column in columns.items() if name.endswith("/member")]
    if any((column < 0).any() for column in arms) or any(
        (column >= game.seats.count).any() for column in arms + members
    ):
        return "its state has arms that never came"
    return ""


def _of_tallies(game: LiveGame) -> str:
    seen, count = game.tally.values(), game.arms.count
    largest = 1.001 * max(map(abs, game.reward_range or (MOST_REWARD,)))  # sums are rounded
    numbers = all(0 <= t.told <= t.asked and abs(t.total) <= t.told * largest for t in seen)
    met = all(t.asked > 0 or arm in game.stock for arm, t in game.tally.items())
    if not (numbers and met) or not all(0 <= arm < count for arm in game.tally):
        return "its arms were not pulled as it says"
    most = ROOM if game.horizon is None else game.horizon
    if not 0 <= game.pulls <= most or sum(t.asked for t in seen) != game.pulls:
        return f"it has {game.pulls} pulls, and they are not those of its arms"
    return ""


def _of_stock(game: LiveGame) -> str:
    low, high = game.reward_range or (-MOST_REWARD, MOST_REWARD)
    count = game.arms.count
    if not all(arm in game.tally for arm in game.stock) or not all(
        low <= reward <= high for rewards in game.stock.values() for reward in rewards
    ):
        return "rewards were observed that cannot be"
    numbers = (*game.waiting, *game.named)
    gone = game.retired.intersection(game.waiting)
    if not all(0 <= arm < count for arm in numbers) or gone or game.skipped > game.first_arms:
        return "it has arms that wait for nothing"
    return ""


def _of_flight(game: LiveGame) -> str:
    flight, lost = game.flight, game.abandoned
    waiting = {arm: tally.asked - tally.told for arm, tally in game.tally.items()}
    for number, pull in flight.items():
        waiting[pull.arm] = waiting.get(pull.arm, 0) - 1
        wrong = not 0 <= number < game.pulls or number in lost or pull.late not in (0, 1)
        if wrong or waiting[pull.arm] < 0:
            return f"pull {number} cannot be in flight"
    last = int(lost.numbers()[-1]) if len(lost) > 0 else -1
    if list(flight) != sorted(flight) or sum(waiting.values()) != len(lost) or last >= game.pulls:
        return "pulls in flight or abandoned are not those of its arms"
    return ""


def _of_state(game: LiveGame) -> str:
    seats = game.seats
    known = Known(
        arms=seats.count,
        horizon=game.horizon or 0,
        pulls=game.pulls,
        told=sum(tally.told for tally in game.tally.values()),
        touched=len(game.tally) + len(seats.left),
        retired=frozenset(map(seats.seat, game.retired)) | seats.left,
    )
    if not sound(game.state, known):
        return f"{game.policy.label} cannot be in this state"
    present = generation(game.state)
    slots = (p.slot for p in game.flight.values() if p.generation == present)
    return "" if all(holds(game.state, slot) for slot in slots) else "it has rewards for no arm"
