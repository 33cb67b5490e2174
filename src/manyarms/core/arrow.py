"""The one place that looks for pyarrow, which is optional."""

from __future__ import annotations

import importlib
from typing import Any

from manyarms.errors import MissingExtraError

__all__ = ["need_pyarrow"]


def need_pyarrow() -> Any:
    """Return pyarrow with its parts for Parquet and CSV, or say how to install it."""
    try:
        importlib.import_module("pyarrow.parquet")
        importlib.import_module("pyarrow.csv")
        return importlib.import_module("pyarrow")
    except ImportError as error:
        raise MissingExtraError("pyarrow", "to write and read tables") from error
