"""Persistent HTTP connections, with the standard library."""

from __future__ import annotations

import http.client
import os
import threading
import weakref

from manyarms.client.answers import Answer
from manyarms.client.base import Attempt, NoAnswer

_CLASSES = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}
_Idle = dict[str, list[http.client.HTTPConnection]]  # by address


class Connections:
    """Idle connections, shared between threads."""

    def __init__(self, headers: dict[str, str]) -> None:
        self._headers = headers
        self._lock = threading.Lock()
        self._idle: _Idle = {}
        self._process = os.getpid()
        weakref.finalize(self, _close, self._idle)

    def attempt(self, attempt: Attempt) -> Answer | NoAnswer:
        """Send a request once, and return its answer."""
        call, to, seconds = attempt
        # an idle connection may have been closed; then it is unknown whether the request arrived
        kept = None if call.once else self._kept(to.url)
        connection = kept or _CLASSES[to.scheme](to.host, timeout=seconds)
        if kept is not None and kept.sock is not None:
            kept.timeout = seconds
            kept.sock.settimeout(seconds)
        sent = False
        try:
            if connection.sock is None:
                connection.connect()
            sent = True
            headers = self._headers | call.headers
            connection.request(call.method, to.prefix + call.path, call.body, headers)
            response = connection.getresponse()
            data = response.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            stale = kept is not None and not isinstance(error, TimeoutError)
            if stale:
                self.close()  # the others were probably closed, too
            return NoAnswer(f"{type(error).__name__} {error}".rstrip(), sent, stale)
        if response.will_close:
            connection.close()
        else:
            with self._lock:
                self._idle.setdefault(to.url, []).append(connection)
        return Answer.of(response.status, data, response.headers.get("Retry-After"))

    def _kept(self, url: str) -> http.client.HTTPConnection | None:
        with self._lock:
            if self._process != os.getpid():  # after a fork, the sockets belong to the parent
                self._process = os.getpid()
                self._idle.clear()
            idle = self._idle.get(url)
            return idle.pop() if idle else None

    def close(self) -> None:
        """Close the idle connections."""
        with self._lock:
            _close(self._idle)


def _close(idle: _Idle) -> None:
    for connections in idle.values():
        while connections:
            connections.pop().close()
