"""The repository's pages as a site: files beyond `docs/` join it, and nothing is fetched.

Links are written as they work on GitHub, such as `../examples/prompts.py`. Here CONTRIBUTING
and its like, the examples and the files of docs/learn become pages, and such links are led to
them. The build fails if a page would ask anything of another machine.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent.parent
LANGUAGES = {".py": "python", ".ipynb": "json"}
_PROJECT = ("CONTRIBUTING", "CHANGELOG", "CODE_OF_CONDUCT", "ROADMAP", "SECURITY")
_LINK = re.compile(r"(\]\()([^)\s#:]+)(#[^)\s]*)?(\))")
# What a browser fetches when it shows a page; links that a reader may click are not.
_FETCHED = re.compile(
    r"""<(?:script|img|iframe|source|video|audio|embed)\b[^>]*?\bsrc=["']?((?:https?:)?//[^"'\s>]+)"""
    r"""|<link\b(?![^>]*rel=["']?canonical)[^>]*?\bhref=["']?((?:https?:)?//[^"'\s>]+)"""
    r"""|(?:url\(|@import\s)["']?((?:https?:)?//[^"')\s]+)""",
    re.IGNORECASE,
)


def joining() -> dict[str, str]:
    """Return the files that are no pages but join the site, and the pages they become."""
    pages = {}
    for room in ("examples", "docs/learn"):
        for path in sorted(p for p in (ROOT / room).iterdir() if p.suffix in LANGUAGES):
            pages[f"{room}/{path.name}"] = f"{room.removeprefix('docs/')}/{path.stem}.md"
    return {f"{name}.md": f"{name.lower()}.md" for name in _PROJECT} | pages


def as_page(name: str) -> str:
    """Return a file of the repository as the Markdown of a page."""
    text = (ROOT / name).read_text(encoding="utf-8")
    if name.endswith(".md"):
        return text
    path = Path(name)
    if path.suffix == ".ipynb":
        return "\n\n".join(_cells(json.loads(text)))
    return f"# {path.name}\n\n```{LANGUAGES[path.suffix]}\n{text}```\n"


def _cells(notebook: dict[str, Any]) -> Iterator[str]:
    """Yield the cells of a notebook, and the text that they put out, as Markdown."""
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            yield source
            continue
        yield f"```python\n{source}\n```"
        for output in cell["outputs"]:
            shown = "".join(output.get("text") or output["data"]["text/plain"])
            yield f"```text\n{shown.rstrip()}\n```"


def led_home(markdown: str, page: str) -> str:
    """Return a page's Markdown with the links that leave `docs/` led to the pages they became."""
    become = joining()
    homes = {where: name for name, where in become.items()}
    home = homes.get(page, f"docs/{page}")  # where the links were written

    def lead(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(home), link[2]))
        here = become.get(target, target.removeprefix("docs/"))
        if here == target and not (ROOT / target).is_file():
            return link[0]  # broken: mkdocs says so
        away = posixpath.relpath(here, posixpath.dirname(page) or ".")
        return f"{link[1]}{away}{link[3] or ''}{link[4]}"

    return _LINK.sub(lead, markdown)


def fetched(text: str) -> Iterator[str]:
    """Yield the addresses on other machines that a page or a style sheet would fetch."""
    for match in _FETCHED.finditer(text):
        yield next(address for address in match.groups() if address)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the files that are no pages."""
    for name, page in joining().items():
        files.append(File.generated(config, page, content=as_page(name)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links home, and show doctests as sessions, just before a page is converted."""
    session = markdown.replace("```python\n>>>", "```pycon\n>>>").replace("<BLANKLINE>", "")
    return led_home(session, page.file.src_uri)


def on_post_build(config: MkDocsConfig) -> None:
    """Fail if what was built would fetch something from elsewhere."""
    site = Path(config.site_dir)
    for path in sorted([*site.rglob("*.html"), *site.rglob("*.css")]):
        for address in fetched(path.read_text(encoding="utf-8")):
            raise PluginError(f"{path.relative_to(site)} would fetch {address}. Ship it instead.")
