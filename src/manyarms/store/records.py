"""The rows of a store, their checksums, and the limits of names."""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from manyarms.errors import ParameterError

LONGEST_ARM_NAME = 20_000  # characters: a prompt may be the name of an arm
LONGEST_EXPERIMENT_NAME = 200  # characters: PostgreSQL indexes at most 2,700 bytes
_NONE = -(1 << 63)  # stands for an empty integer in checksums
_NAN = float("nan")  # stands for an empty number in checksums
_numbers = struct.Struct("<qdqqd").pack


class Event(NamedTuple):
    """An event in the log of an experiment.

    Attributes
    ----------
    seq
        The position in the experiment's log, from 1.
    at
        The time (seconds since 1970).
    kind
        What happened, in one word.
    pull, arm, reward
        The pull, the number of the arm and the reward; None where there is none.
    detail
        Everything else, stored as JSON.
    """

    seq: int
    at: float
    kind: str
    pull: int | None = None
    arm: int | None = None
    reward: float | None = None
    detail: dict[str, Any] | None = None


class Request(NamedTuple):
    """A request that was answered, so that a retry gets the same answer.

    Attributes
    ----------
    key
        The idempotency key.
    digest
        A digest of the request: a key must not be used for another one.
    answer
        The answer, as text.
    at
        The time (seconds since 1970).
    """

    key: str
    digest: str
    answer: str
    at: float


class Append(NamedTuple):
    """What a commit appends to one experiment.

    Attributes
    ----------
    experiment
        The number of the experiment.
    after_seq
        The last event that is already in the log.
    events
        The events after it.
    names
        The numbers and names of arms that are added.
    requests
        The requests that these events answer.
    """

    experiment: int
    after_seq: int
    events: Sequence[Event]
    names: Sequence[tuple[int, str]] = ()
    requests: Sequence[Request] = ()


class ExperimentRecord(NamedTuple):
    """An experiment: its settings, which never change, and its state, which may."""

    id: int
    name: str
    spec: dict[str, Any]
    state: dict[str, Any]
    created: float
    damage: str = ""  # why its settings or its state cannot be read; then both are empty


class Snapshot(NamedTuple):
    """A serialized state after an event, with the version of the code that wrote it."""

    seq: int
    version: str
    data: bytes


class Token(NamedTuple):
    """A token of the service; only its hash is stored. `expires` is None if it never does."""

    name: str
    role: str
    hash: str
    created: float
    expires: float | None = None


class HistoryRow(NamedTuple):
    """An event in an export, with the name of the arm, or its number if it has no name."""

    seq: int
    at: float
    kind: str
    pull: int | None
    arm: str | int | None
    reward: float | None
    detail: dict[str, Any] | None


def first_checksum(spec: str) -> int:
    """Return the checksum that a log begins with: that of the experiment's settings."""
    return zlib.crc32(spec.encode())


def stored(event: Event, experiment: int, previous: int) -> tuple[Any, ...]:
    """Return the row of an event; its last column is the checksum of this row and all before it.

    Negative zero becomes zero, because SQLite does not distinguish them.
    """
    seq, at, kind, pull, arm, reward, detail = event
    at = float(at)
    if reward is not None:
        reward = float(reward) + 0.0
    text = None if detail is None else to_json(detail)
    check = next_checksum(previous, seq, at, kind, pull, arm, reward, text)
    return experiment, seq, at, kind, pull, arm, reward, text, check


def next_checksum(
    previous: int,
    seq: int,
    at: float,
    kind: str,
    pull: int | None,
    arm: int | None,
    reward: float | None,
    detail: str | None,
) -> int:
    """Return the checksum of a row and all rows before it."""
    numbers = _numbers(
        seq,
        at,
        _NONE if pull is None else pull,
        _NONE if arm is None else arm,
        _NAN if reward is None else reward,
    )
    text = kind if detail is None else f"{kind}\0{detail}"
    return zlib.crc32(numbers + text.encode(), previous)


def digest_of(name: str) -> bytes:
    """Return a digest of an arm's name; PostgreSQL cannot index long names themselves."""
    return hashlib.blake2b(name.encode(), digest_size=16).digest()


def check_name(name: object, longest: int = LONGEST_ARM_NAME, what: str = "arm") -> None:
    """Raise unless every store can hold a name, and a URL that of an experiment."""
    if what == "experiment" and name in (".", ".."):
        raise ParameterError(
            f"The name of an experiment must not be {name!r}, which browsers remove from "
            f"addresses. Choose another name."
        )
    if isinstance(name, str) and 0 < len(name) <= longest and "\0" not in name:
        try:
            name.encode()
            return
        except UnicodeEncodeError:
            pass
    shown = f"one of {len(name):,}" if isinstance(name, str) and len(name) > longest else repr(name)
    raise ParameterError(
        f"The name of an {what} must be a text of 1 to {longest:,} characters without NUL and "
        f"without lone surrogates, got {shown[:200]}."
    )


def to_json(value: Any) -> str:
    """Return a value as JSON in ASCII, which every database can hold."""
    return json.dumps(value, separators=(",", ":"))
