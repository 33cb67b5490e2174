"""Tokens: who sends a request, and what they may do.

The database keeps the SHA-256 of a token, because tokens are long and random. Programs send the
token in the header `Authorization`; the dashboard keeps it in a cookie.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from typing import Annotated, Any, NamedTuple
from urllib.parse import quote, unquote

from msgspec import Meta, Struct

from manyarms.live.databases import Database
from manyarms.serve import clock
from manyarms.serve.errors import RefusedError, refuse
from manyarms.serve.messages import NAME, Failure, Role

ROLES = ("viewer", "client", "admin")  # each may do what those before it may do, and more
COOKIE = "manyarms_token"
LONGEST_TOKEN = 200  # characters
_COOKIE_AGE = 7 * 24 * 3600  # seconds
_REMEMBERED = 2.0  # seconds for which a token is not looked up again
_MOST_REMEMBERED = 10_000
_CENTURY = 100 * 366 * 86_400  # seconds

Headers = dict[bytes, bytes]


def may(role: str, needed: str) -> bool:
    """Return whether a role may do what needs another one.

    >>> may("admin", "client"), may("viewer", "client")
    (True, False)
    """
    return ROLES.index(role) >= ROLES.index(needed)


class NewToken(Struct, forbid_unknown_fields=True):
    """A token to be made, for one experiment or for all."""

    name: Annotated[str, Meta(pattern=NAME)]
    role: Role
    experiment: Annotated[str, Meta(pattern=NAME)] | None = None
    expires: Annotated[float, Meta(gt=0, le=_CENTURY)] | None = None  # seconds from now


class Caller(NamedTuple):
    """Who sends a request: the owner of its token."""

    name: str
    role: str
    experiment: str | None = None
    expires: float | None = None  # seconds since 1970
    cookie: bool = False  # whether the token came in a cookie

    @property
    def expired(self) -> bool:
        """Whether the token has expired."""
        return self.expires is not None and self.expires <= clock.now()


class Access:
    """Remembers for two seconds what the database said of tokens."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[float, Caller | None]] = {}

    def remembered(self, token: str) -> tuple[float, Caller | None] | None:
        """Return an entry with the owner of a token; None if the database must be asked."""
        seen = self._known.get(token)
        return None if seen is None or seen[0] < time.monotonic() else seen

    def remember(self, token: str, caller: Caller | None) -> None:
        """Store what the database said of a token."""
        if len(self._known) > _MOST_REMEMBERED:
            self._known.clear()
        self._known[token] = time.monotonic() + _REMEMBERED, caller


def new_token() -> str:
    """Return a new token."""
    return f"ma_{secrets.token_urlsafe(24)}"


def digest_of(token: str) -> str:
    """Return what the database keeps of a token."""
    return hashlib.sha256(token.encode()).hexdigest()


def token_in(headers: Headers) -> tuple[str | None, bool]:
    """Return the token of a request, and whether it came in a cookie. The header goes first."""
    given = headers.get(b"authorization")
    if given is not None:
        text = given.decode("latin-1")
        return text[7:].strip() if text[:7].lower() == "bearer " else None, False
    for part in headers.get(b"cookie", b"").decode("latin-1").split(";"):
        name, _, value = part.strip().partition("=")
        if name == COOKIE:
            return unquote(value), True
    return None, False


def cookie_of(token: str, root: str, scope: Any) -> str:
    """Return the header `Set-Cookie` with a token, which no script and no other site can use.

    Without a token, it deletes the cookie.
    """
    age = _COOKIE_AGE if token else 0
    more = "; Secure" if scope["scheme"] == "https" else ""
    return (
        f"{COOKIE}={quote(token, safe='')}; Path={root or '/'}; Max-Age={age}; HttpOnly; "
        f"SameSite=Strict{more}"
    )


def check(caller: Caller | None, role: str, experiment: str | None, scope: Any) -> None:
    """Raise a `RefusedError` unless a caller may send this request, which needs a role."""
    if caller is None:
        said = (
            "The header `Authorization: Bearer TOKEN` is missing, or its token is unknown. The "
            "administrator of the service makes tokens."
        )
        raise RefusedError(Failure("no_token", said, 401), {"WWW-Authenticate": "Bearer"})
    if caller.expired:
        raise refuse(401, "expired", f"The token {caller.name!r} has expired. Make a new one.")
    if not may(caller.role, role):
        said = f"This needs the role {role}, and the token {caller.name!r} has {caller.role}."
        raise refuse(403, "role", said)
    if caller.experiment is not None and experiment != caller.experiment:
        raise refuse(
            403, "experiment", f"The token {caller.name!r} is for {caller.experiment!r} only."
        )
    if caller.cookie and scope["method"] not in ("GET", "HEAD"):
        check_same_origin(scope)


def check_same_origin(scope: Any) -> None:
    """Raise a `RefusedError` unless a request comes from a page of this service."""
    headers: Headers = dict(scope["headers"])
    hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
    if len(hosts) != 1 or not hosts[0]:
        raise refuse(400, "host", f"A request needs one header `Host`, got {len(hosts)}.")
    origin = headers.get(b"origin", b"").decode("latin-1")
    if origin not in (f"http://{hosts[0]}", f"https://{hosts[0]}"):
        raise refuse(
            403, "origin", "Only pages of this service may use the cookie: wrong header `Origin`."
        )


def find_caller(database: Database, token: str) -> Caller | None:
    """Return the owner of a token; None if it is unknown."""
    row = database.first(
        "SELECT name, role, experiment, expires FROM tokens WHERE sha256 = :digest",
        digest=digest_of(token),
    )
    return None if row is None else Caller(*row)


def add_token(database: Database, new: NewToken, token: str) -> bool:
    """Insert a token; return False if there is one of this name."""
    rows = database.run(
        "INSERT INTO tokens (name, sha256, role, experiment, expires) VALUES "
        "(:name, :sha256, :role, :experiment, :expires) ON CONFLICT DO NOTHING RETURNING name",
        name=new.name,
        sha256=digest_of(token),
        role=new.role,
        experiment=new.experiment,
        expires=None if new.expires is None else clock.now() + new.expires,
    )
    return bool(rows)
