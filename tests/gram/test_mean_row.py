"""The mean of the rows, which views are centred on."""

import numpy as np
import pytest

from mercer import config
from mercer.gram import sides


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_sums_of_parts_do_not_depend_on_threads(dtype, rng, monkeypatch):
    X = (5.0 + rng.normal(size=(701, 7))).astype(dtype)
    whole = sides._mean_row(X)
    np.testing.assert_allclose(whole, X.astype(float).mean(axis=0), rtol=1e-14)
    monkeypatch.setattr(sides, "_SUMMED", 70)
    found = []
    for threads in (1, 4):
        with config(threads=threads):
            found.append(sides._mean_row(X))
    np.testing.assert_array_equal(*found)
    np.testing.assert_allclose(found[0], whole, rtol=1e-14)
