"""Precomputed matrices that rounding made a little asymmetric, and those that are clearly so."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import mercer
from mercer.errors import InputError
from mercer.kernels.objects import asymmetry

NAMES = [
    "SVC",
    "NuSVC",
    "SVR",
    "OneClassSVM",
    "KernelRidge",
    "KernelRidgeCV",
    "KernelLeastSquares",
    "KernelPCA",
]
NAMES += ["KernelLogisticRegression", "KernelFisherDiscriminant", "ParzenClassifier", "KernelPerceptron"]


def matrix(rng, dtype):
    """Gaussian kernel values whose last bits of float32 differ on either side of the diagonal."""
    X = rng.normal(size=(24, 3))
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2))
    return (K * (1 + 1e-7 * rng.uniform(-1, 1, K.shape))).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", NAMES)
def test_a_little_asymmetry_is_taken_out_with_a_word(name, dtype, rng):
    K = matrix(rng, dtype)
    before, y = K.copy(), np.arange(24) % 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)  # of the perceptron
        model = getattr(mercer, name)(kernel="precomputed").fit(K, y)
        same = getattr(mercer, name)(kernel="precomputed").fit((K + K.T) / 2, y)
    assert "K was made symmetric, (K + Kᵀ)/2: its entries differed by up to" in str(model.report_)
    assert "made symmetric" not in str(same.report_)
    np.testing.assert_array_equal(model.kernel_.matrix, model.kernel_.matrix.T)
    np.testing.assert_array_equal(model.expansion_.coef, same.expansion_.coef)
    np.testing.assert_array_equal(K, before)
    if "SV" not in name:  # whose plans are about the solver alone
        assert "made symmetric" in str(getattr(mercer, name)(kernel="precomputed").plan(K, y))


def test_clear_asymmetry_is_refused_with_its_place(rng):
    K = np.eye(5) + 0.0
    K[3, 1], K[2, 4] = 0.25, 0.125
    message = (
        r"got k\(1, 3\) = 0.0 and k\(3, 1\) = 0.25, the largest of the differences: pass \(K \+ K\.T\) / 2"
    )
    with pytest.raises(InputError, match=message):
        mercer.SVC(kernel="precomputed").fit(K, [0, 1, 0, 1, 0])
    with pytest.raises(InputError, match=message):
        mercer.Precomputed(K)
    with pytest.raises(InputError, match="matrix must be symmetric"):
        mercer.Precomputed(np.eye(3) + 1e-5 * np.triu(np.ones((3, 3)), 1))
    assert asymmetry(np.array([[0, 3], [1, 0]], dtype=np.uint8)) == (2.0, 3.0, (0, 1))
    assert asymmetry(np.array([[True]])) == (0.0, 1.0, (0, 0))
