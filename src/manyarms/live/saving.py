"""Everything a game knows as bytes, and back: what `save` writes and a store's snapshots are.

    magic     8 bytes
    version   uint32, little-endian as all that follows
    checksum  32 bytes, blake2b of everything after it
    whole     uint64, the length of the body before compression
    body      zlib: the length of the text (uint64), the text (JSON), the columns

The text describes the game and lists the columns: name, type, count, and whether differences are
stored, which is done where numbers increase. Columns are stored byte by byte: first the lowest
bytes of all numbers.

Reading runs nothing from the file. The checksum is no signature: everybody can compute it. So what
is read must be of the right kinds, fit together, and inflate to no more than `_most` bytes.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import struct
import zlib
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from manyarms.core.checks import check_int, shown
from manyarms.errors import ManyarmsError, SavedFileError
from manyarms.inference.question import check_setting
from manyarms.live.arms import ArmNames, ArmNumbers, Seats, arms_of
from manyarms.live.control import OF_CONTROL, Control, check_control
from manyarms.live.game import ArmTally, LiveGame, check_range, check_reward_name
from manyarms.protocol.in_flight import InFlight
from manyarms.protocol.policy import MOST_ARMS, Policy
from manyarms.protocol.registry import described_policy, policy_from
from manyarms.protocol.state_dump import (
    Columns,
    column_of_each,
    dump_state,
    restore_state,
    set_each,
)

MAGIC = b"\x89arms\r\n\x1a"  # as PNG's: a transfer that changes line ends is noticed
JOURNAL_MAGIC = b"\x89armj\r\n\x1a"
VERSION = 2  # 1 had another rule for ties; what it knows is read, and goes on by ours
NEWEST = 3  # games with a control: an earlier manyarms would lose it
# what reading raises where the checksum is right, and what it covers makes no sense
MALFORMED_ERRORS = (
    *(ValueError, LookupError, TypeError, AttributeError, RecursionError),
    *(ArithmeticError, struct.error),
)
_HEADER = struct.Struct("<8sI32sQ")
_CHECKED = 8 + 4 + 32  # where the part begins that the checksum covers
_LENGTH = struct.Struct("<Q")
_TYPES = {"i": "<i8", "u": "<u8", "f": "<f8"}
_LARGEST = 1 << 62
_TALLY: dict[str, type[np.generic]] = {"asked": np.int64, "told": np.int64, "total": np.float64}
# the columns of pulls in flight, as they are called in files, and the fields of a pull
_IN_FLIGHT = dict(zip(("slot", "arm", "era", "late"), InFlight.__annotations__, strict=True))


def snapshot(game: LiveGame) -> bytes:
    """Return the game as bytes. Equal games give equal bytes."""
    columns = {
        "retired": _whole(sorted(game.retired)),
        "abandoned": np.sort(_whole(game.abandoned)),
        **_dump_tally(game.tally),
        **_dump_flight(game.flight),
        **_dump_observed(game),
        **_dump_control(game.control),
        **dump_state(game.state),
    }
    about = describe(game) | {"pulls": game.pulls}
    counts = {"returned": game.seats.count - game.arms.count, "skipped": game.skipped}
    about |= {name: count for name, count in counts.items() if count > 0}
    if game.epsilon is not None:
        about["epsilon"] = game.epsilon
    return pack(about, {name: c for name, c in columns.items() if len(c) > 0})


def restored(data: bytes, policy: Policy | None, what: str) -> LiveGame:
    """Return the game of a snapshot; `what` names the file in errors."""
    about, columns = unpack(data, what)
    try:
        policy = _policy_from(about, policy, what)
        first = ArmNumbers(about["first_arms"])
        game = LiveGame(policy, first, about["horizon"], about["seed"], about["reward_range"])
        game.arms = arms_of(about["arms"].get("count"), about["arms"].get("names"))
        game.pulls = check_int("pulls", about["pulls"])
        game.epsilon = check_setting(about.get("epsilon"), game.reward_range)
        game.retired = set(_taken(columns, "retired"))
        game.abandoned = set(_taken(columns, "abandoned"))
        game.tally = _read_tally(columns)
        _read_flight(game.flight, columns)
        _read_observed(game, about, columns)
        _read_control(game, about, columns)
        game.reward = check_reward_name(about.get("reward", ""))
        restore_state(game.state, columns)
    except SavedFileError:
        raise
    except MALFORMED_ERRORS as error:
        rule = ", with another rule for ties," if version_of(data) < VERSION else ""
        raise SavedFileError(
            f"{what} has format {version_of(data)}{rule} and does not fit this manyarms and its "
            f"policies: {error!r}. If the policy has changed, go on with the version that wrote "
            f"it, or begin a new game and report the old rewards with `observe`."
        ) from error
    game.from_file = game.pulls > 0 or bool(game.tally)
    return game


@contextlib.contextmanager
def blame_loaded_state(game: LiveGame, what: str) -> Iterator[None]:
    """Turn errors of a policy whose state was loaded from a file into `SavedFileError`.

    Whether a loaded state makes sense is not checked: so it shows when the policy plays on.
    """
    try:
        yield
    except SavedFileError:
        raise
    except MALFORMED_ERRORS as error:
        if not game.from_file:
            raise
        raise SavedFileError(
            f"{what} ended midway with {error!r}: {game.policy.label} cannot go on from the state "
            f"that was loaded. The file was not written by manyarms, or the policy has a bug. Use "
            f"another copy of the file."
        ) from error


def describe(game: LiveGame) -> dict[str, Any]:
    """Return what was fixed when the game began, and its arms."""
    arms, control = game.arms, game.control
    known: dict[str, Any] = {"reward": game.reward} if game.reward else {}
    if control is not None:
        known["control"] = [control.name, control.share]
    return known | {
        "policy": described_policy(game.policy),
        "horizon": game.horizon,
        "seed": game.seed,
        "reward_range": game.reward_range,
        "first_arms": game.first_arms,
        "arms": {"names": arms.names} if isinstance(arms, ArmNames) else {"count": arms.count},
    }


def _policy_from(about: dict[str, Any], given: Policy | None, what: str) -> Policy:
    """Return the policy that a file describes, using the given one if it matches."""
    described, limits = about["policy"], check_range(about["reward_range"])
    try:
        made = policy_from(described, given, limits)
    except ManyarmsError as error:
        _refuse_unless(given is None, given, described, what)
        raise SavedFileError(
            f"{what} needs the policy {described['label']}, which cannot be made here: {error} "
            f"Import the module that registers it, or pass `policy`."
        ) from error
    if given is not None:  # a file of an older manyarms may hold a sigma that the range did not set
        same = given.with_reward_range(limits) == made.with_reward_range(limits)
        _refuse_unless(same, given, described, what)
    return made


def _refuse_unless(same: bool, given: Policy | None, described: dict[str, Any], what: str) -> None:
    if not same and given is not None:
        raise SavedFileError(
            f"{what} was saved with the policy {described['label']}, not with {given.label}. "
            f"Pass that one."
        )


def _whole(numbers: Iterable[int]) -> NDArray[np.int64]:
    return np.fromiter(numbers, np.int64)


def _dump_tally(tally: dict[int, ArmTally]) -> Columns:
    columns = {"arm": _whole(tally)} | column_of_each(tally.values(), _TALLY)
    return {f"tally {name}": column for name, column in columns.items()}


def _read_tally(columns: Columns) -> dict[int, ArmTally]:
    arms = _taken(columns, "tally arm")
    seen = [_taken(columns, f"tally {name}", kind) for name, kind in _TALLY.items()]
    tally = dict(zip(arms, map(ArmTally, *seen), strict=True))
    if len(tally) < len(arms) or any(len(column) != len(arms) for column in seen):
        raise ValueError("an arm has two tallies, or half of one")
    return tally


def _dump_flight(flight: dict[int, Any]) -> Columns:
    pulls = column_of_each(flight.values(), dict.fromkeys(_IN_FLIGHT.values(), np.int64))
    named = {f"flight {name}": pulls[field] for name, field in _IN_FLIGHT.items()}
    return {"flight number": _whole(flight)} | named


def _read_flight(flight: dict[int, Any], columns: Columns) -> None:
    pulls = [flight[number] for number in _taken(columns, "flight number")]  # made by looking
    for name, field in _IN_FLIGHT.items():
        set_each(pulls, field, np.array(_taken(columns, f"flight {name}"), np.int64))


def _dump_observed(game: LiveGame) -> Columns:
    """Return the columns that only games with observed rewards or restored arms have."""
    rewards = [(arm, reward) for arm, some in game.stock.items() for reward in some]
    begins, shifts = game.seats.shifts()
    return {
        "stock arm": _whole(arm for arm, _ in rewards),
        "stock reward": np.array([reward for _, reward in rewards], np.float64),
        "waiting": _whole(game.drawn_next),
        "named": _whole(sorted(game.named)),
        "met": _whole(game.met),
        "seat arm": _whole(game.seats.seat_of),
        "seat number": _whole(game.seats.seat_of.values()),
        "seat begin": _whole(begins),
        "seat shift": _whole(shifts),
    }


def _read_observed(game: LiveGame, about: dict[str, Any], columns: Columns) -> None:
    arms, rewards = _taken(columns, "stock arm"), _taken(columns, "stock reward", np.float64)
    for arm, reward in zip(arms, rewards, strict=True):
        game.stock.setdefault(arm, deque()).append(reward)
    game.drawn_next = dict.fromkeys(_taken(columns, "waiting"))
    game.named = set(_taken(columns, "named"))
    game.met = dict.fromkeys(_taken(columns, "met"))
    game.skipped = check_int("skipped", about.get("skipped", 0))
    arms, numbers, begins, shifts = (
        _taken(columns, f"seat {name}") for name in ("arm", "number", "begin", "shift")
    )
    returned = check_int("returned", about.get("returned", 0), at_most=MOST_ARMS)
    seated = zip(arms, numbers, strict=True)
    game.seats = Seats.restored(game.arms.count, returned, seated, (begins, shifts))


def _dump_control(control: Control | None) -> Columns:
    if control is None:
        return {}
    return {
        "control count": _whole((control.turns, control.asked, control.told)),
        "control total": np.array([control.total], np.float64),
        "control flight": _whole(control.flight),
        "control abandoned": np.sort(_whole(control.abandoned)),
    }


def _read_control(game: LiveGame, about: dict[str, Any], columns: Columns) -> None:
    if "control" not in about:
        return
    chosen = check_control(*about["control"])
    if chosen is None:
        raise ValueError("the control has no name")
    control = Control(*chosen, game.seed)
    control.turns, control.asked, control.told = _taken(columns, "control count")
    (control.total,) = _taken(columns, "control total", np.float64)
    flying, abandoned = (_taken(columns, f"control {name}") for name in ("flight", "abandoned"))
    control.flight, control.abandoned = dict.fromkeys(flying), set(abandoned)
    numbers = flying + abandoned
    given = range(OF_CONTROL, OF_CONTROL + control.asked)
    if not (control.turns >= control.asked >= 0 and control.told >= 0):
        raise ValueError("the control has more pulls than there were")
    if len({*numbers}) != len(numbers) or any(number not in given for number in numbers):
        raise ValueError("the control has pulls that it was not given")
    game.control = control


def _taken(columns: Columns, name: str, kind: type[np.generic] = np.int64) -> list[Any]:
    """Remove a column and return it; a missing one is empty."""
    column = columns.pop(name, np.zeros(0, kind))
    if column.dtype != kind:
        raise TypeError(f"{name!r} has numbers of another kind")
    if kind is np.int64 and not bool(((column >= -_LARGEST) & (column <= _LARGEST)).all()):
        raise ValueError(f"{name!r} has numbers that overflow when they are counted on")
    return cast("list[Any]", column.tolist())


def pack(about: dict[str, Any], columns: Columns) -> bytes:
    """Return the bytes of a file."""
    listed, parts = [], []
    for name, column in columns.items():
        kind = column.dtype.kind
        steps = kind == "i" and len(column) > 1 and bool((column[1:] > column[:-1]).all())
        stored = np.diff(column, prepend=0) if steps else column
        listed.append([name, kind, len(column), steps])
        parts.append(stored.astype(_TYPES[kind]).view(np.uint8).reshape(-1, 8).T.tobytes())
    text = json.dumps(about | {"columns": listed}, separators=(",", ":")).encode()
    body = b"".join([_LENGTH.pack(len(text)), text, *parts])
    small = zlib.compress(body, 1)
    if len(body) > _most(len(small)):  # so that it can be read: hardly anything but zeros
        small = zlib.compress(body, 0)
    rest = _LENGTH.pack(len(body)) + small
    version = NEWEST if "control" in about else VERSION
    return _HEADER.pack(MAGIC, version, _checksum(rest), len(body)) + rest[_LENGTH.size :]


def unpack(data: bytes, what: str) -> tuple[dict[str, Any], Columns]:
    """Return what `pack` was given."""
    if not data.startswith(MAGIC):
        raise SavedFileError(_no_magic(data, what))
    if len(data) < _HEADER.size:
        raise SavedFileError(f"{what} is cut off after {len(data)} bytes. Use a copy of it.")
    _, version, checksum, whole = _HEADER.unpack_from(data)
    check_version(version, NEWEST, what)
    if _checksum(data[_CHECKED:]) != checksum:
        raise SavedFileError(
            f"{what} is damaged: its checksum is wrong. It was cut off or changed; use a copy."
        )
    try:
        about, columns = _read_body(_inflated(data[_HEADER.size :], whole))
        if ("control" in about) != (version == NEWEST):
            raise ValueError(f"its format is not {version}")
        return about, columns
    except (*MALFORMED_ERRORS, zlib.error) as error:
        raise SavedFileError(f"{what} was not written by manyarms: {error}.") from error


def _most(size: int) -> int:
    """Return the largest size that `size` bytes may inflate to: twice that of real files."""
    return (32 << 20) + 16 * size


def _inflated(small: bytes, whole: int) -> bytes:
    if not 0 < whole <= _most(len(small)):
        raise ValueError(f"{len(small)} bytes would inflate to {whole}")
    inflate = zlib.decompressobj()
    body = inflate.decompress(small, whole + 1)
    if len(body) != whole or not inflate.eof or inflate.unused_data:
        raise ValueError(f"it does not inflate to {whole} bytes")
    return body


def check_version(found: int, known: int, what: str) -> None:
    """Raise if a file has a format that this code does not know."""
    if not 1 <= found <= known:
        raise SavedFileError(
            f"{what} has format {found}, and this manyarms reads formats up to {known}. Install a "
            f"newer manyarms, unless the file is damaged."
        )


def version_of(data: bytes) -> int:
    """Return the format of a snapshot that `unpack` has read."""
    return int(_HEADER.unpack_from(data)[1])


def _read_body(body: bytes) -> tuple[dict[str, Any], Columns]:
    (length,) = _LENGTH.unpack_from(body)
    at = _LENGTH.size + length
    about = json.loads(body[_LENGTH.size : at])
    columns: Columns = {}
    for name, kind, count, steps in about.pop("columns"):
        column = _read_column(body[at : at + 8 * count], count, _TYPES[kind])
        if name in columns or (steps and kind != "i") or count < 1:
            raise ValueError(f"column {shown(name)} cannot be")
        columns[name] = np.cumsum(column) if steps else column
        at += 8 * count
    if at != len(body):
        raise ValueError(f"{len(body) - at} bytes are left over")
    return about, columns


def _read_column(stored: bytes, count: int, kind: str) -> NDArray[Any]:
    rows = np.frombuffer(stored, np.uint8).reshape(8, count).T
    numbers = np.ascontiguousarray(rows).view(kind).reshape(count)
    return numbers.astype(numbers.dtype.newbyteorder("="))


def _checksum(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=32).digest()


def _no_magic(data: bytes, what: str) -> str:
    if not data:
        return f"{what} is empty. Use a copy of it."
    if data.startswith(JOURNAL_MAGIC):
        return f"{what} is a journal. Open it with recorded(path)."
    return (
        f"{what} is not a handle that manyarms saved: it begins with {data[:8]!r}. Pass a file "
        f"that save() wrote."
    )
