"""Access: every role with every request, tokens, cookies, and starting the service."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import itertools
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import uvicorn

import manyarms as ma
from manyarms.cli.main import main
from manyarms.errors import StoreUnavailableError
from manyarms.serve import access, clock
from manyarms.serve.access import ROLES, Access, digest_of, may
from manyarms.serve.errors import RefusedError
from manyarms.serve.routes import ROUTES, Route
from manyarms.serve.server import loop_factory, serve
from manyarms.serve.service import ServerSettings
from manyarms.store import EventStore, Token
from tests.serve.machines import InThread, call, drop_token, made_token, node, request, wait

pytestmark = pytest.mark.interpreted
_names = (f"t{k}" for k in itertools.count())
ALL = "/v1/experiments"


def token(served: InThread, role: Any, **more: Any) -> str:
    return made_token(served.store, next(_names), role, **more)


@pytest.fixture(scope="module", autouse=True)
def shop(served: InThread) -> None:
    for name in ("shop", "other"):
        assert call(served.port, "PUT", f"{ALL}/{name}", {"n_arms": 100})[0] == 201


@pytest.fixture(scope="module")
def tokens(served: InThread) -> dict[str, str]:
    return {role: token(served, role) for role in ROLES}


@pytest.mark.parametrize("route", [r for r in ROUTES if r.role != "public"], ids=lambda r: r.name)
def test_every_role_with_every_request(
    served: InThread, tokens: dict[str, str], route: Route
) -> None:
    # an unknown experiment, so that nothing changes
    path = route.path.format(experiment="ghost", name="k")
    for role, given in tokens.items():
        status, answer = call(served.port, route.method, path, b"no JSON", token=given)
        if may(role, route.role):
            assert status not in (401, 403), (role, answer)
        else:
            assert (status, answer["code"]) == (403, "role"), role
            assert f"needs the role {route.role}" in answer["message"]
    for wrong in (None, "ma_wrong", ""):
        status, answer = call(served.port, route.method, path, b"", token=wrong)
        assert (status, answer["code"]) == (401, "no_token")


def later(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Advance the clock, also for the node in a thread."""
    now = clock.now
    monkeypatch.setattr(clock, "now", lambda: now() + seconds)


def test_tokens_expire_and_are_revoked(served: InThread, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("manyarms.serve.access._REMEMBERED", 0.0)
    revoked = next(_names)
    given = made_token(served.store, revoked, "viewer")
    assert call(served.port, "GET", ALL, token=given)[0] == 200
    drop_token(served.store, revoked)
    assert call(served.port, "GET", ALL, token=given)[0] == 401
    short = token(served, "viewer", expires=60)
    cookie = cookie_of(served, short)
    assert call(served.port, "GET", ALL, token=short)[0] == 200
    assert call(served.port, "GET", ALL, token=None, **cookie)[0] == 200
    later(monkeypatch, 61)
    assert call(served.port, "GET", ALL, token=short)[1]["code"] == "expired"
    assert call(served.port, "GET", ALL, token=None, **cookie)[1]["code"] == "expired"
    answer, cookie_header = login(served, short)
    assert "wrong=token" in answer.headers["location"]
    assert not cookie_header


class Reads:
    """Stands for a store's tokens; counts how often they are read, and when."""

    def __init__(self, *tokens: str) -> None:
        self.tokens, self.at, self.broken = [*tokens], list[float](), False

    def __call__(self) -> list[Token]:
        self.at.append(time.monotonic())
        if self.broken:
            raise StoreUnavailableError("the disk is on fire")
        return [Token(one, "viewer", digest_of(one), 0.0) for one in self.tokens]


@contextlib.asynccontextmanager
async def cache_of(reads: Reads) -> AsyncIterator[Access]:
    cache = Access(reads)
    yield cache
    cache.close()


def test_many_requests_share_one_renewal() -> None:
    async def play(reads: Reads) -> None:
        async with cache_of(reads) as cache:
            for _ in range(2):
                owners = await asyncio.gather(*(cache.owner("known") for _ in range(200)))
                assert all(owner is not None and owner.name == "known" for owner in owners)
            assert len(reads.at) == 1
            cache._began -= 1.5  # it expires soon
            for _ in range(9):  # one renewal, which no request waits for
                assert await cache.owner("known") is not None
            await cache._renew()
            assert len(reads.at) == 2
            reads.tokens = ["new"]
            cache._began -= 3  # it has expired
            assert await asyncio.gather(*map(cache.owner, 99 * ["known"])) == 99 * [None]

    asyncio.run(play(Reads("known")))


def test_unknown_tokens_cause_few_renewals(monkeypatch: pytest.MonkeyPatch) -> None:
    """But a token that was just added is known at once."""
    monkeypatch.setattr(access, "_PAUSE", 0.05)

    async def play(reads: Reads) -> None:
        async with cache_of(reads) as cache:
            begun = time.monotonic()
            wrong = [cache.owner(f"wrong {k}") for k in range(500)]
            assert await asyncio.gather(*wrong) == 500 * [None]
            assert len(reads.at) <= 2
            for k in range(5):
                assert await cache.owner(f"wrong {k}") is None
                reads.tokens.append(f"new {k}")
                assert await cache.owner(f"new {k}") is not None
            assert time.monotonic() - begun >= 0.05 * (len(reads.at) - 2)

    asyncio.run(play(Reads()))


def test_tokens_that_cannot_be_read() -> None:
    async def play(reads: Reads) -> None:
        async with cache_of(reads) as cache:
            assert await cache.owner("known") is not None
            reads.broken = True
            cache._began -= 1.5
            assert await cache.owner("known") is not None  # still valid
            with pytest.raises(RefusedError, match="on fire"):
                await cache.owner("wrong")
            cache._began -= 1.5
            with pytest.raises(RefusedError, match="on fire"):
                await cache.owner("known")
            reads.broken = False
            assert await cache.owner("known") is not None

    asyncio.run(play(Reads("known")))


def test_long_reads_do_not_delay_tokens(served: InThread, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages of events are read two at a time, while tokens have their own connection."""
    history, go, now = EventStore.history, threading.Event(), list[int]()
    most = 0

    def slowly(self: EventStore, *given: Any) -> Any:
        nonlocal most
        with self.reading():
            now.append(1)
            most = max(most, len(now))
            assert go.wait(60)
            now.pop()
        return history(self, *given)

    assert call(served.port, "POST", f"{ALL}/shop/asks", {})[0] == 200
    monkeypatch.setattr(EventStore, "history", slowly)
    with ThreadPoolExecutor(9) as pool:
        path = f"{ALL}/shop/events"
        pages = [pool.submit(call, served.port, "GET", path) for _ in range(9)]
        try:
            wait(lambda: now)
            for _ in range(3):  # each is new, so tokens are read
                assert call(served.port, "GET", f"{ALL}/shop", token="ma_wrong")[0] == 401
            fresh = token(served, "client")
            assert call(served.port, "POST", f"{ALL}/shop/asks", {}, token=fresh)[0] == 200
            assert not any(page.done() for page in pages)
        finally:
            go.set()
        assert [page.result()[0] for page in pages] == 9 * [200]
    assert most <= 2


def test_tokens_are_stored_as_hashes(served: InThread) -> None:
    given = token(served, "viewer")
    folder = Path(served.store.removeprefix("sqlite:///").partition("?")[0]).parent
    assert all(given.encode() not in path.read_bytes() for path in folder.iterdir())


def test_wrong_tokens_are_refused(served: InThread) -> None:
    name = next(_names)
    given = made_token(served.store, name, "admin")
    assert call(served.port, "GET", ALL, token=given)[0] == 200
    for wrong in (name, digest_of(given), given + "x" * 200):
        assert call(served.port, "GET", ALL, token=wrong)[0] == 401
    basic: dict[str, Any] = {"Authorization": "Basic eDp5"}
    assert call(served.port, "GET", ALL, token=None, **basic)[0] == 401
    assert call(served.port, "GET", f"{ALL}?token={given}", token=None)[0] == 401


# The cookie of the dashboard


def login(served: InThread, given: str) -> tuple[http.client.HTTPResponse, str]:
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    answer, _ = request(served.port, "POST", "/login", f"token={given}".encode(), kind)
    return answer, answer.headers.get("set-cookie", "")


def cookie_of(served: InThread, given: str) -> dict[str, Any]:
    return {"Cookie": login(served, given)[1].split(";")[0]}


def test_cookies(served: InThread, tokens: dict[str, str]) -> None:
    answer, header = login(served, tokens["admin"])
    assert answer.status == 303
    assert "HttpOnly" in header
    assert "SameSite=Strict" in header
    cookie: dict[str, Any] = {"Cookie": header.split(";")[0]}
    assert call(served.port, "GET", ALL, token=None, **cookie)[0] == 200
    wrong: tuple[dict[str, Any], ...] = ({}, {"Origin": "https://evil.example"}, {"Origin": "null"})
    for origin in wrong:
        path = f"{ALL}/shop/pause"
        status, refused = call(served.port, "POST", path, b"", token=None, **cookie, **origin)
        assert (status, refused["code"]) == (403, "origin")
    here = f"http://127.0.0.1:{served.port}"
    for action in ("pause", "resume"):
        path = f"{ALL}/shop/{action}"
        assert call(served.port, "POST", path, b"", token=None, **cookie, Origin=here)[0] == 200
    viewer = cookie_of(served, tokens["viewer"])
    path = f"{ALL}/shop/pause"
    assert call(served.port, "POST", path, b"", token=None, **viewer, Origin=here)[0] == 403
    for changed in (cookie["Cookie"][:-1], cookie["Cookie"] + "%C3%A9", "manyarms_token="):
        assert call(served.port, "GET", ALL, token=None, Cookie=changed)[0] == 401
    answer, header = login(served, "unknown")
    assert "wrong=token" in answer.headers["location"]
    assert not header
    answer, _ = request(served.port, "POST", "/logout", b"", cookie | {"Origin": here})
    assert answer.status == 303
    assert "manyarms_token=; Path=/; Max-Age=0;" in answer.headers["set-cookie"]


def test_other_sites_cannot_sign_their_visitors_in(
    served: InThread, tokens: dict[str, str]
) -> None:
    body, here = f"token={tokens['viewer']}".encode(), f"http://127.0.0.1:{served.port}"
    for origin, status in (("https://evil.example", 403), ("null", 403), (here, 303)):
        answer, _ = request(served.port, "POST", "/login", body, {"Origin": origin})
        assert answer.status == status
        assert bool(answer.headers.get("set-cookie")) == (status == 303)


@pytest.mark.parametrize("hosts", ["", "Host: x\r\nHost: y\r\n", "Host:\r\n"])
def test_a_cookie_needs_one_host(served: InThread, tokens: dict[str, str], hosts: str) -> None:
    cookie = cookie_of(served, tokens["admin"])["Cookie"]
    for origin in ("http://", "http://x", "http://y"):
        head = f"POST /v1/experiments/shop/pause HTTP/1.1\r\n{hosts}Cookie: {cookie}\r\n"
        head += f"Origin: {origin}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        with socket.create_connection(("127.0.0.1", served.port), timeout=60) as link:
            link.sendall(head.encode())
            assert link.recv(100).startswith(b"HTTP/1.1 400")


# Starting


def test_a_start_prints_a_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MANYARMS_TOKEN", raising=False)
    one = InThread(f"sqlite:///{tmp_path}/new.db").start()
    first, second, third, _ = one.said
    assert f"manyarms serves sqlite:///{tmp_path}/new.db at http://127.0.0.1:{one.port}" in first
    assert f"http://127.0.0.1:{one.port}/login, with the token" in second
    given = third.split("MANYARMS_TOKEN=")[1]
    assert call(one.port, "PUT", f"{ALL}/x", {"n_arms": 9}, token=given)[0] == 201
    assert cookie_of(one, given)["Cookie"]
    one.stop()


def test_a_restart_keeps_the_local_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MANYARMS_TOKEN", raising=False)
    store, file = f"sqlite:///{tmp_path}/new.db", tmp_path / "new.db.token"

    def start(host: str = "127.0.0.1") -> str:
        one = InThread(store, host=host).start()
        given = one.said[2].split("MANYARMS_TOKEN=")[1] if len(one.said) > 3 else ""
        works = given or file.read_text().strip()
        status = call(one.port, "GET", ALL, token=works)[0]
        assert status == (200 if given else 401)
        one.stop()
        return given

    first = start()
    assert file.read_text() == f"{first}\n"
    assert os.name == "nt" or file.stat().st_mode & 0o777 == 0o600
    assert start() == first  # also on another port
    monkeypatch.setenv("MANYARMS_TOKEN", first)  # exported in the terminal that restarts it
    assert start() == first
    monkeypatch.delenv("MANYARMS_TOKEN")
    file.chmod(0o644)
    second = start()
    assert second != first  # other users could have read it
    file.write_text("too short")
    third = start()
    assert len({first, second, third}) == 3
    assert main(["token", "add", "me", "--role", "admin", "--store", store]) == 0
    assert start("0.0.0.0") == ""  # it is not valid there
    assert start() == third


def test_a_local_token_that_is_revoked_stays_revoked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("MANYARMS_TOKEN", raising=False)
    store, file = f"sqlite:///{tmp_path}/new.db", tmp_path / "new.db.token"
    one = InThread(store).start()
    token = file.read_text().strip()
    one.stop()
    assert main(["token", "drop", "local", "--store", store]) == 0
    assert f"{file} is now empty, and the service creates no new token." in capsys.readouterr().out
    for _ in range(2):
        assert file.read_text() == ""
        one = InThread(store).start()
        assert call(one.port, "GET", ALL, token=token)[0] == 401
        assert [line.strip() for line in one.said[1:]] == [
            f"in a browser  http://127.0.0.1:{one.port}/login, with a token",
            f"make a token  manyarms token add me --role admin --store sqlite:///{tmp_path}/new.db",
        ]
        one.stop()


_HINT = re.compile(r"(?:  |`)((?:manyarms|export) [^`\n]*)")


def pasted(said: str, folder: Path) -> str:
    """Run the printed command in a shell, in another folder; return its output."""
    (hint,) = _HINT.findall(said)
    folder.mkdir(exist_ok=True)
    words = hint.replace("manyarms ", f"{sys.executable} -m manyarms ", 1) + " && env"
    done = subprocess.run(words, shell=True, cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.patient
@pytest.mark.skipif(os.name == "nt", reason="the hints are for a shell")
def test_printed_commands_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They name the store of this service, and work in any folder."""
    (tmp_path / "a folder").mkdir()
    monkeypatch.chdir(tmp_path / "a folder")
    monkeypatch.delenv("MANYARMS_TOKEN", raising=False)
    store, elsewhere = "sqlite:///my shop.db", tmp_path / "elsewhere"
    one = InThread(store).start()
    printed = pasted("\n".join(one.said), elsewhere)
    (local,) = re.findall(r"^MANYARMS_TOKEN=(.*)$", printed, re.M)
    assert call(one.port, "GET", ALL, token=local)[0] == 200
    one.stop()
    drop_token(store, "local")
    monkeypatch.setattr("manyarms.serve.server._bound", lambda host, port: socket.socket())
    with pytest.raises(ma.ParameterError, match="there is no token") as refused:
        run(ServerSettings(store=store, host="0.0.0.0", port=0))
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path / "a folder")
    made = pasted(str(refused.value), elsewhere).split()[0]
    monkeypatch.setenv("MANYARMS_TOKEN", made)
    with pytest.raises(ma.ParameterError, match="got that of 'me'") as refused:
        run(ServerSettings(store=store, port=0))
    assert "me is revoked." in pasted(str(refused.value), elsewhere)
    monkeypatch.delenv("MANYARMS_TOKEN")
    one = InThread(store).start()
    made = pasted("\n".join(one.said), elsewhere).split()[0]
    assert call(one.port, "GET", ALL, token=made)[0] == 200
    one.stop()
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize("given", ["", 4 * "s3cret"], ids=["none", "given"])
def test_logs_contain_no_secrets(tmp_path: Path, given: str) -> None:
    words = ["-m", "manyarms", "serve", "--port", "0", "--store", f"sqlite:///{tmp_path}/new.db"]
    with subprocess.Popen(
        [sys.executable, *words],
        env=os.environ | {"MANYARMS_TOKEN": given, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        said = "".join(process.stdout.readline() for _ in range(2))
        process.terminate()
        said += process.stdout.read()
    assert "/login, with " in said
    assert (f"the token in {tmp_path}/new.db.token" in said) == (not given)
    assert "ma_" not in said
    assert "s3cret" not in said


@pytest.mark.patient
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_other_addresses_need_a_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    monkeypatch.delenv("MANYARMS_TOKEN", raising=False)
    monkeypatch.setattr("manyarms.serve.server._bound", lambda host, port: socket.socket())
    settings = ServerSettings(store=f"sqlite:///{tmp_path}/new.db", host=host, port=0)
    monkeypatch.setattr("manyarms.serve.server.config", _never)
    with pytest.raises(ma.ParameterError, match="can be reached by others, but there is no token"):
        run(settings)
    monkeypatch.setenv("MANYARMS_TOKEN", "short")
    with pytest.raises(ma.ParameterError, match="at least 16 characters"):
        run(settings)


def run(settings: ServerSettings) -> None:
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(serve(settings, print))


def _never(app: Any, *others: Any) -> Any:
    return uvicorn.Config(app)


@pytest.mark.patient
@pytest.mark.skipif(os.name == "nt", reason="Windows has no modes of files")
def test_other_users_cannot_read_the_store(tmp_path: Path) -> None:
    with node(f"sqlite:///{tmp_path}/new.db"):
        modes = {path.name: path.stat().st_mode & 0o077 for path in tmp_path.iterdir()}
    assert modes.keys() >= {"new.db", "new.db-wal"}
    assert not any(modes.values())


def test_a_port_in_use(served: InThread) -> None:
    with pytest.raises(ma.PathError, match="Address already in use. Choose another --port"):
        run(ServerSettings(store=served.store, port=served.port))


@pytest.mark.patient
def test_commands_for_tokens(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "new.db"
    store = ["--store", f"sqlite:///{path}"]
    assert main(["token", "list", *store]) == 1
    assert not path.exists()  # a wrong name creates no store
    before = os.umask(0o022)
    try:
        assert main(["token", "add", "me", "--role", "viewer", *store]) == 0
    finally:
        os.umask(before)
    assert os.name == "nt" or path.stat().st_mode & 0o077 == 0
    given = capsys.readouterr().out.strip()
    assert given.startswith("ma_")
    monkeypatch.setenv("MANYARMS_TOKEN", given)  # a token with the role admin is required there
    with pytest.raises(ma.ParameterError, match="which has the role viewer. .* token drop me"):
        run(ServerSettings(store=store[1], port=0))
    assert main(["token", "add", "me", "--role", "viewer", *store]) == 1
    assert main(["token", "add", "page", "--role", "operator", *store]) == 2
    assert main(["token", "add", "old", "--role", "viewer", "--days", "-1", *store]) == 2
    assert main(["token", "add", "x" * 101, "--role", "viewer", *store]) == 2
    assert main(["token", "list", *store]) == 0
    assert capsys.readouterr().out.split() == ["me", "viewer"]
    assert main(["token", "drop", "you", *store]) == 2
    assert main(["token", "drop", "me", *store]) == 0
