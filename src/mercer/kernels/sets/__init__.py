"""Kernels on sets and bags, and invariance by sets of variants."""
