r"""Learners on landmarks: f = Σⱼ βⱼ k(zⱼ, ·) + b for M points zⱼ, from all n data, without an n × n matrix.

``landmarks`` is a parameter of every learner whose solution is an expansion:

    None            all points, exactly
    a number        so many of the points, drawn at random
    "auto"          exact while that fits the memory and takes less than a minute, then about 20 √n landmarks
    Landmarks(…)    a number, with the way in which they are chosen
    points          a table (or a list of objects) of landmarks, that need not be among the data
    an index        whole numbers, the rows of X that are landmarks

The restricted problem is solved by `mercer.solvers.landmarks`; ``report_.gap`` is the distance to its
minimum, ``report_.bound`` that to the minimum without landmarks, where it is affordable.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from mercer.cluster import DaskRows
from mercer.cluster.client import require_worker_memory, require_workers
from mercer.data import points as data
from mercer.data.types import Points
from mercer.errors import InputError
from mercer.estimators.shared.landmark_plans import (
    MATRICES,
    MATRICES_SQUARED,
    device_landmark_plan,
    landmark_plan,
    lives_on_device,
    on_cluster,
    with_time_of_objects,
)
from mercer.estimators.shared.origin import rounding_of
from mercer.expansion import Expansion
from mercer.gram.block_tasks import lacks
from mercer.gram.blocks import RowBlocks
from mercer.gram.gram import Gram
from mercer.gram.landmark_map import LandmarkMap
from mercer.kernels.base import Kernel
from mercer.kernels.domain import Domain
from mercer.kernels.parameters import fixed
from mercer.report import Method, Plan, TraceError, note
from mercer.runtime.config import config, memory_budget, settings
from mercer.runtime.progress import progress
from mercer.runtime.seeds import seed_of
from mercer.solvers.landmarks.basis import independent
from mercer.solvers.landmarks.certificate import Accuracy, RestrictedMinimum
from mercer.solvers.landmarks.features import Features
from mercer.solvers.landmarks.posterior import MOST_FEATURES
from mercer.solvers.landmarks.rejection import random_pivots
from mercer.solvers.result import Stop

#: Seconds that an exact fit may take, by its plan, before "auto" takes landmarks.
_SECONDS_OF_AN_EXACT_FIT = 60.0
#: "auto" takes 20 √n landmarks, and never more than these.
_PER_ROOT, _MOST_LANDMARKS = 20.0, 200_000
#: Where n M² products are added up, "auto" takes no more than these: from there on, passes are faster.
_MOST_SQUARED = 4_000
#: Points up to which one product with the matrix of all of them is a second's work, and gives the bound.
#: Comparing two objects may take as long as comparing a hundred pairs of vectors.
_BOUND_POINTS, _BOUND_OBJECTS = 20_000, 2_000
#: Ends of a fit after which nobody waits for the bound.
_CUT_SHORT = Stop.MAX_TIME, Stop.INTERRUPTED
#: Candidates per landmark among which pivots are chosen.
_CANDIDATES = 10
#: Landmarks, and rows, on which a plan tries what they leave of K: a tenth of a second's work.
_TRIED, _TRIED_OBJECTS = 500, 100


@dataclass(frozen=True)
class Landmarks:
    """How many landmarks, and how they are chosen.

    Parameters
    ----------
    number : how many of the points
    choice : "uniform", each set of points as likely as any other; "pivoted", one after the other, with a
        probability in proportion to what those before do not explain of k(x, x) (randomly pivoted Cholesky),
        among ten times as many points drawn at random
    random_state : a seed

    >>> Landmarks(500, "pivoted")
    Landmarks(number=500, choice='pivoted', random_state=0)
    """

    number: int
    choice: str = "uniform"
    random_state: Any = 0

    def __post_init__(self) -> None:
        is_whole = isinstance(self.number, int | np.integer) and not isinstance(self.number, bool)
        if not is_whole or self.number < 1:
            raise InputError(f"the number of landmarks must be 1 or more, got {self.number!r}")
        if self.choice not in ("uniform", "pivoted"):
            raise InputError(
                f"choice must be 'uniform' or 'pivoted', got {self.choice!r}: pass one of the two"
            )
        seed_of(self.random_state)

    def choose(self, kernel: Kernel, X: Points, weight: np.ndarray) -> np.ndarray:  # (M,) positions
        """The positions of the landmarks among the points with a weight."""
        present = np.flatnonzero(weight)
        return present if self.number >= len(present) else np.sort(self.order(kernel, X, weight))

    def order(self, kernel: Kernel, X: Points, weight: np.ndarray) -> np.ndarray:  # (M,) positions
        """These positions in the order in which they are chosen: the first of them are fewer landmarks."""
        rng = np.random.default_rng(seed_of(self.random_state))
        present = np.flatnonzero(weight)
        number = min(self.number, len(present))
        if self.choice == "uniform":
            return rng.choice(present, number, replace=False)
        wanted = min(len(present), _CANDIDATES * number)
        candidates = np.sort(rng.choice(present, wanted, replace=False))
        gram = Gram(kernel, data.take(X, candidates), cache=0)
        pivots = random_pivots(gram, number, random_state=rng)
        if not len(pivots):
            raise InputError(
                "k(x, x) is 0 for every point to choose from, and f = 0 the only function: pass others, or "
                "another kernel"
            )
        return candidates[pivots]


def _is_landmarks(value: object) -> bool:
    if isinstance(value, str):
        return value == "auto"
    if isinstance(value, bool | float):
        return False
    if isinstance(value, int | np.integer):
        return bool(value >= 1)
    return isinstance(value, Landmarks) or (hasattr(value, "__len__") and getattr(value, "ndim", 1) > 0)


#: how many landmarks, "auto", how they are chosen, the points themselves, or their positions
LandmarksLike: TypeAlias = "int | str | Landmarks | Points | None"

#: the declared parameter
LANDMARKS: Any = fixed(
    None,
    "a number of landmarks, 'auto', Landmarks(…), points, or the positions of points",
    _is_landmarks,
    "e.g. 1000",
    optional=True,
)


class LandmarkMixin:
    """For estimators with the parameter ``landmarks``."""

    landmarks: Any
    kernel_: Kernel

    def _with_landmarks(
        self, X: Points, exact: Plan, passes: float, n_outputs: int, squares: float = 0.0
    ) -> Plan:
        """The exact plan, or one on landmarks; ``passes`` over the rows that a fit takes, about.

        ``squares``: for solvers that take the eigenvalues of Φ̃ᵀWΦ̃, how many times n M² operations they take.
        """
        if self.landmarks is None:
            return exact
        if not isinstance(self.landmarks, str):  # "auto" may take the exact problem.
            self._require_own_way()
        n = data.n_points(X)

        def plan(M: int, why: str) -> Plan:
            if lives_on_device(X):
                return device_landmark_plan(X, M, passes, n_outputs, why, squares)
            return landmark_plan(X, M, passes, n_outputs, why, squares)

        if isinstance(self.landmarks, str) and isinstance(X, DaskRows):
            return plan(_automatic(n, squares > 0), "the points are on a cluster")
        if isinstance(self.landmarks, str):
            if exact.memory <= memory_budget() and exact.seconds <= _SECONDS_OF_AN_EXACT_FIT:
                return exact
            slow = f"would take about {exact.seconds:.2g} s"
            why = slow if exact.memory <= memory_budget() else "does not fit the memory budget"
            return plan(_automatic(n, squares > 0), f"the exact solution {why}")
        return plan(_number_of(self.landmarks, n), "landmarks are asked for")

    def _measured(self, X: Points, plan: Plan) -> Plan:
        """The time of objects is known from a few of them."""
        if plan.method is not Method.LANDMARKS or data.n_columns(X) is not None:
            return plan
        return with_time_of_objects(plan, self.kernel_, X)

    def _trace_error(self, X: Points, plan: Plan) -> TraceError | None:
        """τ of the landmarks planned, or of a few hundred where these are more, on as many rows."""
        if plan.method is not Method.LANDMARKS:
            return None
        most = _TRIED_OBJECTS if self.kernel_.domain is Domain.OBJECTS else _TRIED
        number, n, rng = min(plan.landmarks, most), data.n_points(X), np.random.default_rng(0)
        rows = rng.choice(n, min(n, most), replace=False)
        given = self.landmarks
        if isinstance(given, str | int | np.integer | Landmarks):
            own = given if isinstance(given, Landmarks) else Landmarks(number)
            some = data.take(X, np.sort(rng.choice(n, min(n, _CANDIDATES * number), replace=False)))
            chosen = replace(own, number=number).choose(self.kernel_, some, np.ones(data.n_points(some)))
            Z = data.take(some, chosen)
        else:
            Z = self._landmark_points(X, np.empty(0))
            Z = data.take(Z, rng.choice(plan.landmarks, number, replace=False))
        with config(dtype="float64"):
            sampled = data.take(X, np.sort(rows))
            values = Gram(self.kernel_, sampled, cache=0).diag()
            phi, kept = LandmarkMap.of(self.kernel_, Z)
            left = phi.residual(sampled) if len(kept) else values  # k(z, z) may be 0 for every landmark.
        mean = max(float(values.mean()), np.finfo(np.float64).tiny)
        share = float(left.mean()) / mean
        # The error of a quotient of two means, which is 0 once every row was looked at.
        apart = (left - share * values) / mean
        error = float(apart.std()) * math.sqrt((1 - len(rows) / n) / max(len(rows) - 1, 1))
        return TraceError(share, error, number, len(rows))

    def _require_own_way(self) -> None:
        """Refuse parameters that say how the exact problem is to be solved."""
        for name, usual in (("solver", ("auto", "newton")), ("indefinite", ("refuse",))):
            given = getattr(self, name, usual[0])
            if given not in usual:
                raise InputError(
                    f"{name}={given!r} is for the exact problem, and landmarks={self.landmarks!r} is given: "
                    f"leave out one of the two"
                )

    def _landmark_points(self, X: Any, weight: np.ndarray, squared: bool = False) -> Any:
        """The landmarks themselves; ``squared``: for a solver that takes eigenvalues."""
        return self._landmarks_and_rows(X, weight, squared)[0]

    def _landmarks_and_rows(
        self, X: Any, weight: np.ndarray, squared: bool = False
    ) -> tuple[Any, np.ndarray | None]:
        """The landmarks, and where they are in X if each set of points was as likely as any other."""
        given, n = self.landmarks, data.n_points(X)
        if isinstance(given, str):
            given = _automatic(n, squared)
        if isinstance(given, int | np.integer):
            given = Landmarks(int(given))
        if isinstance(given, Landmarks):
            chosen = given.choose(self.kernel_, X, weight)
            return data.copied(data.take(X, chosen)), chosen if given.choice == "uniform" else None
        index = np.asarray(given) if not hasattr(given, "columns") else None
        if index is not None and index.ndim == 1 and index.dtype.kind in "iu":
            if index.size == 0 or index.min() < 0 or index.max() >= n:
                raise InputError(
                    f"landmarks are rows of X by their positions, 0 to {n - 1}, got {index!r}: pass such "
                    "numbers"
                )
            return data.copied(data.take(X, index)), None
        if self.kernel_.domain.is_vectors:
            given = data.as_vectors(given, "landmarks")
            if given.shape[1] != X.shape[1]:
                raise InputError(
                    f"landmarks have {given.shape[1]} columns and X has {X.shape[1]}: pass points like those "
                    "of X"
                )
        return data.copied(given), None


def _number_of(given: Any, n: int) -> int:
    if isinstance(given, Landmarks):
        return min(given.number, n)
    return min(int(given), n) if isinstance(given, int | np.integer) else data.n_points(given)


def _automatic(n: int, squared: bool = False) -> int:
    """20 √n, as far as the matrices of that order fit a half of the memory budget."""
    most, matrices = (_MOST_SQUARED, MATRICES_SQUARED) if squared else (_MOST_LANDMARKS, MATRICES)
    fits = math.isqrt(memory_budget() // (2 * matrices * 8))
    return int(max(1, min(n, _PER_ROOT * math.sqrt(n), fits, most)))


class Restricted:
    """The problem of a learner on its landmarks, ready for the solvers of `mercer.solvers.landmarks`."""

    rows: Any

    def __init__(
        self,
        kernel: Kernel,
        X: Points,
        Z: Points,
        fit_intercept: bool,
        rows: np.ndarray | None = None,
    ) -> None:
        """``rows``: where the landmarks are in X, if they were drawn at random from it."""
        self.kernel, self.X, self.n_landmarks = kernel, X, data.n_points(Z)
        with config(dtype="float64"):
            own = Gram(kernel, Z, cache=0)
        if lives_on_device(X):
            self._place(own, Z, fit_intercept, rows)
        else:
            self._prepare(own.dense(), Z, fit_intercept)
        if len(self.kept) < self.n_landmarks:
            note(
                f"{len(self.kept):,} of {self.n_landmarks:,} landmarks are used: the others are combinations "
                "of these"
            )
        self.diagonal = self.rows.diag()
        self.accuracy = Accuracy(
            rounding_of(kernel, X, settings().dtype),
            math.sqrt(float(self.diagonal.max(initial=0.0))),
            np.sqrt(own.diag()[self.kept]),
            rounding_of(kernel, X, "float64"),
        )

    def _place(self, own: Gram, Z: Points, fit_intercept: bool, rows: np.ndarray | None) -> None:
        """Put everything on the device."""
        from mercer.gram.backends.torch import where_of
        from mercer.gram.device.basis import independent_on_device, square_memory
        from mercer.gram.device.memory import DeviceRoom
        from mercer.gram.device.rows import DeviceBlocks

        room = DeviceRoom(where_of(settings().device))
        # The first landmarks stand for all in a posterior, and in the order of the rows they may be alike.
        order = np.arange(self.n_landmarks)
        if self.n_landmarks > MOST_FEATURES:
            order = np.random.default_rng(0).permutation(order)
            with config(dtype="float64"):
                own = Gram(self.kernel, data.take(Z, order), cache=0)
        kept, basis = independent_on_device(own, settings().dtype, room)
        self.kept = order[kept]
        self.points = data.take(Z, self.kept)
        needed = square_memory(len(self.kept))
        room.take(needed, "a preconditioner, and the next one", "take fewer landmarks")
        self.rows = DeviceBlocks(self.kernel, self.X, self.points, room)
        own_rows = None if rows is None else rows[self.kept]
        self.features = Features(self.rows, basis, fit_intercept, own_rows)
        note(f"values of K(X, Z) are {self.rows.label}")

    def _prepare(self, own: np.ndarray, Z: Points, fit_intercept: bool) -> None:
        """Prepare for our threads, or for a cluster."""
        kernel, X = self.kernel, self.X
        if not np.isfinite(own).all():
            raise InputError("k(z, z') is not finite for some landmarks: scale the data, or check the kernel")
        kept, basis = independent(own, settings().dtype)
        elsewhere = on_cluster(X, len(kept), 1)
        if elsewhere is not None:
            client = X.client if isinstance(X, DaskRows) else settings().cluster
            remedy = "take fewer landmarks, or larger workers with fewer threads"
            require_worker_memory(client, elsewhere[0], remedy)
            require_workers(client, lacks)
        #: which of the landmarks are used, in the order of ``points``
        self.kept = kept
        self.points = data.take(Z, kept)
        self.rows = RowBlocks(kernel, X, self.points)
        self.features = Features(self.rows, basis, fit_intercept)

    @contextmanager
    def telling(self, label: str, passes: int) -> Iterator[None]:
        """A bar of so many passes over the rows, for solvers without a `Control`."""
        with progress(passes, label) as bar:

            def follow(passes: int, **facts: Any) -> None:
                bar.total = max(passes, bar.total or 0)  # A sample of all rows takes passes, too.
                bar.advance(passes - bar.done, **facts)

            self.features.follow = follow
            try:
                yield
            finally:
                self.features.follow = None

    def spread(self, coef: np.ndarray) -> np.ndarray:  # (used, m) → (landmarks, m)
        """Coefficients of all landmarks, 0 of those that are not used."""
        out = np.zeros((self.n_landmarks, coef.shape[1]))
        out[self.kept] = coef
        return out

    def start(self, near: Expansion | None, functions: int | None) -> np.ndarray | None:  # (M + 1, m)
        """u of another function, or of so many, projected on the landmarks: w = T⁻ᵀf(Z).

        None where it is of points with other columns, or where there were more functions or fewer.
        """
        if near is None or near.coef.shape[1:] != (() if functions is None else (functions,)):
            return None
        if getattr(near.anchors, "shape", ())[1:] != getattr(self.points, "shape", ())[1:]:
            return None
        b = np.atleast_1d(near.intercept)
        values = near(self.points).reshape(len(self.kept), -1) - b
        w = self.features.basis.features(values)
        return np.vstack([w, b]) if self.features.fit_intercept else w

    def variance(self, weight: np.ndarray, mean: np.ndarray | None = None) -> float:  # (n,), (M,)
        """Σᵢ wᵢ ‖Φ(xᵢ) - φ̄‖² in all of feature space, φ̄ the mean of the features on the landmarks."""
        total = float(weight.sum())
        if mean is None:
            mean = self.features.basis.features(self.rows.adjoint(weight[:, None]))[:, 0] / total
        return float(weight @ self.diagonal) - total * float(mean @ mean)

    def bound(self, result: RestrictedMinimum, penalty: float) -> float | None:
        """How far above the minimum over all functions it is at most; None where that takes too long."""
        return self.bounds([result], penalty)[0]

    def bounds(self, results: Sequence[RestrictedMinimum], penalty: float) -> list[float | None]:
        """The bounds of several functions by one product with all of K, where points are few."""
        most = _BOUND_OBJECTS if self.kernel.domain is Domain.OBJECTS else _BOUND_POINTS
        if len(self.diagonal) > most or any(one.stopped in _CUT_SHORT for one in results):
            return [None] * len(results)
        with config(dtype="float64"):
            K = Gram(self.kernel, data.take(self.X, slice(None)), cache=0)
            products = K @ np.hstack([one.dual for one in results])
        cuts = np.cumsum([one.dual.shape[1] for one in results])[:-1]
        parts = np.split(products, cuts, axis=1)
        return [self._bound(one, Ks, penalty) for one, Ks in zip(results, parts, strict=True)]

    def _bound(self, result: RestrictedMinimum, Ks: np.ndarray, penalty: float) -> float:
        square = float((result.dual * Ks).sum())
        sizes = np.sqrt(np.maximum(self.diagonal, 0.0)) @ np.abs(result.dual)
        rounding = self.accuracy.values * float((sizes**2).sum())
        # What is taken off must not be more than the true ‖Φᵀs‖²: its rounding counts against it.
        off = self.accuracy.of_features(self.features.basis, result.dual)
        length = max(math.sqrt(result.dual_square) - off, 0.0)
        return result.gap + max(square + rounding - length**2, 0.0) / (2 * penalty)


def facts_of(result: RestrictedMinimum, unit: float = 1.0, bound: float | None = None) -> dict[str, Any]:
    """What a report says of a restricted fit."""
    return {
        "stopped": result.stopped,
        "iterations": result.iterations,
        "gap": unit * result.gap,
        "bound": None if bound is None else unit * bound,
    }
