r"""What kernels look like: k(x, 0) along a line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mercer.errors import InputError
from mercer.kernels.base import Kernel
from mercer.plots import style
from mercer.plots.style import Axes, Display


@dataclass
class KernelShapeDisplay(Display):
    """The values k(x, c) of one or several kernels, for numbers x.

    Parameters
    ----------
    x : (points,)
    values : (kernels, points)
    names : of the kernels
    center : c
    """

    x: np.ndarray
    values: np.ndarray
    names: tuple[str, ...]
    center: float = 0.0

    @classmethod
    def from_kernels(
        cls,
        *kernels: Any,
        center: float = 0.0,
        limits: tuple[float, float] = (-3.0, 3.0),
        points: int = 601,
        names: Any = None,
        ax: Axes = None,
    ) -> Self:
        """The display of kernels on vectors, one after the other or in a list, here of one coordinate.

        ``names`` replace their formulas.

        >>> from mercer import Gaussian, Linear
        >>> display = KernelShapeDisplay.from_kernels(Gaussian(sigma=1.0), Linear(), center=1.0, points=3)
        >>> display.x, display.values.round(3)
        (array([-3.,  0.,  3.]), array([[ 0.   ,  0.607,  0.135],
               [-3.   ,  0.   ,  3.   ]]))
        """
        if len(kernels) == 1 and isinstance(kernels[0], list | tuple):
            kernels = tuple(kernels[0])
        if not kernels or not all(isinstance(kernel, Kernel) for kernel in kernels):
            raise InputError(f"pass kernels on vectors, such as Gaussian(sigma=1.0), got {kernels!r}")
        waiting = [kernel for kernel in kernels if not kernel.is_resolved()]
        if waiting:
            raise InputError(
                f"{waiting[0]!r} waits for data: pass numbers for its parameters, or kernel.resolve(X)"
            )
        if names is not None and len(names) != len(kernels):
            raise InputError(f"names must be one per kernel ({len(kernels)}), got {len(names)}")
        low, high = float(limits[0]), float(limits[1])
        if not low < high:
            raise InputError(f"limits must be two growing numbers, got {limits!r}: pass (-3.0, 3.0)")
        x = np.linspace(low, high, points)
        values = np.array([kernel(x[:, None], np.array([[float(center)]]))[:, 0] for kernel in kernels])
        titles = tuple(str(name) for name in names) if names is not None else tuple(map(repr, kernels))
        return cls(x, values, titles, float(center)).plot(ax)

    def _draw(self, ax: Axes) -> None:
        dashes = ("-", "--", "-.", ":")
        for i, (row, name) in enumerate(zip(self.values, self.names, strict=True)):
            line = dashes[i // 4 % 4] if len(self.names) > 4 else "-"
            ax.plot(self.x, row, line, color=style.colour(i), linewidth=1.6, label=style.short(name, 40))
        ax.axvline(self.center, color=style.faint(), linewidth=0.8)
        ax.set(xlabel="x", ylabel=f"k(x, {self.center:g})", xlim=(self.x[0], self.x[-1]))
        style.tidy(ax)
        style.legend_above(ax)

    def describe(self) -> str:
        where = f"for x from {self.x[0]:g} to {self.x[-1]:g}"
        return f"Values k(x, {self.center:g}) {where} of {', '.join(self.names)}."
