"""The room "spectrum": φ(r) and its Fourier transform v(ω), for a kernel nowhere negative (Bochner).

>>> found = spectrum(Asked({"kernel": "gaussian(sigma=1)"}))
>>> found["density"][0], found["facts"][0]["value"]
(1.0, 'not negative here')
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.certify import density
from mercer.certify.bochner import Density
from mercer.errors import InputError
from mercer.kernels.base import Kernel
from mercer.lab.asked import Asked
from mercer.lab.script import script
from mercer.lab.seen import fact, plain, short
from mercer.lab.typed import asked_about

#: Places at which a curve is computed, close enough for a screen.
_STEPS = 241
#: The dimension that may be asked for, at most.
_HIGHEST_DIMENSION = 16
#: φ and v are drawn as far as they reach this share of their largest value
_PROFILE_SEEN, _DENSITY_SEEN = 1e-2, 2e-3


def spectrum(asked: Asked) -> dict[str, Any]:
    """φ(r), v(ω) with its error, and where v is negative by more than that."""
    typed = asked_about(asked.text("kernel"))
    dim = asked.whole("dim", 1, 1, _HIGHEST_DIMENSION)
    if not typed.kernel.is_resolved():
        raise InputError(f"{typed.kernel!r} waits for data: write a number for its width, as in gaussian(1)")
    v = density(typed.kernel, dim)
    r = np.linspace(0.0, _reach(lambda at: _profile(typed.kernel, dim, at), _PROFILE_SEEN), _STEPS)
    omega = np.linspace(0.0, _reach(v, _DENSITY_SEEN), _STEPS)
    values, errors = np.asarray(v(omega)), np.asarray(v.error(omega))
    return plain(
        {
            "r": short(r),
            "profile": short(_profile(typed.kernel, dim, r)),
            "omega": short(omega),
            "density": short(values),
            "error": short(errors),
            "facts": _facts(v, omega, values, errors),
            "notes": [],
            "kernel": {"text": typed.text, "resolved": repr(typed.kernel)},
            "code": script(
                typed,
                ["from mercer.certify import density"],
                [
                    f"v = density({typed.source}, dim={dim})",
                    f"omega = np.linspace(0.0, {float(omega[-1])!r}, {_STEPS})",
                    'print("v(0) =", v(0.0), "and its least value here is", v(omega).min())',
                ],
            ),
        }
    )


def _profile(kernel: Kernel, dim: int, r: np.ndarray) -> np.ndarray:
    X = np.zeros((len(r), dim))
    X[:, 0] = r
    return np.asarray(kernel(np.zeros((1, dim)), X)[0])


def _reach(f: Any, share: float) -> float:
    """How far f is worth drawing: the last place where it is a share of its largest value, and some more."""
    at = np.concatenate([[0.0], np.geomspace(1e-2, 1e2, 161)])
    sizes = np.abs(np.asarray(f(at)))
    last = at[np.flatnonzero(sizes >= share * np.nanmax(sizes))[-1]]
    return float(np.clip(1.15 * last, 0.05, 60.0))


def _facts(v: Density, omega: np.ndarray, values: np.ndarray, errors: np.ndarray) -> list[dict[str, Any]]:
    below = np.flatnonzero(values + errors < 0)
    least = int(np.argmin(values))
    where = "as far as it is drawn; the certificate says whether that is proved"
    if len(below):
        where = f"by more than its error at ω = {omega[below[0]]:.3g}: no kernel in ℝ^{v.dim}"
    verdict = "negative" if len(below) else "not negative here"
    how = "a formula" if v.is_exact else "a numerical transform, with its error"
    found = [
        fact("v(ω)", verdict, where),
        fact("least value", float(values[least]), f"at ω = {omega[least]:.3g}, ± {errors[least]:.1g}"),
        fact("v(0)", float(values[0]), how),
    ]
    if values[-1] > 0:
        cost = float(values[0] / values[-1])
        found.append(
            fact(f"cost of a wave of ω = {omega[-1]:.3g}", cost, "v(0)/v(ω): in ‖f‖², beside one of ω = 0")
        )
    return found
