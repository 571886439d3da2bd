r"""Kernels on trees: complete subtrees, subset trees and partial trees in common, larger ones weighted down.

Each counts fragments of a larger family. Of the sentence (S (NP (D the) (N dog)) (VP bites)),

- a *subtree* is a node with all that is below it: (NP (D the) (N dog));
- a *subset tree* may stop anywhere, but a node keeps all of its children or none: (NP D (N dog));
- a *partial tree* may leave out children as well: (NP N), (S (NP D)).

Vishwanathan and Smola, Fast kernels for string and tree matching, NIPS 15 (2002); Collins and Duffy,
Convolution kernels for natural language, NIPS 14 (2001); Moschitti, Efficient convolution kernels for
dependency and constituent syntactic trees, ECML (2006); Croce, Moschitti and Basili, Structured lexical
similarity via convolution kernels on dependency trees, EMNLP (2011).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from mercer.data import points as data
from mercer.data.types import Objects, Points, Weights
from mercer.errors import InputError, MemoryBudgetError
from mercer.kernels.base import Kernel
from mercer.kernels.parameters import choice, fixed, positive
from mercer.kernels.structured import FeatureKernel, ObjectKernel, Parts
from mercer.kernels.trees.matching import Keyed, matching_nodes, number_nodes, subtree_sizes
from mercer.kernels.trees.tree import encode_trees
from mercer.runtime.config import format_bytes


class SubtreeKernel(FeatureKernel):
    r"""k(T, T') = Σₛ λ^|s| nₛ(T) nₛ(T'), nₛ(T) the number of nodes of T at which the subtree s hangs.

    s runs over complete subtrees, leaves among them, and |s| is its number of nodes; λ is ``decay``. Equal
    subtrees are found by comparing them in full, from the leaves up, in one pass over all trees.

    >>> SubtreeKernel()(["(S (NP dog) (VP bites))"], ["(S (NP dog) (VP barks))", "(NP dog)"])
    array([[2., 2.]])

    The leaf dog, and (NP dog).
    """

    objects = "trees"
    lemma = "the inner product of weighted counts of subtrees"
    decay: float = positive(1.0)

    def features(self, X: Objects) -> sparse.csr_array:  # (n, subtrees)
        trees = encode_trees(X)
        numbers = np.empty_like(trees.labels)
        n_subtrees = number_nodes(trees.first, trees.last, trees.labels, numbers, numbers)
        sizes = np.empty(n_subtrees)
        sizes[numbers] = subtree_sizes(trees.first, trees.last)
        with np.errstate(over="ignore"):  # refused where it matters, in a message of ours
            weights = np.sqrt(float(self.decay)) ** sizes
        if not np.isfinite(weights).all():
            raise InputError(f"weights of {sizes.max():.0f} nodes overflow in {self!r}: pass a smaller decay")
        table = sparse.csr_array(
            (weights[numbers], (trees.owners(), numbers)), shape=(len(trees), n_subtrees)
        )
        table.sum_duplicates()
        return table


class _NodePairs(ObjectKernel, abstract=True):
    """A sum over pairs of matching nodes: ``compare`` is all a subclass defines beside ``encode``."""

    objects = "trees"

    def compare(self, X: Keyed, Y: Keyed, same: int) -> tuple[np.ndarray, int]:
        """The matrix and 0; or how many values would have to be kept at a time, where they are too many."""
        raise NotImplementedError

    def pairs(self, X: Keyed, Y: Keyed | None) -> np.ndarray:
        return self._checked(X, X, 1) if Y is None else self._checked(X, Y, 0)

    def self_pairs(self, X: Keyed) -> np.ndarray:
        return self._checked(X, X, 2)[:, 0]

    def _checked(self, X: Keyed, Y: Keyed, same: int) -> np.ndarray:
        K, wanted = self.compare(X, Y, same)
        if wanted:
            raise MemoryBudgetError(
                f"{type(self).__name__} needs {format_bytes(8 * wanted)} for two large trees with many nodes "
                f"that match, more than the {format_bytes(8 * X.room)} a thread may fill: cut trees into "
                "smaller ones, use SubtreeKernel, or raise the budget with mercer.config(memory=…)"
            )
        if not np.isfinite(K).all():
            raise InputError(f"{self!r} overflows on large trees: pass a smaller decay")
        return K


class SubsetTree(_NodePairs):
    r"""k(T, T') = Σ_f λ^|f| n_f(T) n_f(T'), f the fragments whose nodes keep all of their children or none.

    Collins and Duffy's kernel. |f| is the number of nodes of f that have children, at least one; λ is
    ``decay``. It is a sum of Δ(a, b) over pairs of nodes with the same production (label, and labels of
    the children in order), where Δ(a, b) = λ Πⱼ (1 + Δ(aⱼ, bⱼ)).

    A node without children, bracketed or not, has no production: it is part of the fragments above it, and
    with ``leaves=True`` also a fragment of its own, of weight λ.

    >>> SubsetTree(decay=1.0)(["(S (NP dog) (VP bites))"], ["(S (NP dog) (VP barks))", "(NP dog)"])
    array([[3., 1.]])
    >>> SubsetTree(decay=1.0, leaves=True)(["(NP dog)"])
    array([[2.]])

    (NP dog), (S NP VP) and (S (NP dog) VP) are in the first two.
    """

    lemma = "the inner product of weighted counts of fragments"
    decay: float = positive(0.4)
    leaves: bool = choice(False, (False, True))

    def encode(self, X: Objects) -> Keyed:
        trees = encode_trees(X)
        productions = np.empty_like(trees.labels)
        number_nodes(trees.first, trees.last, trees.labels, trees.labels, productions)
        if not self.leaves:
            productions[trees.first == trees.last] = -1
        return Keyed.of(trees, productions)

    def compare(self, X: Keyed, Y: Keyed, same: int) -> tuple[np.ndarray, int]:
        return matching_nodes(*X.against(Y, same), False, float(self.decay), 1.0)


class PartialTree(_NodePairs):
    r"""k(T, T') = Σ_f n_f(T) n_f(T'), f the trees to be found in T when nodes may leave out children.

    Moschitti's kernel. A place where f is found counts √μ for each node of f, times λ for each leaf of f
    and λ^d for each other node, d = 1 + the last minus the first position among the children used: μ is
    ``decay`` and weighs down large fragments, λ is ``gap`` and weighs down long leaps. It is a sum of
    Δ(a, b) over pairs of nodes with the same label, where

        Δ(a, b) = μ (λ² + Σ_{J, J'} λ^(d(J) + d(J')) Πᵢ Δ(a_{Jᵢ}, b_{J'ᵢ})),

    J and J' equally long sequences of children of a and of b, in their order.

    ``labels``, a kernel on labels, compares these by degrees: Δ is multiplied by labels(l(a), l(b)) instead
    of being 0 where they differ. Its values for all labels that occur are computed once, so it may be slow;
    but then every node is compared with every other.

    >>> trees = ["(NP (D the) (N dog))", "(NP (D the) (J big) (N dog))"]
    >>> PartialTree(decay=1.0, gap=1.0)(trees)
    array([[15., 15.],
           [15., 36.]])
    >>> PartialTree(decay=1.0, gap=0.5)(trees).round(3)
    array([[1.537, 1.534],
           [1.534, 2.186]])
    """

    decay: float = positive(0.4)
    gap: float = positive(0.4)
    labels: Any = fixed(
        None,
        "a kernel on labels",
        lambda v: isinstance(v, Kernel),
        "an object such as FromFunction(similarity)",
        optional=True,
    )

    @property
    def closure(self) -> str:  # type: ignore[override]
        if self.labels is None:
            return "the inner product of weighted counts of partial trees"
        return "a sum, over shapes of partial trees, of products of a kernel of labels over their nodes"

    def encode(self, X: Objects) -> Keyed:
        trees = encode_trees(X)
        if self.labels is None:
            return Keyed.of(trees, trees.labels)
        return Keyed.of(trees, np.zeros_like(trees.labels), Parts(self.labels, trees.names))

    def compare(self, X: Keyed, Y: Keyed, same: int) -> tuple[np.ndarray, int]:
        return matching_nodes(*X.against(Y, same), True, float(self.decay), float(self.gap))

    def resolve(self, X: Points, weight: Weights = None) -> Kernel:
        """A kernel of labels that waits for data waits for labels."""
        if self.is_resolved():
            return self
        names = encode_trees(data.as_objects(data.single_column(X))).names
        return PartialTree(self.decay, self.gap, self.labels.resolve(names))
