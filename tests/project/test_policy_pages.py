"""The pages of docs/policies have the algorithm, guarantee, cost and picture of every policy."""

from __future__ import annotations

import importlib
import inspect
import json
import re
from pathlib import Path
from types import ModuleType

import pytest

import costs
import manyarms as ma
import run
from manyarms.core.theme import DARK, LIGHT
from manyarms.policies import CATALOGUE
from manyarms.protocol.registry import makers_of

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "policies"
PARTS = ("Algorithms?", "Guarantees?", "Cost", "Example", "API")

by_page = pytest.mark.parametrize("page", sorted({about.page for about in CATALOGUE.values()}))
CLASSES = [ma.MOSS, ma.MOSSOracle, ma.Quantile, ma.MOSSPlusPlus, ma.EmpMOSSPlusPlus, ma.Parallel]
CLASSES += [ma.Doubling, ma.Prospector, ma.Guarded, ma.Patience, ma.Scout]
by_class = pytest.mark.parametrize("make", CLASSES)


@pytest.fixture(scope="module")
def pictures() -> ModuleType:
    return importlib.import_module("policies")


def test_every_policy_has_a_page_and_every_page_a_policy() -> None:
    pages = {path.name for path in PAGES.glob("*.md")} - {"index.md"}
    assert pages == {Path(about.page).name for about in CATALOGUE.values()}
    index = (PAGES / "index.md").read_text(encoding="utf-8")
    for name in pages:
        assert f"]({name})" in index, name


@by_page
def test_a_page_has_all_parts_and_names_its_policies(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    sections = dict(part.split("\n", 1) for part in text.split("\n## ")[1:])
    heads = [head for head in sections if any(re.fullmatch(part, head) for part in PARTS)]
    assert len(heads) == len(PARTS)
    for head, part in zip(heads, PARTS, strict=True):
        assert re.fullmatch(part, head)
    algorithm, _, cost, _, shown = (sections[head] for head in heads)
    assert "\n> " in algorithm or "\n| " in algorithm
    assert "\n::: manyarms." in shown
    for name, about in CATALOGUE.items():
        assert (f"| `{name}` |" in cost) == (about.page == page), name


def test_every_class_is_on_a_page() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in PAGES.glob("*.md"))
    for name in CATALOGUE:
        kind = type(ma.policy(name, **run.KNOWN.get(name, {}))).__name__
        assert len(re.findall(rf"^::: manyarms\.(?:\S+\.)?{kind}$", text, re.MULTILINE)) == 1, name


@by_page
def test_the_tables_are_up_to_date(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert costs.with_table(text, page) == text, "Run `python benchmarks/costs.py pages`."


def test_memory_and_random_words_are_as_recorded() -> None:
    kept = json.loads(costs.COSTS.read_text(encoding="utf-8"))
    policies = costs.policies()
    assert kept.keys() == policies.keys()
    for name, policy in policies.items():
        assert costs.memory(policy) == kept[name]["memory"], name
    for name in ("moss++", "patience"):
        assert round(costs.words(policies[name], 20_000), 2) == kept[name]["words"], name


@by_class
def test_docstrings_name_the_page_and_the_plain_file(make: type) -> None:
    text = " ".join((inspect.getdoc(make) or "").split())
    (page,) = re.findall(r"Its page is (docs/policies/\w+\.md)", text)
    assert (ROOT / page).is_file()
    assert page in {about.page for name, about in CATALOGUE.items() if make in makers_of(name)}
    linked = re.findall(r"\.\./learn/(\w+)\.py", (ROOT / page).read_text(encoding="utf-8"))
    assert set(re.findall(r"docs/learn/(\w+)\.py", text)) == set(linked)
    for name in linked:
        assert (ROOT / "docs" / "learn" / f"{name}.py").is_file()


@by_page
def test_the_pictures_exist_and_use_the_pages_colours(page: str, pictures: ModuleType) -> None:
    name = Path(page).stem
    assert name in pictures.pictures()
    svg = (pictures.FOLDER / f"{name}.svg").read_text(encoding="utf-8")
    assert len(svg) < 50_000
    assert f"../figures/policies/{name}.svg" in (ROOT / page).read_text(encoding="utf-8")
    day, night = re.findall(r"{ (--c0: [^}]*) }", svg)
    assert LIGHT["ink"] in day
    assert DARK["ink"] in night
    assert not re.search(r"(fill|stroke): #", svg)  # all colours come from the theme
