"""Kernels on strings, sequences of anything, and documents."""
