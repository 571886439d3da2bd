r"""What theory and the solver say of the fit: margin and bounds, the plan and how it went."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.data import points as data
from mercer.gram import Gram
from mercer.reporting.case import Case
from mercer.reporting.page import Html, definitions, note, number, paragraph, percent, words
from mercer.runtime.config import format_bytes
from mercer.solvers.result import Stop


def margin_section(case: Case) -> list[Html]:
    """The section about the margin of perceptrons and support vector machines."""
    machine = case.found.machine
    if hasattr(machine, "mistakes_"):
        return _perceptron(machine)
    if case.found.has_margin:
        return _machine(case, machine)
    if hasattr(machine, "support_"):
        return _support_only(case, machine)
    return [paragraph("This learner has no margin: margins are of perceptrons and support vector machines.")]


def _perceptron(machine: Any) -> list[Html]:
    mistakes, bound, margin = (
        np.atleast_1d(np.asarray(getattr(machine, name), dtype=np.float64))
        for name in ("mistakes_", "bound_", "margin_")
    )
    facts: list[tuple[str, Any]] = [
        ("mistakes in training", int(mistakes.sum())),
        ("passes", int(machine.n_iter_)),
        ("separated everything", bool(machine.converged_)),
        ("smallest margin", float(np.nanmin(margin)) if np.isfinite(margin).any() else None),
    ]
    parts = [definitions(facts)]
    if np.isfinite(bound).any():
        worst = int(np.nanargmax(bound))
        parts.append(
            paragraph(
                "The perceptron's theorem bounds the mistakes by ‖g‖² max k(x, x) for any g that separates "
                f"with margin 1. With the g that was found this is {number(float(bound[worst]))}, and "
                f"{number(int(mistakes[worst]))} mistakes were made"
                + (" (of the class with the largest bound)." if len(bound) > 1 else ".")
            )
        )
    else:
        parts.append(
            paragraph(
                "The classes were not separated, so the bound on the number of mistakes says nothing here."
            )
        )
    return parts


def _machine(case: Case, machine: Any) -> list[Html]:
    margin = np.atleast_1d(np.asarray(machine.margin_, dtype=np.float64))
    fitted = int(machine.shape_fit_[0])
    support = len(machine.support_)
    some = data.take(case.points, case.some(1000))
    radius = float(np.sqrt(np.max(Gram(case.found.kernel, some, cache=0).diag())))
    facts: list[tuple[str, Any]] = [
        ("margin 2/‖f‖" if len(margin) == 1 else "narrowest margin 2/‖f‖", float(margin.min())),
        ("support vectors", f"{support:,} of {fitted:,}"),
        ("duality gap, at most", float(np.max(machine.dual_gap_))),
        ("largest violation", float(np.max(machine.kkt_violation_))),
        ("radius √max k(x, x)", radius),
    ]
    if len(margin) > 1:
        facts.insert(1, (f"median margin of {len(margin)} problems", float(np.median(margin))))
    share = percent(support / fitted)
    b = np.ravel(machine.intercept_)
    ratio = float(np.max((4 / margin**2 + b**2) * (radius**2 + 1)))
    return [
        definitions(facts),
        paragraph(
            "A point that is no support vector can be left out and nothing changes, so that the error left "
            f"out is at most the share of support vectors: {share}. That is a bound; the error above is the "
            "estimate."
        ),
        paragraph(
            f"A perceptron makes at most (‖f‖² + b²)(r² + 1) = {number(ratio)} mistakes on points outside "
            "the margin, r their radius: a small number means an easy problem."
        ),
    ]


def _support_only(case: Case, machine: Any) -> list[Html]:
    margin = float(np.min(np.atleast_1d(getattr(machine, "margin_", np.nan))))
    fitted = int(machine.shape_fit_[0])
    return [
        definitions([("support vectors", f"{len(machine.support_):,} of {fitted:,}"), ("2/‖f‖", margin)]),
        paragraph("Points that are no support vectors could be left out: the model would be the same."),
    ]


#: why a solver ended, in words
_ENDS = {
    Stop.MAX_TIME: "time was up",
    Stop.MAX_ITER: "too many iterations",
    Stop.ROUNDING: "at the limit of rounding",
}


def _seconds(taken: float, planned: float) -> str:
    # An estimate below that is one of the time that a call takes, and says nothing about the work.
    return f"{taken:.3g} s" + (f" (planned: {planned:.2g} s)" if planned >= 0.5 else "")


def fit_section(case: Case) -> list[Html]:
    """Solver, time, memory, notes; the model's parameters."""
    parts: list[Html] = []
    report = getattr(case.found.machine, "report_", None) or getattr(case.found.learner, "report_", None)
    if report is None:
        parts.append(paragraph("The model keeps no record of its fit."))
    else:
        plan = report.plan
        facts: list[tuple[str, Any]] = [
            ("solver", plan.solver),
            ("ended", _ENDS.get(report.stopped, report.stopped)),
            ("time", _seconds(report.time, plan.seconds)),
            ("memory of the plan", format_bytes(plan.memory)),
            ("points", int(plan.points)),
            ("iterations", int(report.iterations) or None),
            ("precision", plan.dtype),
            ("threads", int(plan.threads)),
            ("objective", report.objective),
            ("above the minimum by at most", report.gap),
        ]
        parts.append(definitions([(name, value) for name, value in facts if value is not None]))
        if plan.why:
            parts.append(paragraph(f"Why so: {'; '.join(plan.why)}."))
    parts += _search(case)
    parts += [note(text) for text in case.notes]
    parts.append(Html("<h3>Parameters</h3>"))
    text = " ".join(repr(case.found.machine).split())
    parts.append(Html(f"<pre>{words(text[:2000])}</pre>"))
    if case.found.steps is not None:
        names = ", ".join(type(step).__name__ for _, step in case.found.steps.steps)
        parts.append(paragraph(f"Steps before the learner: {names}."))
    return parts


def _search(case: Case) -> list[Html]:
    """How the search before the last fit went."""
    learner = case.found.learner
    report, trials = getattr(learner, "report_", None), getattr(learner, "trials_", None)
    if case.found.machine is learner or report is None or trials is None:
        return []
    ended = "; its time was up" if report.stopped == Stop.MAX_TIME else ""
    return [paragraph(f"The search before it made {len(trials):,} trial{'s' * (len(trials) != 1)}{ended}.")]
