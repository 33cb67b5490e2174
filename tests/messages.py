"""List the messages that users read, for review: `python -m tests.messages [FOLDER]`.

These are the strings of three words or more, except docstrings, by file and line, and the texts of
the dashboard's templates.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "manyarms"
_NO_MESSAGE = re.compile(
    r"^\s*(SELECT|INSERT|UPDATE|DELETE|CREATE|PRAGMA|CASE|EXISTS|AND)\b|[<>{}]{2}"
)
_TAGS = re.compile(r"<[^>]*>|{%.*?%}|{#.*?#}", re.DOTALL)


def messages(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and text of every message in a module, with values in braces."""
    tree = ast.parse(source)
    skipped = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            skipped.add(node.value)
        if isinstance(node, ast.JoinedStr):
            skipped.update(part for part in node.values if isinstance(part, ast.Constant))
    for node in ast.walk(tree):
        if not isinstance(node, ast.JoinedStr | ast.Constant):
            continue
        text = ""
        if isinstance(node, ast.JoinedStr):
            text = "".join(
                str(part.value) if isinstance(part, ast.Constant) else "{…}" for part in node.values
            )
        elif isinstance(node.value, str) and node not in skipped:
            text = node.value
        if (
            len(re.findall(r"[A-Za-z]{2,}", text)) >= 3
            and " " in text
            and not _NO_MESSAGE.search(text)
        ):
            yield node.lineno, " ".join(text.split())


def template_texts(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and text between the tags of a template."""
    plain = _TAGS.sub(lambda tag: "\n" * tag[0].count("\n") + "\0", source)
    for number, line in enumerate(plain.split("\n"), 1):
        for text in line.split("\0"):
            if re.search(r"[A-Za-z]{2,}", text):
                yield number, text.strip()


def main(folder: Path = PACKAGE) -> None:
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".py", ".html"):
            read = messages if path.suffix == ".py" else template_texts
            for line, text in sorted(set(read(path.read_text("utf-8")))):
                sys.stdout.write(f"{path.relative_to(PACKAGE)}:{line}  {text}\n")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
