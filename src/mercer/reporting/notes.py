r"""What a reader should know of a fit: the warnings that hold of the model as it is."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["fit_notes"]


def fit_notes(learner: Any) -> list[str]:
    """The warnings of an estimator's fit, and of the machine that its search fitted last, each once.

    A machine whose conditions are fulfilled within its tolerance is what was asked for, however it ended:
    that its time was up is then no news.

    >>> from mercer import SVC
    >>> fit_notes(SVC().fit([[0.0], [1.0]], [0, 1]))
    []
    """
    machine = getattr(learner, "model_", learner)
    found: list[str] = []
    for fitted in (learner, machine) if machine is not learner else (learner,):
        report = getattr(fitted, "report_", None)
        if report is not None:
            found += [text for text in report.warnings if not (_is_of_time(text) and _is_within(machine))]
    return list(dict.fromkeys(found))


def _is_of_time(text: str) -> bool:
    return "ran out of max_time" in text


def _is_within(machine: Any) -> bool:
    """Whether the conditions of optimality are violated by no more than the tolerance."""
    violation, tol = getattr(machine, "kkt_violation_", None), getattr(machine, "tol", None)
    return violation is not None and tol is not None and bool(np.max(violation) <= tol)
