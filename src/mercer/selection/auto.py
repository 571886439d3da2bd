r"""What the estimators that choose a kernel share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length, validate_data

from mercer.data import points as data
from mercer.data.apart import Apart
from mercer.data.types import Points, ProgressMode, Seed, Targets
from mercer.errors import InputError
from mercer.estimators.shared.base import is_pairwise, with_matrix
from mercer.estimators.shared.iterative import IterativeMixin
from mercer.kernels.base import Kernel
from mercer.kernels.names import as_kernel
from mercer.kernels.objects import Precomputed
from mercer.kernels.vectors.stationary import Gaussian
from mercer.report import Journal
from mercer.runtime.config import settings, within
from mercer.runtime.seeds import seed_of
from mercer.selection.families import Family, default_families, family
from mercer.selection.known import KnownParts
from mercer.selection.search import Clock, ScoreOf, Search, Trial
from mercer.solvers.control import Control
from mercer.solvers.result import Stop

AUTO = {name: IterativeMixin._declared[name] for name in ("max_time", "progress")}

_LEAST_POINTS = 4  # two halves of two points each
_LEAST_KNOWN = 1000  # A search takes all points as they are rather than fewer with parts that are known.


def is_mixed_frame(X: Points) -> bool:
    """Whether X is a data frame with a column that holds other things than numbers.

    >>> is_mixed_frame(np.array([["a", "b"]])), is_mixed_frame([[1.0, 2.0]])
    (False, False)
    """
    if not data.is_frame(X):
        return False
    for dtype in X.dtypes:
        kind = getattr(dtype, "kind", None)  # Only dtypes of pandas have it.
        is_number = kind in "biuf" if kind is not None else dtype.is_numeric() or str(dtype) == "Boolean"
        if not is_number:
            return True
    return False


class AutoMixin:
    """For estimators with the parameters kernel, max_time, random_state and progress."""

    kernel_: Kernel
    #: a `mercer.tables.TableFeatures`, where the points were a frame with columns of several kinds
    features_: Any

    def __init__(
        self,
        kernel: Any = "auto",
        *,
        max_time: float | None = None,
        random_state: Seed = 0,
        progress: ProgressMode = None,
    ) -> None:
        self.kernel = kernel
        self.max_time = max_time
        self.random_state = random_state
        self.progress = progress

    # --- frames with columns of several kinds --------------------------------------------------------------

    def _validate_fit(self, X: Points, y: Targets = "no_validation", *rest: Any, **options: Any) -> Any:
        """Validate as every estimator does; ``kernel="auto"`` takes texts, categories and dates as well.

        A frame with such columns becomes numbers first, as `mercer.tables.TableFeatures` does it.
        """
        vars(self).pop("features_", None)
        if not (isinstance(self.kernel, str) and self.kernel == "auto" and is_mixed_frame(X)):
            return super()._validate_fit(X, y, *rest, **options)  # type: ignore[misc]
        from mercer.tables.features import TableFeatures

        targets = None if isinstance(y, str) else np.asarray(y)
        check_consistent_length(X, targets)
        self.features_ = TableFeatures().fit(X, targets)
        found = super()._validate_fit(self.features_.transform(X), y, *rest, **options)  # type: ignore[misc]
        validate_data(self, X, skip_check_array=True)  # The names of the columns are those of the frame.
        return found

    def _validate_new(self, X: Points) -> Any:
        if not hasattr(self, "features_"):
            return super()._validate_new(X)  # type: ignore[misc]
        return self.features_.transform(X)

    # --- kernels -------------------------------------------------------------------------------------------

    def _given(self) -> list[Kernel]:
        """The kernels that were asked for; an empty list stands for the default ones."""
        if isinstance(self.kernel, str) and self.kernel == "auto":
            features = getattr(self, "features_", None)
            return [] if features is None or not features.objects_ else features.kernels("auto")
        given = list(self.kernel) if isinstance(self.kernel, list | tuple) else [self.kernel]
        if not given:
            raise InputError("kernel is an empty list: pass 'auto', a kernel, or a list of at least one")
        kernels = [as_kernel(kernel, "scale", 3, 1.0) for kernel in given]
        if len({is_pairwise(kernel) for kernel in kernels}) > 1:
            raise InputError(
                "kernel lists 'precomputed' beside kernels of points, got "
                f"{self.kernel!r:.200}: X is a matrix of kernel values or holds points, so list one kind"
            )
        return kernels

    def _kernel(self) -> Kernel:
        given = self._given()
        return given[0] if given else Gaussian()

    def _families(self, X: Points) -> Iterator[Family]:
        """Each is made when it is asked for: the words of long texts take a while to weigh."""
        given = self._given()
        if not given:
            yield from default_families(X)
            return
        if is_pairwise(given[0]):  # X holds indices into the matrix of the first kernel, which all take.
            waits = [is_pairwise(part) and not part.children() for part in given[0].parts()]
            K = list(self.kernel_.parts())[waits.index(True)].get_params()["matrix"]
            given = [with_matrix(kernel, K) for kernel in given]
        yield from (family(kernel.__sklearn_clone__().resolve(X)) for kernel in given)

    def _search(
        self,
        X: Points,
        Y: np.ndarray,
        score_of: Callable[[Points, np.ndarray], ScoreOf],
        clock: Clock,
        journal: Journal,
        work: float = np.inf,
        apart: Apart | None = None,
    ) -> tuple[Search, list[Trial]]:
        """A search that takes at most half of the time, its best trials first; Ctrl-C ends it after one.

        ``score_of`` takes the points of the search and which of all points they are. A matrix of kernel
        values is compared here: to send it would take longer.
        """
        has_matrix = any(isinstance(part, Precomputed) for part in self.kernel_.parts())
        control = Control("kernels", None, max_time=self.max_time, progress=self.progress)
        with within(cluster=None if has_matrix else settings().cluster), control:

            def step(trial: Trial) -> bool:
                best = min(search.trials, key=lambda t: (-t.points, t.rank))
                control.step(best=best.name, error=best.score.error, tried=len(search.trials))
                return control.stopped != Stop.INTERRUPTED

            families, rows, order = self._families(X), np.arange(len(Y)), None
            known = self._known_parts(X, clock)
            if known is not None:
                rows = known.rows
                order, X, families = np.arange(len(rows)), known.X, map(known.family, self._given())
            search = Search(
                X,
                Y[rows],
                score_of(X, rows),
                clock=clock.part(0.5),
                seed=self._seed(),
                order=order,
                work=work,
                step=step,
                apart=None if apart is None else apart.take(rows),
            )
            others = np.random.default_rng(self._seed()).permutation(np.setdiff1d(np.arange(len(Y)), rows))
            search.rows = np.concatenate([rows[search.order], others])
            best = search.run(families)
        if control.stopped == Stop.INTERRUPTED:
            search.stopped = Stop.INTERRUPTED
            journal.warn(
                f"interrupted: the best of {len(search.trials)} trials is fitted, without the others"
            )
        elif search.is_cut:
            search.stopped = Stop.MAX_TIME
        return search, best

    def _known_parts(self, X: Points, clock: Clock) -> KnownParts | None:
        """What the search need not compute again, of points drawn at random where there are many.

        None where there is none, and where a cluster would have to be sent it.
        """
        kernels = self._given()
        found = KnownParts.of(X, kernels) if kernels and settings().cluster is None else None
        if found is None:
            return None
        points = found.affordable(kernels, clock.left)
        if points < min(_LEAST_KNOWN, len(found.X)):
            return None
        return found.take(np.random.default_rng(self._seed()).permutation(len(found.X))[:points])

    @staticmethod
    def _tell_of_fewer(points: int, n: int, journal: Journal) -> None:
        journal.warn(
            f"the last fit takes {points:,} of {n:,} points, as many as memory and time allow: raise "
            "max_time, or the memory budget with mercer.config(memory=…)"
        )

    def _require_points(self, X: Points) -> None:
        if data.n_points(X) < _LEAST_POINTS:
            raise InputError(
                f"a search cuts the points in halves and folds and takes at least {_LEAST_POINTS} of them, "
                f"got n_samples={data.n_points(X)}: add points, or fit one kernel"
            )

    def _seed(self) -> int:
        return seed_of(self.random_state)
