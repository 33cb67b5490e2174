"""Pairing heaps (Fredman, Sedgewick, Sleator & Tarjan 1986) by links between slots.

They meld in O(1), and let go of any member in O(log members), amortised. Written by hand because
heapq keeps its members in lists, which compiled code would have to allocate, and finds none but
the first. Links are places in one array, and 0 is nobody.
"""

from __future__ import annotations

from manyarms.core.jit import kernel, rare
from manyarms.core.memory import Record, Records

__all__ = ["Node", "beats", "join", "leave", "slots_of"]


class Node(Record):
    """A slot, which belongs to one arm: 64 bytes."""

    arm: int
    pulls: int  # N, of observed rewards
    total: float  # their sum
    mean: float  # one division; in queue 0 less than 0 by the pulls in flight
    tie: int  # 60 random bits, drawn with every reward
    child: int
    before: int  # the sister on the left, or the mother
    after: int  # the sister on the right


@kernel
def beats(nodes: Records[Node], slot: int, other: int) -> bool:
    if nodes[slot].mean != nodes[other].mean:
        return nodes[slot].mean > nodes[other].mean
    return nodes[slot].tie > nodes[other].tie


@kernel
def _meld(nodes: Records[Node], one: int, two: int) -> int:
    """Make the lesser of two heads the first child of the other, which is returned."""
    if beats(nodes, two, one):
        one, two = two, one
    sister = nodes[one].child
    nodes[two].after = sister
    nodes[sister].before = two  # that of nobody, if there is no sister
    nodes[two].before = one
    nodes[one].child = two
    return one


@kernel
def join(nodes: Records[Node], root: int, slot: int) -> int:
    """Add a slot to a heap (root 0: an empty one) and return its root."""
    nodes[slot].child = 0
    return slot if root == 0 else _meld(nodes, root, slot)


@kernel
def leave(nodes: Records[Node], root: int, slot: int) -> int:
    """Take a slot out of its heap and return the root."""
    node = nodes[slot]
    orphans = _gather(nodes, node.child) if node.child != 0 else 0
    if slot == root:
        return orphans
    if nodes[node.before].child == slot:
        nodes[node.before].child = node.after
    else:
        nodes[node.before].after = node.after
    nodes[node.after].before = node.before  # nobody's, if it was the last
    return root if orphans == 0 else _meld(nodes, root, orphans)


@rare
def _gather(nodes: Records[Node], first: int) -> int:
    """Make one tree of sisters: meld them in pairs, then the pairs from the last to the first."""
    pairs = 0
    while first != 0:
        second = nodes[first].after
        rest = 0
        pair = first
        if second != 0:
            rest = nodes[second].after
            pair = _meld(nodes, first, second)
        nodes[pair].before = pairs  # a stack
        pairs = pair
        first = rest
    tree = pairs
    pairs = nodes[tree].before
    while pairs != 0:
        pair = pairs
        pairs = nodes[pair].before
        tree = _meld(nodes, tree, pair)
    return tree


def slots_of(nodes: Records[Node], root: int, most: int) -> set[int] | None:
    """Return the slots of a heap that comes from a file; None if its links lead to no heap.

    Slots are numbered from 1 to `most`.
    """
    found: set[int] = set()
    heads = [(root, nodes[root].before)] if root != 0 else []
    while heads:
        slot, before = heads.pop()
        while slot != 0:
            node = nodes[slot]
            if slot in found or not 1 <= slot <= most or node.before != before:
                return None
            found.add(slot)
            heads.append((node.child, slot))
            before, slot = slot, node.after if slot != root else 0
    return found
