"""Is it a kernel? Verdicts with their reasons, spectra, and repair.

``mercer.certify(kernel)`` is a call of this very module: it is what ``certify.certify`` is, so that one name
serves for the function and for what lies beside it.

>>> import mercer
>>> mercer.certify(mercer.Linear()).verdict, mercer.certify.density(mercer.Gaussian()).dim
('proved', 1)
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from mercer.certify.bochner import density
from mercer.certify.certificate import Certificate
from mercer.certify.fourier import fourier
from mercer.certify.invariance import invariance
from mercer.certify.repair import repair
from mercer.certify.schoenberg import largest_dimension
from mercer.certify.verdict import certify
from mercer.data.types import Points
from mercer.kernels.names import KernelLike

__all__ = ["Certificate", "certify", "density", "fourier", "invariance", "largest_dimension", "repair"]


class _Callable(ModuleType):
    """The module, which may be called like the function of its name."""

    def __call__(
        self, kernel: KernelLike, points: Points | None = None, dim: int | None = None
    ) -> Certificate:
        """Is it a kernel? See ``mercer.certify.certify``, which this is."""
        return certify(kernel, points, dim)

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        """It is copied and pickled by its name, like a function."""
        return import_module, (self.__name__,)


sys.modules[__name__].__class__ = _Callable
