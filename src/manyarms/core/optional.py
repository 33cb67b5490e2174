"""Packages of extras: imported when needed; if one is missing, the error says how to install it."""

from __future__ import annotations

import importlib
from typing import Any

from manyarms.errors import MissingExtraError


def need(package: str, purpose: str, extra: str = "sim") -> Any:
    """Return a package of an extra, or say how to install it."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise MissingExtraError(package.partition(".")[0], purpose, extra) from error


def need_pyarrow() -> Any:
    """Return pyarrow with its parts for Parquet and CSV."""
    purpose = "to write and read tables"
    need("pyarrow.parquet", purpose)
    need("pyarrow.csv", purpose)
    return need("pyarrow", purpose)
