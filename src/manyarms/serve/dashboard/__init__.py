"""The pages: a list of experiments, one for each, one for each arm."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manyarms.serve.dashboard.pages import Pages, error_page

if TYPE_CHECKING:
    from starlette.routing import BaseRoute

    from manyarms.serve.service import Service

__all__ = ["error_page", "routes"]


def routes(service: Service) -> list[BaseRoute]:
    """Return the pages."""
    return Pages(service).routes()
