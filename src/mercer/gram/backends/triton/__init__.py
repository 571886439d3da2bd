"""The Triton backend: the formula, its sums and its products with vectors in one pass on a CUDA device."""
