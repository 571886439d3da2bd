"""Kernels of every class, and points on which each is defined: what the battery is run on."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from typing import Any

import numpy as np

import mercer as m
import mercer.kernels
from mercer.kernels import compose
from mercer.kernels.base import Kernel
from mercer.kernels.domain import Domain
from mercer.testing.objects import OBJECTS


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
    yield from _of_vectors()
    yield from _made_of_others()
    yield from _of_objects()


def _of_vectors() -> Iterator[Kernel]:
    scales = [0.8, 2.0, 1.3]  # one per column of ``example_points``
    yield from (m.Linear(), m.Polynomial(), m.Polynomial(2, c=0.0, gamma=0.5))
    yield m.Polynomial(70, c=0.5, gamma=0.03)
    yield from (m.Sigmoid(eta=0.3, nu=-0.2), m.Cosine(), m.Constant(2.0))
    yield from (m.ArcCosine(order) for order in (0, 1, 2))
    yield from (m.Gaussian(), m.Gaussian(sigma=1.5), m.Gaussian(gamma=0.4), m.Gaussian(sigma="median"))
    yield from (m.Gaussian(sigma=scales), m.Gaussian(gamma=scales))
    yield from (m.Laplacian(gamma=0.7), m.Laplacian(gamma=0.7, norm=2))
    yield from (m.Laplacian(gamma=scales), m.Laplacian(gamma=scales, norm=2))
    yield from (m.Matern(nu, length_scale=1.5) for nu in (0.3, 0.5, 1.2, 1.5, 2.5, 3.0))
    yield from (m.Matern(0.5, scales), m.Matern(2.5, scales), m.Matern(1.2, scales))
    yield from (m.RationalQuadratic(alpha=0.7, length_scale=1.3), m.RationalQuadratic(2.0, scales))
    yield m.Periodic(period=2.5, length_scale=1.2)
    yield from (m.Wendland(radius=3.0, smoothness=s) for s in (0, 1, 2))
    yield m.Wendland(radius=[3.0, 2.0, 4.0])
    yield from (m.BSpline(degree=degree, scale=1.2) for degree in (1, 3, 5))
    yield compose.Negative(m.Gaussian(sigma=1.3))
    yield from (m.BallIndicator(radius=1.5), m.Delta(), m.Min(), m.ChiSquared(gamma=0.5))
    yield from (m.Spectral(), m.Spectral((1.0, 0.5, 0.25), length_scale=1.3), m.Spectral((1.0, 2.0, 1.0)))
    yield m.Spectral(_bell)
    yield from (m.Radial([0.5, 2.0], [0.3, 0.7]), m.Radial([1.5], dim=1), m.Radial((0.0, 1.0), dim=4))
    yield m.ConditionalExpectation(_two_bumps, weights=[0.3, 0.7])
    yield m.FromFunction(_common_letters)
    yield m.Precomputed(_MATRIX)


def _made_of_others() -> Iterator[Kernel]:
    smooth, straight = m.Gaussian(sigma=1.2), m.Linear()
    yield from (smooth + straight, smooth * m.Polynomial(2), 0.5 * smooth, smooth + 1.0)
    yield from (m.Polynomial(1) ** 3, smooth**1.5, m.Linear().polynomial([1.0, 0.5, 0.25]))
    yield (0.1 * straight).exp()
    yield from (m.Polynomial(2).normalized(), m.Min().normalized(), m.BSpline().normalized())
    yield from (smooth.centered(_REFERENCE), straight.centered(_REFERENCE))
    yield m.Laplacian().centered(_REFERENCE)
    yield from (smooth.on(0, 2), smooth.on(0, 1) * m.Delta().on(2), smooth.on(0) + m.Polynomial(2).on(1, 2))
    yield from (smooth @ _squares, m.Polynomial(2) @ _squares + m.Matern().on(1))
    yield 2 * (smooth.on(0, 1).normalized() + straight * m.Cosine()) ** 2 + m.Periodic().on(1)
    yield smooth + m.FromFunction(_product)  # both on the same vectors
    yield smooth.derivative("sigma")


def _of_objects() -> Iterator[Kernel]:
    smooth, straight = m.Gaussian(sigma=1.2), m.Linear()
    yield from (m.NodeLabels(), m.ShortestPath(), m.WeisfeilerLehman(2))
    yield m.WeisfeilerLehman(1, m.ShortestPath())
    yield m.RandomWalk(2, decay=0.3)
    yield m.WeisfeilerLehman(2).normalized() + m.RandomWalk(1) * m.NodeLabels()
    yield from (m.SubtreeKernel(0.7), m.SubsetTree(), m.SubsetTree(0.6, leaves=True), m.PartialTree(0.5, 0.6))
    by_letters = m.PartialTree(labels=m.FromFunction(_common_letters))
    yield by_letters + m.SubsetTree(0.5).normalized() * m.SubtreeKernel()
    yield from (m.SetKernel(m.Gaussian(sigma="median")), m.SetKernel(m.Linear(), "mean"))
    yield m.SetKernel(m.Polynomial(2), "cosine")
    yield from (m.GeneralSetKernel(m.Delta(), m.Linear()), m.GeneralSetKernel(m.Gaussian(), m.Laplacian()))
    yield m.SetKernel(m.Delta())
    yield from (m.Intersection(), m.Intersection().normalized(), m.Invariant(smooth, [np.negative]))
    yield m.Invariant(straight, (_squares,))
    yield m.ColumnKernel({0: smooth, (1, 2): straight, 2: m.Delta()}, weights={0: 0.5})
    yield m.ColumnKernel("auto", "product")
    yield from (m.Spectrum(2), m.Spectrum(2, buckets=16), m.BlendedSpectrum(3, decay=0.5), m.GappedKmer(3, 1))
    yield from (m.Mismatch(2, 1), m.Mismatch(2, 1, alphabet="mercky"), m.WeightedDegree(3))
    yield m.WeightedDegree(2, shift=2)
    yield from (m.Subsequence(2), m.Subsequence(3, decay=0.8).normalized(), m.LocalAlignment())
    yield m.LocalAlignment(2.0, 0.5, 0.25)
    yield m.Spectrum(2).normalized() + m.Subsequence(2) * m.GappedKmer(2, 0)
    yield from (m.BagOfWords(), m.BagOfWords(2, weighting="log"))
    yield m.BagOfWords(3, 2, weighting="tf-idf").normalized()
    yield m.BagOfWords(weighting="binary", lowercase=False)


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
