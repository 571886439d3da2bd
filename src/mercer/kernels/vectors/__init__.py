"""Kernels on vectors that are a formula of coordinates, one file per family."""
