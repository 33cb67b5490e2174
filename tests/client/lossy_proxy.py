"""A proxy in front of a service that drops some answers, after the service has sent them."""

from __future__ import annotations

import contextlib
import itertools
import select
import socket
import threading
from collections.abc import Iterator


def _talk(near: socket.socket, port: int, cut: Iterator[bool]) -> None:
    """Pass requests and answers on; where `cut` says so, close instead of passing an answer."""
    far = socket.create_connection(("127.0.0.1", port))
    with near, far, contextlib.suppress(OSError):
        while True:
            ready, _, _ = select.select([near, far], [], [])
            data = ready[0].recv(1 << 16)
            if not data or (ready[0] is far and next(cut)):
                return
            (far if ready[0] is near else near).sendall(data)


@contextlib.contextmanager
def lossy_proxy(port: int, *, lost: int) -> Iterator[int]:
    """Yield the port of a proxy for another port that drops one in `lost` answers."""
    cut = (k % lost == lost - 1 for k in itertools.count())
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = listener.accept()
                threading.Thread(target=_talk, args=(near, port, cut), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield listener.getsockname()[1]
    finally:
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
