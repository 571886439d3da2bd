"""What every estimator with a kernel inherits, tried on a small one of the tests' own."""

from dataclasses import KW_ONLY

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import get_tags

from mercer import ChiSquared, Constant, Delta, FromFunction, Gaussian, Gram, Linear, Precomputed
from mercer.errors import InputError, InputTypeError
from mercer.estimators.shared.base import KernelMixin
from mercer.estimators.shared.parameters import KernelParameters, flag, learner
from mercer.kernels.parameters import whole


@learner
class Mean(KernelMixin, KernelParameters, BaseEstimator):
    """f(x) = (1/n) Σᵢ k(xᵢ, x): the least an estimator can do."""

    _: KW_ONLY
    times: int = whole(1)
    loud: bool = flag(False)

    def fit(self, X, y=None):
        self.points_ = self._validate_fit(X) if y is None else self._validate_fit(X, y)[0]
        return self

    def score_samples(self, X):
        X = self._validate_new(X)
        return np.asarray(Gram(self.kernel_, X, self.points_).dense().mean(axis=1))


def common(a, b):
    return len(set(a) & set(b))


@pytest.fixture
def X(rng):
    return rng.normal(size=(6, 3))


# --- the kernel --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "kernel"),
    [
        ({"gamma": 0.5}, Gaussian(gamma=0.5)),
        ({"kernel": "linear"}, Linear()),
        ({"kernel": Gaussian(sigma=2.0) + Linear()}, Gaussian(sigma=2.0) + Linear()),
        ({"kernel": common}, FromFunction(common)),
    ],
)
def test_kernel_from_name_object_or_function(X, options, kernel):
    assert Mean(**options).fit(X).kernel_ == kernel


def test_words_are_resolved_on_the_training_data(X):
    estimator = Mean(kernel=Gaussian(sigma="median")).fit(X)
    assert estimator.kernel_ == Gaussian(sigma="median").resolve(X)
    assert estimator.kernel == Gaussian(sigma="median")
    assert Mean().fit(X).kernel_.gamma == pytest.approx(1 / (3 * X.var()))


@pytest.mark.parametrize("kernel", [Gaussian(sigma=1.0), 2 * (Gaussian(sigma=1.0) + Linear())])
def test_set_params_does_not_reach_a_fitted_kernel(X, kernel):
    estimator = Mean(kernel=kernel).fit(X)
    before = estimator.score_samples(X)
    name = next(name for name in kernel.get_params() if name.endswith("sigma"))
    estimator.set_params(**{f"kernel__{name}": 9.0})
    assert estimator.kernel.get_params()[name] == 9.0
    assert estimator.kernel_.get_params()[name] == 1.0
    assert np.array_equal(estimator.score_samples(X), before)


def test_a_new_kernel_after_the_fit_waits_for_the_next_fit(X):
    estimator = Mean().fit(X)
    before = estimator.score_samples(X)
    assert np.array_equal(estimator.set_params(kernel="precomputed").score_samples(X), before)


def test_the_matrix_of_a_precomputed_kernel_is_not_copied(X):
    K = Linear()(X)
    assert Mean(kernel="precomputed").fit(K).kernel_.matrix is K
    assert Mean(kernel=Precomputed(K)).fit(np.arange(6)).kernel_.matrix is K


# --- data --------------------------------------------------------------------------------------------


def test_containers_of_vectors_agree(X):
    expected = Mean(kernel=Gaussian(1.0)).fit(X).score_samples(X)
    names = ["a", "b", "c"]
    for table in (
        X.tolist(),
        np.asfortranarray(X),
        sparse.csr_array(X),
        sparse.coo_matrix(X),
        pd.DataFrame(X, columns=names),
        pl.DataFrame(X, schema=names),
    ):
        estimator = Mean(kernel=Gaussian(1.0)).fit(table)
        assert estimator.n_features_in_ == 3
        assert estimator.score_samples(table) == pytest.approx(expected, abs=1e-12)
        named = list(getattr(estimator, "feature_names_in_", []))
        assert named == (names if hasattr(table, "columns") else [])


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_tables_reach_kernels_on_columns_as_they_are(frame):
    table = frame({"x": [0.0, 1.0, 2.0], "colour": ["red", "blue", "red"]})
    estimator = Mean(kernel=Gaussian(1.0).on("x") * Delta().on("colour")).fit(table, [1, 2, 3])
    assert list(estimator.feature_names_in_) == ["x", "colour"]
    assert estimator.score_samples(table)[1] == pytest.approx(1 / 3)
    with pytest.raises(ValueError, match="expecting 2 features"):
        estimator.score_samples(np.zeros((1, 3)))


@pytest.mark.filterwarnings("ignore::mercer.errors.SlowPathWarning")
@pytest.mark.parametrize("container", [list, tuple, np.array, pd.Series, pl.Series])
def test_lists_of_objects(container):
    words = container(["kernel", "colonel"])
    estimator = Mean(kernel=common).fit(words, [0, 1])
    assert not hasattr(estimator, "n_features_in_")
    assert estimator.score_samples(words).tolist() == [4.0, 4.0]


@pytest.mark.filterwarnings("ignore::mercer.errors.SlowPathWarning")
def test_objects_of_different_length_are_no_table():
    estimator = Mean(kernel=common).fit([[1, 2], [1, 2, 3]])
    assert estimator.score_samples([[1]]).tolist() == [1.0]


def test_a_refit_on_objects_forgets_the_columns(X):
    estimator = Mean().fit(pd.DataFrame(X, columns=list("abc")))
    estimator.set_params(kernel=common).fit(["ab", "b"])
    assert not hasattr(estimator, "n_features_in_")
    assert not hasattr(estimator, "feature_names_in_")


def test_precomputed_equals_direct(X, rng):
    Z = rng.normal(size=(4, 3))
    k = Gaussian(1.0)
    direct = Mean(kernel=k).fit(X).score_samples(Z)
    assert Mean(kernel="precomputed").fit(k(X)).score_samples(k(Z, X)) == pytest.approx(direct)
    assert Mean(kernel=Precomputed()).fit(k(X)).score_samples(k(Z, X)) == pytest.approx(direct)


# --- tags --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "true_tags"),
    [
        ("rbf", {"sparse"}),
        (Linear() + Constant(1.0), {"sparse"}),
        ("chi2", {"sparse", "positive_only"}),
        (ChiSquared(1.0), {"sparse", "positive_only"}),
        ("precomputed", {"pairwise"}),
        (Precomputed(), {"pairwise"}),
        (Precomputed(np.eye(2)), set()),
        (common, {"string", "one_d_array"}),
        ("no such kernel", set()),
        (ChiSquared() + FromFunction(common), {"sparse", "positive_only"}),
    ],
)
def test_tags(kernel, true_tags):
    tags = get_tags(Mean(kernel=kernel)).input_tags
    names = ("sparse", "positive_only", "pairwise", "string", "one_d_array")
    assert {name for name in names if getattr(tags, name)} == true_tags


# --- refusals ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"times": 0}, "times must be a whole number of at least 1, got 0: pass 1, 2, 3, …"),
        ({"loud": "yes"}, "loud must be True or False, got 'yes': pass one of the two"),
        ({"kernel": "gauss"}, "kernel must be a Kernel such as .*, got 'gauss'"),
        ({"gamma": -1.0}, "gamma must be positive, got -1.0: pass a positive number"),
        ({"kernel": "precomputed"}, r"fitted on a square matrix, got shape \(6, 3\): pass the kernel values"),
        ({"kernel": "chi2"}, "Negative values in data: ChiSquared compares histograms"),
    ],
)
def test_refusals(X, options, text):
    with pytest.raises(InputError, match=text):
        estimator = Mean(**options).fit(X)
        estimator.score_samples(X)  # what a kernel asks of its points, its Gram checks


def test_refused_data(X):
    with pytest.raises(InputTypeError, match=r"got the single text 'ab': pass \[text\]"):
        Mean(kernel=common).fit("ab")
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        Mean(kernel=common).fit(["a", "b"], [1, 2, 3])
    with pytest.raises(ValueError, match="expecting 3 features"):
        Mean().fit(X).score_samples(X[:, :2])
    with pytest.raises(ValueError, match="expecting 6 features"):
        Mean(kernel="precomputed").fit(Linear()(X)).score_samples(Linear()(X, X[:4]))
    with pytest.raises(ValueError, match="NaN"):
        Mean().fit(X).score_samples([[np.nan, 0, 0]])
