r"""The method of multipliers on landmarks: losses with kinks, with a certificate.

Minimise  P(w, b) = Σᵢ wᵢ L(yᵢ, Fᵢ) + (λ/2) ‖w‖²,   F = Φw + b
Iteration as in `solvers.risk.multipliers`: Moreau's envelope of L is minimised by `restricted_newton`, and
          its gradient is the next s
Stop      when gap = P - D ≤ tol · max(|P|, λ‖w‖²/2), D(s) = -Σ wᵢ L*(yᵢ, sᵢ/wᵢ) - ‖Φᵀs‖²/(2λ), s feasible
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import numpy as np

from mercer.losses import Loss
from mercer.solvers.control import Control, State, expected
from mercer.solvers.landmarks.certificate import Accuracy, RestrictedMinimum
from mercer.solvers.landmarks.features import Features
from mercer.solvers.landmarks.newton import restricted_newton
from mercer.solvers.result import Stop
from mercer.solvers.risk.certificate import Multipliers, WeightedRisk
from mercer.solvers.risk.multipliers import Envelope, growth, widths
from mercer.solvers.risk.objective import best_intercept

#: Iterations in a row without progress, after which rounding is blamed.
_ITERATIONS_WITHOUT_PROGRESS = 6
#: A gap that rounding keeps above the tolerance, relative to the objective, is small all the same up to this.
_CLOSE = 1e-3


def restricted_risk(
    features: Features,
    loss: Loss,
    y: np.ndarray,  # (n,)
    weight: np.ndarray,  # (n,) ≥ 0
    penalty: float,
    *,
    tol: float = 1e-6,
    max_iter: int = 100,
    control: Control | None = None,
    accuracy: Accuracy | None = None,
    trace: float = 0.0,
) -> RestrictedMinimum:
    """Minimise P: by Newton's method where L is smooth, else by multipliers.

    ``trace`` is Σ wᵢ k(xᵢ, xᵢ), or 0 where that is not known.
    """
    control, accuracy = Control() if control is None else control, accuracy or Accuracy()
    risk = WeightedRisk(loss, y, weight)
    dual = Multipliers(risk, features.fit_intercept)
    risk.lowest = dual.dual_risk(np.zeros_like(weight))
    if loss.smooth:
        return restricted_newton(
            features, risk, penalty, tol=tol, max_iter=max_iter, control=control, accuracy=accuracy
        )
    sigma, most = widths(risk, penalty, trace)
    best: _Certified | None = None
    if control.restored is None:
        state = _State.begin(features, risk, sigma)
    else:
        state, best = _restore(control.restored, features)
    first = None if best is None else (state.iterations, best.gap)
    while (stopped := _stop(state, best, control, tol, max_iter)) is None:
        envelope = Envelope(risk, state.s, state.sigma)
        size = max(abs(best.objective), 1e-300) if best is not None else 1.0
        gap = best.gap / size if best is not None else 1.0
        inner = restricted_newton(
            features,
            envelope,
            penalty,
            tol=max(1e-13, min(1e-3, 1e-2 * gap) * 0.1**state.waited),
            max_iter=50,
            start=state.u,
            control=control.inner(),
        )
        found = _Certified.of(features, risk, dual, envelope, penalty, inner, accuracy)
        is_better = best is None or found.gap < 0.7 * best.gap
        is_rounded = inner.stopped == Stop.ROUNDING  # A larger σ would only make it worse.
        waited = 0 if is_better else state.waited + 1 + is_rounded
        best = found if best is None or found.gap < best.gap else best
        if control.stopped:
            continue
        state = _State(
            u=found.u,
            s=found.result.dual[:, 0],
            sigma=state.sigma if is_rounded else min(state.sigma * growth(inner.iterations), most),
            iterations=state.iterations + 1,
            waited=waited,
        )
        begun, largest = first = (state.iterations, best.gap) if first is None else first
        aim = tol * max(abs(best.objective), best.half_square)
        control.step(
            _saved(state, best, features),
            expected=begun + expected(state.iterations - begun, largest, best.gap, aim),
            gap=best.gap,
            objective=best.objective,
        )
    assert best is not None
    if stopped == Stop.CONVERGED and best.gap > max(tol, _CLOSE) * abs(best.objective) + 3 * best.least:
        stopped = Stop.ROUNDING
    rounded = best.gap > tol * abs(best.objective) + 3 * best.least
    return replace(
        best.result, stopped=stopped, iterations=state.iterations, passes=features.passes, rounded=rounded
    )


def _stop(state: _State, best: _Certified | None, control: Control, tol: float, max_iter: int) -> Stop | None:
    """Why the run ends here; None where it goes on."""
    if best is not None and best.gap <= tol * max(abs(best.objective), best.half_square):
        return Stop.CONVERGED
    if state.waited >= _ITERATIONS_WITHOUT_PROGRESS:
        return Stop.CONVERGED
    if state.iterations >= max_iter or (control.stopped and best is not None):
        return control.stopped or Stop.MAX_ITER
    return None


@dataclass(frozen=True, eq=False)
class _State:
    """What the next iteration reads."""

    u: np.ndarray
    s: np.ndarray
    sigma: float
    iterations: int
    waited: int

    @classmethod
    def begin(cls, features: Features, risk: WeightedRisk, sigma: float) -> _State:
        u, n = np.zeros((features.size, 1)), features.n
        if features.fit_intercept:
            u[-1] = best_intercept(risk, np.zeros(n), 0.0)
        return cls(u, np.zeros(n), sigma, 0, 0)


@dataclass(frozen=True, eq=False)
class _Certified:
    """A function with the values of both problems."""

    u: np.ndarray
    result: RestrictedMinimum
    #: λ‖w‖²/2
    half_square: float
    #: what the rounding of b does to the gap
    least: float

    @property
    def gap(self) -> float:
        return self.result.gap

    @property
    def objective(self) -> float:
        return self.result.objective

    @classmethod
    def of(
        cls,
        features: Features,
        risk: WeightedRisk,
        dual: Multipliers,
        envelope: Envelope,
        penalty: float,
        inner: RestrictedMinimum,
        accuracy: Accuracy,
    ) -> _Certified:
        """P with the loss itself and the best b, D at the multipliers: a pass."""
        M, F = features.basis.size, inner.values[:, 0]
        b = inner.intercept
        if features.fit_intercept:
            b = np.atleast_1d(best_intercept(risk, F - b[0], float(b[0])))
            F = F - inner.intercept[0] + b[0]
        w = features.basis.weights(inner.coef)
        half_square = 0.5 * penalty * float((w * w).sum())
        gradient = envelope.gradient(inner.values[:, 0])
        s = dual.feasible(envelope.multipliers(inner.values[:, 0], gradient))
        adjoint = features.adjoint(s[:, None])
        e = np.broadcast_to(accuracy.of_values(inner.coef, b), F.shape)
        # P - D = R(F) + R*(s) - ⟨s, Φw⟩ + ‖λw + Φᵀs‖²/(2λ), and rounding as in `certificate`.
        rest = max(risk.value(F) - dual.dual_risk(s) - float(s @ (F - b[0])), 0.0)
        length = float(np.linalg.norm(penalty * w + adjoint[:M]))
        length += accuracy.of_features(features.basis, s[:, None])
        excess, moved = risk.excess(F, e, s), float(np.abs(s) @ e)
        own = np.broadcast_to(accuracy.of_intercept(b), F.shape)
        least = max(risk.excess(F, own, s), float(np.abs(s) @ own))
        between = 0.5 * penalty * accuracy.of_square(inner.coef)
        objective = risk.value(F) + half_square
        gap = rest + length**2 / (2 * penalty) + max(excess, moved) + between
        gap = min(gap, objective - risk.lowest + excess + moved + between)
        result = replace(
            inner,
            intercept=b,
            values=F[:, None],
            dual=s[:, None],
            dual_square=float((adjoint[:M] ** 2).sum()),
            objective=objective,
            gap=gap,
        )
        return cls(features.joined(inner.coef, b), result, half_square, least)


# --- checkpoints -----------------------------------------------------------------------------------------


def _saved(state: _State, best: _Certified, features: Features) -> Callable[[], State]:
    facts: State = {
        **vars(state),
        "passes": features.passes,
        "best_u": best.u,
        "best_half_square": best.half_square,
        "best_least": best.least,
        **{f"result_{name}": value for name, value in vars(best.result).items()},
    }
    return lambda: facts


def _restore(facts: State, features: Features) -> tuple[_State, _Certified]:
    features.passes = int(facts["passes"])
    result = {name: facts[f"result_{name}"] for name in (field.name for field in fields(RestrictedMinimum))}
    found = RestrictedMinimum(**{**result, "stopped": Stop(result["stopped"])})
    state = _State(**{field.name: facts[field.name] for field in fields(_State)})
    sizes = float(facts["best_half_square"]), float(facts["best_least"])
    return state, _Certified(facts["best_u"], found, *sizes)
