"""Arms with a picture, and with a page about them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from manyarms.serve import tables
from tests.serve.machines import InThread, call, in_thread, new_name, opened, path_of, request

IMAGE, PAGE = "https://pictures.example/a.png?size=2", "https://shop.example/a&b"
CSV: dict[str, Any] = {"Content_Type": "text/csv"}


def begun(one: InThread) -> str:
    path = path_of(new_name())
    assert call(one.port, "PUT", path, {"policy": "prospector", "seed": 1})[0] == 201
    return path


def shown(one: InThread, path: str) -> dict[str, tuple[str | None, str | None]]:
    arms = call(one.port, "GET", f"{path}/arms?sort=arm")[1]["arms"]
    return {arm["arm"]: (arm["image_url"], arm["url"]) for arm in arms}


@pytest.fixture(scope="module")
def with_images(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InThread]:
    store = f"sqlite:///{tmp_path_factory.mktemp('serve')}/serve.db?sync=never"
    with in_thread(store, images=True) as one:
        yield one


def test_they_come_with_arms_and_change_with_them(store: str) -> None:
    with in_thread(store) as one:
        path = begun(one)
        data = f"price,image_url,key,url\n3,{IMAGE},a,{PAGE}\n4,,b,{PAGE}\n5,,c,\n".encode()
        status, answer = call(one.port, "POST", f"{path}/arms", data, **CSV)
        assert (status, answer["added"], answer["ignored"]) == (200, 3, ["price"])
        expected = {"a": (IMAGE, PAGE), "b": (None, PAGE), "c": (None, None)}
        assert shown(one, path) == expected
        lines = f'"d"\n{{"key": "a", "image_url": "{PAGE}"}}\n"b"\n'.encode()
        kind: dict[str, Any] = {"Content_Type": "application/x-ndjson"}
        assert call(one.port, "POST", f"{path}/arms?upsert=true", lines, **kind)[0] == 200
        expected |= {"a": (PAGE, None), "d": (None, None)}
        assert shown(one, path) == expected, "those of arms that are only named stay"
        lines = f'{{"key": "z", "url": "{PAGE}"}}\n{{"key": "a", "url": "{PAGE}"}}\n'.encode()
        assert call(one.port, "POST", f"{path}/arms", lines, **kind)[0] == 409
        assert shown(one, path) == expected, "nor does a refused import change any"
        arms = ["a", "b", {"key": "d", "url": PAGE}, {"key": "e", "image_url": IMAGE}]
        assert call(one.port, "PUT", f"{path}/arms", {"keys": arms})[0] == 200
        expected |= {"d": (None, PAGE), "e": (IMAGE, None)}
        assert shown(one, path) == expected
        name = new_name()
        wanted = {"name": name}
        assert call(one.port, "POST", f"{path}/season", wanted)[0] == 201
        assert shown(one, path_of(name)) == expected
        call(one.port, "POST", f"{path}/tells", {"tells": [{"pull": 0, "reward": 1}]})
    with in_thread(store) as one:
        assert shown(one, path) == expected
        assert shown(one, path_of(name)) == expected
        assert call(one.port, "POST", f"{path}/stop")[0] == 200
        assert call(one.port, "DELETE", path)[0] == 200


@pytest.mark.parametrize(
    "address",
    [
        "http://pictures.example/a.png",
        "javascript:alert(1)",
        "data:image/png;base64,AAAA",
        "HTTPS://pictures.example/a.png",
        "https://",
        "https:///a.png",
        "https://[",
        "https://ann:secret@pictures.example/a.png",
        "https://pictures.example/a b.png",
        "https://pictures.example/\u202ea.png",
        f"https://pictures.example/{'a' * 2000}",
    ],
)
def test_what_is_refused(served: InThread, address: str) -> None:
    path = begun(served)
    for column in ("image_url", "url"):
        data = f"key,{column}\na,\nb,{address}\n".encode()
        status, said = call(served.port, "POST", f"{path}/arms", data, **CSV)
        assert status == 422
        assert said["message"].startswith(f"Line 3: `{column}` must be an address that begins with")
        arms = {"keys": [{"key": "b", column: address}]}
        status, said = call(served.port, "POST", f"{path}/arms", arms)
        assert (status, said["message"][:8]) == (422, "Key 1: `")
    assert call(served.port, "GET", path)[1]["n_arms"] == 0


def pages(one: InThread) -> tuple[str, str]:
    """What the pages of an experiment and of its arm hold, and their policy for pictures."""
    path = begun(one)
    arms = [{"key": "a", "image_url": IMAGE, "url": PAGE}, {"key": "b"}]
    assert call(one.port, "POST", f"{path}/arms", {"keys": arms})[0] == 200
    pulls = call(one.port, "POST", f"{path}/asks", {"k": 60})[1]["pulls"]
    tells = [{"pull": one["pull"], "reward": float(one["arm"] == "a")} for one in pulls]
    call(one.port, "POST", f"{path}/tells", {"tells": tells})
    name, text = path.rsplit("/", 1)[1], ""
    for page in (f"/experiments/{name}", f"/experiments/{name}/arms/0"):
        text += call(one.port, "GET", page)[1].decode()
    policy = request(one.port, "GET", "/login")[0].headers["content-security-policy"]
    return text, re.findall(r"img-src ([^;]*);", policy)[0]


def test_pages_show_them_only_if_the_operator_says_so(served: InThread) -> None:
    text, policy = pages(served)
    assert policy == "'self' data:"
    assert "pictures.example" not in text
    assert "shop.example" not in text


def test_pages_show_them(with_images: InThread) -> None:
    text, policy = pages(with_images)
    assert policy == "'self' data: https:"
    images = re.findall(r"<img [^>]*>", text)
    assert len(images) == 4, "of the arm to deploy, a leader, an arm of the table, its own page"
    for image in images:
        assert f'src="{IMAGE}"' in image
        assert 'referrerpolicy="no-referrer"' in image
    links = re.findall(r'<a [^>]*href="https[^>]*>', text)
    assert len(links) == 2
    for link in links:
        assert 'href="https://shop.example/a&amp;b"' in link
        assert 'rel="noreferrer noopener"' in link


def test_databases_of_before_get_the_table(store: str) -> None:
    with opened(store) as database:
        database.run("DROP TABLE links")
        assert not database.has_table("links")
    with opened(store) as database:
        assert not tables.has_links(database, 1 << 40)
