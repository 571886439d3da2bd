r"""Conjugate gradients: for systems with a symmetric positive definite matrix, and in the inner product of K.

Solve     A x = y,   A symmetric positive definite, known by its products; several y at once, as columns, each
          perhaps with a matrix A + σI of its own
Stop      column by column when ‖y - Ax‖ ≤ tol · ‖y‖, with the residual computed from x and not carried along;
          where rounding ends the progress before that, ``rounded`` says so
Cost      one product A @ V per iteration, V having the columns that are not done, and one more at the end
Rough     where a cheaper product is near A @ V, steps take that one, and the residual from x is taken after
          every fall by four digits; where it has not fallen to two thirds, A itself is taken from there on

Hestenes and Stiefel, Methods of conjugate gradients for solving linear systems, J. Research of the National
Bureau of Standards 49 (1952), 409-436.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.errors import InputError
from mercer.solvers.control import Control, State, expected
from mercer.solvers.linear.strips import multiply
from mercer.solvers.matrix import SquareMatrix
from mercer.solvers.result import Result, Stop

Multiply = Callable[[np.ndarray], np.ndarray]
Length = Callable[[np.ndarray, np.ndarray], np.ndarray]

#: The fall of the residual, or the number of steps, after which one of rough products is computed anew, and
#: the fall that shows that they help; and how much further than asked rough steps go.
_ROUGH_FALL, _ROUGH_STEPS, _ROUGH_HELP, _ROUGH_MARGIN = 1e-4, 50, 0.7, 0.7
#: A residual that was carried along and is so small beside y has no digit of the true one, in any precision:
#: the true one is computed then. Further products would be of numbers that underflow in float32.
_NOTHING = float(np.finfo(np.float64).eps) ** 2


@dataclass(frozen=True, eq=False, kw_only=True)
class ConjugateResult(Result):
    """What was found, and how well it solves the system."""

    #: (n,) or (n, m): x
    solution: np.ndarray
    #: (n,) or (n, m): y - Ax
    residual: np.ndarray
    #: ‖y - Ax‖ / ‖y‖, of the worst column; 0 where y is
    error: float
    #: whether rounding, and not tol, ended a converged run
    rounded: bool
    #: products A @ V
    products: int


def conjugate_gradient(
    multiply: Multiply,
    rhs: Any,  # (n,) or (n, m)
    *,
    tol: float = 1e-10,
    max_iter: int = 1000,
    precondition: Multiply | Sequence[Multiply] | None = None,
    rough: Multiply | None = None,
    control: Control | None = None,
    start: Any = None,
    shifts: Any = 0.0,
    facts: State | None = None,
    enough: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None,
    length: Length = lambda R, PR: np.linalg.norm(R, axis=0),
) -> ConjugateResult:
    """Solve (A + σI) x = rhs for a symmetric positive definite A + σI.

    Parameters
    ----------
    multiply : V ↦ A V, for (n, p) arrays with p ≤ m; for (n,) when rhs is
    rhs : y, or several as columns
    tol : ‖y - Ax‖ / ‖y‖ allowed, in every column
    max_iter : iterations at most, of one product each
    precondition : V ↦ P V with P near A⁻¹, symmetric positive definite; or one for each column, where columns
        that have the same are taken together
    rough : V ↦ Ã V with Ã near A and cheaper: in single precision, say
    control : progress, time limit, checkpoints
    start : x to start from; zeros by default
    shifts : σ, or one for each column
    facts : what else a checkpoint is to hold
    enough : of x and its residual, both (n, m), the lengths of the residual that are small enough, (m,); by
        default tol · ‖y‖
    length : of residuals R and P R, both (n, m), the lengths, (m,); by default ‖R‖

    >>> A = np.array([[4.0, 1.0], [1.0, 3.0]])
    >>> result = conjugate_gradient(lambda V: A @ V, [1.0, 2.0])
    >>> result.solution.round(4), result.iterations, result.stopped
    (array([0.0909, 0.6364]), 2, 'converged')
    """
    rhs = np.asarray(rhs, dtype=np.float64)
    y = rhs.reshape(len(rhs), -1)
    control = Control() if control is None else control
    shifts = np.broadcast_to(shifts, y.shape[1])
    system = _System(multiply, y, rhs.ndim == 1, precondition, rough, shifts, length)
    if control.restored is not None:
        system.restore(control.restored)
    else:
        system.begin(np.zeros_like(y) if start is None else np.array(start, np.float64).reshape(y.shape))
    size = np.linalg.norm(y, axis=0)
    scale = np.where(size > 0, size, 1.0)
    first = system.lengths(y)
    nothing = _NOTHING * first
    stopped: Stop | None = None
    while not stopped:
        limit = tol * size if enough is None else enough(system.X, system.R)
        done = system.now <= np.maximum(system.target(limit), nothing)
        # a preconditioner that took most of the time is used once, at least
        is_begun = precondition is None or system.iterations > 0
        if (done | system.rounded).all():
            if system.certify(limit):
                stopped = Stop.CONVERGED
        elif system.iterations >= max_iter or (control.stopped and is_begun):
            stopped = control.stopped or Stop.MAX_ITER
        else:
            system.step(np.flatnonzero(~(done | system.rounded)))
            ways = np.column_stack([first, system.now, np.maximum(limit, nothing)])
            ways = ways[ways[:, 1] > ways[:, 2]]
            control.step(
                system.snapshot(facts or {}),
                expected=max((expected(system.iterations, *way) for way in ways.tolist()), default=0),
                residual=float((np.linalg.norm(system.R, axis=0) / scale).max()),
            )
    residual = system.true_residual()
    return ConjugateResult(
        solution=system.X.reshape(rhs.shape),
        residual=residual.reshape(rhs.shape),
        error=float((np.linalg.norm(residual, axis=0) / scale).max(initial=0.0)),
        iterations=system.iterations,
        stopped=stopped,
        rounded=stopped == Stop.CONVERGED and bool(system.rounded.any()),
        products=system.products,
    )


class _System:
    """The state of all columns; arrays are replaced, never written, so that a snapshot stays what it is."""

    def __init__(
        self,
        multiply: Multiply,
        y: np.ndarray,
        flat: bool,
        precondition: Multiply | Sequence[Multiply] | None,
        rough: Multiply | None,
        shifts: np.ndarray,  # (m,)
        length: Length,
    ) -> None:
        self.multiply = multiply
        self.shifts = shifts
        self.precondition = precondition
        self.rough = rough
        self.is_rough = rough is not None
        self.length = length
        self.y = y
        self.flat = flat
        self.iterations = self.products = 0
        #: columns that come no closer
        self.rounded = np.zeros(y.shape[1], dtype=bool)
        #: the true lengths of the residuals when last computed
        self.checked = np.full(y.shape[1], math.inf)
        #: the iteration of the last restart, and the lengths of the residuals there
        self.begun, self.begun_at = 0, np.empty(0)
        self._residual: np.ndarray | None = None

    def begin(self, X: np.ndarray) -> None:
        self.X = X
        self.restart(self.true_residual() if X.any() else self.y)

    def restart(self, R: np.ndarray) -> None:
        """From the steepest direction."""
        self.R = R
        self.P = self.preconditioned(R, np.arange(R.shape[1]))
        self.size = (R * self.P).sum(axis=0)
        self.now = self.length(R, self.P)
        self.begun, self.begun_at = self.iterations, self.now

    def lengths(self, R: np.ndarray) -> np.ndarray:  # (m,)
        """The lengths of other residuals."""
        return self.length(R, self.preconditioned(R, np.arange(R.shape[1])))

    def preconditioned(self, R: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """P R, R being the residuals of some of the columns."""
        if self.precondition is None:
            return R
        if callable(self.precondition):
            return self.product(self.precondition, R)
        out = np.empty_like(R)
        chosen = [self.precondition[column] for column in columns]
        for near in dict.fromkeys(chosen):
            mine = [i for i, other in enumerate(chosen) if other == near]
            out[:, mine] = self.product(near, np.ascontiguousarray(R[:, mine]))
        return out

    def product(self, operator: Multiply, V: np.ndarray) -> np.ndarray:
        out = np.asarray(operator(V[:, 0] if self.flat else V), dtype=np.float64).reshape(V.shape)
        if self.is_rough and operator is self.rough and not np.isfinite(out).all():
            self.is_rough = False  # Single precision ends at 3e38.
            return self.product(self.multiply, V)
        if not np.isfinite(out).all():
            raise InputError("a product with the matrix is not finite: scale the data, or check the matrix")
        return out

    def true_residual(self) -> np.ndarray:
        if self._residual is None:
            self._residual = self.y - self.product(self.multiply, self.X) - self.shifts * self.X
            self.products += 1
        return self._residual

    def step(self, open_: np.ndarray) -> None:
        P = np.ascontiguousarray(self.P[:, open_])
        operator = self.rough if self.is_rough and self.rough is not None else self.multiply
        AP = self.product(operator, P) + self.shifts[open_] * P
        bend = (P * AP).sum(axis=0)
        length = (P * P).sum(axis=0)
        if not self.is_rough and (bend < -1e-10 * np.linalg.norm(AP, axis=0) * np.sqrt(length)).any():
            raise InputError(
                "the matrix is not positive definite: vᵀAv < 0 for some v; take a kernel that is positive "
                "definite, or a larger penalty"
            )
        t = np.divide(self.size[open_], bend, out=np.zeros_like(bend), where=bend > 0)
        X, R, D, size = self.X.copy(), self.R.copy(), self.P.copy(), self.size.copy()
        X[:, open_] += t * P
        R[:, open_] -= t * AP
        new = np.ascontiguousarray(R[:, open_])
        Z = self.preconditioned(new, open_)
        size[open_] = (new * Z).sum(axis=0)
        now = self.now.copy()
        now[open_] = self.length(new, Z)
        old = self.size[open_]
        D[:, open_] = Z + np.divide(size[open_], old, out=np.zeros_like(old), where=old > 0) * P
        self.X, self.R, self.P, self.size, self.now = X, R, D, size, now
        self.rounded = self.rounded.copy()
        self.rounded[open_] |= bend <= 0
        self._residual = None
        self.iterations += 1
        self.products += 1

    def target(self, limit: np.ndarray) -> np.ndarray:  # (m,)
        """The residuals down to which steps are believed."""
        if not self.is_rough:
            return limit
        is_long = self.iterations - self.begun >= _ROUGH_STEPS
        # Rough steps go a little further: what is true of their residual is a little larger.
        return np.maximum(_ROUGH_MARGIN * limit, math.inf if is_long else _ROUGH_FALL * self.begun_at)

    def certify(self, limit: np.ndarray) -> bool:
        """Whether the residuals are within the limit, or come no closer; if not, go on from them."""
        R = self.true_residual()
        norms = self.lengths(R)
        if self.is_rough and (norms > np.maximum(limit, _ROUGH_HELP * self.begun_at)).any():
            self.is_rough = False
            self.rounded = np.zeros(len(norms), dtype=bool)
        else:
            self.rounded = (norms > limit) & (norms > 0.5 * self.checked)
        self.checked = np.minimum(norms, self.checked)
        if ((norms <= limit) | self.rounded).all():
            return True
        self.restart(R)
        return False

    _NAMES = (
        "X",
        "R",
        "P",
        "size",
        "now",
        "rounded",
        "checked",
        "iterations",
        "products",
        "begun",
        "begun_at",
        "is_rough",
    )

    def snapshot(self, facts: State) -> Callable[[], State]:
        state = facts | {name: getattr(self, name) for name in self._NAMES}
        return lambda: state

    def restore(self, state: State) -> None:
        for name in self._NAMES:
            setattr(self, name, state[name])


class Products:
    """K @ V in float64 whatever K is, counted, with a watch on vᵀKv ≥ 0."""

    def __init__(self, K: SquareMatrix) -> None:
        self.K = K
        self.count = 0
        #: a lower bound of ‖K‖, that grows: the largest diagonal entry, or ‖Kv‖ / ‖v‖ seen
        self.norm = _largest_diagonal(K)
        #: vᵀKv below -slack ‖K‖ ‖v‖² is no rounding of K's values
        self.slack = 1e-6 if K.dtype == np.float64 else 1e-4

    def __call__(self, V: np.ndarray) -> np.ndarray:
        self.count += 1
        # V is cast and not K, of which a copy would be another n × n.
        V_ = np.asarray(V, dtype=self.K.dtype)
        KV = multiply(self.K, V_) if isinstance(self.K, np.ndarray) else self.K @ V_
        out = np.asarray(KV, dtype=np.float64)
        size, length = float(np.linalg.norm(V)), float(np.linalg.norm(out))
        if not math.isfinite(length):
            raise InputError(
                "a product with the kernel matrix is not finite: K has NaN or infinite values, or values too "
                "large for its type; check the kernel, or scale the data"
            )
        if size > 0:
            self.norm = max(self.norm, length / size)
        return out

    def form(self, V: np.ndarray, KV: np.ndarray) -> float:
        """Σ vᵀKv over the columns: 0 where it is negative by rounding, an error where it is by more."""
        value = float((V * KV).sum())
        if value < 0 and value < -self.slack * self.norm * float((V * V).sum()):
            raise self.indefinite()
        return max(value, 0.0)

    @staticmethod
    def indefinite() -> InputError:
        return InputError(
            "the kernel matrix is not positive semi-definite: it has a negative eigenvalue beyond rounding, "
            "and the regularised risk has no minimum; take a positive definite kernel (mercer.certify "
            "tells), or project the matrix on its positive part"
        )


def _largest_diagonal(K: SquareMatrix) -> float:
    if isinstance(K, np.ndarray):
        return float(np.abs(K.diagonal()).max(initial=0.0))
    if hasattr(K, "diag"):
        return float(np.abs(K.diag()).max(initial=0.0))
    v = np.cos(np.arange(K.shape[0], dtype=K.dtype))  # This vector is as good as any other.
    return float(np.linalg.norm(K @ v) / np.linalg.norm(v))


def kernel_conjugate_gradient(
    product: Callable[[np.ndarray], np.ndarray],
    apply: Callable[[np.ndarray], np.ndarray],
    penalty: float,
    rhs: np.ndarray,  # (n,) or (n, m)
    K_rhs: np.ndarray,
    *,
    tol: float,
    max_iter: int,
    stopped: Callable[[], bool] = lambda: False,
) -> tuple[np.ndarray, np.ndarray, bool]:
    """δ and Kδ with (penalty·I + H K) δ ≈ rhs, and whether the residual ρ has ρᵀKρ ≤ tol² · rhsᵀK rhs.

    For a symmetric positive semi-definite H, penalty·I + HK is self-adjoint and positive in ⟨u, v⟩ = uᵀKv.
    Kp is kept beside p: one product with K per iteration.

    >>> K = np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> y = np.array([1.0, 0.0])
    >>> delta, K_delta, done = kernel_conjugate_gradient(
    ...     lambda V: K @ V, lambda V: V, 1.0, y, K @ y, tol=1e-12, max_iter=9
    ... )
    >>> delta, done  # (I + K)⁻¹ y
    (array([ 0.375, -0.125]), True)
    """
    delta, K_delta = np.zeros_like(rhs), np.zeros_like(rhs)
    rho, z = rhs, K_rhs
    size = first = float((rho * z).sum())
    p, Kp = rho, z
    for _ in range(max_iter):
        if size <= tol * tol * first or size <= 0:
            return delta, K_delta, True
        if stopped():
            break
        Mp = penalty * p + apply(Kp)
        bend = float((Mp * Kp).sum())
        if not bend > 0:  # K p is nothing but rounding.
            return delta, K_delta, False
        t = size / bend
        delta, K_delta = delta + t * p, K_delta + t * Kp
        rho = rho - t * Mp
        z = product(rho)
        new = float((rho * z).sum())
        p, Kp = rho + (new / size) * p, z + (new / size) * Kp
        size = new
    return delta, K_delta, size <= tol * tol * first
