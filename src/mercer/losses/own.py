r"""A loss of the user's: whatever it does not state is computed from what it does.

    derivative   central differences of the value
    curvature    central differences of the derivative
    prox         the zero of z − u + t L'(z), by bisection: it lies between u and u − t L'(u) since L' grows
    conjugate    the zero of L'(f) − s, bracketed by doubling and bisected: sup s f − L(f) is there
    domain       the slopes of L far out, inside the true domain

Where only values are known the differences smear a kink over their step; a golden-section search on the
values then finds the place to the last digits, and differences to one side of it see it sharply. A value at
a minimum is exact to second order in the place, which is what certificates need.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mercer.data.types import Reals
from mercer.errors import InputError, InputTypeError
from mercer.losses.base import Loss

_DIFFERENCE_STEP = 6e-6  # about eps^(1/3), which balances rounding and truncation of central differences
_GOLDEN = (np.sqrt(5.0) - 1) / 2
#: The slopes at infinity are those at the first of these places, in units of 1 + |y|, that does not overflow.
_FAR_PLACES = (1e6, 1e4, 300.0, 30.0, 3.0, 0.3, 0.0)

_SECOND_STEP = 1e-4  # about eps^(1/4), which balances the same for second differences
_EPS = float(np.finfo(np.float64).eps)

Function = Callable[[np.ndarray, np.ndarray], Any]

# Far out a convex function may overflow, and such a value loses every comparison.
_quiet = np.errstate(all="ignore")


class OwnLoss(Loss):
    """A convex loss from its value L(y, f) alone, or with more of what it is known to be.

    Parameters
    ----------
    value : function of arrays y and f (n,) that returns L(yᵢ, fᵢ), (n,)
    derivative : likewise L', a subgradient at kinks, optional
    curvature : likewise L'', optional
    smooth : whether L' is continuous; None to look for jumps of the slope around the data

    >>> loss = OwnLoss(lambda y, f: np.abs(y - f) ** 1.5)
    >>> y, f = np.zeros(2), np.array([1.0, 4.0])
    >>> loss.derivative(y, f).round(6)
    array([1.5, 3. ])
    >>> loss.conjugate(y, np.array([1.5])[[0, 0]])  # 1.5 · 1 − 1
    array([0.5, 0.5])
    """

    for_labels = for_targets = True

    def __init__(
        self,
        value: Function,
        derivative: Function | None = None,
        curvature: Function | None = None,
        smooth: bool | None = None,
    ) -> None:
        for what, function in (("value", value), ("derivative", derivative), ("curvature", curvature)):
            if not (callable(function) or (function is None and what != "value")):
                raise InputTypeError(
                    f"the {what} of a loss must be a function of (y, f), got {function!r}: pass one that "
                    "takes two arrays and returns an array"
                )
        self._value = value
        self._derivative = derivative
        self._curvature = curvature
        self._given_smooth = smooth
        self.smooth = bool(smooth)

    def value(self, y: np.ndarray, f: np.ndarray) -> np.ndarray:
        return self._call(self._value, "value", y, f)

    @_quiet
    def derivative(self, y: np.ndarray, f: np.ndarray) -> np.ndarray:
        if self._derivative is not None:
            return self._call(self._derivative, "derivative", y, f)
        h = _DIFFERENCE_STEP * np.maximum(1.0, np.abs(f))
        return _difference(self.value(y, f + h), self.value(y, f - h), h)

    @_quiet
    def curvature(self, y: np.ndarray, f: np.ndarray) -> np.ndarray:
        if self._curvature is not None:
            return self._call(self._curvature, "curvature", y, f)
        # A second difference of values needs a step of eps^(1/4), a difference of derivatives eps^(1/3).
        h = (_DIFFERENCE_STEP if self._derivative is not None else 2e-4) * np.maximum(1.0, np.abs(f))
        return np.maximum(_difference(self.derivative(y, f + h), self.derivative(y, f - h), h), 0.0)

    @_quiet
    def domain(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        ends = []
        for sign in (-1.0, 1.0):
            slope = np.full(np.shape(y), np.nan)
            for far in _FAR_PLACES:
                open_ = ~np.isfinite(slope)
                if not open_.any():
                    break
                slope = np.where(open_, self.derivative(y, sign * far * (1 + np.abs(y))), slope)
            ends.append(np.nan_to_num(slope, nan=0.0, posinf=0.0, neginf=0.0))
        return np.minimum(*ends), np.maximum(*ends)

    @_quiet
    def conjugate(self, y: np.ndarray, s: np.ndarray) -> np.ndarray:
        """Infinite where no f within reach has the slope s."""
        y, s = np.broadcast_arrays(np.asarray(y, dtype=float), s)
        low, found_low = self._march(y, s, -1.0)
        high, found_high = self._march(y, s, 1.0)
        f = self._least(lambda f: self.value(y, f) - s * f, lambda f: self.derivative(y, f) - s, low, high)
        best = s * f - self.value(y, f)
        return np.where(found_low & found_high, best, np.inf)

    @_quiet
    def prox(self, y: np.ndarray, u: np.ndarray, t: Reals) -> np.ndarray:
        slope = t * self.derivative(y, u)
        pad = 2 * _DIFFERENCE_STEP * np.maximum(1.0, np.abs(u)) if self._derivative is None else 0.0
        low, high = np.minimum(u, u - slope) - pad, np.maximum(u, u - slope) + pad
        return self._least(
            lambda z: t * self.value(y, z) + 0.5 * (z - u) ** 2,
            lambda z: t * self.derivative(y, z) + (z - u),
            low,
            high,
        )

    @_quiet
    def prox_slope(self, y: np.ndarray, u: np.ndarray, t: Reals) -> np.ndarray:
        """0 where prox is at a kink, where u may move and prox stays; else 1 / (1 + t L'').

        Slopes and curvatures of each side, from values on that side alone, see a kink as sharp as it is.
        """
        z = self.prox(y, u, t)
        h = _SECOND_STEP * np.maximum(1.0, np.abs(z))
        here, noise = self.value(y, z), 0.0
        slopes, bends = [], []
        for step in (-h, h):
            near, far = self.value(y, z + step), self.value(y, z + 2 * step)
            slopes.append((near - here) / step)
            bends.append((far - near - (near - here)) / step**2)
            noise = np.maximum(noise, 16 * _EPS * (1 + np.abs(near) + np.abs(far)) / h**2)
        bend = np.nan_to_num(np.minimum(*bends), nan=0.0, posinf=1e300)
        bend = np.where(bend > noise, bend, 0.0)
        (left, right), s = slopes, (u - z) / t
        jump = right - left
        is_kink = (jump > 4 * bend * h + 4 * noise * h) & (np.minimum(s - left, right - s) > 1e-3 * jump)
        return np.where(is_kink, 0.0, 1 / (1 + t * bend))

    @_quiet
    def check_targets(self, y: np.ndarray) -> None:
        """Refuse a loss that is not finite, or not convex, near these targets; see whether it is smooth."""
        y = np.unique(y)
        y = y[np.linspace(0, len(y) - 1, min(len(y), 200)).astype(int)][:, None]
        spread = max(float(np.ptp(y)), 1.0)
        # The places are no round numbers: a kink there would lie at the end of an interval and not be seen.
        steps = spread * np.concatenate([[0.0], 0.97312 * np.logspace(-3, 1.5, 19)])
        steps = np.concatenate([-steps[:0:-1], steps])
        grid = np.concatenate([y + steps, np.broadcast_to(1.02713 * steps, (len(y), len(steps)))], axis=1)
        grid = np.sort(grid, axis=1)
        grid = np.sort(np.concatenate([grid, 0.5 * (grid[:, 1:] + grid[:, :-1])], axis=1), axis=1)
        targets = np.broadcast_to(y, grid.shape)
        value = self._on(self.value, targets, grid)
        if np.isnan(value).any():
            i, j = np.argwhere(np.isnan(value))[0]
            raise InputError(
                f"the loss is NaN at y={targets[i, j]:.6g}, f={grid[i, j]:.6g}: "
                "it must be defined for every f"
            )
        self._require_convex(targets, grid, value)
        if self._derivative is not None:
            self._require_derivative(targets, grid, value)
        if self._given_smooth is None:
            self.smooth = not self._has_kink(targets[:, ::2], grid[:, ::2])  # The midpoints are left out.

    def _require_convex(self, y: np.ndarray, grid: np.ndarray, value: np.ndarray) -> None:
        """No value above the chord of its neighbours on the grid."""
        a, m, b = grid[:, :-2], grid[:, 1:-1], grid[:, 2:]
        share = (m - a) / (b - a)
        excess = value[:, 1:-1] - ((1 - share) * value[:, :-2] + share * value[:, 2:])
        finite = np.abs(value[np.isfinite(value)])
        size = np.maximum(np.abs(value[:, 2:]), np.abs(value[:, :-2])) + finite.max(initial=0.0) * 1e-12
        if (bad := excess > 1e-9 * size + 1e-13).any():
            i, j = np.argwhere(bad)[0]
            raise InputError(
                f"the loss is not convex: at y={y[i, j]:.6g} its value at f={m[i, j]:.6g} is above the chord "
                f"between f={a[i, j]:.6g} and f={b[i, j]:.6g}; only convex losses have "
                "a certified minimum: take a convex one"
            )

    def _require_derivative(self, y: np.ndarray, grid: np.ndarray, value: np.ndarray) -> None:
        """The slope of every chord is between the derivatives at its ends."""
        slope = self._on(self.derivative, y, grid)
        left, right, h = slope[:, :-1], slope[:, 1:], np.diff(grid, axis=1)
        chord = np.diff(value, axis=1) / h
        rounding = 16 * _EPS * (1 + np.abs(value[:, 1:]) + np.abs(value[:, :-1])) / h
        allowed = rounding + 1e-5 * (np.abs(left) + np.abs(right) + np.abs(chord))
        known = np.isfinite(allowed) & (h > 1e-9 * np.ptp(grid))
        bad = known & ((chord < left - allowed) | (chord > right + allowed)) | np.isnan(slope[:, 1:])
        if bad.any():
            i, j = np.argwhere(bad)[0]
            raise InputError(
                f"the derivative does not fit the loss: at y={y[i, j]:.6g}, from f={grid[i, j]:.6g} to "
                f"f={grid[i, j + 1]:.6g}, the loss has the slope {chord[i, j]:.6g} and the derivative goes "
                f"from {left[i, j]:.6g} to {right[i, j]:.6g}; pass the derivative in f of this loss, or the "
                "loss alone"
            )

    @_quiet
    def _has_kink(self, y: np.ndarray, grid: np.ndarray) -> bool:
        """Whether the slope jumps somewhere between points of the grid.

        Bisects every step towards the larger change of slope, down to a width of 1e-4: a continuous slope
        then changes by a small part of what it did over the step, or by little compared with itself.
        """
        y, low, high = y[:, 1:].ravel(), grid[:, :-1].ravel(), grid[:, 1:].ravel()
        wide = high - low > 9e-4
        y, low, high = y[wide], low[wide], high[wide]
        below, above = self.derivative(y, low), self.derivative(y, high)
        jump = above - below
        near = np.abs(0.5 * (low + high) - y) <= 2.0
        size = float(np.abs(np.concatenate([below, above])[np.tile(near, 2)]).mean()) if near.any() else 0.0
        for _ in range(20):
            middle = 0.5 * (low + high)
            slope = self.derivative(y, middle)
            left = slope - below > above - slope
            open_ = high - low > 1e-4 * np.maximum(1.0, np.abs(middle))
            low, high = np.where(left | ~open_, low, middle), np.where(left & open_, middle, high)
            below, above = np.where(left | ~open_, below, slope), np.where(left & open_, slope, above)
        left_over = above - below
        local = np.maximum(size, np.abs(above) + np.abs(below))
        return bool(np.any((left_over > 0.2 * jump) & (left_over > 1e-3 * local)))

    # --- one unknown per point ---------------------------------------------------------------------------

    def _march(self, y: np.ndarray, s: np.ndarray, sign: float) -> tuple[np.ndarray, np.ndarray]:
        """The first f = ±(1 + |y|) 2^k where the slope has passed s, and whether there is one."""
        f = sign * (1 + np.abs(y))
        passed = np.zeros(np.shape(f), bool)
        for _ in range(60):
            slope = self.derivative(y, f)
            passed = ~np.isnan(slope) & (sign * (slope - s) >= -1e-9 * np.abs(s))
            if passed.all():
                break
            f = np.where(passed, f, 2 * f)
        return f, passed

    def _least(self, value: Any, slope: Any, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Where a convex function is least between low and high, entry by entry."""
        a, b = low, high
        for _ in range(80):
            middle = 0.5 * (a + b)
            down = slope(middle) < 0
            a, b = np.where(down, middle, a), np.where(down, b, middle)
            if np.all(b - a <= 4e-16 * np.maximum(1.0, np.abs(middle))):
                break
        at = 0.5 * (a + b)
        if self._derivative is not None:
            return at
        # Differences smear a kink over ±h, so that values decide there.
        reach = 4 * _DIFFERENCE_STEP * np.maximum(1.0, np.abs(at))
        a, b = np.maximum(low, at - reach), np.minimum(high, at + reach)
        for _ in range(60):
            left, right = b - _GOLDEN * (b - a), a + _GOLDEN * (b - a)
            down = value(left) > value(right)
            a, b = np.where(down, left, a), np.where(down, b, right)
        again = 0.5 * (a + b)
        here, there = value(at), value(again)
        return np.where(there < here - 1e-15 * np.maximum(1.0, np.abs(here)), again, at)

    # --- calls of the user's functions -------------------------------------------------------------------

    @staticmethod
    def _on(function: Function, y: np.ndarray, f: np.ndarray) -> np.ndarray:
        return np.asarray(function(y.ravel(), f.ravel())).reshape(f.shape)

    def _call(self, function: Function, what: str, y: np.ndarray, f: np.ndarray) -> np.ndarray:
        # The function may write into its arguments.
        y, f = np.array(y, dtype=float), np.array(f, dtype=float)
        try:
            with np.errstate(all="ignore"):
                result = np.asarray(function(y, f), dtype=float)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"the {what} of the loss failed on arrays y and f of shape {f.shape} ({error}): it must "
                "take two arrays and return one (np.where, np.maximum, not if and max)"
            ) from error
        if result.shape != f.shape:
            raise InputError(
                f"the {what} of the loss must return one number per point, shape {f.shape}, got shape "
                f"{result.shape}: write it for arrays (np.where, np.maximum, not if and max)"
            )
        return result

    def __repr__(self) -> str:
        return f"OwnLoss({getattr(self._value, '__qualname__', self._value)!s})"


def _difference(above: np.ndarray, below: np.ndarray, h: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        return (above - below) / (2 * h)
