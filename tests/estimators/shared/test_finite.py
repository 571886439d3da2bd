"""Many numbers are seen to be finite by our threads, and what is not is refused as ever."""

import numpy as np
import pytest

from mercer import SVC, KernelRidge
from mercer.estimators.shared import base


def test_large_tables_are_seen_to_be_finite_before_scikit_learn_looks(rng, monkeypatch):
    """What is not finite gets the words that it had, in X and in y."""
    monkeypatch.setattr(base, "_MANY_NUMBERS", 1)
    X, y = rng.normal(size=(30, 2)), rng.normal(size=30)
    expected = KernelRidge().fit(X, y).predict(X)
    bad = np.where(np.arange(60).reshape(30, 2) == 7, np.nan, X)
    for given, targets, words in (
        (bad, y, "Input X contains NaN"),
        (X, bad[:, 1], "y must hold a value for every point"),
    ):
        with pytest.raises(ValueError, match=words):
            KernelRidge().fit(given, targets)
    with pytest.raises(ValueError, match="NaN"):
        SVC().fit(X, np.where(y > 0, 1.0, np.nan).astype(object))
    assert base._is_seen_finite(X, y) and base._is_seen_finite(X, y > 0) and base._is_seen_finite(X, None)
    assert not base._is_seen_finite(bad, y) and not base._is_seen_finite(X, y.astype(object))
    np.testing.assert_array_equal(KernelRidge().fit(X, y).predict(X), expected)
