"""Pictures of arms, and pages about them: what an import says of arms beside their keys."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any
from urllib.parse import urlsplit

from manyarms.serve.errors import invalid

COLUMNS = ("image_url", "url")
_MOST = 2000  # characters of an address
_MOST_IGNORED = 20  # columns that an answer names

Link = tuple[str | None, str | None]  # a picture and a page


class Beside:
    """What came beside the keys of an import.

    Attributes
    ----------
    ignored
        Columns or fields that are not read, as the keys of a dict.
    links
        Pictures and pages by the keys of arms; whoever keeps them takes them out.
    """

    def __init__(self) -> None:
        self.ignored: dict[str, None] = {}
        self.links: dict[str, Link] = {}

    def ignore(self, names: Iterable[str]) -> None:
        """Note which columns or fields are not read."""
        if len(self.ignored) < _MOST_IGNORED:
            unread = (name[:100] for name in names if name not in COLUMNS)
            self.ignored |= dict.fromkeys(islice(unread, _MOST_IGNORED))

    def link(self, key: str, given: dict[str, Any], where: str) -> None:
        """Note the picture and the page of an arm, or refuse them."""
        if "image_url" in given or "url" in given:
            image, page = (_address(given.get(name), name, where) for name in COLUMNS)
            self.links[key] = image, page


def _address(value: Any, column: str, where: str) -> str | None:
    if value is None or value == "":
        return None
    if not _is_address(value):
        raise invalid(
            f"{where}: `{column}` must be an address that begins with https://, of at most {_MOST} "
            f"characters, got {str(value)[:100]!r}. No arm was added."
        )
    return str(value)


def _is_address(value: Any) -> bool:
    if not isinstance(value, str) or len(value) > _MOST or not value.startswith("https://"):
        return False
    if not value.isprintable() or " " in value:
        return False
    try:
        host = urlsplit(value).netloc
    except ValueError:
        return False
    return bool(host) and "@" not in host
