"""Slots in order of (mean, number), any of which is found by its place: treaps (Seidel & Aragon).

A binary search tree whose shape is as if the slots had come in random order: a slot stands above
those of lower rank, and its rank is a random number that belongs to it. Each slot knows how many
stand below it, so the k-th is found in O(log slots), as is a place to join or to leave. Written by
hand because sorted lists in Python know no places in compiled code. Links are places in one
array, and 0 is nobody.
"""

from __future__ import annotations

from manyarms.core.jit import kernel, rare
from manyarms.core.memory import Record, Records
from manyarms.core.rng import draw


class Node(Record):
    """A slot, which belongs to one arm: 64 bytes."""

    arm: int
    pulls: int  # N, of observed rewards
    total: float  # their sum
    mean: float  # one division; in queue 0 less than 0 by the pulls in flight
    left: int  # those before it
    right: int  # those after it
    up: int
    size: int  # of the tree below it, itself counted; 0 for nobody


@kernel
def comes_before(nodes: Records[Node], slot: int, other: int) -> bool:
    if nodes[slot].mean != nodes[other].mean:
        return nodes[slot].mean < nodes[other].mean
    return slot < other


@kernel
def join(nodes: Records[Node], root: int, slot: int) -> int:
    """Add a slot to a tree (root 0: an empty one) and return its root."""
    node = nodes[slot]
    node.left = 0
    node.right = 0
    node.up = 0
    node.size = 1
    at = root
    while at != 0:
        nodes[at].size += 1
        node.up = at
        at = nodes[at].left if comes_before(nodes, slot, at) else nodes[at].right
    if node.up == 0:
        return slot
    if comes_before(nodes, slot, node.up):
        nodes[node.up].left = slot
    else:
        nodes[node.up].right = slot
    while node.up != 0 and draw(0, slot) > draw(0, node.up):
        _lift(nodes, slot)
    return slot if node.up == 0 else root


@kernel
def leave(nodes: Records[Node], root: int, slot: int) -> int:
    """Take a slot out of its tree and return the root."""
    node = nodes[slot]
    while node.left + node.right > 0:
        child = max(node.left, node.right)
        if node.left > 0 and node.right > 0:
            child = node.left if draw(0, node.left) > draw(0, node.right) else node.right
        _lift(nodes, child)
        if slot == root:
            root = child
    if slot == root:
        return 0
    if nodes[node.up].left == slot:
        nodes[node.up].left = 0
    else:
        nodes[node.up].right = 0
    at = node.up
    while at != 0:
        nodes[at].size -= 1
        at = nodes[at].up
    return root


@rare
def _lift(nodes: Records[Node], slot: int) -> None:
    """Swap a slot with its parent."""
    node, below = nodes[slot], nodes[slot].up
    old = nodes[below]
    if old.left == slot:
        old.left = node.right
        nodes[node.right].up = below  # that of nobody, if there is none
        node.right = below
    else:
        old.right = node.left
        nodes[node.left].up = below
        node.left = below
    node.up = old.up
    old.up = slot
    if node.up != 0:
        if nodes[node.up].left == below:
            nodes[node.up].left = slot
        else:
            nodes[node.up].right = slot
    node.size = old.size
    old.size = 1 + nodes[old.left].size + nodes[old.right].size


@kernel
def nth(nodes: Records[Node], root: int, place: int) -> int:
    """Return the slot at a place; places count from 0."""
    at = root
    before = nodes[nodes[at].left].size
    while place != before:
        if place < before:
            at = nodes[at].left
        else:
            place -= before + 1
            at = nodes[at].right
        before = nodes[nodes[at].left].size
    return at


@rare
def last(nodes: Records[Node], root: int) -> int:
    """Return the last slot, or 0 if there is none."""
    at = root
    while nodes[at].right != 0:
        at = nodes[at].right
    return at


@rare
def first_alike(nodes: Records[Node], root: int, mean: float) -> int:
    """Return the place of the first slot whose mean is not below this one."""
    place = 0
    at = root
    while at != 0:
        if nodes[at].mean < mean:
            place += nodes[nodes[at].left].size + 1
            at = nodes[at].right
        else:
            at = nodes[at].left
    return place
