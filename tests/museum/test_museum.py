"""Files of earlier versions open, say what they said then, and go on as they would have.

README.md says which versions these are.
"""

from __future__ import annotations

import functools
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

import manyarms as ma
from manyarms.live.journal_file import begin_file
from tests.museum.games import known, regrets
from tests.museum.service import ORIGIN, Service, look
from tests.serve.machines import new_name, shared_postgres

HERE = Path(__file__).parent
# what has changed since on purpose: the rule for ties, and the rule for the recommended arm
CHANGED = {
    "0": {"next", "recommended"},
    "1": {"next", "recommended"},
    "2": {"recommended"},
}
# with another rule for ties, these policies of version 1 remembered other things
OTHER_STATES = {"imoss", "kl-ucb", "ss-ucb", "ucb", "ucb-air", "ucb-f", "ucb1"}
# Prospector and Scout became other policies after version 4: they choose other arms
OTHER_POLICIES = {"prospector.manyarms", "scout.manyarms", "history.journal"}
OTHER_EXPERIMENTS = {"killed.db": {"numbered"}}  # that of the dump is too short to differ


@functools.cache
def _archive(version: str, room: str) -> tarfile.TarFile:
    return tarfile.open(HERE / version / f"{room}.tar.xz")


@functools.cache
def _expected(version: str, room: str) -> dict[str, Any]:
    found = _archive(version, room).extractfile("./expected.json")
    assert found is not None
    expected: dict[str, Any] = json.load(found)
    return expected


def _pieces(room: str) -> list[tuple[str, str]]:
    """Return the version and the name of each file."""
    versions = sorted(path.parent.name for path in HERE.glob(f"*/{room}.tar.xz"))
    return [(version, name) for version in versions for name in _expected(version, room)]


def _unpack(version: str, room: str, name: str, folder: Path) -> tuple[Path, Any]:
    """Return a copy of a file, with those that belong to it, and what it is to say."""
    archive = _archive(version, room)
    for member in archive.getmembers():
        if member.isfile() and member.name.startswith(f"./{name}"):
            archive.extract(member, folder, filter="data")
    return folder / name, _expected(version, room)[name]


def _check_handle(live: ma.Live, version: str, expected: dict[str, Any]) -> None:
    found = json.loads(json.dumps(known(live)))
    compared = expected.keys() - CHANGED.get(version, set())
    assert {key: found[key] for key in compared} == {key: expected[key] for key in compared}


@pytest.mark.parametrize(("version", "name"), _pieces("handles"))
def test_saved_handles(version: str, name: str, tmp_path: Path) -> None:
    path, expected = _unpack(version, "handles", name, tmp_path)
    if version == "1" and path.stem in OTHER_STATES:
        with pytest.raises(ma.SavedFileError, match="format 1, with another rule for ties, .*beg"):
            ma.Live.load(path)
        return
    if name in OTHER_POLICIES:
        with pytest.raises(ma.SavedFileError, match="If the policy has changed, go on with"):
            ma.Live.load(path)
        return
    live = ma.Live.load(path)
    assert ma.Live.from_bytes(live.to_bytes()).to_bytes() == live.to_bytes()
    # its policy may have been given parameters since
    assert ma.Live.load(path, policy=live.policy).to_bytes() == live.to_bytes()
    _check_handle(live, version, expected)


@pytest.mark.parametrize(("version", "name"), _pieces("journals"))
def test_journals(version: str, name: str, tmp_path: Path) -> None:
    path, expected = _unpack(version, "journals", name, tmp_path)
    if version in ("0", "1"):
        data = path.read_bytes()
        with pytest.raises(ma.SavedFileError, match=r"in format 1, .*Open it with that manyarms"):
            ma.recorded(path)
        assert path.read_bytes() == data
        return
    if name in OTHER_POLICIES:
        data = path.read_bytes()
        with pytest.raises(ma.SavedFileError, match="now chooses|policy has changed"):
            ma.recorded(path)
        assert path.read_bytes() == data
        return
    with ma.recorded(path) as live:
        _check_handle(live, version, expected)
    with ma.recorded(path) as live:
        assert len(live.pending) > 0  # of what was played above


def test_a_journal_of_format_1_without_events_goes_on(tmp_path: Path) -> None:
    saved, expected = _unpack("1", "handles", "moss++.manyarms", tmp_path)
    path = tmp_path / "journal"
    path.write_bytes(begin_file(saved.read_bytes()))
    with ma.recorded(path) as live:
        _check_handle(live, "1", expected)
        pending = live.pending
    with ma.recorded(path) as live:
        assert live.pending == pending


@pytest.mark.parametrize(("version", "name"), _pieces("stores"))
def test_stores_of_handles_in_sqlite(version: str, name: str, tmp_path: Path) -> None:
    path, expected = _unpack(version, "stores", name, tmp_path)
    with ma.recorded(f"sqlite:///{path}?experiment=buttons") as live:
        _check_handle(live, version, expected)


@pytest.mark.parametrize(("version", "name"), _pieces("results"))
def test_results(version: str, name: str, tmp_path: Path) -> None:
    path, expected = _unpack(version, "results", name, tmp_path)
    assert regrets(path) == expected


@pytest.mark.patient
@pytest.mark.parametrize(("version", "name"), _pieces("services"))
def test_databases_of_the_service(version: str, name: str, tmp_path: Path) -> None:
    path, expected = _unpack(version, "services", name, tmp_path)
    store = f"sqlite:///{path}" if path.suffix == ".db" else _restored(path)
    heard = expected.pop("heard")
    with Service(store) as service:
        for changed in OTHER_EXPERIMENTS.get(name, set()):
            status, refused = service.send("GET", f"/v1/experiments/{changed}")
            assert (status, refused["code"]) == (503, "replay")
            assert "prospector now chooses arm" in refused["message"]
            assert service.send("DELETE", f"/v1/experiments/{changed}")[0] == 200  # the way out
            del expected[changed], heard[changed]
        found = look(service)
        assert found.keys() == expected.keys()
        for experiment, facts in expected.items():
            for event in facts.get("events", ()):
                event[0] = "added" if event[0] == "arrived" else event[0]  # the word until then
            assert json.loads(json.dumps(found[experiment])) == facts, experiment
        if path.stem == "ended":
            _check_promises(service, heard)
        else:
            for experiment, acknowledged in heard.items():
                _check_acknowledged(service, experiment, acknowledged)


def _restored(dump: Path) -> str:
    """Return the address of a new database that was made from a dump."""
    server, base = shared_postgres().rpartition("/")[0], new_name()
    import psycopg  # an extra

    text = dump.read_text()
    statements = "".join(line for line in text.splitlines(True) if not line.startswith("\\"))
    with psycopg.connect(f"{server}/postgres", autocommit=True) as link:
        link.execute(f"CREATE DATABASE {base}")
    with psycopg.connect(f"{server}/{base}", autocommit=True) as link:
        link.execute(statements)
    return f"{server}/{base}"


def _check_promises(service: Service, heard: dict[str, Any]) -> None:
    """Keys, workers, tickets and tokens of then are good."""
    assert service.ask("plain", "a key", k=2) == heard["repeated"]
    assert service.ask("plain", k=2, worker="one of the farm") == heard["worker"]
    (result,) = service.tell("keys", {"ticket": heard["ticket"]["ticket"], "reward": 1.0})
    assert (result["pull"], result["applied"]) == (heard["ticket"]["pull"], True)
    client, browser = (f"Bearer {heard['tokens'][role]}" for role in ("client", "browser"))
    asks = "/v1/experiments/keys/asks"
    assert service.send("POST", asks, {}, Authorization=client)[0] == 200
    assert service.send("POST", asks, {}, Authorization=browser, Origin=ORIGIN)[0] == 200
    assert service.send("POST", asks, {}, Authorization=browser, Origin="https://a.b")[0] == 403
    assert service.send("PUT", "/v1/experiments/x", {}, Authorization=client)[0] == 403


def _check_acknowledged(service: Service, experiment: str, heard: dict[str, Any]) -> None:
    """What was acknowledged before the kill is in the log."""
    events = service.events(experiment)
    asked = {event["pull"] for event in events if event["kind"] == "asked"}
    told = {event["pull"]: event["reward"] for event in events if event["kind"] == "told"}
    for key, pulls in heard["asks"].items():
        assert asked.issuperset(pull["pull"] for pull in pulls)
        assert service.ask(experiment, key, k=1 + int(key.split()[1]) % 3) == pulls
    for pull, reward in heard["tells"].items():
        assert told[int(pull)] == reward


def test_there_are_files_of_every_kind() -> None:
    rooms = {path.name.partition(".")[0] for path in HERE.glob("4/*.tar.xz")}
    assert rooms == {"handles", "journals", "results", "services", "stores"}
