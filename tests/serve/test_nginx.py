"""The nginx configuration of docs/operating.md, in nginx."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.serve.machines import TOKEN, Node, call, free_port, request, wait

pytestmark = [pytest.mark.interpreted, pytest.mark.patient]
PAGE = Path(__file__).parents[2] / "docs" / "operating.md"
ARMS = 50_000
TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


def nginx_program() -> str:
    """Return nginx's path; without it, skip the test, or fail if it must run."""
    found = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if found is None:
        reason = "nginx is not installed (apt-get install nginx-light)"
        if os.environ.get("MANYARMS_NEEDS_NGINX"):
            pytest.fail(reason)
        pytest.skip(reason)
    return found


def documented() -> tuple[list[str], str]:
    """Return the documented options of `manyarms serve` behind a proxy, and nginx's block."""
    text = PAGE.read_text(encoding="utf-8")
    options = re.search(r"^manyarms serve (--root-path .*)$", text, re.MULTILINE)
    block = re.search(r"^location .*?^}$", text, re.MULTILINE | re.DOTALL)
    assert options is not None
    assert block is not None
    return options[1].split(), block[0]


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[int]:
    """Run nginx with the documented block in front of a service; return its port."""
    program = nginx_program()
    options, block = documented()
    one = Node(f"sqlite:///{tmp_path}/serve.db", *options)
    port = free_port()
    lines = [
        f"daemon off; master_process off; pid {tmp_path}/nginx.pid; error_log stderr;",
        "events {}",
        "http { access_log off;",
        *(f"{name}_temp_path {tmp_path}/{name};" for name in TEMPORARY),
        f"server {{ listen 127.0.0.1:{port};",
        block.replace("127.0.0.1:8765", one.address),
        "} }",
    ]
    (tmp_path / "nginx.conf").write_text("\n".join(lines), encoding="utf-8")
    words = [program, "-e", "stderr", "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf")]
    with contextlib.ExitStack() as stack:
        stack.callback(one.kill)
        one.start()
        process = stack.enter_context(subprocess.Popen(words))
        stack.callback(process.kill)
        wait(lambda: process.poll() is None and answers(port), 60)
        yield port


def answers(port: int) -> bool:
    with contextlib.suppress(OSError):
        return call(port, "GET", "/arms/readyz", token=None)[0] == 200
    return False


def test_the_documented_block(proxy: int) -> None:
    here = f"http://127.0.0.1:{proxy}"
    body = urllib.parse.urlencode({"token": TOKEN}).encode()
    answer, _ = request(proxy, "POST", "/arms/login", body, {"Origin": here})
    assert (answer.status, answer.headers["location"]) == (303, "/arms/")
    cookie = answer.headers["set-cookie"].split(";")[0]
    signed_in = {"Cookie": cookie, "Origin": here}
    answer, page = request(proxy, "GET", "/arms/", headers=signed_in)
    assert answer.status == 200
    assert b'src="/arms/static/dashboard.js"' in page
    path = "/arms/v1/experiments/catalogue"
    assert request(proxy, "PUT", path, b"{}", signed_in)[0].status == 201
    names = b"".join(b'"https://shop.example/pictures/%024d.jpg"\n' % k for k in range(ARMS))
    assert len(names) > 2_600_000
    kind = signed_in | {"Content-Type": "application/x-ndjson"}
    answer, said = request(proxy, "PUT", f"{path}/arms", names, kind, timeout=300)
    assert answer.status == 200, said[:500]
    assert call(proxy, "GET", path)[1]["n_arms"] == ARMS
