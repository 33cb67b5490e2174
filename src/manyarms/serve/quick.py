"""The short way of plain asks and tells, which are nearly all requests.

They are applied as soon as they are read, without a task of their own, and answered by the commit.
Whatever is not plain goes the long way, through `app`: what another node owns, a caller that is not
known yet, a refusal, a page, a body that is large or slow.
"""

from __future__ import annotations

import asyncio
import functools
import re
import time
from typing import Any

import msgspec
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from manyarms.serve import messages as m
from manyarms.serve.access import FORWARDED, Headers
from manyarms.serve.committer import Answers
from manyarms.serve.errors import BrokenError, LostError, RefusedError, failed
from manyarms.serve.limits import LimitedProtocol
from manyarms.serve.moves import AskMove, TellMove, key_in
from manyarms.serve.owned import Owned
from manyarms.serve.requests import ALWAYS, refused
from manyarms.serve.service import Service, not_known

Move = AskMove | TellMove

_PLAIN = re.compile(r"/v1/experiments/([A-Za-z0-9][A-Za-z0-9._-]{0,99})/(ask|tell)s")
_HEADERS = b"".join(b"%s: %s\r\n" % pair for pair in ALWAYS)
_OK = STATUS_LINE[200] + b"content-type: application/json\r\n" + _HEADERS
_LONGEST = 200  # bytes of an address that may be plain: others are not kept
_SLOW = 0.05  # seconds after which a body is not waited for here
_decode_ask = msgspec.json.Decoder(m.Ask).decode
_decode_tells = msgspec.json.Decoder(m.Tells).decode


class _Pending:
    """What uvicorn wants to know of a request that is being answered."""

    __slots__ = ("disconnected", "keep_alive", "message_event", "response_complete")
    more_body = False

    def __init__(self) -> None:
        self.response_complete = True
        self.disconnected = False
        self.keep_alive = True
        self.message_event = asyncio.Event()


class QuickProtocol(LimitedProtocol):
    """Reads requests; answers plain asks and tells of experiments that this node owns."""

    service: Service

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._root = self.service.root_path.encode()
        self._pending: Any = _Pending()  # in the place of a cycle of uvicorn
        self._plain: tuple[str, str] | None = None  # of a request whose body is to come
        self._body = b""
        self._asked: list[tuple[bytes, bytes]] = []  # the headers of the one that was applied last
        self._timer: asyncio.TimerHandle | None = None

    def data_received(self, data: bytes) -> None:
        """Read what came; many clients send the body of a request a moment after its head."""
        super().data_received(data)
        if self._plain is not None and self._timer is None:
            self._timer = self.loop.call_later(_SLOW, self._go_the_long_way)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget what did not come, and answer nobody."""
        self._take_plain()
        self._pending.disconnected = True
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """Begin a request; its scope is made on the long way."""
        self.begin_head()
        self.url, self.headers = b"", []
        self.expect_100_continue = False

    def on_headers_complete(self) -> None:
        """Wait for the body if this may be a plain ask or tell."""
        url = self.url.removeprefix(self._root)
        plain = _parts(url) if len(url) <= _LONGEST else None
        if plain is not None and self._is_free():
            self._plain, self._body, self.in_head = plain, b"", False
        else:
            self._make_scope()

    def _make_scope(self) -> None:
        url, headers, expects = self.url, self.headers, self.expect_100_continue
        super().on_message_begin()
        self.url, self.expect_100_continue = url, expects
        self.headers += headers
        super().on_headers_complete()

    def _is_free(self) -> bool:
        """Whether nothing stands between this request and its answer."""
        parser, before = self.parser, self.cycle
        return (
            (before is None or before.response_complete)
            and not self.flow.write_paused
            and not self.expect_100_continue
            and self.limit_concurrency is None
            and parser.get_method() == b"POST"
            and parser.get_http_version() == "1.1"
            and parser.should_keep_alive()
            and not parser.should_upgrade()
        )

    def on_body(self, body: bytes) -> None:
        """Keep the body."""
        if self._plain is None:
            super().on_body(body)
        else:
            self._body += body
            if len(self._body) > HIGH_WATER_LIMIT:
                self._go_the_long_way()

    def on_message_complete(self) -> None:
        """Answer."""
        plain = self._take_plain()
        if plain is None:
            super().on_message_complete()
        elif not self._applied(*plain):
            self._go_the_long_way()
            super().on_message_complete()

    def _take_plain(self) -> tuple[str, str] | None:
        plain, self._plain = self._plain, None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        return plain

    def _go_the_long_way(self) -> None:
        self._take_plain()
        self._make_scope()
        if self._body:
            super().on_body(self._body)

    # Plain asks and tells

    def _applied(self, name: str, right: str) -> bool:
        """Whether the request was applied, and will be answered when that is committed."""
        begun = time.perf_counter()
        headers = dict(self.headers)
        owned = self.service.node.ready(name)
        caller = self.service.access.known(headers.get(b"authorization", b""))
        if owned is None or caller is None or FORWARDED in headers:
            return False
        try:
            if not caller.is_plain(right, name):
                return False
            move = _move(right, self._body, headers)
            if not move.knows(owned):
                return False
            result = move.change(owned)
        except (RefusedError, msgspec.MsgspecError, UnicodeDecodeError):
            return False  # nothing was done: the long way says why
        except BrokenError as error:
            self._refuse(right, begun, self.service.node.broke(owned, error))
        except Exception:
            self._refuse(right, begun, failed(right))
        else:
            self._pending.response_complete = False
            self.cycle = self._pending
            self._asked = self.headers
            answer = functools.partial(self._answer, right, begun, owned, move, result)
            owned.touch().when_done(answer)
        return True

    def _answer(
        self,
        right: str,
        begun: float,
        owned: Owned,
        move: Move,
        result: Any,
        done: asyncio.Future[Answers],
    ) -> None:
        """Answer, now that the group is committed, or nobody knows."""
        error = asyncio.CancelledError() if done.cancelled() else done.exception()
        if error is None:
            try:
                body = move.answer(owned, result, done.result())
            except Exception:
                error = failed(right)
        if error is None:
            self._send(_OK, body)
            self.service.metrics.count(right, 200, time.perf_counter() - begun)
        elif isinstance(error, LostError) and self._may_repeat(move):
            self._pending.response_complete = True
            self._go_the_long_way()
            self.cycle.keep_alive = self._pending.keep_alive  # the node may be about to end
            super().on_message_complete()
        else:
            self._refuse(right, begun, error)

    def _may_repeat(self, move: Move) -> bool:
        """Whether a request may be applied again after a takeover, and its parts are still here."""
        last = self.cycle is self._pending and self.headers is self._asked
        return not move.once and last and self.parser is not None

    def _refuse(self, right: str, begun: float, error: BaseException) -> None:
        response = refused(error if isinstance(error, RefusedError) else not_known(error))
        lines = "".join(f"{name}: {value}\r\n" for name, value in response.headers.items())
        head = STATUS_LINE[response.status] + lines.encode("latin-1") + _HEADERS
        self._send(head, response.body)
        self.service.metrics.count(right, response.status, time.perf_counter() - begun)

    def _send(self, head: bytes, body: bytes) -> None:
        pending = self._pending
        pending.response_complete = True
        if pending.disconnected or self.transport.is_closing():
            return
        close = b"" if pending.keep_alive else b"connection: close\r\n"
        self.transport.write(b"%scontent-length: %d\r\n%s\r\n%s" % (head, len(body), close, body))
        if not pending.keep_alive:
            self.transport.close()
        self.on_response_complete()


@functools.lru_cache(1000)
def _parts(url: bytes) -> tuple[str, str] | None:
    """Return the experiment of a plain request, and the right it needs: to ask or to tell."""
    found = _PLAIN.fullmatch(url.decode("latin-1"))
    return None if found is None else (found[1], found[2])


def _move(right: str, body: bytes, headers: Headers) -> Move:
    if right == "tell":
        return TellMove(_decode_tells(body or b"{}"))
    return AskMove(_decode_ask(body or b"{}"), key_in(headers))
