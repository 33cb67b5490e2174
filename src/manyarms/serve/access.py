"""Tokens: who sends a request, and what their role allows.

The store keeps the SHA-256 of each token, which suffices because tokens are long and random.
Programs send the token in the header `Authorization`; the dashboard keeps it in a cookie.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import secrets
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from manyarms.errors import StoreError
from manyarms.serve import clock
from manyarms.serve.errors import RefusedError, refuse, unreachable
from manyarms.serve.messages import Failure
from manyarms.store import Token

ROLES = ("viewer", "client", "admin")  # each includes those before it
COOKIE = "manyarms_token"
LONGEST_TOKEN = 200  # characters
_COOKIE_AGE = 7 * 24 * 3600  # seconds
_REMEMBERED = 2.0  # seconds that tokens are cached
_PAUSE = 0.1  # seconds between two renewals of the cache

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
    """A cache of the store's tokens, valid for two seconds.

    It is renewed before it expires, in the background, so that requests do not wait. A request with
    an unknown token waits for a renewal that begins after it, because the token may be new. So
    wrong tokens cause few renewals.
    """

    def __init__(self, read: Callable[[], Iterable[Token]]) -> None:
        self._read, self._callers = read, dict[str, Caller]()
        self._began = -math.inf  # when the last renewal began
        self._renewal: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, "tokens")  # others may be busy with long reads

    async def owner(self, token: str | None) -> Caller | None:
        """Return the owner of a token; None if it is unknown."""
        if token is None or len(token) > LONGEST_TOKEN:
            return None
        digest, now = digest_of(token), time.monotonic()
        is_known = digest in self._callers
        age = now - self._began
        if is_known and age < _REMEMBERED:
            if age > _REMEMBERED / 2:
                self._renew()
            return self._callers[digest]
        needed = now - _REMEMBERED if is_known else now
        try:
            while self._began < needed:
                await asyncio.shield(self._renew())
        except StoreError as error:
            raise unreachable(error) from error
        return self._callers.get(digest)

    def _renew(self) -> asyncio.Task[None]:
        """Return the renewal that is under way, or begin one."""
        if self._renewal is None or self._renewal.done():
            self._renewal = asyncio.create_task(self._read_all())
            self._renewal.add_done_callback(lambda task: task.cancelled() or task.exception())
        return self._renewal

    async def _read_all(self) -> None:
        await asyncio.sleep(max(0.0, self._began + _PAUSE - time.monotonic()))
        began = time.monotonic()
        tokens = await asyncio.get_running_loop().run_in_executor(self._thread, self._read)
        self._callers = {one.hash: Caller(one.name, one.role, one.expires) for one in tokens}
        self._began = began

    def close(self) -> None:
        """Shut down the thread."""
        self._thread.shutdown(wait=False, cancel_futures=True)


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
