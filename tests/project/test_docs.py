"""Code in the docs runs, and commands, options, links and anchors exist.

Doctests run elsewhere. These tests check that every block of Python is a doctest or is taken from
an example.
"""

from __future__ import annotations

import importlib.util
import re
import shlex
import tomllib
from pathlib import Path

import pytest

pytestmark = pytest.mark.compiled  # no kernels to cover, so once is enough

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
SIZE = 200_000  # most bytes of a figure

by_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def _blocks(page: Path, language: str) -> list[str]:
    found = BLOCK.findall(page.read_text(encoding="utf-8"))
    return [text for kind, text in found if kind == language]


def _anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub gives to a page's headings."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@by_page
def test_python_blocks_are_run(page: Path) -> None:
    """Each block is a doctest, or a literal part of an example, which other tests run."""
    files = [*(ROOT / "examples").glob("*.py"), *(DOCS / "learn").glob("*.py")]
    examples = [path.read_text(encoding="utf-8") for path in files]
    for block in _blocks(page, "python"):
        assert block.startswith(">>> ") or any(block in text for text in examples), block
        if block.startswith(">>> "):  # pytest collects only these pages
            assert DOCS in page.parents or page.name == "README.md", page


@by_page
def test_blocks_name_their_language(page: Path) -> None:
    """A block in an unknown language would not be checked."""
    known = {"python", "sh", "toml", "text", "bibtex", "math"}
    kinds = {kind for kind, _ in BLOCK.findall(page.read_text(encoding="utf-8"))}
    assert kinds <= known


@by_page
def test_commands_exist(page: Path) -> None:
    named: dict[str, str] = {}  # variables of the shell
    for block in _blocks(page, "sh"):
        for line in block.splitlines():
            words = shlex.split(line.rpartition(" | ")[2], comments=True)
            while words and (found := re.fullmatch(r"([A-Z_]+)=(.*)", words[0])):
                named[found[1]] = found[2]
                words = words[1:]
            if words and words[0] == "curl":
                _check_curl([re.sub(r"\$(\w+)", lambda m: named.get(m[1], ""), w) for w in words])
            elif words:
                _check_command(words)
    for span in re.findall(r"`(manyarms [a-z][^`\n]*)`", page.read_text(encoding="utf-8")):
        _check_manyarms(shlex.split(span)[1:])


def _check_command(words: list[str]) -> None:
    name, *rest = words
    name = name.removeprefix(".venv/bin/")
    if name == "manyarms":
        _check_manyarms(rest)
    elif name == "make":
        targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert set(rest) <= set(targets), words
    elif name == "pip":
        assert rest[0] == "install", words
        _check_extras(rest[-1])
    elif name.startswith("python") and rest[0] == "-m":
        assert importlib.util.find_spec(rest[1]), words
    elif name.startswith("python"):
        assert (ROOT / rest[0]).is_file(), words
    elif name == "eval":
        assert re.fullmatch(r"\$\(_MANYARMS_COMPLETE=(bash|zsh)_source manyarms\)", rest[0]), words
    else:
        assert words == [".", ".venv/bin/activate"], f"unknown command: {words}"


def _check_curl(words: list[str]) -> None:
    """Check that the service has this request and can read its body."""
    msgspec = pytest.importorskip("msgspec", reason='the service needs pip install ".[serve]"')
    from manyarms.serve.importing import NewArms
    from manyarms.serve.routes import ROUTES

    method = words[words.index("-X") + 1] if "-X" in words else "GET"
    (address,) = [word for word in words if word.startswith("http")]
    path = re.sub(r"^https?://[^/]+|\?.*$", "", address)
    patterns = ((re.sub(r"{\w+}", "[^/]+", route.path), route) for route in ROUTES)
    found = [r for pattern, r in patterns if r.method == method and re.fullmatch(pattern, path)]
    assert found, f"unknown request: {method} {path}"
    if "-d" in words:
        body = NewArms if path.endswith("/arms") else found[0].request
        msgspec.json.decode(words[words.index("-d") + 1], type=body)


def _check_extras(requirement: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = re.fullmatch(r"(?:\.|manyarms)(?:\[([\w,]+)\])?", requirement)
    assert found, requirement
    assert set((found[1] or "sim").split(",")) <= set(project["optional-dependencies"])


def _check_manyarms(words: list[str]) -> None:
    """Parse a command with click, without running it."""
    click = pytest.importorskip("click", reason='the command line needs pip install ".[sim]"')
    from manyarms.cli.app import app

    command, context = app, click.Context(app)
    while isinstance(command, click.Group) and words:
        name, found, words = command.resolve_command(context, words)
        assert found is not None, name
        command, context = found, click.Context(found, parent=context, info_name=name)
    values, rest, _ = command.make_parser(context).parse_args(args=list(words))
    assert not rest, words
    for parameter in command.params:
        value = values.get(parameter.name)
        if isinstance(parameter.type, click.Choice) and isinstance(value, str):
            assert value in parameter.type.choices, words


def test_a_wrong_option_is_detected() -> None:
    import click

    with pytest.raises(click.UsageError, match="No such option"):
        _check_manyarms(["simulate", "--no-such-replications", "3"])
    with pytest.raises(click.UsageError, match="No such command"):
        _check_manyarms(["simulated"])
    with pytest.raises(AssertionError, match="unknown command"):
        _check_command(["rm", "-r", "out"])
    with pytest.raises(AssertionError, match="unknown request: GET /v1/nothing"):
        _check_curl(["curl", "http://127.0.0.1:8765/v1/nothing"])


@by_page
def test_links_exist(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    for link in LINK.findall(text):
        if link.startswith(("http://", "https://")):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), link
        assert ROOT in target.parents, link
        if anchor:
            assert anchor in _anchors(target), link


@by_page
def test_files_that_pages_name_exist(page: Path) -> None:
    if page.name == "CHANGELOG.md":
        return  # it describes earlier versions
    folders = [ROOT, *(ROOT / name for name in ("src/manyarms", "src/manyarms/policies", "tests"))]
    for name in re.findall(r"`([a-z_.]\w*/[a-z_/]+\.(?:py|sql|js|css))`", page.read_text("utf-8")):
        assert any((folder / name).is_file() for folder in folders), name


@by_page
def test_no_page_is_a_stub(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert len(re.findall(r"^# ", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S), re.M)) == 1
    directives = text.count("\n::: ")
    assert len(text.split()) > 90 or directives >= 3
    assert not re.search(r"\b(TODO|TBD|FIXME|coming soon)\b", text, re.IGNORECASE)


def test_figures_are_small_and_used() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    text += (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for figure in (DOCS / "figures").rglob("*.svg"):
        assert figure.stat().st_size < SIZE, figure.name
        assert figure.relative_to(DOCS).as_posix() in text, figure.name
