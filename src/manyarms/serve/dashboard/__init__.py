"""The pages: a list of experiments, and one for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.routing import BaseRoute

    from manyarms.serve.service import Service

__all__ = ["routes"]


def routes(service: Service) -> list[BaseRoute]:
    """Return the pages."""
    return []
