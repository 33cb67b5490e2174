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
import numbers
import struct
import zlib
from collections import deque
from collections.abc import Iterator
from dataclasses import fields
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from manyarms.core.checks import check_int, shown
from manyarms.core.garbage import gc_paused
from manyarms.errors import ManyarmsError, ParameterError, SavedFileError
from manyarms.live.arms import ArmNames, ArmNumbers, Arms
from manyarms.live.contradictions import find_contradiction
from manyarms.live.game import ArmTally, LiveGame, check_range
from manyarms.live.pull_ranges import PullRanges
from manyarms.live.seats import Seats
from manyarms.protocol.in_flight import InFlight
from manyarms.protocol.policy import Policy
from manyarms.protocol.registry import name_of
from manyarms.protocol.registry import policy as policy_named
from manyarms.protocol.state_dump import Columns, dump_state, restore_state

__all__ = [
    "JOURNAL_MAGIC",
    "MAGIC",
    "MALFORMED_ERRORS",
    "VERSION",
    "check_version",
    "describe",
    "described_policy",
    "first_arms",
    "gc_paused",
    "nonsense_refused",
    "pack",
    "restored",
    "snapshot",
    "unpack",
    "version_of",
]

MAGIC = b"\x89arms\r\n\x1a"  # as PNG's: a transfer that changes line ends is noticed
JOURNAL_MAGIC = b"\x89armj\r\n\x1a"
VERSION = 2  # 1 had another rule for ties; what it knows is read, and goes on by ours
# what reading raises where the checksum is right, and what it covers makes no sense
MALFORMED_ERRORS = (
    *(ValueError, LookupError, TypeError, AttributeError, RecursionError),
    *(ArithmeticError, struct.error),
)
_DEEPEST = 8  # policies within policies
_HEADER = struct.Struct("<8sI32sQ")
_CHECKED = 8 + 4 + 32  # where the part begins that the checksum covers
_LENGTH = struct.Struct("<Q")
_TYPES = {"i": "<i8", "u": "<u8", "f": "<f8"}
_NONE = np.zeros(0, np.int64)
# the columns of pulls in flight, as they are called in files, and the fields of a pull
_IN_FLIGHT = dict(zip(("slot", "arm", "era", "late"), InFlight.__annotations__, strict=True))


def snapshot(game: LiveGame) -> bytes:
    """Return all that a game knows. Equal games give equal bytes."""
    columns = {
        "retired": np.array(sorted(game.retired), np.int64),
        "abandoned": game.abandoned.numbers(),
        **_dump_tally(game.tally),
        **_dump_flight(game.flight),
        **_dump_observed(game),
        **dump_state(game.state),
    }
    about = describe(game) | {"pulls": game.pulls}
    counts = {"returned": len(game.seats.left), "skipped": game.skipped}
    about |= {name: count for name, count in counts.items() if count > 0}
    return pack(about, {name: c for name, c in columns.items() if len(c) > 0})


def restored(data: bytes, policy: Policy | None, what: str) -> LiveGame:
    """Return the game of a snapshot; `what` names the file in errors."""
    about, columns = unpack(data, what)
    try:
        policy = _policy_from(about, policy, what)
        first = ArmNumbers(about["first_arms"])
        game = LiveGame(policy, first, about["horizon"], about["seed"], about["reward_range"])
        game.arms = _read_arms(about["arms"])
        game.pulls = check_int("pulls", about["pulls"])
        game.retired = set(_taken(columns, "retired"))
        game.abandoned = PullRanges(_increasing(columns.pop("abandoned", _NONE)))
        game.tally = _read_tally(columns)
        _read_flight(game.flight, columns)
        _read_observed(game, about, columns)
        restore_state(game.state, columns)
        wrong = find_contradiction(game, columns)
    except SavedFileError:
        raise
    except MALFORMED_ERRORS as error:
        rule = ", with another rule for ties," if version_of(data) < VERSION else ""
        raise SavedFileError(
            f"{what} has format {version_of(data)}{rule} and does not fit this manyarms and its "
            f"policies: {error!r}. Read it with the version that wrote it, or begin a new game."
        ) from error
    if wrong:
        raise SavedFileError(
            f"{what} contradicts itself: {wrong}. Its checksum is right, so manyarms did not write "
            f"it. Use a copy."
        )
    game.from_file = game.pulls > 0 or bool(game.tally)
    return game


@contextlib.contextmanager
def nonsense_refused(game: LiveGame, what: str) -> Iterator[None]:
    """Turn the errors that a state makes which cannot be, and came from a file, into ours."""
    try:
        yield
    except SavedFileError:
        raise
    except MALFORMED_ERRORS as error:
        if not game.from_file:
            raise
        raise SavedFileError(
            f"{what} ended midway with {error!r}: the state that was read from a file cannot be. "
            f"manyarms did not write it, or {game.policy.label} has a mistake. Use a copy."
        ) from error


def describe(game: LiveGame) -> dict[str, Any]:
    """Return what was decided when the game began, and the arms there are."""
    return {
        "policy": described_policy(game.policy),
        "horizon": game.horizon,
        "seed": game.seed,
        "reward_range": game.reward_range,
        "first_arms": game.first_arms,
        "arms": _describe_arms(game.arms),
    }


def described_policy(policy: Policy) -> dict[str, Any]:
    """Return a policy's registered name (None if it has none) and its parameters."""
    name = name_of(type(policy))
    parameters = {} if name is None else {f.name: _plain(policy, f.name) for f in fields(policy)}
    return {"name": name, "label": policy.label, "parameters": parameters}


def _plain(policy: Policy, parameter: str) -> Any:
    value = getattr(policy, parameter)
    if isinstance(value, Policy):
        return described_policy(value)
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value)
    raise ParameterError(
        f"`{parameter}` of {policy.label} must be a number, a string, a policy or None to be "
        f"saved, got {value!r}."
    )


def _policy_from(about: dict[str, Any], given: Policy | None, what: str) -> Policy:
    """Return the described policy, or the given one if it is that."""
    described, limits = about["policy"], check_range(about["reward_range"])
    try:
        made = _made(described, given, limits)
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


def _made(
    described: dict[str, Any],
    given: Any = None,
    limits: tuple[float, float] | None = None,
    depth: int = 0,
) -> Policy:
    """Return the described policy; where it has no registered name, the given one if it is that."""
    own = given if isinstance(given, Policy) else None
    if described["name"] is None or (own is not None and name_of(type(own)) is None):
        for one in () if own is None else (own, own.with_reward_range(limits)):
            if described["label"] in (one.label, one.stored_label):  # of earlier files, too
                return one
        raise ParameterError("it was not registered when it was saved.")
    if depth > _DEEPEST:
        raise ParameterError("it is nested too deeply.")
    parameters = {
        name: _made(value, getattr(own, name, None), limits, depth + 1)
        if isinstance(value, dict)
        else value
        for name, value in described["parameters"].items()
    }
    return policy_named(described["name"], **parameters)


def _describe_arms(arms: Arms) -> dict[str, Any]:
    return {"names": arms.names} if isinstance(arms, ArmNames) else {"count": arms.count}


def _read_arms(described: dict[str, Any]) -> Arms:
    if "names" in described:
        return ArmNames(described["names"])
    return ArmNumbers(described["count"])


def first_arms(described: dict[str, Any], count: int) -> dict[str, Any]:
    """Return the description of the arms that a game began with."""
    return {"names": described["names"][:count]} if "names" in described else {"count": count}


def _dump_tally(tally: dict[int, ArmTally]) -> Columns:
    seen = tally.values()
    return {
        "tally arm": np.array(list(tally), np.int64),
        "tally asked": np.array([t.asked for t in seen], np.int64),
        "tally told": np.array([t.told for t in seen], np.int64),
        "tally total": np.array([t.total for t in seen], np.float64),
    }


def _read_tally(columns: Columns) -> dict[int, ArmTally]:
    arms, *seen = (_taken(columns, f"tally {name}") for name in ("arm", "asked", "told"))
    seen.append(_taken(columns, "tally total", np.float64))
    tally = {arm: ArmTally(*numbers) for arm, *numbers in zip(arms, *seen, strict=True)}
    if len(tally) < len(arms):
        raise ValueError("an arm has two tallies")
    return tally


def _dump_flight(flight: dict[int, Any]) -> Columns:
    return {
        "flight number": np.array(list(flight), np.int64),
        **{
            f"flight {name}": np.array([getattr(p, field) for p in flight.values()], np.int64)
            for name, field in _IN_FLIGHT.items()
        },
    }


def _read_flight(flight: dict[int, Any], columns: Columns) -> None:
    pulls = [flight[number] for number in _taken(columns, "flight number")]  # made by looking
    for name, field in _IN_FLIGHT.items():
        for pull, number in zip(pulls, _taken(columns, f"flight {name}"), strict=True):
            setattr(pull, field, number)


def _dump_observed(game: LiveGame) -> Columns:
    """Return what there is only where rewards were observed, or arms came back."""
    rewards = [(arm, reward) for arm, some in game.stock.items() for reward in some]
    begins, shifts = game.seats.shifts()
    return {
        "stock arm": np.array([arm for arm, _ in rewards], np.int64),
        "stock reward": np.array([reward for _, reward in rewards], np.float64),
        "waiting": np.array(list(game.waiting), np.int64),
        "named": np.array(sorted(game.named), np.int64),
        "seat arm": np.array(list(game.seats.seat_of), np.int64),
        "seat number": np.array(list(game.seats.seat_of.values()), np.int64),
        "seat begin": np.array(begins, np.int64),
        "seat shift": np.array(shifts, np.int64),
    }


def _read_observed(game: LiveGame, about: dict[str, Any], columns: Columns) -> None:
    arms, rewards = _taken(columns, "stock arm"), _taken(columns, "stock reward", np.float64)
    for arm, reward in zip(arms, rewards, strict=True):
        game.stock.setdefault(arm, deque()).append(reward)
    game.waiting = dict.fromkeys(_taken(columns, "waiting"))
    game.named = set(_taken(columns, "named"))
    game.skipped = check_int("skipped", about.get("skipped", 0))
    arms, numbers, begins, shifts = (
        _taken(columns, f"seat {name}") for name in ("arm", "number", "begin", "shift")
    )
    returned = check_int("returned", about.get("returned", 0), at_most=len(arms))
    seated = zip(arms, numbers, strict=True)
    game.seats = Seats.restored(game.arms.count, returned, seated, (begins, shifts))


def _taken(columns: Columns, name: str, kind: type[np.generic] = np.int64) -> list[Any]:
    """Take a column out; one that is missing is empty."""
    column = columns.pop(name, np.zeros(0, kind))
    if column.dtype != kind:
        raise TypeError(f"{name!r} has numbers of another kind")
    return cast("list[Any]", column.tolist())


def _increasing(numbers: NDArray[Any]) -> NDArray[Any]:
    """Return numbers that may be pulls, or raise."""
    if numbers.dtype != np.int64 or (np.diff(numbers, prepend=-1) <= 0).any():
        raise ValueError("pulls are in no order")
    return numbers


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
    return _HEADER.pack(MAGIC, VERSION, _checksum(rest), len(body)) + rest[_LENGTH.size :]


def unpack(data: bytes, what: str) -> tuple[dict[str, Any], Columns]:
    """Return what `pack` was given."""
    if not data.startswith(MAGIC):
        raise SavedFileError(_no_magic(data, what))
    if len(data) < _HEADER.size:
        raise SavedFileError(f"{what} is cut off after {len(data)} bytes. Use a copy of it.")
    _, version, checksum, whole = _HEADER.unpack_from(data)
    check_version(version, VERSION, what)
    if _checksum(data[_CHECKED:]) != checksum:
        raise SavedFileError(
            f"{what} is damaged: its checksum is wrong. It was cut off or changed; use a copy."
        )
    try:
        return _read_body(_inflated(data[_HEADER.size :], whole))
    except (*MALFORMED_ERRORS, zlib.error) as error:
        raise SavedFileError(f"{what} was not written by manyarms: {error}.") from error


def _most(size: int) -> int:
    """Return how large `size` bytes may become unpacked: twice what files of played games do."""
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
