"""The hash map, compared with a dict."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyarms.core.hash_map import clear_map, find, hash_map, insert
from manyarms.core.memory import BOUNDED


@pytest.mark.parametrize("names", [20, 10**15])
@given(st.lists(st.integers(0, 19), max_size=40))
def test_it_agrees_with_a_dict(names: int, keys: list[int]) -> None:
    scale = names // 20  # multiples of a large number: collisions in the hashed form
    ours = hash_map(BOUNDED, names=names, entries=20)
    for _ in range(2):
        theirs: dict[int, int] = {}
        for value, key in enumerate(keys):
            name = key * scale
            at = find(ours, name)
            if ours.cells[at] == 0:
                assert name not in theirs
                insert(ours, at, name, value)
                theirs[name] = value
            else:
                assert ours.cells[at + 1] == theirs[name]
        assert ours.filled[0] == len(theirs)
        clear_map(ours)
        assert all(ours.cells[find(ours, key * scale)] == 0 for key in keys)
