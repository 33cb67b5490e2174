"""Rows of a log by columns."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

from manyarms.errors import SavedFileError
from manyarms.live.databases.database import LogRow
from manyarms.live.packing import MALFORMED_ERRORS
from manyarms.live.store import Events


def columns_of(rows: Sequence[LogRow]) -> Events:
    """Return events by columns."""
    _, kind, pull, arm, reward, at, more = zip(*rows, strict=True) if rows else ((),) * 7
    kinds, pulls, arms = (np.array(column, np.int64) for column in (kind, pull, arm))
    try:
        names = [name for text in more if text is not None for name in json.loads(text)[0]]
    except MALFORMED_ERRORS as error:
        raise SavedFileError(
            "The database is damaged: names of arms that came cannot be read. Restore a backup."
        ) from error
    return Events(kinds, pulls, arms, np.array(reward, float), names, np.array(at, float))
