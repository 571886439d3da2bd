"""Kernels for readers."""

import numpy as np
import pytest

from mercer import BagOfWords, ColumnKernel, Gaussian, Laplacian, Linear, Matern, Polynomial
from mercer.kernels.words import in_words, scales, short_name, tells_apart

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
    assert tells_apart(Gaussian(sigma=WIDE[::-1]), NAMES).startswith("x30, x29, ")
    assert tells_apart(3.0 * Laplacian(gamma=WIDE), NAMES, most=1) == "x30"
    assert tells_apart(Gaussian(sigma=[2.0, 1.0]), ["a {b}", "100 %s"]) == "100 %s, a {b}"
    assert tells_apart(Gaussian(sigma=2.0), NAMES) == ""


def test_kernels_that_treat_columns_alike_tell_nothing_of_them(rng):
    """Equal scales, and scales that only even out the spreads, also those of another sample of the rows."""
    assert tells_apart(Gaussian(sigma=np.full(30, 5.477)), NAMES) == ""
    spread = rng.uniform(0.01, 0.5, 30)
    assert tells_apart(Gaussian(sigma=7 * spread), NAMES, spread=spread) == ""
    assert tells_apart(Laplacian(gamma=3 / spread), NAMES, spread=spread) == ""
    rows = (rng.uniform(size=(4000, 30)) < np.linspace(0.002, 0.5, 30)).astype(float)
    seen = rows[:3600].std(axis=0)
    assert tells_apart(Gaussian(sigma=seen), NAMES, spread=rows.std(axis=0)) == ""


def test_columns_of_one_source_count_together():
    sources = ["age", *["city"] * 29]
    scales_ = np.array([1.0, *np.full(29, 4.0)])
    # each city moves a point by 1/4, all of them by √29 / 4 > 1
    assert tells_apart(Gaussian(sigma=scales_), NAMES, sources=sources) == "city, age"
    assert tells_apart(Gaussian(sigma=scales_), NAMES, most=1) == "x1"


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        (Gaussian(sigma=WIDE), "Gaussian"),
        (3.0 * Matern(0.5, WIDE), "Matérn 1/2"),
        (Matern(1.2, 1.0), "Matérn 1.2"),
        (Gaussian(1.0) * (Linear() + Polynomial(3)), "Gaussian · (Linear + Polynomial(degree=3))"),
        (Gaussian(1.0).on((0, 2, 3)), "Gaussian on 3 columns"),
        (BagOfWords(n=2).normalized(), "BagOfWords(n=2).normalized()"),
    ],
)
def test_short_names(kernel, name):
    assert short_name(kernel) == name


def test_tables():
    kernel = ColumnKernel({tuple(range(30)): Gaussian(sigma=WIDE), 30: BagOfWords(n=2)}, weights={30: 0.5})
    assert in_words(kernel, [*NAMES, "title"]) == (
        "Gaussian(sigma=<0.5 to 50, one of each of 30 columns>).on(30 columns) + "
        "0.5 * BagOfWords(n=2).on('title')"
    )
    assert tells_apart(kernel, [*NAMES, "title"], most=1) == "x1"
    assert scales(kernel, 30)["sigma"].tolist() == WIDE.tolist()
