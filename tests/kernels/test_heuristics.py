"""Parameters taken from the data: what "median", "scale" and "auto" mean, also where there is little."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse
from scipy.spatial.distance import pdist
from sklearn.svm import SVC

from mercer import (
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    RationalQuadratic,
    Sigmoid,
    Wendland,
)
from mercer.errors import InputError
from mercer.kernels import heuristics, positive
from mercer.kernels.formula.expression import exp
from mercer.kernels.heuristics import median_distance, value


@pytest.fixture
def X(rng):
    return rng.normal(size=(40, 3)) * [1.0, 2.0, 0.5]


def test_median_is_that_of_the_distances(X):
    assert Gaussian(sigma="median").resolve(X).sigma == pytest.approx(np.median(pdist(X)))
    assert Matern(length_scale="median").resolve(X).length_scale == pytest.approx(np.median(pdist(X)))
    assert RationalQuadratic(length_scale="median").resolve(X).length_scale == pytest.approx(
        np.median(pdist(X))
    )
    assert Wendland(radius="median").resolve(X).radius == pytest.approx(np.median(pdist(X)))


def test_scale_and_auto_are_scikit_learns(X):
    scale = 1 / (3 * X.var())
    for kind in (Gaussian, Laplacian, Polynomial):
        assert kind(gamma="scale").resolve(X).gamma == pytest.approx(scale)
        assert kind(gamma="auto").resolve(X).gamma == pytest.approx(1 / 3)
    assert Sigmoid(eta="scale").resolve(X).eta == pytest.approx(scale)
    y = np.arange(40) % 2
    assert SVC(gamma="scale").fit(X, y)._gamma == pytest.approx(scale)


def test_sparse_points_give_the_same(X):
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    for kernel in (Gaussian(sigma="median"), Gaussian(gamma="scale"), Gaussian(gamma="auto")):
        dense, thin = kernel.resolve(X), kernel.resolve(sparse.csr_array(X))
        for name, number in dense.get_params().items():
            assert thin.get_params()[name] == (number and pytest.approx(number))


def test_lists_and_small_integers_will_do():
    assert Gaussian(sigma="median").resolve([[0], [1], [3]]) == Gaussian(sigma=2.0)


def test_points_that_all_coincide():
    same = np.ones((5, 2))
    assert Gaussian(sigma="median").resolve(same).sigma == 1.0
    assert Gaussian(gamma="scale").resolve(same).gamma == 1.0
    assert Gaussian(sigma="median").resolve([[3.0]]).sigma == 1.0  # a single point
    # The square of what its mean is rounded by is 1e-323, whose inverse is infinite.
    tiny = np.full((6, 2), 3.88037984e-146)
    assert Gaussian(gamma="scale").resolve(tiny).gamma == 1.0


def test_points_of_which_most_coincide():
    X = np.zeros((10, 1))
    X[0] = 6.0
    assert median_distance(X) == 6.0  # the mean of the positive distances, since the median is 0


def test_many_points_are_sampled_evenly_and_always_the_same(rng):
    X = rng.normal(size=(5000, 2))
    first = median_distance(X)
    assert first == median_distance(X.copy())
    assert first == pytest.approx(np.median(pdist(X[::3])), rel=0.05)


@given(arrays(float, (6, 2), elements=st.floats(-1e6, 1e6)), st.sampled_from(["median", "scale", "auto"]))
def test_the_value_is_always_a_positive_number(X, word):
    name = "sigma" if word == "median" else "gamma"
    found = Gaussian(**{name: word}).resolve(X).get_params()[name]
    assert np.isfinite(found) and found > 0


def test_resolving_leaves_the_kernel_and_reaches_its_parts(X):
    kernel = Gaussian(sigma="median") + 2 * Polynomial(gamma="auto").normalized()
    resolved = kernel.resolve(X)
    assert kernel.k1.sigma == "median" and not kernel.is_resolved()
    assert resolved.is_resolved() and resolved.k1.sigma == pytest.approx(np.median(pdist(X)))
    assert resolved.k2.kernel.kernel.gamma == pytest.approx(1 / 3)
    np.testing.assert_array_equal(kernel(X), resolved(X))


def test_resolving_on_columns_and_behind_maps(X):
    assert Gaussian(sigma="median").on(1).resolve(X).kernel.sigma == pytest.approx(
        np.median(pdist(X[:, [1]]))
    )
    behind = (Gaussian(sigma="median") @ np.tanh).resolve(X)
    assert behind.kernel.sigma == pytest.approx(np.median(pdist(np.tanh(X))))


def test_a_resolved_kernel_is_itself(X):
    kernel = Gaussian(1.0) + Linear()
    assert kernel.is_resolved() and kernel.resolve(X) is kernel


def test_words_of_ones_own(X):
    class Own(Kernel):
        rate: float = positive(1.0, words=("spread", "puzzle"))

        def formula(self, pair):
            return exp(-pair.sqdist * self.rate)

        def from_data(self, name, word, X, weight=None):
            return 7.0 if word == "spread" else super().from_data(name, word, X)

    assert Own("spread").resolve(X).rate == 7.0
    with pytest.raises(InputError) as caught:
        Own("puzzle").resolve(X)
    assert str(caught.value) == "rate='puzzle' has no meaning for Own"


def test_distances_are_those_of_the_kernels_norm(X):
    class City(Kernel):
        norm = 1
        scale: float = positive(1.0, words=("median",))

        def formula(self, pair):
            return exp(-pair.l1 / self.scale)

    assert value(City("median"), "scale", "median", X) == pytest.approx(np.median(pdist(X, "cityblock")))


def test_data_without_numbers_are_refused():
    with pytest.raises(InputError, match="2-D"):
        Gaussian(sigma="median").resolve([1.0, 2.0])


def test_the_variance_of_many_numbers_is_found_by_all_threads(rng, monkeypatch):
    X = rng.normal(size=(3000, 40)) + 5.0
    expected = heuristics._variance(X)
    monkeypatch.setattr(heuristics, "_WORTH_THREADS", 1)
    monkeypatch.setattr(heuristics, "_NUMBERS_AT_ONCE", 2000)
    assert heuristics._variance(X) == pytest.approx(X.var(), rel=1e-12)
    assert heuristics._variance(X) == pytest.approx(expected, rel=1e-13)
