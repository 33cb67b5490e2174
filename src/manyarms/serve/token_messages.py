"""Tokens and sessions over the wire: who may do what, from where, how often."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from msgspec import Meta, Struct

from manyarms.serve.messages import NAME

_ORIGIN = re.compile(r"https?://[^\s/*?#@\x00-\x20]+", re.IGNORECASE)
_CENTURY = 100 * 366 * 86_400  # seconds
Role = Literal["admin", "operator", "viewer", "client", "browser"]


class NewToken(Struct, forbid_unknown_fields=True):
    """A token to be made, for one experiment or for all."""

    name: Annotated[str, Meta(pattern=NAME)]
    role: Role
    experiment: Annotated[str, Meta(pattern=NAME)] | None = None
    origins: list[str] = []  # of the pages that may use it, for role browser
    rate: Annotated[float, Meta(gt=0)] | None = None  # requests a second
    expires: Annotated[float, Meta(gt=0, le=_CENTURY)] | None = None  # seconds from now

    def __post_init__(self) -> None:
        """Refuse what everybody could use without bounds."""
        for origin in self.origins:
            if not _ORIGIN.fullmatch(origin):
                raise ValueError(
                    f"an origin is how a page's address begins, such as https://shop.example, got "
                    f"{origin[:100]!r}"
                )
        if self.role == "browser" and not (self.origins and self.rate and self.experiment):
            raise ValueError(
                "a token of role browser needs an experiment, origins and a rate, because "
                "everybody who sees the page has it"
            )


class AddedToken(Struct):
    """The token. It is not shown again."""

    name: str
    token: str


class Token(Struct):
    """What is known about a token, without the token itself."""

    name: str
    role: Role
    experiment: str | None
    origins: list[str]
    rate: float | None
    expires: float | None


class TokenList(Struct):
    """All tokens."""

    tokens: list[Token]


class Session(Struct):
    """Who is asking."""

    name: str
    role: Role
    experiment: str | None = None
