"""Who may do what: every role with every request, tokens, tickets, origins, sessions, limits."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import itertools
import os
import socket
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import uvicorn

import manyarms as ma
from manyarms.cli.main import main
from manyarms.serve import clock
from manyarms.serve.access import digest_of, ticket
from manyarms.serve.routes import ROLES, ROUTES, Route, may
from manyarms.serve.server import loop_factory, serve
from manyarms.serve.service import Settings
from tests.serve.machines import InThread, call, node, request

pytestmark = pytest.mark.interpreted
_names = (f"t{k}" for k in itertools.count())
PAGE = "https://shop.example"


def token(served: InThread, role: str, **more: Any) -> str:
    if role == "browser":
        more = {"origins": [PAGE], "rate": 1000, "experiment": "shop"} | more
    body = {"name": next(_names), "role": role} | more
    status, answer = call(served.port, "POST", "/v1/tokens", body)
    assert status == 201, answer
    made: str = answer["token"]
    return made


@pytest.fixture(scope="module", autouse=True)
def shop(served: InThread) -> None:
    for name in ("shop", "other"):
        spec = {"policy": "prospector", "n_arms": 100, "window": 3600}
        assert call(served.port, "PUT", f"/v1/experiments/{name}", spec)[0] == 201


@pytest.fixture(scope="module")
def tokens(served: InThread) -> dict[str, str]:
    return {role: token(served, role) for role in ROLES}


@pytest.mark.parametrize("route", [r for r in ROUTES if r.right != "public"], ids=lambda r: r.name)
def test_every_role_with_every_request(
    served: InThread, tokens: dict[str, str], route: Route
) -> None:
    # of an experiment or token that there is not, so that nothing changes
    path = route.path.format(experiment="ghost", key="k", token="ghost")
    headers: dict[str, Any] = {"Origin": PAGE}
    for role, given in tokens.items():
        if role == "browser":
            path = path.replace("ghost", "shop") if may(role, route.right) else path
        status, answer = call(served.port, route.method, path, b"no JSON", token=given, **headers)
        if may(role, route.right):
            assert status not in (401, 403), (role, answer)
        else:
            assert (status, answer["code"]) == (403, "role"), role
    for wrong in (None, "ma_wrong", ""):
        status, answer = call(served.port, route.method, path, b"", token=wrong)
        assert (status, answer["code"]) == (401, "no_token")


def test_a_token_of_one_experiment(served: InThread) -> None:
    given = token(served, "operator", experiment="shop")
    assert call(served.port, "POST", "/v1/experiments/shop/asks", {}, token=given)[0] == 200
    status, answer = call(served.port, "POST", "/v1/experiments/other/asks", {}, token=given)
    assert (status, answer["code"]) == (403, "experiment")
    listed = call(served.port, "GET", "/v1/experiments", token=given)[1]["experiments"]
    assert [one["name"] for one in listed] == ["shop"]
    listed = call(served.port, "GET", "/v1/experiments")[1]["experiments"]
    assert {"shop", "other"} <= {one["name"] for one in listed}


def later(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Let time have passed, for the node in a thread as well."""
    now = clock.now
    monkeypatch.setattr(clock, "now", lambda: now() + seconds)


def test_tokens_expire_and_are_revoked(served: InThread, monkeypatch: pytest.MonkeyPatch) -> None:
    short = token(served, "viewer", expires=60)
    assert call(served.port, "GET", "/v1/session", token=short)[0] == 200
    later(monkeypatch, 61)
    assert call(served.port, "GET", "/v1/session", token=short)[1]["code"] == "expired"
    name = next(_names)
    body = {"name": name, "role": "viewer"}
    given = call(served.port, "POST", "/v1/tokens", body)[1]["token"]
    assert call(served.port, "POST", "/v1/tokens", body)[1]["code"] == "exists"
    assert call(served.port, "GET", "/v1/session", token=given)[1]["name"] == name
    listed = call(served.port, "GET", "/v1/tokens")[1]["tokens"]
    assert name in {one["name"] for one in listed}
    assert given not in str(listed)
    assert call(served.port, "DELETE", f"/v1/tokens/{name}")[0] == 200
    assert call(served.port, "GET", "/v1/session", token=given)[0] == 401
    assert call(served.port, "DELETE", f"/v1/tokens/{name}")[0] == 404


def test_tokens_lie_hashed(served: InThread) -> None:
    given = token(served, "viewer")
    folder = Path(served.store.removeprefix("sqlite:///").partition("?")[0]).parent
    assert all(given.encode() not in path.read_bytes() for path in folder.iterdir())


def test_limits(served: InThread) -> None:
    given = token(served, "client", rate=3)
    answers = [call(served.port, "GET", "/v1/session", token=given) for _ in range(5)]
    assert [status for status, _ in answers].count(429) >= 1
    refused = next(answer for status, answer in answers if status == 429)
    assert 0 < refused["retry_after"] <= 0.34
    time.sleep(refused["retry_after"] + 0.05)
    assert call(served.port, "GET", "/v1/session", token=given)[0] == 200


# Pages of others


def browser(
    served: InThread, path: str, body: Any, given: str, origin: str = PAGE
) -> tuple[int, Any]:
    url = f"/v1/experiments/shop/{path}?token={given}"
    return call(served.port, "POST", url, body, token=None, Origin=origin)


def test_pages_tell_by_ticket(served: InThread, tokens: dict[str, str]) -> None:
    given = tokens["browser"]
    status, answer = browser(served, "asks", {}, given)
    assert status == 200
    pull = answer["pulls"][0]
    tell = {"tells": [{"pull": pull["pull"], "reward": 1}]}
    assert browser(served, "tells", tell, given)[1]["results"][0]["status"] == 403
    tell = {"tells": [{"ticket": pull["ticket"], "reward": 1}]}
    assert browser(served, "tells", tell, given)[1]["results"][0]["applied"] is True
    assert browser(served, "tells", tell, given)[1]["results"][0]["applied"] is False
    assert browser(served, "abandons", {"pulls": [0]}, given)[0] == 403


def test_pages_get_few_pulls_and_none_of_others(served: InThread, tokens: dict[str, str]) -> None:
    call(served.port, "POST", "/v1/experiments/shop/asks", {"worker": "till"})
    for body in ({"worker": "till"}, {"k": 11}):
        status, answer = browser(served, "asks", body, tokens["browser"])
        assert (status, answer["code"]) == (403, "role")
    assert len(browser(served, "asks", {"k": 10}, tokens["browser"])[1]["pulls"]) == 10
    key: dict[str, Any] = {"Idempotency_Key": "order 1"}
    url = "/v1/experiments/shop/asks"
    page = {"token": None, "Origin": PAGE, **key}
    first, ours, again = (
        call(served.port, "POST", f"{url}?token={tokens['browser']}", {}, **page),
        call(served.port, "POST", url, {}, **key),  # a page cannot use up the key of a program
        call(served.port, "POST", f"{url}?token={tokens['browser']}", {}, **page),
    )
    assert [status for status, _ in (first, ours, again)] == [200, 200, 200]
    assert first == again
    assert first[1]["pulls"][0]["pull"] != ours[1]["pulls"][0]["pull"]


def test_tickets_that_cannot_be(served: InThread) -> None:
    path = "/v1/experiments/shop/"
    pull = call(served.port, "POST", f"{path}asks", {"tickets": True})[1]["pulls"][0]
    number, when, signature = pull["ticket"].split(".")
    other = call(served.port, "POST", "/v1/experiments/other/asks", {"tickets": True})[1]
    forged = [
        f"{int(number) + 1}.{when}.{signature}",
        f"{number}.{when}.{'0' * 32}",
        f"{number}.{int(when) + 1}.{signature}",
        ticket("guess", "shop", int(number), int(when)),
        other["pulls"][0]["ticket"],
        "..",
        "1",
        f"{'9' * 50}.1.{signature}",
    ]
    for one in forged:
        tell = {"tells": [{"ticket": one, "reward": 1}]}
        result = call(served.port, "POST", f"{path}tells", tell)[1]["results"][0]
        assert (result["status"], result["applied"]) == (403, False), one
    good = {"tells": [{"ticket": pull["ticket"], "reward": 1}]}
    assert call(served.port, "POST", f"{path}tells", good)[1]["results"][0]["applied"] is True


def test_tickets_of_an_earlier_generation(served: InThread) -> None:
    """As after a backup was restored: the secret is the same, the generation another."""
    spec = {"policy": "prospector", "n_arms": 9}
    path = f"/v1/experiments/{next(_names)}"
    call(served.port, "PUT", path, spec)
    file = served.store.removeprefix("sqlite:///").partition("?")[0]
    with sqlite3.connect(file) as link:
        link.execute("UPDATE experiments SET generation = 2 WHERE name = ?", (path[16:],))
        (secret,) = link.execute(
            "SELECT secret FROM experiments WHERE name = ?", (path[16:],)
        ).fetchone()
    link.close()
    assert call(served.port, "POST", f"{path}/asks", {})[0] == 503  # it is loaded anew
    served.wait_until_ready()
    assert call(served.port, "POST", f"{path}/asks", {})[0] == 200
    tell = {"tells": [{"ticket": ticket(secret, path[16:], 0, 1), "reward": 1}]}
    result = call(served.port, "POST", f"{path}/tells", tell)[1]["results"][0]
    assert (result["status"], result["code"]) == (410, "old_ticket")


def test_origins(served: InThread, tokens: dict[str, str]) -> None:
    for wrong in ("https://evil.example", "", "null", f"{PAGE}.evil.example"):
        status, answer = browser(served, "asks", {}, tokens["browser"], origin=wrong)
        assert (status, answer["code"]) == (403, "origin")
    # a token in an address is for pages only: addresses are written down
    status, _ = call(served.port, "GET", f"/v1/session?token={tokens['viewer']}", token=None)
    assert status == 401
    basic: dict[str, Any] = {"Authorization": "Basic eDp5"}
    status, _ = call(
        served.port, "GET", f"/v1/session?token={tokens['viewer']}", token=None, **basic
    )
    assert status == 401  # also beside a header of another kind
    for origin, allowed in ((PAGE, PAGE), ("https://evil.example", None)):
        path = "/v1/experiments/shop/asks"
        answer, _ = request(served.port, "OPTIONS", path, headers={"Origin": origin})
        assert answer.status == 204
        assert answer.headers.get("access-control-allow-origin") == allowed


def test_pages_may_read_why_they_are_refused(served: InThread, tokens: dict[str, str]) -> None:
    new = {"name": "seldom", "role": "browser", "experiment": "shop", "origins": [PAGE]}
    seldom = call(served.port, "POST", "/v1/tokens", new | {"rate": 0.001})[1]["token"]
    path = "/v1/experiments/shop/asks"

    def send(token: str, origin: str, body: bytes = b"{}") -> tuple[int, str | None]:
        headers = {"Authorization": f"Bearer {token}", "Origin": origin}
        answer, _ = request(served.port, "POST", path, body, headers)
        return answer.status, answer.headers.get("access-control-allow-origin")

    assert send(seldom, PAGE) == (200, PAGE)
    assert send(seldom, PAGE) == (429, PAGE)
    assert send("ma_unknown", PAGE) == (401, PAGE)
    assert send(tokens["browser"], PAGE, b"{") == (400, PAGE)
    assert send("ma_unknown", "https://evil.example") == (401, None)
    assert send(tokens["browser"], "https://evil.example") == (403, None)
    status, allowed = send(tokens["client"], PAGE)  # no page's
    assert (status, allowed) == (200, None)


@pytest.mark.parametrize("missing", ["origins", "rate", "experiment"])
def test_tokens_of_pages_are_bounded(served: InThread, missing: str) -> None:
    body = {"name": "p", "role": "browser", "origins": [PAGE], "rate": 9, "experiment": "shop"}
    del body[missing]
    assert call(served.port, "POST", "/v1/tokens", body)[0] == 422


@pytest.mark.parametrize("origin", ["", "null", "*", "https://*", "shop.example", f"{PAGE}/a"])
def test_origins_that_no_page_has(served: InThread, origin: str) -> None:
    body = {"name": "p", "role": "browser", "origins": [origin], "rate": 9, "experiment": "shop"}
    status, answer = call(served.port, "POST", "/v1/tokens", body)
    assert status == 422
    assert "such as https://shop.example" in answer["message"]


def test_a_name_ends_without_a_newline(served: InThread) -> None:
    for body in ({"name": "a\n"}, {"name": next(_names), "experiment": "shop\n"}):
        assert call(served.port, "POST", "/v1/tokens", {"role": "viewer"} | body)[0] == 422
    assert call(served.port, "PUT", "/v1/experiments/a%0A", {"n_arms": 9})[0] == 422


def test_what_pages_use_has_a_window(served: InThread) -> None:
    """Many visitors leave without a reward: their pulls must not wait for ever."""
    endless, later = next(_names), next(_names)
    spec: dict[str, Any] = {"policy": "prospector", "n_arms": 9}
    body = {"role": "browser", "origins": [PAGE], "rate": 9}
    assert call(served.port, "PUT", f"/v1/experiments/{endless}", spec)[0] == 201
    body |= {"name": endless, "experiment": endless}
    status, answer = call(served.port, "POST", "/v1/tokens", body)
    assert (status, answer["parameter"]) == (422, "window")
    assert f"`window` must be given to {endless}" in answer["message"]
    body |= {"name": later, "experiment": later}  # the token first, and then the experiment
    assert call(served.port, "POST", "/v1/tokens", body)[0] == 201
    assert call(served.port, "PUT", f"/v1/experiments/{later}", spec)[0] == 422
    assert call(served.port, "PUT", f"/v1/experiments/{later}", spec | {"window": 60})[0] == 201


# Sessions


def login(served: InThread, given: str) -> tuple[http.client.HTTPResponse, str]:
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    answer, _ = request(served.port, "POST", "/login", f"token={given}".encode(), kind)
    return answer, answer.headers.get("set-cookie", "")


def session_of(served: InThread, given: str) -> dict[str, Any]:
    return {"Cookie": login(served, given)[1].split(";")[0]}


def test_sessions(served: InThread, tokens: dict[str, str]) -> None:
    answer, cookie = login(served, tokens["operator"])
    assert answer.status == 303
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    session: dict[str, Any] = {"Cookie": cookie.split(";")[0]}
    here = f"http://127.0.0.1:{served.port}"
    path = "/v1/experiments/shop/pause"
    assert call(served.port, "GET", "/v1/session", token=None, **session)[1]["role"] == "operator"
    wrong: tuple[dict[str, Any], ...] = ({}, {"Origin": "https://evil.example"}, {"Origin": "null"})
    for origin in wrong:
        status, refused = call(served.port, "POST", path, b"", token=None, **session, **origin)
        assert (status, refused["code"]) == (403, "origin")
    for action in ("pause", "resume"):
        path = f"/v1/experiments/shop/{action}"
        assert call(served.port, "POST", path, b"", token=None, **session, Origin=here)[0] == 200
    status, _ = call(served.port, "GET", "/v1/tokens", token=None, **session)
    assert status == 403
    name = next(_names)
    body = {"name": name, "role": "viewer"}
    made = call(served.port, "POST", "/v1/tokens", body)[1]["token"]
    brief = session_of(served, made)
    assert call(served.port, "GET", "/v1/session", token=None, **brief)[0] == 200
    assert call(served.port, "DELETE", f"/v1/tokens/{name}")[0] == 200  # and its sessions
    assert call(served.port, "GET", "/v1/session", token=None, **brief)[0] == 401
    last = "0" if session["Cookie"][-1] != "0" else "1"
    for wrong_one in (last, "\xe9"):
        changed = session["Cookie"][:-1] + wrong_one
        assert call(served.port, "GET", "/v1/session", token=None, Cookie=changed)[0] == 401
    for given in (tokens["browser"], "nobody"):
        answer, cookie = login(served, given)
        assert "wrong=token" in answer.headers["location"]
        assert not cookie


def test_after_a_logout_the_cookie_is_good_for_nothing(
    served: InThread, tokens: dict[str, str]
) -> None:
    ended, other = (session_of(served, tokens["viewer"]) for _ in range(2))
    for session in (ended, other):
        assert call(served.port, "GET", "/v1/session", token=None, **session)[0] == 200
    here = {"Origin": f"http://127.0.0.1:{served.port}"}
    answer, _ = request(served.port, "POST", "/logout", b"", ended | here)
    assert answer.status == 303
    assert call(served.port, "GET", "/v1/session", token=None, **ended)[0] == 401
    assert call(served.port, "GET", "/v1/session", token=None, **other)[0] == 200
    assert request(served.port, "POST", "/logout", b"", ended | here)[0].status in (303, 401)


def test_a_page_elsewhere_cannot_sign_its_visitors_in(
    served: InThread, tokens: dict[str, str]
) -> None:
    body, here = f"token={tokens['viewer']}".encode(), f"http://127.0.0.1:{served.port}"
    for origin, status in (("https://evil.example", 403), ("null", 403), (here, 303)):
        answer, _ = request(served.port, "POST", "/login", body, {"Origin": origin})
        assert answer.status == status
        assert bool(answer.headers.get("set-cookie")) == (status == 303)


@pytest.mark.parametrize("hosts", ["", "Host: x\r\nHost: y\r\n", "Host:\r\n"])
def test_a_session_needs_one_host(served: InThread, tokens: dict[str, str], hosts: str) -> None:
    cookie = session_of(served, tokens["operator"])["Cookie"]
    for origin in ("http://", "http://x", "http://y"):
        head = f"POST /v1/experiments/shop/pause HTTP/1.1\r\n{hosts}Cookie: {cookie}\r\n"
        head += f"Origin: {origin}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        with socket.create_connection(("127.0.0.1", served.port), timeout=10) as link:
            link.sendall(head.encode())
            assert link.recv(100).startswith(b"HTTP/1.1 400")


def test_a_session_is_no_more_than_its_token(
    served: InThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = token(served, "viewer", expires=60, rate=3)
    session = session_of(served, made)
    answers = [call(served.port, "GET", "/v1/session", token=None, **session) for _ in range(5)]
    assert answers[0][0] == 200
    assert 429 in [status for status, _ in answers]
    later(monkeypatch, 61)
    status, answer = call(served.port, "GET", "/v1/session", token=None, **session)
    assert (status, answer["code"]) == (401, "expired")
    answer, cookie = login(served, made)
    assert "wrong=token" in answer.headers["location"]
    assert not cookie
    body = {"name": next(_names), "role": "viewer", "expires": -1}
    assert call(served.port, "POST", "/v1/tokens", body)[0] == 422


def test_a_name_is_no_token(served: InThread) -> None:
    name = next(_names)
    made = call(served.port, "POST", "/v1/tokens", {"name": name, "role": "admin"})[1]["token"]
    session = session_of(served, made)
    for wrong in (name, f"session {name}", "session", digest_of(made), made + "x" * 200):
        assert call(served.port, "GET", "/v1/session", token=None, **session)[0] == 200
        assert call(served.port, "GET", "/v1/session", token=wrong)[0] == 401


# Starting


def test_the_login_link_is_good_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MANYARMS_TOKEN", raising=False)
    one = InThread(f"sqlite:///{tmp_path}/new.db").start()
    first, second, _, third, _ = one.said
    assert f"manyarms serves sqlite:///{tmp_path}/new.db at http://127.0.0.1:{one.port}" in first
    path = second.split()[3].partition(str(one.port))[2]
    given = third.split("MANYARMS_TOKEN=")[1]
    assert request(one.port, "HEAD", path)[0].headers.get("set-cookie") is None
    for k in range(2):
        answer, _ = request(one.port, "GET", path)
        assert bool(answer.headers.get("set-cookie")) == (k == 0)
    assert call(one.port, "GET", "/v1/session", token=given)[1]["role"] == "admin"
    one.stop()


def test_a_restart_keeps_the_local_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MANYARMS_TOKEN", raising=False)
    store, file = f"sqlite:///{tmp_path}/new.db?sync=never", tmp_path / "new.db.token"

    def start(host: str = "127.0.0.1") -> str:
        one = InThread(store, host=host).start()
        given = one.said[3].split("MANYARMS_TOKEN=")[1] if len(one.said) > 3 else ""
        works = given or file.read_text().strip()
        status = call(one.port, "GET", "/v1/session", token=works)[0]
        assert status == (200 if given else 401)
        if given:
            path = one.said[1].split()[3].partition(str(one.port))[2]
            assert request(one.port, "GET", path)[0].headers.get("set-cookie")
        one.stop()
        return given

    first = start()
    assert file.read_text() == f"{first}\n"
    assert os.name == "nt" or file.stat().st_mode & 0o777 == 0o600
    assert start() == first  # on another port, too
    monkeypatch.setenv("MANYARMS_TOKEN", first)  # exported in the terminal that starts it again
    assert start() == first
    monkeypatch.delenv("MANYARMS_TOKEN")
    file.chmod(0o644)
    second = start()
    assert second != first  # others could have read it
    file.write_text("too short")
    third = start()
    assert len({first, second, third}) == 3
    assert main(["token", "add", "me", "--role", "admin", "--store", store]) == 0
    assert start("0.0.0.0") == ""  # there it is good for nothing
    assert start() == third


@pytest.mark.parametrize("by", ["terminal", "http"])
def test_a_local_token_that_is_dropped_stays_dropped(
    by: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("MANYARMS_TOKEN", raising=False)
    store, file = f"sqlite:///{tmp_path}/new.db?sync=never", tmp_path / "new.db.token"
    one = InThread(store).start()
    token = file.read_text().strip()
    if by == "http":
        assert call(one.port, "DELETE", "/v1/tokens/local-store", token=token)[0] == 200
    one.stop()
    if by == "terminal":
        assert main(["token", "drop", "local-store", "--store", store]) == 0
        assert f"{file} is removed, and no start makes another." in capsys.readouterr().out
    for _ in range(2):
        assert not file.exists()
        one = InThread(store).start()
        assert call(one.port, "GET", "/v1/session", token=token)[0] == 401
        assert [line.strip() for line in one.said[1:]] == [
            f"sign in at    http://127.0.0.1:{one.port}/login, with a token: "
            "`manyarms token add me --role admin` makes one",
            "(local-store was dropped, and is not made again)",
        ]
        one.stop()
    monkeypatch.setenv("MANYARMS_TOKEN", token)
    with pytest.raises(ma.ParameterError, match="'local-store', which was dropped"):
        InThread(store).start()


@pytest.mark.parametrize("given", ["", 4 * "s3cret"], ids=["none", "given"])
def test_logs_get_no_secrets(tmp_path: Path, given: str) -> None:
    words = ["-m", "manyarms", "serve", "--port", "0", "--store", f"sqlite:///{tmp_path}/new.db"]
    with subprocess.Popen(
        [sys.executable, *words],
        env=os.environ | {"MANYARMS_TOKEN": given, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        said = "".join(process.stdout.readline() for _ in range(3))
        process.terminate()
        said += process.stdout.read()
    assert "/login, with " in said
    assert (f"the token in {tmp_path}/new.db.token" in said) == (not given)
    assert "code=" not in said
    assert "ma_" not in said
    assert "s3cret" not in said


@pytest.mark.patient
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_other_addresses_need_a_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    monkeypatch.delenv("MANYARMS_TOKEN", raising=False)
    monkeypatch.setattr("manyarms.serve.server._bound", lambda host, port: socket.socket())
    settings = Settings(store=f"sqlite:///{tmp_path}/new.db", host=host, port=0)
    monkeypatch.setattr("manyarms.serve.server.config", _never)
    with pytest.raises(ma.ParameterError, match="can be reached by others, and there is no token"):
        run(settings)
    monkeypatch.setenv("MANYARMS_TOKEN", "short")
    with pytest.raises(ma.ParameterError, match="at least 16 characters"):
        run(settings)


@pytest.mark.patient
def test_a_token_of_the_environment_ends_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, tokens = f"sqlite:///{tmp_path}/new.db?sync=never", ["a" * 20, "b" * 20]
    sessions: list[dict[str, Any]] = []
    for given in (*tokens, ""):
        monkeypatch.setenv("MANYARMS_TOKEN", given)
        one = InThread(store).start()
        for old in tokens:
            status, _ = call(one.port, "GET", "/v1/session", token=old)
            assert status == (200 if old == given else 401), (old, given)
        for session in sessions:  # of tokens that had the same name
            status, _ = call(one.port, "GET", "/v1/session", token=None, **session)
            assert status == 401
        if given:
            sessions.append(session_of(one, given))
            status, _ = call(one.port, "GET", "/v1/session", token=None, **sessions[-1])
            assert status == 200
        one.stop()


def run(settings: Settings) -> None:
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(serve(settings, print))


def _never(app: Any, *others: Any) -> Any:
    return uvicorn.Config(app)


@pytest.mark.patient
@pytest.mark.skipif(os.name == "nt", reason="Windows has no modes of files")
def test_others_on_the_machine_cannot_read_the_store(tmp_path: Path) -> None:
    with node(f"sqlite:///{tmp_path}/new.db"):
        modes = {path.name: path.stat().st_mode & 0o077 for path in tmp_path.iterdir()}
    assert modes.keys() >= {"new.db", "new.db-wal"}
    assert not any(modes.values())


def test_a_port_that_is_taken(served: InThread) -> None:
    with pytest.raises(ma.PathError, match="Address already in use. Choose another --port"):
        run(Settings(store=served.store, port=served.port))


@pytest.mark.patient
def test_tokens_by_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "new.db"
    store = ["--store", f"sqlite:///{path}"]
    assert main(["token", "list", *store]) == 1
    assert not path.exists()  # a wrong name makes no database
    before = os.umask(0o022)
    try:
        assert main(["token", "add", "me", "--role", "viewer", *store]) == 0
    finally:
        os.umask(before)
    assert os.name == "nt" or path.stat().st_mode & 0o077 == 0
    given = capsys.readouterr().out.strip()
    assert given.startswith("ma_")
    monkeypatch.setenv("MANYARMS_TOKEN", given)  # one for an admin is expected there
    with pytest.raises(ma.ParameterError, match="already, with the role viewer. .* token drop me"):
        run(Settings(store=store[1], port=0))
    assert main(["token", "add", "me", "--role", "viewer", *store]) == 1
    assert main(["token", "add", "page", "--role", "browser", *store]) == 2
    assert main(["token", "add", "no name", "--role", "viewer", *store]) == 2
    assert main(["token", "list", *store]) == 0
    assert capsys.readouterr().out.split() == ["me", "viewer", "all", "experiments"]
    assert main(["token", "drop", "you", *store]) == 2
    assert main(["token", "drop", "me", *store]) == 0
    with contextlib.closing(sqlite3.connect(path)) as link:
        audit = link.execute("SELECT token, action FROM audit ORDER BY id").fetchall()
    assert audit == [("(command line)", "add token me"), ("(command line)", "drop token me")]
