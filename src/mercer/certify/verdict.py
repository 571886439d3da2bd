r"""The verdict on a kernel: proved, refuted, or unknown.

- **proved**: a derivation by theorems, rule by rule (``steps``);
- **refuted**: points, and a vector c with cᵀKc < 0 by more than rounding explains; or a frequency at which
  the spectral density is negative by more than its error, a theorem's bound (Bochner). Such points exist then
  too, but a smooth kernel may need too many to write down;
- **unknown**: neither. Well-behaved Gram matrices are evidence, and never make a kernel valid.

>>> from mercer import BallIndicator, Gaussian, Linear
>>> print(certify(Gaussian(sigma=1.0) * Linear()))
Gaussian(sigma=1.0) * Linear() is proved positive definite: a product of kernels (Schur)
Gaussian(sigma=1.0) * Linear(): a product of kernels (Schur)
├─ Gaussian(sigma=1.0): the Gaussian is the Fourier transform of a Gaussian measure (Bochner)
└─ Linear(): an inner product
>>> print(certify(BallIndicator(radius=1.0)))
BallIndicator(radius=1.0) is refuted: at 3 points its Gram matrix has the eigenvalue -0.414214 < 0
eigenvalues: 2.41421, 1, -0.414214
c = 0.5 at [1.0]
c = -0.707107 at [2.0]
c = 0.5 at [3.0]
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.certify.asked import Sampled, as_asked
from mercer.certify.bounds import Space
from mercer.certify.certificate import Certificate
from mercer.certify.closure import Setting, data_width, prove
from mercer.certify.conditional import conditional_order
from mercer.certify.formula import Prover
from mercer.certify.matrix import certify_matrix
from mercer.certify.proof import Open, Step
from mercer.certify.schoenberg import Frequency, negative_frequency, proved_dimension, wave_number
from mercer.certify.search import search
from mercer.certify.witness import Evidence, Witness, examine
from mercer.data.types import Points
from mercer.errors import InputError
from mercer.gram.sides import check_domain
from mercer.kernels.base import Kernel
from mercer.kernels.domain import Domain
from mercer.kernels.names import KernelLike
from mercer.kernels.objects import Precomputed
from mercer.kernels.sets.sets import SetKernel
from mercer.runtime.threads import single_threaded_blas

#: A density that is less negative, relative to its largest value, needs too many points for a witness.
_FAINTEST = -1e-3


def certify(kernel: KernelLike, points: Points | None = None, dim: int | None = None) -> Certificate:
    """Is it a kernel? Proved by the closure rules, refuted by points that witness it, or unknown.

    Parameters
    ----------
    kernel : what is asked about: a Kernel; a name such as "rbf" or a line of text as the command takes it; a
        matrix (an array or a list of rows), of which the question is whether it is positive semidefinite; a
        function φ(r) of one argument, the distance, for φ(‖x - x'‖); a function k(x, x') of two
    points : points to look at first, optional; for a kernel on objects the only ones that can refute it
    dim : how many columns the points have, optional: some kernels are positive definite in low
        dimensions only. By default that of ``points``; with neither, the reason names the largest.

    Examples
    --------
    >>> from mercer import Wendland
    >>> certify(Wendland(dim=3)).reason
    'positive definite in ℝ^m for m ≤ 3 (Wendland 1995), for points in ℝ^m, m ≤ 3'
    >>> certify(Wendland(dim=3), dim=5).reason.split("; ")  # doctest: +NORMALIZE_WHITESPACE
    ['in ℝ^5 its spectral density is -1.5e-09 < 0 at the frequency 26.1',
     'it is positive definite in ℝ^m for m ≤ 3']
    >>> certify("2*gaussian(sigma=1) + polynomial(3)").verdict, certify([[1.0, 2.0], [2.0, 1.0]]).verdict
    ('proved', 'refuted')
    >>> certify(lambda r: np.maximum(1 - r, 0)).dimension, certify(np.cos, dim=2).verdict
    (1, 'refuted')
    """
    if isinstance(kernel, list | tuple) or hasattr(kernel, "shape"):
        if points is not None or dim is not None:
            raise InputError("a matrix has no points and no dimension of its own: write certify(K)")
        return certify_matrix(kernel)
    kernel = as_asked(kernel)
    if points is None and isinstance(kernel, Precomputed) and kernel.matrix is not None:
        points = np.arange(len(kernel.matrix))
    if points is not None:
        points = check_domain(kernel, points, "points")
        kernel = kernel.resolve(points)
    dim = _dimension(kernel, points, dim)
    result = prove(kernel, Setting(dim, points))
    with single_threaded_blas():  # The matrices are too small for several threads.
        found = examine(kernel, points) if points is not None else None
        if isinstance(result, Step):
            return _proved(kernel, result, found)
        if isinstance(found, Witness):
            return _refuted(kernel, found, dim)
        return _searched(kernel, result, found, dim)


def _proved(kernel: Kernel, proof: Step, found: Witness | Evidence | None) -> Certificate:
    if isinstance(found, Witness):
        raise RuntimeError(
            f"mercer contradicts itself: {kernel!r} is proved ({proof.rule}), and yet {found.reason}. "
            "If it contains a function of yours, check that it returns the same values each time; "
            "otherwise please report this, with\n" + str(_refuted(kernel, found))
        )
    conditions = "".join(f", for {condition}" for condition in proof.conditions)
    dimension = _largest(kernel) if "ℝ^m" in conditions else None
    return Certificate("proved", proof.rule + conditions, kernel, steps=proof, dimension=dimension)


def _refuted(
    kernel: Kernel, found: Witness | Frequency, dim: int | None = None, frequency: Frequency | None = None
) -> Certificate:
    dimension = _largest(kernel)
    where = f"; it is positive definite in ℝ^m for m ≤ {dimension}" if dimension else ""
    width = data_width(found.points) if isinstance(found, Witness) and isinstance(kernel, Sampled) else None
    if width is not None and width > 1 and dim is None:
        where += f"; they lie in ℝ^{width}, and in lower dimensions it may be positive definite: pass dim"
    if isinstance(found, Frequency):
        reason = (
            f"in ℝ^{dim} its spectral density is {found.value:.2g} < 0 at the frequency {found.omega:.4g}"
        )
        return Certificate("refuted", reason + where, kernel, frequency=found, dimension=dimension)
    order, steps = _conditional(kernel, data_width(found.points))
    return Certificate(
        "refuted",
        found.reason + where,
        kernel,
        points=found.points,
        vector=found.vector,
        eigenvalues=found.eigenvalues,
        frequency=frequency,
        dimension=dimension,
        conditional=order,
        conditional_steps=steps,
    )


def _searched(kernel: Kernel, why: Open, evidence: Evidence | None, dim: int | None) -> Certificate:
    """What a search for a witness makes of a kernel that is not proved."""
    reason = why.reason if evidence is None else f"{why.reason}; {evidence}"
    if kernel.domain is Domain.OBJECTS or isinstance(kernel, Precomputed) or not kernel.is_resolved():
        witness = _of_single_elements(kernel)
        if witness is not None:
            return _refuted(kernel, witness)
        advice = "" if evidence is not None else "; pass points to look for a witness among them"
        return Certificate("unknown", reason + advice, kernel)
    frequency, found, tried = _in_dimension(kernel, dim)
    if found is not None:
        return _refuted(kernel, found, dim, frequency)
    for d in (1, 2, 3) if dim is None else ():  # The sets of points may have missed a dimension.
        frequency, found, more = _in_dimension(kernel, d, at_random=False)
        tried += more
        if found is not None:
            return _refuted(kernel, found, d, frequency)
    if why.fails:
        return Certificate("refuted", why.reason, kernel, dimension=_largest(kernel))
    order, steps = _conditional(kernel, dim)
    if tried == 0:
        return Certificate("unknown", f"{reason}; no points could be made up for it: pass some", kernel)
    where = f"among {tried} sets of points"
    where += ", which is evidence and not a proof" if evidence is None else " of our own either"
    if frequency is not None:
        where += f", and yet its spectral density seems to be {frequency.value:.2g} at {frequency.omega:.4g}"
    return Certificate(
        "unknown", f"{reason}; no witness {where}", kernel, conditional=order, conditional_steps=steps
    )


def _of_single_elements(kernel: Kernel) -> Witness | None:
    """A witness of sets with one element each, on which a set kernel is its base."""
    if type(kernel) is not SetKernel or not kernel.is_resolved() or kernel.base.domain is Domain.ANY:
        return None
    base = certify(kernel.base)
    if base.points is None:
        return None
    points: Any = base.points.tolist() if isinstance(base.points, np.ndarray) else base.points
    found = examine(kernel, [[point] for point in points])
    return found if isinstance(found, Witness) else None


def _in_dimension(
    kernel: Kernel, dim: int | None, at_random: bool = True
) -> tuple[Frequency | None, Witness | Frequency | None, int]:
    """A frequency where the density is negative, what refutes the kernel, how many sets were tried."""
    if dim is None:
        return None, *search(kernel)
    frequency = negative_frequency(kernel, dim)
    is_proved = frequency is not None and frequency.is_proved
    if frequency is None and not at_random:
        return None, None, 0
    if frequency is not None and is_proved and frequency.share > (_FAINTEST if dim > 3 else _FAINTEST / 100):
        return frequency, frequency, 0  # A witness exists, but it has too many points to be found.
    found, tried = search(kernel, dim, frequency.omega if frequency else wave_number(kernel))
    return frequency, found or (frequency if is_proved else None), tried


def _largest(kernel: Kernel) -> int | None:
    """The largest dimension in which the kernel is proved; None if it is in all or in none."""
    if not kernel.domain.is_vectors or not kernel.is_resolved():
        return None
    proved = proved_dimension(kernel)
    return int(proved) if 0 < proved < np.inf else None


def _conditional(kernel: Kernel, dim: int | None) -> tuple[int | None, Step | None]:
    """The order in which a kernel is conditionally positive definite, and why."""
    if not kernel.domain.is_vectors:
        return None, None
    prover = Prover(Space(kernel.domain is Domain.NONNEGATIVE, dim))
    return conditional_order(kernel.expression(), prover) or (None, None)


def _dimension(kernel: Kernel, points: Points | None, dim: Any) -> int | None:
    """The number of columns, from the argument or the points."""
    if dim is not None and (isinstance(dim, bool) or not isinstance(dim, int | np.integer) or dim < 1):
        raise InputError(
            f"dim must be a whole number of at least 1, got {dim!r}: pass the number of columns of the points"
        )
    width = None if points is None or kernel.domain is Domain.OBJECTS else data_width(points)
    if dim is not None and width is not None and dim != width:
        raise InputError(
            f"dim is {dim} but the points have {width} columns: leave dim out, or pass points in ℝ^{dim}"
        )
    return width if dim is None else int(dim)
