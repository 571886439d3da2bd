r"""The Fourier side: spectral densities of kernels, what norms charge for a wave, spectra of functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mercer.certify.bochner import density
from mercer.certify.fourier import fourier
from mercer.errors import InputError
from mercer.plots import style
from mercer.plots.style import Axes, Display

#: what can be shown, and how the axis is called
_OF_KERNELS = {"density": "v(ω)", "cost": "1/v(ω), relative to the cheapest"}
_OF_FUNCTIONS = {"amplitude": "|f̂(ω)|", "phase": "phase of f̂(ω)", "power": "|f̂(ω)|²"}
_PHASE_FROM = 0.02  # the part of the largest amplitude from which on a phase means something
_DEAREST = 1e12  # times the cheapest frequency, up to which costs are drawn


@dataclass
class FourierDisplay(Display):
    """Curves over the frequency ω, one for each kernel or function.

    Parameters
    ----------
    omega : (points,)
    values : (curves, points)
    names : of the kernels or functions
    shown : "density", "cost", "amplitude", "phase" or "power"
    negative : (curves,) the least value of each density where it is negative by more than its error, else NaN
    """

    omega: np.ndarray
    values: np.ndarray
    names: tuple[str, ...]
    shown: str = "density"
    negative: np.ndarray | None = None

    @classmethod
    def from_kernels(
        cls,
        *kernels: Any,
        shown: str = "density",
        limits: tuple[float, float] = (0.0, 10.0),
        points: int = 401,
        dim: int = 1,
        names: Sequence[str] | None = None,
        ax: Axes = None,
    ) -> Self:
        """The display of kernels φ(x - x'), or of functions φ(r): v(ω), or what their norm charges.

        ``shown`` is "density" or "cost", 1/v(ω), the factor of |f̂(ω)|² in ‖f‖². A density below zero is
        filled: no kernel has one.

        >>> from mercer import BallIndicator, Gaussian
        >>> display = FourierDisplay.from_kernels(Gaussian(1.0), BallIndicator(), points=11)
        >>> display.negative.round(3)
        array([   nan, -0.153])
        """
        if len(kernels) == 1 and isinstance(kernels[0], list | tuple):
            kernels = tuple(kernels[0])
        omega, shown = _frequencies(limits, points), _choice(shown, _OF_KERNELS)
        densities = [density(kernel, dim) for kernel in kernels]
        if not densities:
            raise InputError("pass kernels of x - x', such as Gaussian(sigma=1.0), got none")
        v = np.array([d(omega) for d in densities], dtype=np.float64)
        error = np.array([d.error(omega) for d in densities])
        below = np.where(v < -2 * error, v, np.inf).min(axis=1)
        titles = _titles(names, [getattr(kernel, "__name__", None) or repr(kernel) for kernel in kernels])
        if shown == "cost":
            with np.errstate(divide="ignore", invalid="ignore"):
                v = np.where(v > 0, np.nanmax(v, axis=1, keepdims=True) / v, np.inf)
        return cls(omega, v, titles, shown, np.where(np.isfinite(below), below, np.nan)).plot(ax)

    @classmethod
    def from_function(
        cls,
        function: Callable[[np.ndarray], Any],
        interval: tuple[float, float],
        *,
        shown: str = "amplitude",
        limits: tuple[float, float] = (0.0, 30.0),
        points: int = 1201,
        name: str = "f",
        ax: Axes = None,
    ) -> Self:
        """The display of a function on an interval: "amplitude", "phase" or "power" of its Fourier transform.

        The phase is left out where the amplitude is below a fiftieth of the largest.

        >>> display = FourierDisplay.from_function(lambda x: np.sin(10 * x), (-5.0, 5.0))
        >>> display.peaks().round(1)
        array([10.])
        """
        omega, shown = _frequencies(limits, points), _choice(shown, _OF_FUNCTIONS)
        transform = fourier(function, interval)
        values = getattr(transform, shown)(omega)
        if shown == "phase":
            amplitude = transform.amplitude(omega)
            values = np.where(amplitude >= _PHASE_FROM * amplitude.max(), values, np.nan)
        return cls(omega, values[None], (name,), shown).plot(ax)

    def peaks(self, share: float = 0.3) -> np.ndarray:
        """The frequencies of the peaks of the first curve that are at least this share of its highest."""
        values = np.nan_to_num(np.concatenate([[-np.inf], self.values[0], [-np.inf]]), nan=-np.inf)
        is_peak = (values[1:-1] >= values[:-2]) & (values[1:-1] > values[2:])
        return self.omega[is_peak & (values[1:-1] >= share * values.max())]

    def _draw(self, ax: Axes) -> None:
        for i, (row, name) in enumerate(zip(self.values, self.names, strict=True)):
            drawn = np.where(row <= _DEAREST, row, np.nan) if self.shown == "cost" else row
            label = style.short(style.brief(name), 40)
            if self.shown == "phase":
                ax.plot(self.omega, drawn, ".", color=style.colour(i), markersize=3, label=label)
            else:
                ax.plot(self.omega, drawn, color=style.colour(i), linewidth=1.6, label=label)
            if self.shown == "density" and (row < 0).any():
                ax.fill_between(
                    self.omega, row, 0, where=row < 0, color=style.colour(i), alpha=0.35, linewidth=0
                )
        if self.shown == "cost":
            ax.set_yscale("log")
        elif self.shown == "phase":
            ax.set_yticks([-np.pi, -np.pi / 2, 0, np.pi / 2, np.pi], ["-π", "-π/2", "0", "π/2", "π"])
        else:
            ax.axhline(0.0, color=style.ink(), linewidth=0.8)
        label = {**_OF_KERNELS, **_OF_FUNCTIONS}[self.shown]
        ax.set(xlabel="frequency ω", ylabel=label, xlim=(self.omega[0], self.omega[-1]))
        style.tidy(ax)
        if len(self.names) > 1:
            style.legend_above(ax)

    def describe(self) -> str:
        where = f"frequencies from {self.omega[0]:g} to {self.omega[-1]:g}"
        named = ", ".join(style.brief(name) for name in self.names)
        if self.shown == "cost":
            return f"What a wave costs in the norm of {named}, for {where}, relative to the cheapest."
        if self.shown != "density":
            tops = ", ".join(f"{peak:.3g}" for peak in self.peaks()[:5])
            peaks = f" Its peaks are at {tops}." if tops and self.shown != "phase" else ""
            what = {"amplitude": "Amplitudes", "phase": "Phases", "power": "Powers"}[self.shown]
            return f"{what} of the Fourier transform of {named}, for {where}.{peaks}"
        text = f"Spectral densities of {named}, for {where}."
        least = np.full(len(self.names), np.nan) if self.negative is None else self.negative
        for name, value in zip(self.names, least, strict=True):
            if np.isfinite(value):
                text += f" That of {style.brief(name)} falls to {value:.3g}: it is no kernel (Bochner)."
        return text


def _frequencies(limits: tuple[float, float], points: int) -> np.ndarray:
    low, high = float(limits[0]), float(limits[1])
    if not low < high:
        raise InputError(f"limits must be two growing frequencies, got {limits!r}: pass (0.0, 10.0)")
    return np.linspace(low, high, points)


def _choice(shown: str, allowed: dict[str, str]) -> str:
    if shown not in allowed:
        raise InputError(f"shown must be one of {', '.join(map(repr, allowed))}, got {shown!r}")
    return shown


def _titles(names: Sequence[str] | None, formulas: list[str]) -> tuple[str, ...]:
    if names is None:
        return tuple(formulas)
    if len(names) != len(formulas):
        raise InputError(f"names must be one per kernel ({len(formulas)}), got {len(names)}")
    return tuple(str(name) for name in names)
