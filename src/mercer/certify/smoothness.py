r"""What the norm of a kernel's space penalises, frequency by frequency.

For a kernel φ(x - x') on ℝ^d with the spectral density v,

    ‖f‖² = (2π)^{-d/2} ∫ |f̂(ω)|² / v(ω) dω,      f̂(ω) = (2π)^{-d/2} ∫ f(x) e^{-i⟨ω, x⟩} dx :

a wave of frequency ω costs 1/v(ω). For k = exp(-|x - x'|) on the line 1/v = √(π/2) (1 + ω²), so

    ‖f‖² = ½ ∫ f² + f'² dx.

(A constant 1/π in the place of ½, as some notes have it, belongs to the kernel (π/2) exp(-|x - x'|).)

>>> from mercer import Laplacian
>>> print(smoothness(Laplacian(gamma=1.0)))
Laplacian(gamma=1.0, norm=1): ‖f‖² = (2π)^(-1/2) ∫ |f̂(ω)|² / v(ω) dω
v(ω) falls like ω^-2: a space of functions with 1 square-integrable derivative
a wave of frequency ω costs, compared with one of frequency 0:
  ω = 0.5  ×1.25
  ω = 1  ×2
  ω = 2  ×5
  ω = 4  ×17
  ω = 8  ×65
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mercer.certify.bochner import Density, density
from mercer.data.sparse import dense
from mercer.data.types import Points
from mercer.errors import InputError
from mercer.expansion import Expansion
from mercer.gram import Gram
from mercer.kernels.base import Kernel
from mercer.kernels.names import as_kernel


@dataclass(frozen=True)
class Smoothness:
    """The price of every frequency in a kernel's norm; print it to read it."""

    kernel: Kernel
    #: v(ω)
    density: Density

    def penalty(self, omega: ArrayLike) -> Any:
        """1/v(ω)."""
        with np.errstate(divide="ignore"):
            result = 1 / np.asarray(self.density(omega))
        return float(result) if np.ndim(result) == 0 else result

    @property
    def decay(self) -> float:
        """p such that v(ω) falls like ω^{-p}; ``inf`` if faster than all powers, nan if neither."""
        omega = self.scale * np.geomspace(30, 240, 7)
        v, error = np.asarray(self.density(omega)), np.asarray(self.density.error(omega))
        if (v < 10 * error).any() or (np.diff(v) > 0).any():
            return np.nan
        with np.errstate(divide="ignore", invalid="ignore"):
            slopes = -np.diff(np.log(v)) / np.log(2.0**0.5)
        if v[-1] == 0 or slopes[-1] > 1.5 * slopes[0]:
            return np.inf
        return float(slopes[-1]) if abs(slopes[-1] - slopes[0]) < max(0.2, 0.05 * slopes[0]) else np.nan

    @property
    def scale(self) -> float:
        """The typical frequency: half of ∫v lies below it."""
        omega = np.geomspace(1e-6, 1e6, 2401 if self.density.is_exact else 121)
        # A numerical transform is good for low frequencies only.
        known = omega[: None if self.density.is_exact else 91]
        mass = np.cumsum(np.maximum(np.nan_to_num(np.asarray(self.density(known)), posinf=0.0), 0.0) * known)
        return float(known[int(np.argmax(mass >= mass[-1] / 2))])

    def __str__(self) -> str:
        d, scale = self.density.dim, float(f"{self.scale:.1g}")
        lines = [f"{self.kernel!r}: ‖f‖² = (2π)^(-{d}/2) ∫ |f̂(ω)|² / v(ω) dω", self._order()]
        lowest = float(self.density(0.0))
        if np.isfinite(lowest):
            lines.append("a wave of frequency ω costs, compared with one of frequency 0:")
        else:
            lowest = float(self.density(scale))
            lines.append(f"a wave of frequency ω costs, compared with one of frequency {scale:g}:")
        for omega in scale * 2.0 ** np.arange(-1, 4):
            v = float(self.density(omega))
            lines.append(f"  ω = {omega:g}  " + (f"×{lowest / v:.4g}" if v > 0 else "is not in the space"))
        return "\n".join(lines)

    def _order(self) -> str:
        p = self.decay
        if np.isnan(p):
            return "v(ω) has zeros or settles on no power: those frequencies cost the most"
        if p == np.inf:
            return "v(ω) falls faster than every power: all derivatives exist, and sharp details cost dearly"
        p = round(p * 4) / 4
        s = p / 2
        which = "1 square-integrable derivative" if s == 1 else f"{s:g} square-integrable derivatives"
        return f"v(ω) falls like ω^-{p:g}: a space of functions with {which}"


@dataclass(frozen=True)
class FunctionInSpace:
    """A learned function f = Σᵢ αᵢ k(xᵢ, ·) + b in its space; its intercept is no part of it."""

    function: Expansion
    #: ‖f‖
    norm: float
    #: the largest |f(x) - b| / (‖f‖ √k(x, x)) over the points looked at: at most 1 (Cauchy-Schwarz)
    share: float

    def spectrum(self, omega: ArrayLike) -> np.ndarray:  # (m,) or (m, d) to (m,)
        """|f̂(ω)|² / v(ω) = v(ω) |Σᵢ αᵢ e^{-i⟨ω, xᵢ⟩}|²: its integral, times (2π)^{-d/2}, is ‖f‖²."""
        if not self.function.kernel.domain.is_vectors:
            raise InputError(
                f"frequencies are of functions of vectors, and {self.function.kernel!r} takes others"
            )
        anchors = np.asarray(dense(self.function.anchors), dtype=float)
        d = anchors.shape[1]
        v = density(self.function.kernel, d)
        rows = np.asarray(omega, dtype=float)
        rows = rows.reshape(-1, 1) if d == 1 else rows
        phases = rows @ anchors.T
        waves = np.cos(phases) @ self.function.coef, np.sin(phases) @ self.function.coef
        return np.asarray(v.at(rows) * (waves[0] ** 2 + waves[1] ** 2))

    def __str__(self) -> str:
        return (
            f"‖f‖ = {self.norm:.6g}; |f(x) - b| ≤ ‖f‖ √k(x, x) = {self.norm:.6g} √k(x, x), "
            f"of which f uses up to {100 * self.share:.3g} %"
        )


def smoothness(what: Any, dim: int | None = None, points: Points | None = None) -> Any:
    """What a kernel's norm penalises; of a learned function, its norm, its spectrum, its share of the bound.

    Parameters
    ----------
    what : a kernel, gives a ``Smoothness``; an Expansion or a fitted estimator, gives a ``FunctionInSpace``
    dim : of a kernel, the number of columns of the points; 1 when not given
    points : of a learned function, where |f(x)| is compared with its bound; its anchors when not given

    >>> from mercer import Gaussian
    >>> f = Expansion(Gaussian(sigma=1.0), [[0.0], [1.0]], [1.0, -1.0])
    >>> print(smoothness(f))
    ‖f‖ = 0.887096; |f(x) - b| ≤ ‖f‖ √k(x, x) = 0.887096 √k(x, x), of which f uses up to 44.4 %
    """
    if hasattr(what, "fit") and not hasattr(what, "expansion_"):
        raise InputError(
            f"{what!r} has learned no function yet, or none in the space of its kernel: call fit"
        )
    what = getattr(what, "expansion_", what)
    if isinstance(what, Expansion):
        return _learned(what, points)
    kernel = as_kernel(what)
    return Smoothness(kernel, density(kernel, 1 if dim is None else dim))


def _learned(f: Expansion, points: Points | None) -> FunctionInSpace:
    if f.coef.ndim != 1:
        raise InputError(
            f"the expansion holds {f.coef.shape[1]} functions: pass one, "
            "Expansion(f.kernel, f.anchors, f.coef[:, 0])"
        )
    X = f.anchors if points is None else points
    norm = float(f.norm())
    limit = norm * np.sqrt(np.maximum(Gram(f.kernel, X, cache=0).diag(), 0.0))
    values = abs(f(X) - f.intercept)
    share = np.divide(values, limit, out=np.zeros(len(values)), where=limit > 0)
    return FunctionInSpace(f, norm, float(share.max()))
