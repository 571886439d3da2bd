"""Gram matrices, lazily: one tile loop, a row cache, backends."""

from mercer.gram.gram import Gram

__all__ = ["Gram"]
