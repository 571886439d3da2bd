r"""Control over long runs, as parameters that every iterative estimator has.

    max_time : seconds after which the best model so far is returned, with a warning
    progress : True for a bar, False for silence, a function that gets each event, None as configured
    checkpoint : path of a file that keeps the state of the run
    resume : whether to go on from that file, when it is there; the result is that of an uninterrupted run

Ctrl-C, like max_time, ends the run with the best model so far and a warning.
"""

from __future__ import annotations

import os
import re
from typing import Any

import joblib
from sklearn.exceptions import ConvergenceWarning

from mercer.cluster import DaskRows
from mercer.data.types import ProgressMode
from mercer.estimators.shared.parameters import RunParameters
from mercer.report import Journal, Report
from mercer.runtime.config import settings
from mercer.solvers.control import Control
from mercer.solvers.result import Stop

#: parameters that may differ between a run and the one that resumes it
_FREE = {"max_iter", "max_time", "progress", "checkpoint", "resume", "tol"}


def _digest(item: Any) -> str:
    """A hash of anything; what cannot be pickled (a lambda) is told by its text and its code."""
    if isinstance(item, DaskRows):
        item = item.digest()
    try:
        return str(joblib.hash(item))
    except Exception:
        text = re.sub(r" at 0x[0-9a-fA-F]+", "", repr(item))  # another process has other addresses
        parts = item if isinstance(item, list | tuple) else list(vars(item).values())
        if hasattr(item, "__code__"):
            cells = [cell.cell_contents for cell in item.__closure__ or ()]
            parts = [item.__code__.co_code, item.__code__.co_consts, item.__defaults__, *cells]
        return str(joblib.hash([text, *(_digest(part) for part in parts if part is not item)]))


class IterativeMixin(RunParameters):
    """For estimators whose fit may be watched, ended early and resumed; see the module."""

    #: how the fit went
    report_: Report

    def _control(self, label: str, total: int | None, *data: Any, progress: ProgressMode = None) -> Control:
        """The control of a fit on these data (points, targets, weights, the resolved kernel)."""
        return Control(
            label,
            total,
            max_time=self.max_time,
            progress=self.progress if progress is None else progress,
            checkpoint=self.checkpoint,
            resume=self.resume,
            identity="" if self.checkpoint is None else self._identity(*data),
        )

    def _identity(self, *data: Any) -> str:
        """A hash of everything that determines the result of a fit."""
        params = self.get_params(deep=False)  # type: ignore[attr-defined]
        chosen = [f"{name}={_digest(params[name])}" for name in sorted(params) if name not in _FREE]
        parts = [type(self).__name__, settings().dtype, *chosen, *map(_digest, data)]
        return str(joblib.hash(parts))

    def _warn_if_stopped(
        self, journal: Journal, stopped: Stop, iterations: int, what: str = "", **remedies: str
    ) -> None:
        """Say that the model is not the one that was asked for; ``what`` tells how far it came.

        ``remedies`` are advice in place of the usual, by why it stopped.
        """
        if stopped == Stop.CONVERGED:
            return
        cause, remedy = {
            Stop.INTERRUPTED: ("was interrupted", "fit again to go to the end"),
            Stop.MAX_TIME: (f"ran out of max_time={self.max_time} seconds", "raise max_time"),
            Stop.MAX_ITER: ("did not converge", "raise max_iter, or scale the data"),
            Stop.ROUNDING: ("was ended by rounding", "scale the data, or raise the penalty"),
        }[stopped]
        remedy = remedies.get(stopped, remedy)
        if self.checkpoint is not None:
            remedy += f"; resume=True goes on from {os.fspath(self.checkpoint)!r}"
        journal.early = (
            f"{type(self).__name__} {cause} after {iterations} iterations{', ' * bool(what) + what}: "
            f"the model is the best so far; {remedy}"
        )
        journal.warn(journal.early, ConvergenceWarning)
