"""The description of the API, `/openapi.json`, promises what the service keeps."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from manyarms.serve.openapi import described
from manyarms.serve.routes import ROUTES
from tests.serve.machines import TOKEN, InThread, call, new_name, node, path_of

CONFIGURATION = Path(__file__).with_name("schemathesis.toml")
PAGE: dict[str, Any] = msgspec.json.decode(described(ROUTES, ()))
_NEEDED: dict[str, dict[str, Any]] = {  # by other settings
    "share": {"control": "grey"},
    "missing": {"window": 9, "reward_range": [-1e100, 1e100]},
}


def bounds(schema: str) -> list[tuple[str, str, float]]:
    """Return the bounds of the numbers in a schema: field, kind and value."""
    return [
        (field, kind, part[kind])
        for field, rules in PAGE["components"]["schemas"][schema]["properties"].items()
        for part in rules.get("anyOf", [rules])
        for kind in ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum")
        if kind in part
    ]


def around(kind: str, bound: float) -> tuple[float, float]:
    """Return a number that a bound allows, and one that it does not."""
    step = 1 if isinstance(bound, int) else max(1e-9, 1e-9 * abs(bound))
    outside = bound - step if kind.endswith("inimum") else bound + step
    if kind.startswith("exclusive"):
        return bound - 1e-9 * (outside - bound), bound
    return bound, outside


@pytest.mark.interpreted
@pytest.mark.parametrize(("field", "kind", "bound"), bounds("Spec"))
def test_bounds_of_settings(served: InThread, field: str, kind: str, bound: float) -> None:
    others = {"n_arms": 9} | _NEEDED.get(field, {})
    for value, expected in zip(around(kind, bound), (201, 422), strict=True):
        status, answer = call(served.port, "PUT", path_of(new_name()), others | {field: value})
        assert status == expected, (value, answer)


@pytest.mark.interpreted
@pytest.mark.parametrize(("field", "kind", "bound"), bounds("Question"))
def test_bounds_of_questions(served: InThread, field: str, kind: str, bound: float) -> None:
    path = path_of("asked")
    call(served.port, "PUT", path, {"n_arms": 9, "control": "grey"})
    others = {"target": "control"} if field == "margin" else {}
    for value, expected in zip(around(kind, bound), (200, 422), strict=True):
        status, answer = call(served.port, "POST", f"{path}/verdict", others | {field: value})
        assert status == expected, (value, answer)
    for confidence, expected in ((0, 422), (1e-9, 200), (1, 422)):
        uplift = f"{path}/uplift?confidence={confidence}"
        assert call(served.port, "GET", uplift)[0] == expected


@pytest.mark.interpreted
def test_integers_may_have_a_point(served: InThread) -> None:
    """JSON Schema takes 3.0 for an integer, and so do clients in some languages."""
    path = path_of(new_name())
    body = b'{"n_arms": 50.0, "horizon": 1e3, "reward_range": [0, 2], "policy": "moss"}'
    assert call(served.port, "PUT", path, body)[0] == 201
    assert len(call(served.port, "POST", f"{path}/asks", b'{"k": 3.0}')[1]["pulls"]) == 3
    body = b'{"tells": [{"pull": 0.0, "reward": 1.5}, {"pull": 1, "reward": 1.0}]}'
    results = call(served.port, "POST", f"{path}/tells", body)[1]["results"]
    assert [(one["pull"], one["applied"]) for one in results] == [(0, True), (1, True)]
    for wrong in (b'{"k": 2.5}', b'{"k": "2"}', b'{"k": true}', b'{"k": 0.0}'):
        status, answer = call(served.port, "POST", f"{path}/asks", wrong)
        assert (status, answer["parameter"]) == (422, "k")
    many = b'{"tells": [' + b'{"pull": 1.5, "reward": 1},' * 30_000 + b'{"pull": 1, "reward": 1}]}'
    assert call(served.port, "POST", f"{path}/tells", many)[0] == 422


@pytest.mark.interpreted
def test_arms_have_names_or_a_number(served: InThread) -> None:
    path = path_of(new_name())
    assert call(served.port, "PUT", path, {})[0] == 201
    status, answer = call(served.port, "POST", f"{path}/arms", {"count": 2, "names": ["red"]})
    assert (status, answer["message"]) == (422, "Send `count` or `names`, not both.")
    assert call(served.port, "POST", f"{path}/arms", {"count": -1, "names": []})[0] == 422
    assert call(served.port, "GET", path)[1]["n_arms"] == 0


@pytest.mark.interpreted
def test_bodies_that_may_be_left_out(served: InThread) -> None:
    """An empty body reads as {}; the description says where this is refused."""
    for route in ROUTES:
        body = PAGE["paths"][route.path][route.method.lower()].get("requestBody")
        if body is None:
            continue
        name = new_name()
        if route.name != "put":
            call(served.port, "PUT", path_of(name), {})
        path = route.path.format(experiment=name)
        status, answer = call(served.port, route.method, path, b"")
        missing = status == 422 and ("is missing" in answer["message"] or "at least" in str(answer))
        assert missing == body["required"], (route.name, answer)


@pytest.mark.interpreted
def test_links_and_statuses() -> None:
    operations = {one["operationId"]: one for p in PAGE["paths"].values() for one in p.values()}
    links = [
        link
        for one in operations.values()
        for answer in one["responses"].values()
        for link in answer.get("links", {}).values()
    ]
    assert len(links) > 10
    for link in links:
        names = {one["name"] for one in operations[link["operationId"]]["parameters"]}
        assert link.get("parameters", {}).keys() <= names
    assert operations["put"]["responses"].keys() == {"200", "201", "default"}
    assert operations["ask"]["responses"].keys() == {"200", "409", "default"}


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_generated_requests(tmp_path: Path, seed: int) -> None:
    """Schemathesis sends requests that the description allows, and others."""
    with node(f"sqlite:///{tmp_path}/api.db") as service:
        path = path_of("colours")  # the name in the examples
        assert call(service.port, "PUT", path, {"control": "grey"})[0] == 201
        body = {"names": ["red", "green", "blue"]}
        assert call(service.port, "PUT", f"{path}/arms", body)[0] == 200
        words = ["--config-file", str(CONFIGURATION), "run"]
        words += [f"http://{service.address}/openapi.json"]
        words += ["--header", f"Authorization: Bearer {TOKEN}", "--seed", str(seed)]
        words += ["--phases", "examples,coverage,fuzzing,stateful", "--max-examples", "60"]
        words += ["--generation-database", "none", "--no-color"]
        done = subprocess.run(
            [sys.executable, "-m", "schemathesis.cli", *words],
            check=False,
            cwd=tmp_path,
            env=os.environ | {"PYTHONWARNINGS": "ignore"},
            capture_output=True,
            text=True,
        )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2000:]
    for phase in ("Examples", "Coverage", "Fuzzing", "Stateful"):  # none was skipped
        assert f"✅ {phase}" in " ".join(done.stdout.partition("SUMMARY")[2].split())
