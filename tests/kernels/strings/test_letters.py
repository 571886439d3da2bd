"""The lecture's λ, and the two Laplacians."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from mercer import SVC, Gaussian, Laplacian, Linear
from mercer.certify import density
from mercer.errors import InputError
from mercer.kernels.parse import parse_kernel

X = np.random.default_rng(0).normal(size=(12, 3))
DISTANCES = np.linalg.norm(X[:, None] - X, axis=-1)


def test_lam_is_the_lambda_of_the_lecture():
    assert np.allclose(Gaussian(lam=0.7)(X), np.exp(-0.7 * DISTANCES**2), rtol=1e-13)
    assert np.allclose(Laplacian(lam=0.7, norm="l2")(X), np.exp(-0.7 * DISTANCES), rtol=1e-13)
    assert Gaussian(lam=0.7) == Gaussian(gamma=0.7)
    assert Laplacian(lam="scale").resolve(X).gamma == Laplacian("scale").resolve(X).gamma


def test_lam_is_taken_and_gamma_kept():
    k = Gaussian(lam=0.7)
    assert k.get_params() == {"sigma": None, "gamma": 0.7} and repr(k) == "Gaussian(gamma=0.7)"
    assert clone(k) == k and pickle.loads(pickle.dumps(k)) == k
    assert clone(k).set_params(lam=2.0) == Gaussian(gamma=2.0)
    assert (clone(k) + Linear()).set_params(k1__lam=2.0).k1 == Gaussian(gamma=2.0)
    assert parse_kernel("gaussian(lam=0.7)") == k


def test_lam_in_a_search():
    y = (X[:, 0] > 0).astype(int)
    search = GridSearchCV(SVC(kernel=Gaussian()), {"kernel__lam": [0.1, 1.0]}, cv=2).fit(X, y)
    assert search.best_estimator_.kernel.gamma in (0.1, 1.0)


def test_lam_twice_is_refused():
    with pytest.raises(TypeError, match="lam is another name of gamma, and both are given"):
        Gaussian(gamma=1.0, lam=1.0)
    with pytest.raises(InputError, match="Gaussian takes sigma or gamma"):
        Gaussian(sigma=1.0, lam=1.0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'lam'"):
        Linear(lam=1.0)


def test_the_two_laplacians():
    manhattan = abs(X[:, None] - X).sum(axis=-1)
    for norm in ("l1", 1):
        assert np.allclose(Laplacian(0.5, norm)(X), np.exp(-0.5 * manhattan), rtol=1e-13)
    for norm in ("l2", 2):
        assert np.allclose(Laplacian(0.5, norm)(X), np.exp(-0.5 * DISTANCES), rtol=1e-13)
    assert repr(Laplacian(norm="l2")) == "Laplacian(gamma=1.0, norm='l2')"
    assert repr(Laplacian()) == "Laplacian(gamma=1.0, norm=1)"
    with pytest.raises(InputError, match="norm must be one of 1, 2, 'l1', 'l2', got 'l3'"):
        Laplacian(norm="l3")


def test_norms_by_name_are_known_to_the_spectra():
    assert density(Laplacian(norm="l1"), dim=2).is_product
    assert not density(Laplacian(norm="l2"), dim=2).is_product
    w = np.array([0.3, 2.0])
    assert np.allclose(density(Laplacian(norm="l2"), dim=3)(w), density(Laplacian(norm=2), dim=3)(w))
