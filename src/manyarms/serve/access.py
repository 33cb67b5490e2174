"""Tokens: who sends a request, and what their role allows.

The store keeps the SHA-256 of each token, which suffices because tokens are long and random.
Programs send the token in the header `Authorization`; the dashboard keeps it in a cookie.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Iterable
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from manyarms.serve import clock
from manyarms.serve.errors import RefusedError, refuse
from manyarms.serve.messages import Failure
from manyarms.store import Token

ROLES = ("viewer", "client", "admin")  # each includes those before it
COOKIE = "manyarms_token"
LONGEST_TOKEN = 200  # characters
_COOKIE_AGE = 7 * 24 * 3600  # seconds
_REMEMBERED = 2.0  # seconds that tokens are cached

Headers = dict[bytes, bytes]


def may(role: str, needed: str) -> bool:
    """Return whether a role includes another one.

    >>> may("admin", "client"), may("viewer", "client")
    (True, False)
    """
    return ROLES.index(role) >= ROLES.index(needed)


class Caller(NamedTuple):
    """The sender of a request: the owner of its token."""

    name: str
    role: str
    expires: float | None = None  # seconds since 1970
    cookie: bool = False  # whether the token came in a cookie

    @property
    def expired(self) -> bool:
        """Whether the token has expired."""
        return self.expires is not None and self.expires <= clock.now()


class Access:
    """A cache of the store's tokens, valid for two seconds."""

    def __init__(self) -> None:
        self._until, self._known = 0.0, dict[str, Caller]()

    def tokens(self) -> dict[str, Caller] | None:
        """Return the owners of tokens by digest; None if the cache has expired."""
        return self._known if time.monotonic() < self._until else None

    def remember(self, tokens: Iterable[Token]) -> dict[str, Caller]:
        """Cache the tokens of the store; return their owners by digest."""
        self._until = time.monotonic() + _REMEMBERED
        self._known = {one.hash: Caller(one.name, one.role, one.expires) for one in tokens}
        return self._known


def new_token() -> str:
    """Return a new token."""
    return f"ma_{secrets.token_urlsafe(24)}"


def digest_of(token: str) -> str:
    """Return the SHA-256 of a token, which the store keeps."""
    return hashlib.sha256(token.encode()).hexdigest()


def token_in(headers: Headers) -> tuple[str | None, bool]:
    """Return the token of a request, and whether it is from the cookie. The header comes first."""
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
    """Return a header `Set-Cookie` with a token, which scripts and other sites cannot use.

    An empty token deletes the cookie.
    """
    age = _COOKIE_AGE if token else 0
    more = "; Secure" if scope["scheme"] == "https" else ""
    return (
        f"{COOKIE}={quote(token, safe='')}; Path={root or '/'}; Max-Age={age}; HttpOnly; "
        f"SameSite=Strict{more}"
    )


def check(caller: Caller | None, role: str, scope: Any) -> None:
    """Raise a `RefusedError` unless a caller has a valid token with the required role."""
    if caller is None:
        said = (
            "The header `Authorization: Bearer TOKEN` is missing, or its token is unknown. "
            "`manyarms serve` says where its token is; for your own, ask the administrator."
        )
        raise RefusedError(Failure("no_token", said, 401), {"WWW-Authenticate": "Bearer"})
    if caller.expired:
        raise refuse(401, "expired", f"The token {caller.name!r} has expired. Make a new one.")
    if not may(caller.role, role):
        said = f"This needs the role {role}, but the token {caller.name!r} has {caller.role}."
        raise refuse(403, "role", said)
    if caller.cookie and scope["method"] not in ("GET", "HEAD"):
        check_same_origin(scope)


def check_same_origin(scope: Any) -> None:
    """Raise a `RefusedError` unless a request comes from a page of this service."""
    headers: Headers = dict(scope["headers"])
    hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
    if len(hosts) != 1 or not hosts[0]:
        raise refuse(400, "host", f"A request must have one header `Host`, got {len(hosts)}.")
    origin = headers.get(b"origin", b"").decode("latin-1")
    if origin not in (f"http://{hosts[0]}", f"https://{hosts[0]}"):
        raise refuse(
            403, "origin", "Wrong header `Origin`: only pages of this service may use the cookie."
        )
