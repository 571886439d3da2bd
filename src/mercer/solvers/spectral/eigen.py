r"""The leading eigenpairs of a centred, weighted kernel matrix.

Find      λ₁ ≥ λ₂ ≥ … ≥ λ_k and orthonormal u₁ … u_k with A uⱼ = λⱼ uⱼ,  A = P S K S P
Given     K; weights w ≥ 0, S = diag(√w) (all 1 by default); P = I - ŝŝᵀ with ŝ = √w / ‖√w‖ when A is
          centred in feature space, else P = I. A whole weight counts a point so many times. The iterative
          solvers look in the space that P leaves: ŝ itself, of eigenvalue 0, is not among what they find.
Accuracy  the residual ‖Auⱼ - λⱼuⱼ‖ is computed with K itself at the end: some eigenvalue of A lies within it
          of λⱼ, and within about residual² / gap where the rest of the spectrum is a gap away.
dense     the factorisation of LAPACK: about 9n³ additions and multiplications, two matrices of n × n.
lanczos   block Krylov space span{V, AV, A²V, …} of bounded dimension, V random: orthonormal basis Q with
          full reorthogonalisation, T = QᵀAQ, and restart from the leading Ritz vectors. All along
              A Q = Q T + F C,     so that     ‖A Qy - θ Qy‖ = ‖C y‖   for   T y = θ y
          costs nothing; F is the next block. Stops when every residual is at most tol · λⱼ. Blocks are
          wider than k ≤ 58, so that eigenvalues of any such multiplicity are found as often as they occur.
randomized  the same, but stops as soon as the *eigenvalues* are right: residual² / gap ≤ tol · λⱼ.
Cost      a product of K with a block of vectors per iteration. K is multiplied
              from a dense copy            8n² bytes, small n
              from its lower half, float32  2n² bytes; the rounding, about 1e-7, bends only the search: the
                                           last products are those of K, and go on with K where need be
              never stored                 as many kernel evaluations as n² per iteration

Golub and Underwood, The block Lanczos method, Mathematical Software III (1977); Wu and Simon, Thick-restart
Lanczos, SIAM J. Matrix Analysis 22 (2000); Musco and Musco, Randomized block Krylov methods, NIPS (2015).
The bound by the gap: Mathias, Quadratic residual bounds for the Hermitian eigenvalue problem, SIMAX (1998).

>>> from mercer import Gram, Linear
>>> X = np.array([[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
>>> leading_eigenpairs(Gram(Linear(), X), 2).values
array([18.,  2.])
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum, auto
from functools import partial
from typing import Any, Literal

import numpy as np
from scipy.linalg import blas, eigh, qr

from mercer.data.types import Weights
from mercer.errors import InputError
from mercer.runtime.config import memory_budget
from mercer.runtime.threads import large_lapack, run
from mercer.solvers.control import Control
from mercer.solvers.linear.strips import multiply_left
from mercer.solvers.matrix import KernelMatrix
from mercer.solvers.result import Result, Stop

_DENSE = 500  # points up to which the factorisation is the fastest
_BYTES_KEPT = 2**28  # bytes of a dense copy that is multiplied from
_STRIP = 512  # rows of the lower half that are stored together
_CHUNK = 2048  # products of float32 summed before float64 takes over
_GUARD = 6  # vectors beyond those wanted: the last wanted ones converge as fast as the first
_WIDEST = 64  # vectors of a block
_HALF = 2e-7  # residuals below which the rounding of float32 is felt


@dataclass(frozen=True, eq=False, kw_only=True)
class EigenResult(Result):
    """Eigenpairs of A; iterations are its products with a block of vectors."""

    #: (k,) λ, largest first
    values: np.ndarray
    #: (n, k) u, of length 1
    vectors: np.ndarray
    #: (n, k) A u
    images: np.ndarray
    #: (k,) ‖Au - λu‖
    residuals: np.ndarray
    #: (k,) Σᵢ wᵢ (K S u)ᵢ / Σᵢ wᵢ: what centring takes from the values at each point; 0 when not centred
    means: np.ndarray
    #: Σ of all eigenvalues
    trace: float
    #: the smallest eigenvalue, or an upper bound for it where only the leading ones were computed
    lowest: float
    #: what is no larger than this is zero, but for rounding
    zero: float


class Store(StrEnum):
    """What of K is kept, for products with blocks of vectors."""

    DENSE = auto()
    HALF = auto()  # the lower triangle, in float32
    NOTHING = auto()


@dataclass(frozen=True)
class Scheme:
    """How the eigenpairs will be computed."""

    solver: Literal["dense", "lanczos", "randomized"]
    store: Store
    block: int  # vectors
    basis: int  # vectors at most
    #: residuals at most, relative to the eigenvalue
    tol: float
    #: bytes at most at any time
    memory: int


def scheme(
    n: int,
    n_components: int,
    *,
    solver: str = "auto",
    tol: float | None = None,
    itemsize: int = 8,
    is_slow: bool = False,
) -> Scheme:
    """What ``leading_eigenpairs`` does for n points under the memory budget; ``is_slow``: compute K once.

    >>> scheme(300, 10).solver, scheme(5000, 10).store.name, scheme(20_000, 10).store.name
    ('dense', 'DENSE', 'HALF')
    """
    k, budget = n_components, memory_budget()
    block = max(1, min(n - 1, max(16, min(k + _GUARD, _WIDEST))))
    basis = max(10 * block, 2 * k + 4 * block)
    full, half = itemsize * n * n, 2 * n * (n + _STRIP)
    # Memory is for Q, its successor at a restart, a block and its image in several copies, and the result.
    vectors = 8 * n * (basis + block + basis // 2 + 6 * block + 3 * (k + _GUARD + 1))
    is_small = n <= _DENSE or basis > n // 2
    # A Krylov space has n - 1 dimensions when A is centred.
    if solver == "dense" or (solver == "auto" and is_small) or k >= n - 1:
        # A is held with all vectors; later with those wanted, their images, and two arrays for residuals.
        memory = 8 * n * (max(2 * n + k, n + 4 * k) + 40)
        return Scheme("dense", Store.DENSE, 0, 0, 0.0 if tol is None else tol, memory)
    options = [(Store.DENSE, full + vectors)] if full <= _BYTES_KEPT or is_slow else []
    options += [(Store.HALF, half + vectors + 3 * itemsize * _STRIP * n), (Store.NOTHING, vectors)]
    store, memory = next((option for option in options if option[1] <= budget), options[-1])
    usual = 1e-8 if store == Store.DENSE else 1e-6
    how: Literal["randomized", "lanczos"] = "randomized" if solver == "randomized" else "lanczos"
    return Scheme(how, store, block, basis, usual if tol is None else tol, memory)


def leading_eigenpairs(
    K: KernelMatrix,
    n_components: int,
    *,
    center: bool = True,
    weight: Weights = None,
    solver: str = "auto",
    tol: float | None = None,
    max_iter: int = 300,
    seed: int = 0,
    control: Control | None = None,
    plan: Scheme | None = None,
) -> EigenResult:
    """The ``n_components`` largest eigenvalues of A and their vectors; see the module.

    Parameters
    ----------
    K : n × n kernel matrix
    n_components : k, at most n
    center, weight : whether features are centred; (n,) by default 1 each
    solver : "auto", "dense", "lanczos" or "randomized"
    tol : residuals are at most this times the eigenvalue (for "randomized": errors of eigenvalues); by
        default 1e-8, and 1e-6 where K is not kept in double precision
    max_iter : blocks multiplied, at most
    seed : of the first block
    plan : the scheme to follow, by default that of ``scheme``
    """
    n = K.shape[0]
    if not 1 <= n_components <= n:
        raise InputError(
            f"n_components must be 1 … {n}, the number of points, got {n_components}: ask for fewer"
        )
    if plan is None:
        plan = scheme(n, n_components, solver=solver, tol=tol, itemsize=K.dtype.itemsize)
    root = np.ones(n) if weight is None else np.sqrt(np.asarray(weight, dtype=np.float64))
    A = _Operator(K, root, center)
    if plan.solver == "dense":
        return _dense(A, n_components)
    return _Krylov(A, n_components, plan, max_iter, seed, control or Control()).run()


# --- the matrix A ------------------------------------------------------------------------------------


class _Operator:
    """A = P S K S P on rows: vectors are the rows of V, which are orthogonal to ŝ when A is centred."""

    def __init__(self, K: KernelMatrix, root: np.ndarray, center: bool) -> None:
        self.K, self.root, self.center = K, root, center
        self.unit = root / np.linalg.norm(root)
        self.size = K.shape[0] - center  # dimension of the space that A acts on
        self.diag = root**2 * np.asarray(K.diag(), dtype=np.float64)
        self.mean = 0.0  # ŝᵀ S K S ŝ, the part of K that centring removes, once it is known
        #: numbers below this are rounding of K, relative to the larger of λ₁ and max kᵢᵢ wᵢ
        #: (8: products of d terms and their means err by several units in the last place)
        self.zero = 8 * max(K.shape[0] * 2.0**-52, np.sqrt(K.shape[0]) * float(np.finfo(K.dtype).eps))

    def project(self, V: np.ndarray) -> np.ndarray:  # (b, n)
        if self.center:
            V -= np.outer(V @ self.unit, self.unit)
        return V

    def exact(self, V: np.ndarray) -> np.ndarray:  # (b, n)
        """V S K S, by the products of K itself."""
        product = np.asarray(self.K @ np.ascontiguousarray((V * self.root).T), dtype=np.float64)
        return product.T * self.root

    def stored(self, store: Store) -> Callable[[np.ndarray], np.ndarray]:
        """V ↦ V S K S from what is kept of K."""
        if store == Store.NOTHING:
            return self.exact
        multiply = _Half(self.K) if store == Store.HALF else partial(_from_dense, self.K.dense())
        return lambda V: multiply(V * self.root) * self.root

    def finish(
        self, V: np.ndarray, k: int, multiply: Callable[[np.ndarray], np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Rayleigh-Ritz on the orthonormal rows of V with true products: values, vectors, images, facts."""
        rows = np.concatenate([V, self.unit[None]]) if self.center else V
        W = multiply(rows)
        h, W = W[-1], W[: len(V)]
        means, total = np.zeros(len(V)), 0.0
        if self.center:
            total = float(self.unit @ h)
            self.mean = abs(total)
            means = W @ self.unit / np.linalg.norm(self.root)
            W = self.project(W)
        T = V @ W.T
        values, Y = np.linalg.eigh((T + T.T) / 2)
        values, Y = values[::-1], Y[:, ::-1]
        facts = {"means": (means @ Y)[:k], "trace": float(self.diag.sum()) - total}
        return values, Y.T @ V, Y.T @ W, facts

    def level(self, largest: float) -> float:
        """What counts as zero when λ₁ is this large."""
        return self.zero * max(largest, float(np.abs(self.diag).max(initial=0.0)))


def _from_dense(K: np.ndarray, V: np.ndarray) -> np.ndarray:  # (b, n)
    return multiply_left(V.astype(K.dtype, copy=False), K).astype(np.float64, copy=False)


class _Half:
    """The lower half of K in float32, in strips of rows that end at the diagonal; made once."""

    def __init__(self, K: KernelMatrix) -> None:
        n = K.shape[0]
        self.scale = float(np.abs(K.diag()).max()) or 1.0  # brings K into the range of float32
        self.strips = []
        for start in range(0, n, _STRIP):
            stop = min(start + _STRIP, n)
            part = np.arange(start, stop)
            # A matrix that can give its lower half alone is asked for no more.
            strip = K.block(part, slice(stop)) if hasattr(K, "block") else K.rows(part)[:, :stop]
            strip = strip if self.scale == 1 else strip * (1 / self.scale)
            self.strips.append(strip.astype(np.float32))

    def __call__(self, V: np.ndarray) -> np.ndarray:  # (b, n)
        out = np.zeros_like(V)
        size = float(np.abs(V).max()) or 1.0
        W = (V * (1 / size)).astype(np.float32)

        def task(number: int) -> None:
            strip, start = self.strips[number], number * _STRIP
            stop = start + len(strip)
            for left in range(0, stop, _CHUNK):
                right = min(left + _CHUNK, stop)
                out[:, start:stop] += W[:, left:right] @ strip[:, left:right].T
            for other in range(number + 1, len(self.strips)):  # Blocks below the diagonal are mirrored.
                lower = self.strips[other]
                first = other * _STRIP
                out[:, start:stop] += W[:, first : first + len(lower)] @ lower[:, start:stop]

        run(task, range(len(self.strips)))
        out *= size * self.scale
        return out


def _dense(A: _Operator, k: int) -> EigenResult:
    """All eigenpairs by one call of LAPACK, which destroys a half of A; residuals come from the other."""
    n = A.K.shape[0]
    M = A.K.dense(np.empty((n, n), A.K.dtype)).astype(np.float64, copy=False)
    h = M @ (A.root * A.unit) * A.root
    mean = float(A.unit @ h)
    for start in range(0, n, 64):
        part = slice(start, min(start + 64, n))
        M[part] *= A.root[part, None] * A.root
        if A.center:
            M[part] -= np.outer(h[part], A.unit) + np.outer(A.unit[part], h - mean * A.unit)
    diagonal = M.diagonal().copy()
    # M.T is what LAPACK calls column-major; the half above its diagonal is left alone. All eigenpairs: of a
    # part, LAPACK may fail on clusters; and the lowest eigenvalue tells whether K is positive semi-definite
    with large_lapack(n):
        values, U = eigh(M.T, lower=True, overwrite_a=True, check_finite=False)
    np.fill_diagonal(M, diagonal)
    lowest = float(values[0])
    values, U = values[: -k - 1 : -1].copy(), np.asfortranarray(U[:, : -k - 1 : -1])
    if A.center:  # exactly: 1/√λ would show what little of ŝ there is in vectors of small eigenvalues
        U -= np.outer(A.unit, np.where(values > A.level(float(values[0])), A.unit @ U, 0.0))
    images = blas.dsymm(1.0, M.T, U)
    return EigenResult(
        values=values,
        vectors=U,
        images=images,
        residuals=np.linalg.norm(images - U * values, axis=0),
        means=U.T @ h / np.linalg.norm(A.root) if A.center else np.zeros(k),
        trace=float(A.diag.sum()) - (mean if A.center else 0.0),
        lowest=lowest,
        zero=A.level(float(values[0])),
    )


# --- block Krylov space ------------------------------------------------------------------------------


class _Krylov:
    """A Q = Q T + F C, grown block by block and restarted from its leading Ritz vectors."""

    def __init__(
        self, A: _Operator, k: int, plan: Scheme, max_iter: int, seed: int, control: Control
    ) -> None:
        self.A, self.k, self.plan, self.control = A, k, plan, control
        self.max_iter, self.seed, self.capacity = max_iter, seed, min(plan.basis, A.size)
        self.Q = np.empty((self.capacity, A.K.shape[0]))  # vectors are rows; the first ``dim`` are the basis
        self.dim = 0
        self.is_exact = plan.store != Store.HALF
        #: errors of the last Ritz values, and of the last try with true products
        self.error = self.worst = np.inf
        self.wait = 1  # steps until the Ritz values are computed again
        self.multiply = A.stored(plan.store)

    def run(self) -> EigenResult:
        if self.control.restored is None:
            V = self._orthonormal(np.empty((0, self.Q.shape[1])), min(self.plan.block, self.A.size))
            self._start(V, self._image(V))
            self.control.step(self._state)
        else:
            self._restore(self.control.restored)
        while True:
            over = Stop.MAX_ITER if self.control.iterations >= self.max_iter else self.control.stopped
            if self.dim >= self.k and (over or self._seems_done()):
                values, Y = np.linalg.eigh(self.T)
                result, V, W = self._finish(Y[:, ::-1], float(values[0]), over)
                if result is not None:
                    return result
                # The rounding of float32 shows here: from now on K itself is multiplied.
                self.is_exact = True
                self.multiply = self.A.exact if self.plan.store == Store.HALF else self.multiply
                self._start(V, W)
            else:
                if self.dim + len(self.F) > self.capacity:
                    self._restart()
                self._grow()
            self.control.step(self._state, residual=self.error)

    # --- the space ---------------------------------------------------------------------------------------

    def _image(self, V: np.ndarray) -> np.ndarray:
        return self.A.project(self.multiply(V))

    def _start(self, V: np.ndarray, W: np.ndarray) -> None:
        """The space of orthonormal rows V, W their images."""
        self.dim = len(V)
        self.Q[: self.dim] = V
        T = V @ W.T
        self.T = (T + T.T) / 2
        self.F, self.C = self._next(W)

    def _grow(self) -> None:
        W, old, f = self._image(self.F), self.dim, len(self.F)
        B = self.F @ W.T
        self.T = np.block([[self.T, self.C.T], [self.C, (B + B.T) / 2]])
        self.Q[old : old + f] = self.F
        self.dim = old + f
        self.F, C = self._next(W)
        self.C = np.hstack([np.zeros((len(C), old)), C])

    def _restart(self) -> None:
        values, Y = (part[..., ::-1] for part in np.linalg.eigh(self.T))
        keep = min(self.capacity - len(self.F), max(self.k + _GUARD, self.capacity // 2), self.dim)
        self.Q[:keep] = Y[:, :keep].T @ self.Q[: self.dim]
        self.dim, self.T, self.C = keep, np.diag(values[:keep]), self.C @ Y[:, :keep]

    def _next(self, W: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Orthonormal F, orthogonal to Q, and C with W = CᵀF + (what lies in Q)."""
        R = self._remove(self._remove(W.copy()))
        width = min(len(R), self.A.size - self.dim)
        if width == 0:
            return R[:0], np.zeros((0, len(R)))
        # R = U σ Fᵀ from the small matrix RRᵀ: products only, and right where no σ is tiny
        squared, U = (part[..., : -width - 1 : -1] for part in np.linalg.eigh(R @ R.T))
        scale = np.linalg.norm(W, axis=1).max()
        strong = np.sqrt(np.maximum(squared, 0.0)) > max(1e-12 * scale, 1e-6 * np.sqrt(max(squared[0], 0.0)))
        F = (U[:, strong] / np.sqrt(squared[strong])).T @ R
        if strong.all():
            F = np.linalg.solve(np.linalg.cholesky(F @ F.T), F)  # once more, against rounding
            return F, F @ R.T
        # some directions are rounding: R's own as QR finds them, and random ones for those it has not
        F, r, _ = qr(R.T, mode="economic", pivoting=True)
        rank = int((np.abs(r.diagonal())[:width] > 1e-14 * scale).sum())
        F = self._orthonormal(F.T[:rank], width)
        return F, F @ R.T

    def _remove(self, R: np.ndarray) -> np.ndarray:
        Q = self.Q[: self.dim]
        R -= (R @ Q.T) @ Q
        return R

    def _orthonormal(self, F: np.ndarray, width: int) -> np.ndarray:
        """Orthonormal rows, orthogonal to Q: those of F, and random ones up to a width."""
        rng = np.random.default_rng([self.seed, self.control.iterations, self.dim])
        F = np.concatenate([F, rng.normal(size=(width - len(F), self.Q.shape[1]))])
        for _ in range(3):
            F = np.ascontiguousarray(np.linalg.qr(self._remove(self.A.project(F)).T)[0].T)
        return F

    # --- how far it is -----------------------------------------------------------------------------------

    def _seems_done(self) -> bool:
        """Whether the residuals ‖Cy‖ say so; Ritz values are computed when they may."""
        tol = self.plan.tol if self.is_exact else max(self.plan.tol, _HALF)
        self.wait -= 1
        if self.wait > 0 or not len(self.F):
            return not len(self.F)
        values, Y = (part[..., ::-1] for part in np.linalg.eigh(self.T))
        before, self.error = self.error, self._error(values, np.linalg.norm(self.C @ Y, axis=0))
        rate = min(self.error / before, 1.0) if 0 < before < np.inf else 0.0
        self.wait = 2 if self.error * rate > 100 * tol else 1  # two more steps at this pace would not do
        return self.error <= tol

    def _error(self, values: np.ndarray, residuals: np.ndarray) -> float:
        """The largest of the wanted residuals (or errors of eigenvalues) relative to the eigenvalue."""
        k, error, size = self.k, residuals[: self.k], np.abs(values[: self.k])
        if self.plan.solver == "randomized" and len(values) > k:
            gap = np.maximum(values[:k] - values[k] - residuals[k], np.maximum(error, 1e-300))
            error = error * (error / gap)
        floor = 4 * np.sqrt(self.Q.shape[1]) * float(np.finfo(self.A.K.dtype).eps)
        floor *= max(abs(float(values[0])), self.A.mean, float(np.abs(self.A.diag).max()))
        relative = np.divide(error, size, out=np.full(k, np.inf)[: len(size)], where=size > 0)
        return float(np.where(error <= floor, 0.0, relative).max())

    def _finish(self, Y: np.ndarray, lowest: float, over: Stop | None) -> tuple[EigenResult | None, Any, Any]:
        """The result by products with K itself, and the vectors and images to go on from."""
        V = Y[:, : self.k + _GUARD].T @ self.Q[: self.dim]
        exact = self.multiply if self.plan.store == Store.DENSE else self.A.exact
        values, V, W, facts = self.A.finish(V, self.k, exact)
        residuals = np.linalg.norm(W - V * values[:, None], axis=1)
        error = self._error(values, residuals)
        is_right = error <= self.plan.tol
        if (
            self.is_exact and not over
        ):  # a try that is no better than the one before has met the rounding of K
            is_right |= error > 0.5 * self.worst or not len(self.F)
            self.worst = error
        result = EigenResult(
            values=values[: self.k],
            vectors=V[: self.k].T,
            images=W[: self.k].T,
            residuals=residuals[: self.k],
            lowest=min(lowest, float(values[-1])),
            zero=self.A.level(float(values[0])),
            iterations=self.control.iterations,
            stopped=over if over and not is_right else Stop.CONVERGED,
            **facts,
        )
        return (result if is_right or over else None), V, W

    # --- the checkpoint ----------------------------------------------------------------------------------

    def _state(self) -> dict[str, Any]:
        facts = {"is_exact": self.is_exact, "error": self.error, "worst": self.worst, "wait": self.wait}
        return {"Q": self.Q[: self.dim], "T": self.T, "C": self.C, "F": self.F, **facts}

    def _restore(self, state: dict[str, Any]) -> None:
        self.dim = len(state["Q"])
        self.Q[: self.dim] = state["Q"]
        self.T, self.C, self.F = state["T"], state["C"], state["F"]
        self.is_exact, self.wait = bool(state["is_exact"]), int(state["wait"])
        self.error, self.worst = float(state["error"]), float(state["worst"])
        if self.is_exact and self.plan.store == Store.HALF:
            self.multiply = self.A.exact
