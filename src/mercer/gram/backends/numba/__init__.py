"""The CPU backend: BLAS and compiled code."""
