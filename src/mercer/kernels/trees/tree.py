r"""Trees as points: what one is, how one is read, and many of them as arrays.

A tree is a label and an ordered list of trees, its children. It may be given as

- a text in brackets, ``"(S (NP dog) (VP bites))"``: a bracket opens a node, its label comes first;
- nested tuples (or lists), ``("S", ("NP", "dog"), ("VP", "bites"))``, again with the label first;
- a ``Tree``, or any object with a method ``label()`` that is a sequence of its children (as in nltk).

A child that is no tree itself is a leaf of that label: ``(NP dog)`` and ``(NP (dog))`` are the same tree.
Nothing here calls itself: a tree may be as deep as memory allows.

>>> as_tree(("S", ("NP", "dog"), ("VP", "bites"))) == as_tree("(S (NP (dog)) (VP (bites)))")
True
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.data.types import Objects
from mercer.errors import InputError, InputTypeError
from mercer.kernels.structured import Ranges, encode_labels

#: labels of the nodes, each before its children, and the place of every node's parent; -1 for the root
Flat = tuple[list[Any], list[int]]


class Tree:
    """A label and children, which may be trees or the labels of leaves.

    >>> tree = Tree("NP", [Tree("D", ["the"]), Tree("N", ["dog"])])
    >>> tree
    Tree('(NP (D the) (N dog))')
    >>> tree.children[1].label
    'N'
    """

    __slots__ = ("children", "label")

    label: Hashable
    children: tuple[Any, ...]

    def __init__(self, label: Hashable, children: Iterable[Any] = ()) -> None:
        if isinstance(children, str | bytes) or not isinstance(children, Iterable):
            raise InputTypeError(f"the children of a Tree are a list, got {children!r}: pass [{children!r}]")
        self.label, self.children = label, tuple(children)

    def __str__(self) -> str:
        return _brackets(*_flat(self, "the tree"))

    def __repr__(self) -> str:
        return f"Tree({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tree):
            return NotImplemented
        return _flat(self, "the tree") == _flat(other, "the tree")

    def __hash__(self) -> int:
        return hash(tuple(map(tuple, _flat(self, "the tree"))))

    def __reduce__(self) -> Any:
        return _from_flat, _flat(self, "the tree")  # Python's own way would descend into the children


def as_tree(tree: Any) -> Tree:
    """A tree from what stands for one."""
    return _from_flat(*_flat(tree, "the tree"))


# --- reading one -----------------------------------------------------------------------------------------

_TOKEN = re.compile(r"[()]|[^\s()]+")
_BALANCE = (
    "close every bracket that opens a node; write -LRB- and -RRB- for brackets in a label, or pass nested "
    "tuples"
)


def _flat(tree: Any, name: str) -> Flat:
    if isinstance(tree, str):
        return _read(tree, name)
    if not (isinstance(tree, Tree | tuple | list) or _has_label(tree)):
        raise InputTypeError(
            f"{name} must be a text in brackets, nested tuples or a mercer.kernels.trees.tree.Tree, "
            f"got {_short(tree)}: pass '(S (NP dog) (VP bites))' or ('S', ('NP', 'dog'), ('VP', 'bites'))"
        )
    labels: list[Any] = []
    parents: list[int] = []
    waiting = [(tree, -1)]
    while waiting:
        node, parent = waiting.pop()
        label, children = _parts(node, name)
        waiting.extend((child, len(labels)) for child in reversed(children))
        labels.append(label)
        parents.append(parent)
    return labels, parents


def _parts(node: Any, name: str) -> tuple[Any, Sequence[Any]]:
    """Label and children of a node."""
    if isinstance(node, Tree):
        return node.label, node.children
    if _has_label(node):  # before lists: nltk's trees are lists too
        return node.label(), list(node)
    if isinstance(node, tuple | list):
        if not node or isinstance(node[0], tuple | list | Tree):
            raise InputError(
                f"a node of {name} has no label, got {_short(node)}: the label comes first, ('NP', 'dog')"
            )
        return node[0], node[1:]
    if node is None:
        raise InputTypeError(f"a node of {name} is None: leave it out")
    return node, ()


def _has_label(node: Any) -> bool:
    return callable(getattr(node, "label", None)) and hasattr(node, "__iter__")


def _read(text: str, name: str) -> Flat:
    """A text in brackets. A bracket that opens right after another opens a node with an empty label."""
    labels: list[str] = []
    parents: list[int] = []
    inside: list[int] = []  # the nodes whose brackets are open
    is_new = False  # whether a bracket was opened and its label did not come yet
    for token in _TOKEN.findall(text):
        if token == ")":
            if is_new:
                raise InputError(
                    f"{name} has a pair of brackets without a label, got {_short(text)}: write one after the "
                    "bracket, (NP dog)"
                )
            if not inside:
                raise InputError(
                    f"{name} closes a bracket that it did not open, got {_short(text)}: {_BALANCE}"
                )
            inside.pop()
        elif token == "(" and not is_new:
            is_new = True
        else:
            if labels and not inside:
                raise InputError(
                    f"{name} goes on after its root is complete, at {token!r}: pass one tree per text, "
                    f"got {_short(text)}"
                )
            parents.append(inside[-1] if inside else -1)
            if is_new:
                inside.append(len(labels))
            is_new = token == "("
            labels.append("" if is_new else token)
    if inside or is_new:
        raise InputError(
            f"{name} leaves {len(inside) + is_new} brackets open, got {_short(text)}: {_BALANCE}"
        )
    if not labels:
        raise InputError(f"{name} is an empty text: pass '(S (NP dog) (VP bites))', or leave it out")
    return labels, parents


def _short(value: object) -> str:
    if isinstance(value, tuple | list):  # repr would descend into it
        return f"a {type(value).__name__} of {len(value)}"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:40]} … {text[-15:]}"


# --- writing one -----------------------------------------------------------------------------------------


def _from_flat(labels: list[Any], parents: list[int]) -> Tree:
    children: list[list[Tree]] = [[] for _ in labels]
    for v in range(len(labels) - 1, 0, -1):
        children[parents[v]].append(Tree(labels[v], reversed(children[v])))
    return Tree(labels[0], reversed(children[0]))


def _brackets(labels: list[Any], parents: list[int]) -> str:
    is_leaf = [True] * len(labels)
    for parent in parents[1:]:
        is_leaf[parent] = False
    parts: list[str] = []
    inside = [-1]
    for v, (label, parent) in enumerate(zip(labels, parents, strict=True)):
        while inside[-1] != parent:
            inside.pop()
            parts.append(")")
        is_bare = is_leaf[v] and parent >= 0
        parts.append(f"{' ' if parts else ''}{'' if is_bare else '('}{label}")
        if not is_bare:
            inside.append(v)
    return "".join(parts) + ")" * (len(inside) - 1)


# --- many of them ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Trees(Ranges):
    """Trees side by side: nodes are numbered through, those of tree i are starts[i] … stops[i] - 1.

    Within a tree they are numbered level by level, so that the children of a node follow each other, and
    come after it: v has first[v] … last[v] - 1.
    """

    starts: np.ndarray  # (trees,)
    stops: np.ndarray  # (trees,)
    first: np.ndarray  # (nodes,)
    last: np.ndarray  # (nodes,)
    labels: np.ndarray  # (nodes,): numbers 0, 1, …
    names: list[Any]  # the labels that these numbers stand for


def encode_trees(X: Objects) -> Trees:
    """Trees as arrays, labels as numbers.

    >>> two = encode_trees(["(S (NP dog) (VP bites))", "(NP dog)"])
    >>> [two.names[number] for number in two.labels]
    ['S', 'NP', 'VP', 'dog', 'bites', 'NP', 'dog']
    >>> two.first, two.last
    (array([1, 3, 4, 5, 5, 6, 7]), array([3, 4, 5, 5, 5, 7, 7]))
    """
    flat = [_flat(tree, f"tree {i}") for i, tree in enumerate(X)]
    sizes = np.array([len(labels) for labels, _ in flat], np.int64)
    stops = np.cumsum(sizes)
    starts = stops - sizes
    tree = np.repeat(np.arange(len(flat)), sizes)
    depths = [depth for _, parents in flat for depth in _depths(parents)]
    # nodes come before their children, left to right: a stable sort by depth leaves brothers together
    order = np.lexsort((np.array(depths, np.int64), tree))
    within = np.array([parent for _, parents in flat for parent in parents], np.int64)
    n_nodes = int(sizes.sum())
    parents = np.where(within < 0, n_nodes, within + starts[tree])
    counts = np.bincount(parents, minlength=n_nodes + 1)[:n_nodes][order]
    last = np.cumsum(counts) + tree + 1  # every root is nobody's child
    labels = [label for labels, _ in flat for label in labels]
    numbers = encode_labels(labels)
    return Trees(starts, stops, last - counts, last, numbers[order], list(dict.fromkeys(labels)))


def _depths(parents: list[int]) -> list[int]:
    depths = [0] * len(parents)
    for v in range(1, len(parents)):
        depths[v] = depths[parents[v]] + 1
    return depths
