"""Kernels for readers."""

import numpy as np
import pytest

from mercer import BagOfWords, ColumnKernel, Gaussian, Laplacian, Linear, Matern, Polynomial
from mercer.kernels.words import in_words, scales, tells_apart

NAMES = [f"x{j + 1}" for j in range(30)]
WIDE = np.geomspace(0.5, 50.0, 30)


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (Gaussian(sigma=1 / 3), "Gaussian(sigma=0.3333)"),
        (Gaussian(sigma=WIDE), "Gaussian(sigma=<0.5 to 50, one of each of 30 columns>)"),
        (Gaussian(sigma=[1, 2]), "Gaussian(sigma=<1 to 2, one of each of 2 columns>)"),
        (Gaussian(sigma=np.full(9, 2.0)), "Gaussian(sigma=<2 of each of 9 columns>)"),
        (Matern(1.5, WIDE), "Matern(nu=1.5, length_scale=<0.5 to 50, one of each of 30 columns>)"),
        (0.1 * Linear() + Polynomial(2), "0.1 * Linear() + Polynomial(degree=2, c=1.0)"),
        (BagOfWords(weighting="tf-idf").normalized(), "BagOfWords(weighting='tf-idf').normalized()"),
    ],
    ids=["rounded", "many", "list", "alike", "second", "sum", "defaults"],
)
def test_in_words(kernel, words):
    assert in_words(kernel) == words


def test_each_of_two_parts_has_its_own_range():
    shown = in_words(Gaussian(sigma=WIDE) + Laplacian(gamma=2 * WIDE))
    assert "sigma=<0.5 to 50" in shown
    assert "gamma=<1 to 100" in shown
    assert "array" not in shown


def test_columns_that_matter_most():
    """Of lengths the smallest, of rates the largest; names may hold anything."""
    assert tells_apart(Gaussian(sigma=WIDE[::-1]), NAMES).startswith("x30 (sigma 0.5), x29 (")
    assert tells_apart(3.0 * Laplacian(gamma=WIDE), NAMES, most=1) == "x30 (gamma 50)"
    assert tells_apart(Gaussian(sigma=[2.0, 1.0]), ["a {b}", "100 %s"]) == "100 %s (sigma 1), a {b} (2)"
    assert tells_apart(Gaussian(sigma=2.0), NAMES) == ""


def test_tables():
    kernel = ColumnKernel({tuple(range(30)): Gaussian(sigma=WIDE), 30: BagOfWords(n=2)}, weights={30: 0.5})
    assert in_words(kernel, [*NAMES, "title"]) == (
        "Gaussian(sigma=<0.5 to 50, one of each of 30 columns>).on(30 columns) + "
        "0.5 * BagOfWords(n=2).on('title')"
    )
    assert tells_apart(kernel, [*NAMES, "title"], most=1) == "x1 (sigma 0.5)"
    assert scales(kernel, 30)["sigma"].tolist() == WIDE.tolist()
