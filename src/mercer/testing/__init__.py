"""For anybody who writes kernels: the battery that ours pass, and kernels and points to try it on."""

from mercer.testing.battery import check_kernel, is_claimed
from mercer.testing.examples import example_kernels, example_points, missing_examples, own_kernels
from mercer.testing.scalar import pair_value

__all__ = [
    "check_kernel",
    "example_kernels",
    "example_points",
    "is_claimed",
    "missing_examples",
    "own_kernels",
    "pair_value",
]
