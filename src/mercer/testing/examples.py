"""Kernels of every class, and points on which each is defined: what the battery is run on."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from typing import Any

import numpy as np

import mercer.kernels
from mercer.kernels.base import Kernel
from mercer.kernels.domain import Domain
from mercer.testing.objects import OBJECTS

__all__ = ["example_kernels", "example_points", "missing_examples", "own_kernels"]


def example_kernels() -> list[Kernel]:
    """Kernels of every registered class: those below, and the default of any other that has one.

    >>> [k for k in example_kernels() if type(k).__name__ == "Min"]
    [Min()]
    """
    examples = list(_examples())
    shown = {type(kernel) for kernel in examples}
    for kind in own_kernels():
        if kind not in shown:
            with suppress(TypeError, ValueError):  # one that must be given something: ``_examples`` lacks it
                examples.append(kind())
    return examples


def own_kernels() -> list[type[Kernel]]:
    """Every registered kernel class of mercer itself."""
    for module in pkgutil.iter_modules(mercer.kernels.__path__, "mercer.kernels."):
        import_module(module.name)
    return [kind for kind in Kernel.registry if kind.__module__.startswith("mercer.")]


def missing_examples() -> list[type[Kernel]]:
    """Kernel classes of mercer that no example is an instance of; there should be none.

    >>> missing_examples()
    []
    """
    shown = {type(kernel) for kernel in example_kernels()}
    return [kind for kind in own_kernels() if kind not in shown]


def _examples() -> Iterator[Kernel]:
    from mercer import (
        ArcCosine,
        BagOfWords,
        BallIndicator,
        BlendedSpectrum,
        BSpline,
        ChiSquared,
        ColumnKernel,
        ConditionalExpectation,
        Constant,
        Cosine,
        Delta,
        FromFunction,
        GappedKmer,
        Gaussian,
        GeneralSetKernel,
        Intersection,
        Invariant,
        Laplacian,
        Linear,
        LocalAlignment,
        Matern,
        Min,
        Mismatch,
        NodeLabels,
        PartialTree,
        Periodic,
        Polynomial,
        Precomputed,
        Radial,
        RandomWalk,
        RationalQuadratic,
        SetKernel,
        ShortestPath,
        Sigmoid,
        Spectral,
        Spectrum,
        Subsequence,
        SubsetTree,
        SubtreeKernel,
        WeightedDegree,
        WeisfeilerLehman,
        Wendland,
    )
    from mercer.kernels.compose import Negative

    scales = [0.8, 2.0, 1.3]  # one per column of ``example_points``
    yield from (Linear(), Polynomial(), Polynomial(2, c=0.0, gamma=0.5), Polynomial(70, c=0.5, gamma=0.03))
    yield from (Sigmoid(eta=0.3, nu=-0.2), Cosine(), Constant(2.0))
    yield from (ArcCosine(order) for order in (0, 1, 2))
    yield from (Gaussian(), Gaussian(sigma=1.5), Gaussian(gamma=0.4), Gaussian(sigma="median"))
    yield from (Gaussian(sigma=scales), Gaussian(gamma=scales))
    yield from (Laplacian(gamma=0.7), Laplacian(gamma=0.7, norm=2))
    yield from (Laplacian(gamma=scales), Laplacian(gamma=scales, norm=2))
    yield from (Matern(nu, length_scale=1.5) for nu in (0.3, 0.5, 1.2, 1.5, 2.5, 3.0))
    yield from (Matern(0.5, scales), Matern(2.5, scales), Matern(1.2, scales))
    yield from (RationalQuadratic(alpha=0.7, length_scale=1.3), RationalQuadratic(2.0, scales))
    yield Periodic(period=2.5, length_scale=1.2)
    yield from (Wendland(radius=3.0, smoothness=s) for s in (0, 1, 2))
    yield Wendland(radius=[3.0, 2.0, 4.0])
    yield from (BSpline(degree=m, scale=1.2) for m in (1, 3, 5))
    yield Negative(Gaussian(sigma=1.3))
    yield from (BallIndicator(radius=1.5), Delta(), Min(), ChiSquared(gamma=0.5))
    yield from (Spectral(), Spectral((1.0, 0.5, 0.25), length_scale=1.3), Spectral((1.0, 2.0, 1.0)))
    yield Spectral(_bell)
    yield from (Radial([0.5, 2.0], [0.3, 0.7]), Radial([1.5], dim=1), Radial((0.0, 1.0), dim=4))
    yield ConditionalExpectation(_two_bumps, weights=[0.3, 0.7])
    yield FromFunction(_common_letters)
    yield Precomputed(_MATRIX)
    smooth, straight = Gaussian(sigma=1.2), Linear()
    yield from (smooth + straight, smooth * Polynomial(2), 0.5 * smooth, smooth + 1.0)
    yield from (
        Polynomial(1) ** 3,
        smooth**1.5,
        Linear().polynomial([1.0, 0.5, 0.25]),
        (0.1 * straight).exp(),
    )
    yield from (Polynomial(2).normalized(), Min().normalized(), BSpline().normalized())
    yield from (smooth.centered(_REFERENCE), straight.centered(_REFERENCE), Laplacian().centered(_REFERENCE))
    yield from (smooth.on(0, 2), smooth.on(0, 1) * Delta().on(2), smooth.on(0) + Polynomial(2).on(1, 2))
    yield from (smooth @ _squares, Polynomial(2) @ _squares + Matern().on(1))
    yield 2 * (smooth.on(0, 1).normalized() + straight * Cosine()) ** 2 + Periodic().on(1)
    yield smooth + FromFunction(_product)  # both on the same vectors
    yield smooth.derivative("sigma")
    yield from (NodeLabels(), ShortestPath(), WeisfeilerLehman(2), WeisfeilerLehman(1, ShortestPath()))
    yield from (RandomWalk(2, decay=0.3), WeisfeilerLehman(2).normalized() + RandomWalk(1) * NodeLabels())
    yield from (SubtreeKernel(0.7), SubsetTree(), SubsetTree(0.6, leaves=True), PartialTree(0.5, 0.6))
    yield PartialTree(labels=FromFunction(_common_letters)) + SubsetTree(0.5).normalized() * SubtreeKernel()
    yield from (
        SetKernel(Gaussian(sigma="median")),
        SetKernel(Linear(), "mean"),
        SetKernel(Polynomial(2), "cosine"),
    )
    yield from (
        GeneralSetKernel(Delta(), Linear()),
        GeneralSetKernel(Gaussian(), Laplacian()),
        SetKernel(Delta()),
    )
    yield from (
        Intersection(),
        Intersection().normalized(),
        Invariant(smooth, [np.negative]),
        Invariant(straight, (_squares,)),
    )
    yield from (
        ColumnKernel({0: smooth, (1, 2): straight, 2: Delta()}, weights={0: 0.5}),
        ColumnKernel("auto", "product"),
    )
    yield from (Spectrum(2), Spectrum(2, buckets=16), BlendedSpectrum(3, decay=0.5), GappedKmer(3, 1))
    yield from (
        Mismatch(2, 1),
        Mismatch(2, 1, alphabet="mercky"),
        WeightedDegree(3),
        WeightedDegree(2, shift=2),
    )
    yield from (
        Subsequence(2),
        Subsequence(3, decay=0.8).normalized(),
        LocalAlignment(),
        LocalAlignment(2.0, 0.5, 0.25),
    )
    yield Spectrum(2).normalized() + Subsequence(2) * GappedKmer(2, 0)
    yield from (
        BagOfWords(),
        BagOfWords(2, weighting="log"),
        BagOfWords(3, 2, weighting="tf-idf").normalized(),
    )
    yield BagOfWords(weighting="binary", lowercase=False)


def _bell(omega: np.ndarray) -> np.ndarray:
    """A spectral density."""
    return np.asarray(np.exp(-(omega**2) / 2))


def _two_bumps(X: np.ndarray) -> np.ndarray:  # (n, d) to (n, 2)
    """Two densities on ℝᵈ, up to a factor."""
    return np.exp(-np.stack([((X - 1) ** 2).sum(axis=1), ((X + 1) ** 2).sum(axis=1)], axis=1) / 2)


def _squares(X: np.ndarray) -> np.ndarray:
    return np.asarray(X) ** 2 / 2


def _product(x: np.ndarray, y: np.ndarray) -> float:
    return float(np.dot(x, y))


def _common_letters(a: str, b: str) -> int:
    return len(set(a) & set(b))


_REFERENCE = np.array([[0.5, -1.0, 0.25], [1.5, 0.75, -0.5], [-0.5, 0.0, 2.0], [0.0, 1.25, 1.0]])
_MATRIX = np.minimum.outer(np.arange(1.0, 13.0), np.arange(1.0, 13.0))  # min(i, j): positive definite


def example_points(kernel: Kernel, n: int, rng: np.random.Generator) -> Any:
    """n points on which the kernel is defined, with what is special among them: an origin, a repetition.

    Vectors have three columns of multiples of 1/64, the same numbers in float32 and float64.

    >>> from mercer import Gaussian
    >>> example_points(Gaussian(), 4, np.random.default_rng(0)).shape
    (4, 3)
    """
    leaves = {type(leaf).__name__ for leaf in _leaves(kernel)}
    if "Precomputed" in leaves:
        return rng.integers(0, len(_MATRIX), n)
    kinds = {leaf.objects for leaf in _leaves(kernel)} - {None}
    is_table = {"OnColumns", "ColumnKernel"} & {type(part).__name__ for part in kernel.parts()}
    if kernel.domain is Domain.OBJECTS or (kinds and not is_table):
        return OBJECTS[kinds.pop() if kinds else None](n, rng)
    points = np.round(64 * rng.normal(size=(n, 3))) / 64
    points[1::5] = 0.0
    points[4::5] = points[3::5][: len(points[4::5])]
    if kernel.domain is Domain.ANY:
        points[:, 2] = np.round(points[:, 2])  # a column of categories
    return np.abs(points) if kernel.domain is Domain.NONNEGATIVE else points


def _leaves(kernel: Kernel) -> Iterator[Kernel]:
    children = [] if kernel.objects else kernel.children().values()  # the parts of an object are no points
    for child in children:
        yield from _leaves(child)
    if not children:
        yield kernel
