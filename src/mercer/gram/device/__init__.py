"""What lives on a device: points, kernel values, factors, and products with them, as tensors of PyTorch.

A solver is given these in the place of what it has on the CPU, under the same names: rows of K(X, Z) for
`mercer.gram.blocks.RowBlocks`, a basis for `mercer.solvers.landmarks.basis.Basis`, a factor for LAPACK's.
What goes to the solver and back are numbers for each landmark, for each target; rows and matrices stay.
"""

from __future__ import annotations

from mercer.runtime.config import settings

__all__ = ["is_used"]


def is_used() -> bool:
    """Whether solvers are to live on ``config(device=…)``. Apple's devices have no float64, which factors
    need.

    >>> from mercer import config
    >>> with config(device="cuda"):
    ...     is_used()
    True
    """
    device = settings().device
    return device != "cpu" and not device.startswith("mps")
