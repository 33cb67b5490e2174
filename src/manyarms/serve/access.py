"""Who is asking, and what they may do: tokens, sessions, tickets, limits.

Tokens are kept as SHA-256, because they are long and random. A session is a cookie that the
service has signed; a ticket is a pull's number that it has signed.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import time
from typing import Any, Literal, NamedTuple
from urllib.parse import parse_qs

import msgspec

from manyarms.errors import ParameterError
from manyarms.live.databases import Database
from manyarms.serve import clock
from manyarms.serve.errors import RefusedError, refuse
from manyarms.serve.messages import Failure, Spec, TooMany
from manyarms.serve.routes import may
from manyarms.serve.token_messages import NewToken, Token

COOKIE = "manyarms_session"
LONGEST_TOKEN = 200  # characters
_SESSION = 7 * 24 * 3600  # seconds
_CODE = 600  # seconds that a login link is good for
_REMEMBERED = 2.0  # seconds that what the database says of a token is taken for true
_MOST_BUCKETS = 100_000

Headers = dict[bytes, bytes]


class Caller(NamedTuple):
    """Who is asking."""

    name: str
    role: str
    experiment: str | None = None
    origins: tuple[str, ...] = ()
    rate: float | None = None
    expires: float | None = None
    cookie: bool = False
    mark: str = ""  # of the token: a session ends when another token has its name
    session: str = ""  # the signature of a session

    @property
    def expired(self) -> bool:
        """Whether its time is over."""
        return self.expires is not None and self.expires <= clock.now()


def new_token() -> str:
    """Return a new token."""
    return f"ma_{secrets.token_urlsafe(24)}"


def digest_of(token: str) -> str:
    """Return what is kept of a token."""
    return hashlib.sha256(token.encode()).hexdigest()


def _same(given: str, right: str) -> bool:
    """Whether a signature is right; as bytes, because what was given may hold any character."""
    return hmac.compare_digest(given.encode(), right.encode())


def mark_of(digest: str) -> str:
    """Return what a session knows of its token."""
    return digest[:16]


class Access:
    """Knows sessions, and for two seconds what the database said of tokens."""

    def __init__(self, secret: str) -> None:
        self._secret = secret.encode()
        self._known: dict[tuple[str, str], tuple[float, Caller | None]] = {}
        self._headers: dict[bytes, tuple[float, Caller]] = {}
        self._codes: dict[str, tuple[float, Caller]] = {}
        self._buckets: dict[tuple[str, str], tuple[float, float]] = {}

    # Tokens

    def token_in(self, headers: Headers, query: bytes) -> tuple[str | None, bool]:
        """Return the token of a request, and whether it is in the address.

        There it is for pages that cannot set headers; a header, whatever it says, goes before.
        """
        given = headers.get(b"authorization")
        if given is not None:
            text = given.decode("latin-1")
            return text[7:].strip() if text[:7].lower() == "bearer " else None, False
        if b"token=" in query:
            return parse_qs(query.decode("latin-1")).get("token", [None])[0], True
        return None, False

    def remembered(self, kind: str, value: str) -> Caller | bool | None:
        """Return who has a token, None if nobody, False if the database must be asked.

        A token is looked up by its digest, that of a session by its name. The `kind` keeps these
        apart: names are no secrets.
        """
        seen = self._known.get((kind, value))
        if seen is None or seen[0] < time.monotonic():
            return False
        return seen[1]

    def remember(self, kind: str, value: str, caller: Caller | None, header: bytes) -> None:
        """Note what the database said of a token, and who sends this header `Authorization`."""
        until = time.monotonic() + _REMEMBERED
        if len(self._known) > 10_000:
            self._known.clear()
        self._known[kind, value] = until, caller
        if header[:7].lower() == b"bearer " and caller is not None:  # else it holds no token
            if len(self._headers) > 1000:
                self._headers.clear()
            self._headers[header] = until, caller

    def known(self, header: bytes) -> Caller | None:
        """Return who sends this header `Authorization`; None if the database must be asked."""
        seen = self._headers.get(header)
        return None if seen is None or seen[0] < time.monotonic() else seen[1]

    def forget(self) -> None:
        """Ask the database again: a token was made or revoked."""
        self._known.clear()
        self._headers.clear()

    # Sessions

    def login_code(self, caller: Caller) -> str:
        """Return a code that is good for one login."""
        code = secrets.token_urlsafe(18)
        self._codes[code] = time.monotonic() + _CODE, caller
        return code

    def redeem(self, code: str) -> Caller | None:
        """Return who has a code, once."""
        until, caller = self._codes.pop(code, (0.0, None))
        return caller if until > time.monotonic() else None

    def session_cookie(self, caller: Caller, *, path: str, secure: bool) -> str:
        """Return the header that begins a session."""
        until = clock.now() + _SESSION
        words = json.dumps([caller.name, caller.role, caller.experiment, until, caller.mark])
        text = words.encode().hex()
        value = f"{text}.{self._sign('session', text)}"
        more = "; Secure" if secure else ""
        return f"{COOKIE}={value}; Path={path}; Max-Age={_SESSION}; HttpOnly; SameSite=Strict{more}"

    def session_in(self, headers: Headers) -> Caller | None:
        """Return whose session a request belongs to."""
        for part in headers.get(b"cookie", b"").decode("latin-1").split(";"):
            name, _, value = part.strip().partition("=")
            text, _, signature = value.partition(".")
            if name == COOKIE and _same(signature, self._sign("session", text)):
                who, role, experiment, until, *mark = json.loads(bytes.fromhex(text))
                if until > clock.now():
                    known = mark[0] if mark else ""  # those of older versions have none
                    own = Caller(who, role, experiment, expires=until, cookie=True, mark=known)
                    return own._replace(session=signature)
        return None

    def _sign(self, purpose: str, text: str) -> str:
        return hmac.new(self._secret, f"{purpose}:{text}".encode(), hashlib.sha256).hexdigest()

    # What a caller may do

    def check(
        self,
        caller: Caller | None,
        right: str,
        experiment: str | None,
        scope: Any,
    ) -> None:
        """Raise a `RefusedError` unless a caller may do this."""
        if right == "public":
            return
        if caller is None:
            said = (
                "The header `Authorization: Bearer TOKEN` is missing, or its token is unknown or "
                "has expired. `manyarms token add` makes a token."
            )
            raise RefusedError(Failure("no_token", said, 401), {"WWW-Authenticate": "Bearer"})
        if caller.expired:
            raise refuse(401, "expired", f"The token {caller.name!r} has expired. Make a new one.")
        if not may(caller.role, right):
            raise refuse(
                403, "role", f"The role {caller.role} may not do this: it needs the right {right}."
            )
        if caller.experiment is not None and experiment != caller.experiment:
            raise refuse(
                403, "experiment", f"The token {caller.name!r} is for {caller.experiment!r} only."
            )
        if caller.rate is not None:
            self._check_rate(caller, (scope.get("client") or ("", 0))[0])
        if not caller.cookie and caller.role != "browser":
            return
        headers: Headers = dict(scope["headers"])
        origin = headers.get(b"origin", b"").decode("latin-1")
        if caller.cookie and scope["method"] not in ("GET", "HEAD"):
            check_same_origin(origin, scope)
        if caller.role == "browser" and origin not in caller.origins:
            raise refuse(403, "origin", f"Pages of {origin or 'no origin'} may not use this token.")

    def _check_rate(self, caller: Caller, address: str) -> None:
        """Let `rate` requests a second through, and as many at once; of pages, for each address."""
        assert caller.rate is not None
        now, most = time.monotonic(), max(1.0, caller.rate)
        who = (caller.name, address if caller.role == "browser" else "")
        if len(self._buckets) > _MOST_BUCKETS:
            self._buckets.clear()
        left, since = self._buckets.get(who, (most, now))
        left = min(most, left + (now - since) * caller.rate)
        if left < 1:
            wait = (1 - left) / caller.rate
            raise RefusedError(
                TooMany("rate", f"The token {caller.name!r} may send {caller.rate:g} requests a "
                        f"second. Wait {wait:.2g} s.", wait),
                {"Retry-After": str(int(wait) + 1)},
            )  # fmt: skip
        self._buckets[who] = left - 1, now


def check_same_origin(origin: str, scope: Any) -> None:
    """Raise a `RefusedError` unless a request comes from a page of this service."""
    hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
    if len(hosts) != 1 or not hosts[0]:
        raise refuse(400, "host", f"A request needs one header `Host`, got {len(hosts)}.")
    host = hosts[0]
    if origin not in (f"http://{host}", f"https://{host}"):
        raise refuse(
            403, "origin", "A session may be used by the pages of this service only: wrong Origin."
        )


# Tickets: number.generation.signature


def ticket(secret: str, experiment: str, pull: int, generation: int) -> str:
    """Return what proves that a pull was given out."""
    text = f"{experiment}:{pull}.{generation}"
    signature = hmac.new(secret.encode(), text.encode(), hashlib.sha256).hexdigest()[:32]
    return f"{pull}.{generation}.{signature}"


def ticket_pull(secret: str, experiment: str, given: str, generation: int) -> int:
    """Return the pull of a ticket, or raise."""
    number, _, rest = given.partition(".")
    when, _, _ = rest.partition(".")
    if number.isdecimal() and when.isdecimal() and len(number) < 19 and len(when) < 19:
        right = ticket(secret, experiment, int(number), int(when))
        if _same(given, right):
            if int(when) != generation:
                raise refuse(410, "old_ticket", "This ticket is of an earlier generation.")
            return int(number)
    raise refuse(403, "ticket", "This ticket was not made here.")


# What the database holds


def find_caller(database: Database, column: Literal["sha256", "name"], value: str) -> Caller | None:
    """Return who has a token, by its digest or its name."""
    rows = database.run(
        "SELECT name, role, experiment, origins, rate, expires, sha256 FROM tokens "
        f"WHERE {column} = :value",
        value=value,
    )
    if not rows:
        return None
    name, role, experiment, origins, rate, expires, digest = rows[0]
    allowed = tuple(json.loads(origins))
    return Caller(name, role, experiment, allowed, rate, expires, mark=mark_of(digest))


def tokens_in(database: Database) -> list[Token]:
    """Return what is known of all tokens, without the tokens."""
    rows = database.run(
        "SELECT name, role, experiment, origins, rate, expires FROM tokens ORDER BY name"
    )
    return [Token(n, role, x, json.loads(o), rate, ends) for n, role, x, o, rate, ends in rows]


def needs_window(experiment: str) -> ParameterError:
    """Return why pages may not use an experiment."""
    return ParameterError(
        f"`window` must be given to {experiment}, in seconds, because a token of role browser is "
        f"for it: many who see a page leave without a reward, and their pulls would wait for ever.",
        parameter="window",
    )


def for_pages(database: Database, experiment: str) -> bool:
    """Whether pages have a token for an experiment."""
    sql = "SELECT 1 FROM tokens WHERE role = 'browser' AND experiment = :name"
    return database.first(sql, name=experiment) is not None


def add_token(database: Database, new: NewToken, token: str) -> bool:
    """Keep a token; False if there is one of this name."""
    row = database.find(new.experiment) if new.role == "browser" and new.experiment else None
    spec = None if row is None else msgspec.json.decode(row.spec, type=Spec | None)
    if row is not None and spec is not None and spec.window is None:
        raise needs_window(row.name)
    rows = database.run(
        "INSERT INTO tokens (name, sha256, role, experiment, origins, rate, expires) VALUES "
        "(:name, :sha256, :role, :experiment, :origins, :rate, :expires) "
        "ON CONFLICT DO NOTHING RETURNING name",
        name=new.name,
        sha256=digest_of(token),
        role=new.role,
        experiment=new.experiment,
        origins=json.dumps(new.origins),
        rate=new.rate,
        expires=None if new.expires is None else clock.now() + new.expires,
    )
    return bool(rows)
