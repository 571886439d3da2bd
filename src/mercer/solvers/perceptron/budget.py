r"""The kernel perceptron with a budget: f is a sum over at most B stored points, whatever is visited.

Find      f = Σ_s α_s k(x_s, ·) + b over B stored points at most, one or several functions over the same
Given     kernel values of a batch of points with the stored ones and with each other; yᵢ = ±1
Update    on a mistake, yᵢ f(xᵢ) ≤ 0 (or as the boundary says, see ``mistakes``), f' = f + yᵢ k(xᵢ, ·) (+ yᵢ),
          and when that takes one point too many
    remove    the stored point with the smallest Σ|α| goes, the oldest of equal ones
    forget    f' shrinks to φ f', and the oldest point r goes. φ ≤ 1 is the largest with
                  Q + Ψ(φ) ≤ 15/32 M,   Ψ(φ) = Σ (σ²φ² k(x_r,x_r) + 2σφ (1 - φ μ)),   Q += Ψ(φ),
              σ = |α_r|, μ = sign(α_r) f'(x_r), M the mistakes so far, in units with max k(x, x) = 1: the harm
              done by forgetting stays below what the mistakes taught. The sum is over the functions
    project   xᵢ is not stored; instead of Φ(xᵢ) f gets its projection on the span of the stored points,
              Σ_s β_s Φ(x_s), β = K_SS⁻¹ k_S(xᵢ). The same is done before the budget is full where
              the part that is lost is small, δ² = k(xᵢ,xᵢ) - k_Sᵀβ ≤ residual · k(xᵢ,xᵢ)
An intercept is the kernel k + 1: b = Σα, and what is removed, shrunk or projected takes its part of b along.
Stop      there is none: the caller decides how often the points are visited
Cost      O(B) per mistake and point of the batch; "project" O(B²) per mistake. Memory O(B²) at most

Dekel, Shalev-Shwartz and Singer, The Forgetron: a kernel-based perceptron on a budget, SIAM Journal on
Computing 37 (2008), 1342-1372 (its self-tuned version). Orabona, Keshet and Caputo, Bounded kernel-based
online learning, Journal of Machine Learning Research 10 (2009), 2643-2666 (the Projectron). Removal: Crammer,
Kandola and Singer, Online classification on a budget, Advances in Neural Information Processing Systems 16
(2004).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from mercer.errors import InputError
from mercer.solvers.control import Control, State
from mercer.solvers.matrix import BlockMatrix
from mercer.solvers.perceptron.kernel import visiting_orders
from mercer.solvers.perceptron.mistakes import is_mistake
from mercer.solvers.result import Result, Stop


@dataclass(frozen=True, eq=False, kw_only=True)
class BudgetResult(Result):
    """How the passes of a perceptron with a budget went; what it found is in its Budget."""

    #: (epochs, functions) the mistakes of each pass
    mistakes_per_epoch: np.ndarray
    #: (functions,) minᵢ yᵢ f(xᵢ) / ‖f‖, in the space of k, or of k + 1; NaN unless converged
    margin: np.ndarray


def budget_perceptron(
    K: BlockMatrix,  # (n, n)
    Y: np.ndarray,  # (n, functions) of ±1
    model: Budget,
    *,
    begin: int = 0,
    max_epochs: int = 100,
    orders: Iterable[Any] | int | None = None,
    control: Control | None = None,
) -> BudgetResult:
    """Pass over the points from ``begin`` on, in batches, until a pass makes no mistake.

    ``model.source`` counts the rows of K: the first ``begin`` points are those that it has stored before.
    """
    control = control or Control()
    state = control.restored or {}
    n = len(Y) - begin
    seed: int = state.get("seed", orders if isinstance(orders, int | np.integer) else -1)
    position: int = state.get("position", n)
    per_epoch = [row.copy() for row in state.get("per_epoch", ())]
    least = state.get("least", np.full(Y.shape[1], np.inf))
    if state:
        model.restore(state)
    diagonal = np.asarray(K.diag(), dtype=np.float64)

    def current() -> State:
        return {
            "seed": seed,
            "position": position,
            "per_epoch": np.array(per_epoch),
            "least": least,
            **model.state(),
        }

    done = bool(per_epoch) and position >= n and not per_epoch[-1].any()
    visits = visiting_orders(n, seed if seed >= 0 else orders)
    for order in islice(visits, len(per_epoch) - (position < n), max_epochs):
        if done or control.stopped:
            break
        if position >= n:
            position = 0
            per_epoch.append(np.zeros(Y.shape[1], np.int64))
            least = np.full(Y.shape[1], np.inf)
        while position < n and not control.stopped:
            batch = begin + order[position : position + model.batch]
            before = model.mistakes.copy()
            values = K.block(batch, np.concatenate([model.source, batch]))
            least = np.minimum(least, model.visit(values, diagonal[batch], Y[batch], batch))
            per_epoch[-1] += model.mistakes - before
            position += len(batch)
            control.step(current, steps=len(batch), epoch=len(per_epoch), mistakes=int(model.mistakes.sum()))
        done = position >= n and not per_epoch[-1].any()
    margin = np.full(Y.shape[1], np.nan)
    if done:
        control.step(current, steps=max(0, max_epochs * n - control.iterations))
        with np.errstate(divide="ignore", invalid="ignore"):
            margin = least / np.sqrt(model.squared_norm(K.block(model.source, model.source)))
    return BudgetResult(
        mistakes_per_epoch=np.array(per_epoch),
        margin=margin,
        iterations=len(per_epoch),
        stopped=Stop.CONVERGED if done else control.stopped or Stop.MAX_ITER,
    )


class Budget:
    """A perceptron that stores at most ``size`` points, given to it batch by batch.

    >>> model = Budget(1, functions=1, strategy="remove", fit_intercept=False)
    >>> K = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> model.visit(K, K.diagonal(), np.array([[1.0], [1.0]]), np.arange(2))
    array([0.])
    >>> model.source, model.coef, model.mistakes
    (array([1]), array([[1.]]), array([2]))
    """

    STRATEGIES = ("forget", "project", "remove")

    def __init__(
        self,
        size: int,
        functions: int,
        strategy: str,
        *,
        fit_intercept: bool = True,
        boundary: str = "mistake",
        residual: float = 1e-6,
    ) -> None:
        self.size = size
        self.strategy = strategy
        self.one = float(fit_intercept)  # what an intercept adds to the kernel
        self.boundary = boundary  # what f(x) = 0 is, see ``mercer.solvers.perceptron.mistakes``
        self.residual = residual
        #: the number of each stored point, as it was given
        self.source = np.empty(0, np.int64)
        #: (stored, functions) α
        self.coef = np.empty((0, functions))
        #: (functions,) M
        self.mistakes = np.zeros(functions, np.int64)
        self._arrival = np.empty(0, np.int64)
        self._arrived = 0
        self._harm = 0.0  # Q
        self._largest = 0.0  # max k(x, x) of the mistakes
        # "forget": the stored points' kernel values; "project": L⁻¹, where they are L Lᵀ
        self._matrix = np.zeros((size, size)) if strategy != "remove" else np.zeros((0, 0))

    @property
    def batch(self) -> int:
        """Points to visit together: as many as are stored, within reason."""
        return int(np.clip(self.size, 64, 1024))

    @property
    def intercept(self) -> np.ndarray:  # (functions,)
        """b"""
        return self.one * self.coef.sum(axis=0)

    def visit(
        self,
        values: np.ndarray,  # (batch, stored + batch)
        diagonal: np.ndarray,  # (batch,)
        Y: np.ndarray,  # (batch, functions) of ±1
        source: np.ndarray,  # (batch,)
    ) -> np.ndarray:  # (functions,)
        """Visit a batch of points, in order. Returns the smallest y f(x) of each function afterwards.

        ``values`` compares the points with the stored ones, then with themselves. ``source`` numbers them: a
        point whose number is stored already is not stored twice.
        """
        self._values = np.asarray(values, dtype=np.float64) + self.one
        self._diagonal = np.asarray(diagonal, dtype=np.float64) + self.one
        stored = len(self.source)
        self._columns = np.arange(stored)
        self._f = self._values[:, :stored] @ self.coef  # (batch, functions), b included
        positive, position = Y > 0, 0
        while position < len(Y):
            wrong = is_mistake(self._f[position:], positive[position:], self.boundary)
            ahead = wrong.any(axis=1)
            first = int(ahead.argmax())
            if not ahead[first]:
                break
            i = position + first
            self._require_finite(i, source)
            self._update(i, np.where(wrong[first], Y[i], 0.0), int(source[i]), stored + i)
            position = i + 1
        least = (Y * self._f).min(axis=0)
        del self._f, self._values, self._diagonal, self._columns
        return np.asarray(least)

    def _update(self, i: int, sign: np.ndarray, source: int, column: int) -> None:
        self.mistakes += sign != 0
        self._largest = max(self._largest, float(self._diagonal[i]))
        slot = np.flatnonzero(self.source == source)
        if len(slot):
            self._add(int(slot[0]), sign)
        elif self.strategy == "project":
            self._project(i, sign, source, column)
        elif len(self.source) < self.size:
            self._store(i, sign, source, column)
        else:
            self._replace(i, sign, source, column)

    def _add(self, slot: int, sign: np.ndarray) -> None:
        """f += sign · k(x_slot, ·)."""
        self.coef[slot] += sign
        self._f += self._values[:, self._columns[slot], None] * sign

    def _store(self, i: int, sign: np.ndarray, source: int, column: int) -> None:
        """Store one more point."""
        m = len(self.source)
        if self.strategy == "forget":
            self._matrix[m, :m] = self._matrix[:m, m] = self._values[i, self._columns]
            self._matrix[m, m] = self._diagonal[i]
        self.source = np.append(self.source, source)
        self.coef = np.vstack([self.coef, np.zeros_like(sign)])
        self._columns = np.append(self._columns, column)
        self._arrival = np.append(self._arrival, self._arrived)
        self._arrived += 1
        self._add(m, sign)

    def _replace(self, i: int, sign: np.ndarray, source: int, column: int) -> None:
        """The new point takes the slot of one that goes."""
        if self.strategy == "remove":
            size = np.abs(self.coef).sum(axis=1)
            r = int(np.lexsort((self._arrival, size))[0])
            shrink = 1.0
        else:
            r = int(self._arrival.argmin())
            shrink = self._shrink(r, self._values[i, self._columns], sign)
            row = self._values[i, self._columns]
            self._matrix[r, :] = self._matrix[:, r] = row
            self._matrix[r, r] = self._diagonal[i]
        self._f -= self._values[:, self._columns[r], None] * self.coef[r]
        self._f *= shrink
        self.coef *= shrink
        self.coef[r] = 0.0
        self.source[r], self._columns[r] = source, column
        self._arrival[r] = self._arrived
        self._arrived += 1
        self._add(r, shrink * sign)

    def _shrink(self, r: int, row: np.ndarray, sign: np.ndarray) -> float:
        """The factor φ that coefficients shrink by; what harm that does is added up."""
        scale = self._largest if self._largest > 0 else 1.0
        weight = np.abs(self.coef[r])
        f = (self._matrix[r] @ self.coef + row[r] * sign) / scale
        a = float((weight**2 * self._matrix[r, r] / scale - 2 * self.coef[r] * f).sum())
        b = 2 * float(weight.sum())
        c = self._harm - 15 / 32 * float(self.mistakes.sum())
        shrink = 1.0
        if a + b + c > 0:  # aφ² + bφ + c is negative at 0 and positive at 1: it crosses once
            shrink = -2 * c / (b + math.sqrt(max(b * b - 4 * a * c, 0.0)))
        self._harm += a * shrink**2 + b * shrink
        return shrink

    def _project(self, i: int, sign: np.ndarray, source: int, column: int) -> None:
        m = len(self.source)
        inverse = self._matrix[:m, :m]  # L⁻¹
        part = inverse @ self._values[i, self._columns]  # the coordinates in an orthonormal basis of the span
        lost = float(self._diagonal[i]) - float(part @ part)
        if m == self.size or lost <= self.residual * float(self._diagonal[i]):
            beta = inverse.T @ part
            self.coef += np.outer(beta, sign)
            self._f += np.outer(self._values[:, self._columns] @ beta, sign)
            return
        length = math.sqrt(lost)
        self._matrix[m, :m] = -(part @ inverse) / length
        self._matrix[m, m] = 1.0 / length
        self._store(i, sign, source, column)

    def _require_finite(self, i: int, source: np.ndarray) -> None:
        if not np.isfinite(self._values[i]).all():
            raise InputError(
                f"k(x, x') is not finite for x = point {int(source[i])} and another: "
                "rescale the data, or choose a kernel that does not overflow on them"
            )

    def squared_norm(self, K: np.ndarray) -> np.ndarray:  # (functions,)
        """‖f‖², in the space of k + 1 with an intercept, from the stored points' kernel values."""
        return np.maximum(((K + self.one) @ self.coef * self.coef).sum(axis=0), 0.0)

    # --- for a checkpoint --------------------------------------------------------------------------------

    _STATE = ("source", "coef", "mistakes", "_arrival", "_arrived", "_harm", "_largest", "_matrix")

    def state(self) -> dict[str, Any]:
        return {f"budget{name}": getattr(self, name) for name in self._STATE}

    def restore(self, state: dict[str, Any]) -> None:
        for name in self._STATE:
            setattr(self, name, state[f"budget{name}"])
