r"""The perceptron's convergence proof as a picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mercer.data.types import Model
from mercer.errors import InputError
from mercer.plots import style
from mercer.plots.style import Axes, Display
from mercer.solvers.perceptron.proof import MistakeProof


@dataclass
class MistakeProofDisplay(Display):
    """jρ ≤ ⟨f_j, g⟩/‖g‖ ≤ ‖f_j‖ ≤ R√j over the number j of mistakes, on logarithmic axes.

    Where the line jρ meets the root R√j, at j = R²/ρ², there can be no further mistake.

    Parameters
    ----------
    proof : what ``Perceptron.proof`` and ``KernelPerceptron.proof`` give
    """

    proof: MistakeProof

    @classmethod
    def from_estimator(cls, model: Model, *separator: Any, ax: Axes = None) -> Self:
        """The display of a fitted perceptron, for the separator that was found or for another.

        What follows the model is passed on to ``model.proof``.

        >>> from mercer import Perceptron
        >>> X, y = [[0.0, 1.0], [2.0, 0.0]], [-1, 1]
        >>> model = Perceptron(fit_intercept=False).fit(X, y)
        >>> MistakeProofDisplay.from_estimator(model, [1.0, -1.0], 0.0, X, y).describe()
        '2 mistakes, of at most 8 by the bound. After each, the inner product with the separator lies above
        the line of slope 0.707 and the norm below the root of 4 times the number of mistakes.'
        """
        if not hasattr(model, "proof"):
            raise InputError(f"a proof is of a Perceptron or KernelPerceptron, got {type(model).__name__}")
        return cls(model.proof(*separator)).plot(ax)

    def _draw(self, ax: Axes) -> None:
        proof, M = self.proof, self.proof.mistakes
        j = np.arange(1, M + 1)
        end = proof.bound if np.isfinite(proof.bound) else 10.0 * max(M, 1)
        ends = np.array([1.0, max(1.3 * end, 2.0)])
        ax.plot(ends, ends**0.5 * proof.radius, "--", color=style.colour(1), linewidth=1.2, label="R√j")
        ax.plot(j, proof.norms[1:], color=style.colour(1), linewidth=2, label="‖f_j‖")
        ax.plot(j, proof.progress[1:], color=style.colour(0), linewidth=2, label="⟨f_j, g⟩/‖g‖")
        if proof.margin > 0:
            ax.plot(ends, ends * proof.margin, "--", color=style.colour(0), linewidth=1.2, label="jρ")
        ax.set(xscale="log", yscale="log")
        if np.isfinite(proof.bound):
            top = proof.radius * proof.bound**0.5
            ax.plot([proof.bound], [top], "o", color=style.ink(), markersize=5)
            ax.annotate(
                f"no more than {proof.bound:,.0f}", (proof.bound, top), xytext=(-8, 6),
                textcoords="offset points", ha="right", fontsize="small", path_effects=style.halo(),
            )  # fmt: skip
        ax.axvline(max(M, 1), color=style.faint(), linewidth=1)
        ax.annotate(
            f"{M:,} made", (max(M, 1), 0.02), xycoords=("data", "axes fraction"), xytext=(4, 0),
            textcoords="offset points", fontsize="small", path_effects=style.halo(),
        )  # fmt: skip
        ax.set(xlabel="mistakes j")
        style.tidy(ax)
        style.legend_above(ax)

    def describe(self) -> str:
        proof = self.proof
        bound = f"at most {proof.bound:,.0f} by the bound" if np.isfinite(proof.bound) else "no bound known"
        return (
            f"{proof.mistakes:,} mistakes, of {bound}. After each, the inner product with the separator lies "
            f"above the line of slope {proof.margin:.3g} and the norm below the root of "
            f"{proof.radius**2:.3g} times the number of mistakes."
        )
