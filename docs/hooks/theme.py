"""The site's colours, fonts and logo: those of reports, dashboard and figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mkdocs.structure.files import File, Files

from manyarms.core import theme
from manyarms.protocol.colours import page_css

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig


def made() -> dict[str, str]:
    """Return the files that the site takes from the package."""
    return {
        "theme.css": page_css('[data-md-color-scheme="slate"]'),
        "logo.svg": theme.LOGO,
        "icon.svg": theme.ICON,
    }


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add them."""
    for name, content in made().items():
        files.append(File.generated(config, name, content=content))
    return files
