r"""Quadratic programs whose rows of K are on a device.

Of one problem the vectors of all points are there too, γ, its bounds, c and the values Kγ, and each round
asks three things of them: the variables that violate most (``select``), by the largest of integers, with no
sort of slopes; K of the working set, as one product, which comes to the host, where pairs and Newton's steps
solve the small problem; and Kγ after some variables moved, whose rows are computed there and added up in
float64. What comes to the host is the working set, its K and its slopes, and the objective.

Of several problems, which are smaller, vectors are on the host (``RowsIterate``): each step on a device takes
its time to be started, however short the vectors, while here all threads choose working sets at once. K of
these and sums of rows come from the device.

Values are counted from the rows of what moved, as on the host; and at the end they are read, and measured, by
the same code.
"""

from __future__ import annotations

from math import gcd
from typing import Any

import numpy as np

from mercer.solvers.matrix import DeviceMatrix, Exact
from mercer.solvers.svm.program import Iterate, QuadraticProgram
from mercer.solvers.svm.rows import KeptRows
from mercer.solvers.svm.working_set import BINS, shared

_AT_ONCE = 2**26  # numbers of rows that are added up at a time: half a gigabyte in float64
#: The first working sets of small problems have so many variables; of large ones, one of so many variables.
_FIRST_OF_SMALL, _VARIABLES_OF_ONE = 1024, 16
_LAST = 2**62  # what no variable comes after
_GOLDEN = 0.6180339887498949


class DeviceStore(KeptRows):
    """Rows that are kept on the device."""

    first = 2**62  # Memory that is there costs nothing to fill.

    def _room(self, width: int) -> Any:
        return self.K.empty(self.slots, width)

    def close(self) -> None:
        self.values = None

    def _is_all(self, points: np.ndarray, segments: np.ndarray | None) -> bool:
        return False  # A symmetric half saves nothing that would be noticed.


class RowsIterate(Iterate):
    """A program on its way whose vectors are on the host, with rows of K on a device."""

    first = 2048  # A large problem takes fewer rounds so, and K of a working set is no work for a device.

    def __init__(
        self,
        program: QuadraticProgram,
        bounds: np.ndarray,
        diag: np.ndarray,
        sizes: np.ndarray,
        exact: Exact | None,
        device: DeviceMatrix,
    ) -> None:
        self.device, self.torch = device, device.torch
        super().__init__(program, bounds, diag, sizes, exact)
        self.first = min(self.first, max(_FIRST_OF_SMALL, self.size // _VARIABLES_OF_ONE))

    def choose(self, most: int) -> np.ndarray:
        """The next working set, one group after the other; sets ``worst``."""
        chosen = super().choose(most)
        return chosen[np.argsort(chosen >= self.program.split, kind="stable")]

    def computed(self, K: Any, chosen: np.ndarray) -> np.ndarray:  # (q, q)
        """K of a working set."""
        return self.device.block(self.points[self.program.position[chosen]])

    def add(self, rows: KeptRows, points: np.ndarray, coef: np.ndarray, threads: int) -> None:
        """values += Σᵣ coefᵣ K[pointᵣ, ·], for rows that are there."""
        at = 0
        for (start, stop), total in zip(self.ranges, self._sums(rows, points, coef), strict=True):
            self.values[at : at + stop - start] += total.cpu().numpy()
            at += stop - start

    def _sums(self, rows: KeptRows, points: np.ndarray, coef: np.ndarray) -> list[Any]:
        """The sum of rows in each range of points, on the device and in float64."""
        slots, factors = self.device.tensor(rows.places(points)), self.device.tensor(coef)
        totals = []
        for start, stop in self.ranges:
            total = self.torch.zeros(stop - start, dtype=self.torch.float64, device=factors.device)
            step = max(1, _AT_ONCE // max(stop - start, 1))
            for first in range(0, len(points), step):
                part = slice(first, first + step)
                total += factors[part] @ rows.values[:, start:stop][slots[part]].to(self.torch.float64)
            totals.append(total)
        return totals


class DeviceIterate(RowsIterate):
    """A program on its way, on a device; γ is on the host as well, where it moves."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        device, p = self.device, self.program
        self._c, self._lo, self._hi = (device.tensor(vector) for vector in (p.c, p.lo, p.hi))
        self._position, self._gamma = device.tensor(p.position), device.tensor(self.gamma)
        self._order = device.tensor(_scattered(self.size))

    @property
    def values(self) -> np.ndarray:  # (points,)
        """Kγ at the points, on the host."""
        return np.asarray(self._values.cpu().numpy())

    @values.setter
    def values(self, values: np.ndarray) -> None:
        self._values = self.device.tensor(np.asarray(values, np.float64))

    def restore_gamma(self) -> None:
        """γ as it is on the host."""
        self._gamma = self.device.tensor(self.gamma)

    def _slopes(self) -> Any:
        return self._c - self._values[self._position]

    def _values_at(self, local: np.ndarray) -> np.ndarray:
        return np.asarray(self._values[self.device.tensor(local)].cpu().numpy())

    def _put(self, local: np.ndarray, values: np.ndarray) -> None:
        self._values[self.device.tensor(local)] = self.device.tensor(values)

    def objective(self) -> float:
        return -0.5 * float((self._gamma * (self._c + self._slopes())).sum())

    # --- a round -------------------------------------------------------------------------------------------

    def _select(self, size: int, kept: np.ndarray) -> tuple[np.ndarray, float]:
        p, room, torch = self.program, size - len(kept), self.torch
        is_new = torch.ones_like(self._gamma, dtype=torch.bool)
        is_new[self.device.tensor(kept)] = False
        slopes = self._slopes()
        known = ~torch.isnan(slopes)
        rises, falls = (self._gamma < self._hi) & known, (self._gamma > self._lo) & known
        parts: list[Any] = []
        ends: list[Any] = []
        for of in (slice(0, p.split), slice(p.split, self.size)):
            v, up, down = slopes[of], rises[of], falls[of]
            if not len(v):
                continue
            top = torch.where(up, v, -np.inf).amax()
            bottom = torch.where(down, v, np.inf).amin()
            if not p.balanced:
                top, bottom = top.clamp(min=0.0), bottom.clamp(max=0.0)
            ends += [top, bottom]
            scale = (BINS / (top - bottom).clamp(min=1e-300)).clamp(max=1e300)
            k = min(room, len(v))
            for may, distance in (
                (up & (v > bottom) & is_new[of], (top - v) * scale),
                (down & (v < top) & is_new[of], (v - bottom) * scale),
            ):
                bins = torch.nan_to_num(distance, nan=BINS).clamp(0, BINS).to(torch.int64)
                # From a bin that is too large, variables are taken in a scattered order.
                key = torch.where(may, bins * self.size + self._order[of], _LAST)
                nearest, where = torch.topk(key, k, largest=False)
                parts.append(torch.where(nearest < _LAST, where + of.start, -1))
        found = torch.cat([torch.stack(ends), *(part.to(torch.float64) for part in parts)]).cpu().numpy()
        return self._filled(size, kept, found, len(ends))

    def _filled(self, size: int, kept: np.ndarray, found: np.ndarray, ends: int) -> tuple[np.ndarray, float]:
        """The working set of what was kept and of the nearest of either side, and the violation."""
        p, room = self.program, size - len(kept)
        groups = [g for g, members in enumerate((p.split, self.size - p.split)) if members]
        worst, places = np.zeros(2), found[ends:].astype(np.int64)
        worst[groups] = np.maximum(found[0:ends:2] - found[1:ends:2], 0.0)
        if not p.balanced:
            worst = np.array([max(found[0], -found[1]), 0.0])
        chosen = [kept]
        for g, share in enumerate(shared(room, worst)):
            if g not in groups:
                continue
            k = min(room, (p.split, self.size - p.split)[g])
            rising, falling, places = places[:k], places[k : 2 * k], places[2 * k :]
            if share == 0 or worst[g] == 0.0:
                continue
            rising = rising[rising >= 0][: share // 2]
            falling = falling[(falling >= 0) & ~np.isin(falling, rising)][: share - share // 2]
            chosen += [rising, falling]
        return np.concatenate(chosen), float(worst.max())

    def advance(
        self, chosen: np.ndarray, tol: float, max_iter: int, block: np.ndarray, rows: KeptRows | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        moved = super().advance(chosen, tol, max_iter, block, rows)
        self._gamma[self.device.tensor(self.last)] = self.device.tensor(self.gamma[self.last])
        return moved

    def add(self, rows: KeptRows, points: np.ndarray, coef: np.ndarray, threads: int) -> None:
        """values += Σᵣ coefᵣ K[pointᵣ, ·], for rows that are there."""
        self._values += self.torch.cat(self._sums(rows, points, coef))


def _scattered(n: int) -> np.ndarray:
    """Numbers of 0 … n-1 in an order in which neighbours are far from each other.

    >>> _scattered(5)
    array([0, 3, 1, 4, 2])
    """
    step = max(1, round(_GOLDEN * n))
    while gcd(step, n) != 1:
        step += 1
    return np.arange(n) * step % n
