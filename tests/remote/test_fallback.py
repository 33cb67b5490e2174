"""What an ask returns when the service cannot be reached in time; nobody hears of its reward."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import manyarms as ma
from manyarms.live.pulls import NO_PULL
from tests.serve.machines import TOKEN, call, free_port, in_thread, new_name, path_of

pytestmark = pytest.mark.interpreted


@contextlib.contextmanager
def silent() -> Iterator[str]:
    """A service that takes requests and never answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def closed() -> contextlib.AbstractContextManager[str]:
    return contextlib.nullcontext(f"http://127.0.0.1:{free_port()}")


@pytest.mark.parametrize("place", [closed, silent])
def test_the_arm_that_was_given(place: Any) -> None:
    with place() as url, ma.Remote(url, "x", token="t") as remote:
        begun = time.monotonic()
        pull = remote.ask(timeout=0.2, fallback="current")
        assert time.monotonic() - begun < 20  # and not the usual minute
        assert pull == ma.Pull("current", NO_PULL)
        assert pull.is_fallback
        assert remote.ask(2, timeout=0.1, fallback=7) == [ma.Pull(7, NO_PULL)] * 2
        remote.tell(pull, 1.0)  # is nobody's
        remote.tell_many([(pull, 1.0), (pull.id, 1.0)])
        remote.abandon(pull)
        remote.tell(pull.id, 1.0)  # a page may keep no more of it
        remote.abandon(pull.id)
        with pytest.raises(ma.ParameterError, match="`pull` must be"):
            remote.tell(-2, 1.0)
        with pytest.raises(ma.ParameterError, match="reward"):
            remote.tell(pull, "much")  # type: ignore[arg-type]
        for fallback in (None, False, True):  # no arm was ever recommended
            with pytest.raises(ma.ServiceError, match="did not answer"):
                remote.ask(timeout=0.1, fallback=fallback)


def test_the_last_recommended_arm(tmp_path: Path) -> None:
    store, name = f"sqlite:///{tmp_path}/serve.db?sync=never", new_name()
    with in_thread(store) as one:
        url = f"http://127.0.0.1:{one.port}"
        game = ma.Remote.create(url, name, "moss", token=TOKEN, arms=["a", "b"], horizon=99)
        for pull in game.ask(20):
            game.tell(pull, float(pull.arm == "b"))
        pull = game.ask(timeout=20, fallback=True)
        assert not pull.is_fallback
        assert call(one.port, "POST", f"{path_of(name)}/pause")[0] == 200
        with pytest.raises(ma.TurnError, match="paused"):  # it was reached, and refused
            game.ask(timeout=20, fallback=True)
    assert game.ask(timeout=0.2, fallback=True) == ma.Pull("b", NO_PULL)
    game.close()


def test_with_an_event_loop(tmp_path: Path) -> None:
    async def main() -> None:
        with silent() as url:
            async with ma.AsyncRemote(url, "x", token="t") as remote:
                pull = await remote.ask(timeout=0.1, fallback="current")
                assert pull == ma.Pull("current", NO_PULL)
                await remote.tell(pull, 1.0)
                with pytest.raises(ma.ServiceError, match="did not answer"):
                    await remote.ask(2, timeout=0.1)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("given", "said"),
    [({"timeout": 0}, "`timeout` must be"), ({"fallback": 1.5}, "`fallback` must be")],
)
def test_what_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ma.ParameterError, match=said):
        ma.Remote("http://127.0.0.1:1", "x", token="t").ask(**given)


def test_a_handle_knows_no_fallback() -> None:
    live = ma.MOSS().live(n_arms=3, horizon=9)
    assert not live.ask().is_fallback
    with pytest.raises(ma.TurnError, match="not asked for"):
        live.tell(ma.Pull(1, NO_PULL), 1.0)
