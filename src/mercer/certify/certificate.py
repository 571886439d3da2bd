r"""What ``certify`` returns: a verdict, and what it rests on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from mercer.certify.conditional import what_it_allows
from mercer.certify.proof import Step
from mercer.certify.schoenberg import Frequency
from mercer.data import points as data
from mercer.data.types import Points
from mercer.kernels.base import Kernel
from mercer.notebook import Shown

Verdict = Literal["proved", "refuted", "unknown"]
_POINTS_SHOWN = 24  # points of a witness that are printed: about a screen


@dataclass(frozen=True, eq=False)
class Certificate(Shown):
    """A verdict on a kernel or a matrix, with what it rests on; print it to read it.

    >>> from mercer import Sigmoid, certify
    >>> certify(Sigmoid(eta=1.0, nu=-1.0))
    Certificate(verdict='refuted', reason='k(x, x) = -0.469945 < 0 at one point')
    """

    _shown_by = "mercer.certify.folding"
    verdict: Verdict
    reason: str
    #: what the verdict is on: a kernel, or a matrix
    kernel: Kernel | np.ndarray = field(repr=False)
    #: proved: the derivation
    steps: Step | None = field(default=None, repr=False)
    #: refuted: the witness, as few points as we can find
    points: Points | None = field(default=None, repr=False)
    #: refuted: c of length 1 with cᵀKc < 0; None for a kernel that is not symmetric
    vector: np.ndarray | None = field(default=None, repr=False)
    #: refuted: all eigenvalues of K at the points, the largest first
    eigenvalues: np.ndarray | None = field(default=None, repr=False)
    #: refuted: where the spectral density in that dimension is negative, if such a frequency was found
    frequency: Frequency | None = field(default=None, repr=False)
    #: the largest dimension in which the kernel is proved positive definite, if it is in some and not in all
    dimension: int | None = field(default=None, repr=False)
    #: not proved: the order in which it is conditionally positive definite, if that is proved
    conditional: int | None = field(default=None, repr=False)
    #: the derivation of that
    conditional_steps: Step | None = field(default=None, repr=False)

    def __bool__(self) -> bool:
        raise TypeError(
            "a certificate has three verdicts and no truth value: write certificate.verdict == 'proved'"
        )

    def __str__(self) -> str:
        steps = [] if self.steps is None else [str(self.steps)]
        return "\n".join([*self.statements(), *steps, *self.witness()])

    def statements(self) -> list[str]:
        """The verdict in words, and what holds instead."""
        subject, definite = repr(self.kernel), "positive definite"
        if isinstance(self.kernel, np.ndarray):
            n = len(self.kernel)
            subject, definite = f"the {n} × {n} matrix", "positive semidefinite"
        is_what = f"proved {definite}" if self.verdict == "proved" else self.verdict
        lines = [f"{subject} is {is_what}: {self.reason}"]
        return lines if self.conditional is None else [*lines, "it is " + what_it_allows(self.conditional)]

    def witness(self) -> list[str]:
        """The eigenvalues and the points that refute it, a line each; none where it is not refuted."""
        lines = []
        if self.eigenvalues is not None:
            shown = [f"{value:.6g}" for value in self.eigenvalues]
            if len(shown) > _POINTS_SHOWN:
                shown = [*shown[: _POINTS_SHOWN // 2], "…", *shown[-_POINTS_SHOWN // 2 :]]
            lines.append("eigenvalues: " + ", ".join(shown))
        if self.points is not None:
            n = data.n_points(self.points)
            telling = np.arange(n) if self.vector is None else np.flatnonzero(self.vector)
            for i in telling[:_POINTS_SHOWN]:
                weight = "" if self.vector is None else f"c = {self.vector[i]:.6g} "
                lines.append(f"{weight}at {_text(data.take(self.points, [i]))}")
            lines += [f"… and {len(telling) - _POINTS_SHOWN} more"] if len(telling) > _POINTS_SHOWN else []
        return lines


def _text(row: Any) -> str:
    """A point of a witness as text on one line."""
    table = row.toarray() if hasattr(row, "toarray") else row
    table = table.to_numpy() if hasattr(table, "to_numpy") else table
    point = table[0]
    text = repr(point.tolist() if isinstance(point, np.ndarray | np.generic) else point)
    return text if len(text) <= 100 else text[:99] + "…"
