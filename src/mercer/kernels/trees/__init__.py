"""Trees: what one is, kernels on them, and the compiled code that compares them."""

from mercer.kernels.trees.tree import Tree, as_tree

__all__ = ["Tree", "as_tree"]
