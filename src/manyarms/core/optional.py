"""Import packages of extras when they are needed."""

from __future__ import annotations

import importlib
from typing import Any

from manyarms.errors import MissingExtraError


def need(package: str, purpose: str, extra: str = "sim") -> Any:
    """Import a package of an extra; if it is missing, the error says how to install it."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise MissingExtraError(package.partition(".")[0], purpose, extra) from error


def need_pyarrow() -> Any:
    """Import pyarrow with its modules for Parquet and CSV."""
    purpose = "to write and read tables"
    need("pyarrow.parquet", purpose)
    need("pyarrow.csv", purpose)
    return need("pyarrow", purpose)
