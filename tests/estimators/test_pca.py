"""KernelPCA: PCA and scikit-learn as truths, the way back, every kind of data, control."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.decomposition import KernelPCA as Peer
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import (
    Gaussian,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    RationalQuadratic,
    Sigmoid,
    config,
)
from mercer.errors import InputError, MemoryBudgetError
from mercer.estimators.pca import KernelPCA
from mercer.solvers.spectral import eigen


@pytest.fixture
def X(rng):
    return rng.normal(size=(120, 5)) * [3.0, 2.0, 1.5, 1.0, 0.5] + 1


@pytest.fixture
def Z(rng):
    return rng.normal(size=(30, 5))


@pytest.fixture
def circle(rng):
    angle = rng.uniform(0, 2 * np.pi, 200)
    return np.column_stack([np.cos(angle), np.sin(angle)])


def aligned(a, b):
    """a with the signs of b's columns."""
    return a * np.sign((a * b).sum(axis=0))


@parametrize_with_checks(
    [
        KernelPCA(),
        KernelPCA(kernel="linear", n_components=0.9),
        KernelPCA(
            kernel=Gaussian(sigma="median"),
            n_components=2,
            eigen_solver="lanczos",
            random_state=0,
            fit_inverse_transform=True,
        ),
    ]
)
def test_scikit_learn(estimator, check):
    check(estimator)


# --- truths ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["dense", "lanczos", "arpack", "randomized", "auto"])
def test_equals_scikit_learn(X, Z, solver):
    peer = Peer(6, kernel="rbf", gamma=0.05, eigen_solver="dense").fit(X)
    model = KernelPCA(kernel="rbf", gamma=0.05, n_components=6, eigen_solver=solver, tol=1e-12).fit(X)
    # vectors of "randomized" are right to the root of the tolerance only
    tolerance = 1e-8 if solver != "randomized" else 1e-4
    assert model.eigenvalues_ == pytest.approx(peer.eigenvalues_, rel=1e-10)
    assert aligned(model.transform(Z), peer.transform(Z)) == pytest.approx(peer.transform(Z), abs=tolerance)
    assert (model.residuals_ <= 1e-4 * model.eigenvalues_).all()


@pytest.mark.parametrize("solver", ["dense", "lanczos"])
def test_the_linear_kernel_is_pca(X, Z, solver):
    model, peer = KernelPCA(kernel="linear", n_components=4, eigen_solver=solver).fit(X), PCA(4).fit(X)
    assert aligned(model.transform(Z), peer.transform(Z)) == pytest.approx(peer.transform(Z), abs=1e-6)
    assert model.explained_variance_ == pytest.approx(peer.explained_variance_, rel=1e-10)
    assert model.explained_variance_ratio_ == pytest.approx(peer.explained_variance_ratio_, rel=1e-10)
    assert model.inverse_transform(
        peer.transform(Z) * np.sign((model.transform(Z) * peer.transform(Z)).sum(0))
    ) == (pytest.approx(peer.inverse_transform(peer.transform(Z)), abs=1e-6))


def test_the_expansion_is_the_transform(X, Z):
    model = KernelPCA(kernel=Gaussian(sigma=2.0), n_components=5).fit(X)
    assert np.array_equal(model.expansion_(Z), model.transform(Z))
    scores = model.fit_transform(X)
    assert scores == pytest.approx(model.transform(X), abs=1e-12)
    assert scores.mean(axis=0) == pytest.approx(np.zeros(5), abs=1e-12)
    assert scores.var(axis=0, ddof=1) == pytest.approx(model.explained_variance_)
    norms = model.expansion_.norm()  # the components are unit vectors of the feature space
    assert norms == pytest.approx(np.ones(5))
    assert (scores[np.abs(scores).argmax(axis=0), np.arange(5)] > 0).all()


def test_how_many_components(X):
    spectrum = KernelPCA(kernel="linear").fit(X).explained_variance_ratio_
    assert len(spectrum) == 5 and spectrum.sum() == pytest.approx(1)
    for share in (0.3, 0.6, 0.95, spectrum[:2].sum()):
        model = KernelPCA(kernel="linear", n_components=share).fit(X)
        k = len(model.eigenvalues_)
        assert spectrum[:k].sum() >= share - 1e-12 > spectrum[: k - 1].sum() - 1e-12
    assert KernelPCA(kernel="linear", n_components=500).fit(X).transform(X).shape == (120, 120)
    assert (KernelPCA(kernel="linear", n_components=8).fit(X).transform(X)[:, 5:] == 0).all()
    assert len(KernelPCA(kernel=Gaussian(sigma=1.0)).fit(X).eigenvalues_) == 119


def test_weights_are_repetition(X, Z, rng):
    w = rng.integers(0, 4, len(X))
    for solver in ("dense", "lanczos"):
        model = KernelPCA(n_components=4, eigen_solver=solver)
        weighted = clone(model).fit(X, sample_weight=w)
        repeated = clone(model).fit(np.repeat(X, w, axis=0))
        assert weighted.transform(Z) == pytest.approx(repeated.transform(Z), abs=1e-7)
        assert weighted.explained_variance_ == pytest.approx(repeated.explained_variance_)
        assert weighted.explained_variance_ratio_ == pytest.approx(repeated.explained_variance_ratio_)
        assert weighted.fit_transform(X, sample_weight=w) == pytest.approx(weighted.transform(X))
    a, b = (m.inverse_transform(repeated.transform(Z)) for m in (weighted, repeated))
    assert a == pytest.approx(b, abs=1e-5)


@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_weights_of_the_learned_map_are_repetition(X, Z, rng, alpha):
    """K' of scores in 4 dimensions is regular; rounding grows by its condition, about 1e3 with alpha 0.1."""
    w = rng.integers(0, 4, len(X))
    model = KernelPCA(4, kernel=Gaussian(sigma=2.0), alpha=alpha, fit_inverse_transform=True)
    weighted = clone(model).fit(X, sample_weight=w)
    assert (weighted.dual_coef_[w == 0] == 0).all()
    if alpha:  # repeated points make K' singular
        repeated = clone(model).fit(np.repeat(X, w, axis=0))
        scores = repeated.transform(Z)
        assert weighted.inverse_transform(scores) == pytest.approx(
            repeated.inverse_transform(scores), abs=1e-6
        )


# --- the way back ------------------------------------------------------------------------------------


def test_the_learned_map_equals_scikit_learn(X, Z):
    options = {"gamma": 0.05, "n_components": 4, "alpha": 0.1, "fit_inverse_transform": True}
    model, peer = KernelPCA(kernel="rbf", **options).fit(X), Peer(kernel="rbf", **options).fit(X)
    truth = peer.inverse_transform(peer.transform(Z))
    assert model.inverse_transform(model.transform(Z)) == pytest.approx(truth, abs=1e-8)
    by_name = KernelPCA(kernel="rbf", gamma=0.05, n_components=4, alpha=0.1, inverse="ridge").fit(
        sparse.csr_array(X)
    )
    assert by_name.inverse_transform(model.transform(Z)) == pytest.approx(truth, abs=1e-8)


@pytest.mark.parametrize(
    "kernel",
    [
        Gaussian(sigma=0.7),
        Gaussian(sigma=[0.7, 0.9]),
        Gaussian(sigma=0.5) + 0.5 * Gaussian(sigma=2.0),
        Matern(nu=2.5, length_scale=1.0),
        RationalQuadratic(),
        Laplacian(gamma=1.0, norm=2),
    ],
    ids=repr,
)
def test_pre_images_of_radial_kernels(circle, kernel):
    """Many components: the projection is nearly Φ(x), and x comes back. Few of them: the circle does."""
    model = KernelPCA(kernel=kernel, n_components=60).fit(circle)
    # the best point lies within the error of the projection, largest for the roughest kernel
    assert model.inverse_transform(model.transform(circle)) == pytest.approx(circle, abs=5e-2)
    few = KernelPCA(kernel=kernel, n_components=6).fit(circle)
    back = few.inverse_transform(few.transform(1.2 * circle[:20]))
    assert np.abs(np.linalg.norm(back, axis=1) - 1).max() < 0.21


def test_pre_images_are_stationary(circle):
    """‖Φ(z) - PΦ(x)‖² does not fall in any direction."""
    model = KernelPCA(kernel=Gaussian(sigma=0.7), n_components=3).fit(circle)
    scores = model.transform(1.3 * circle[:5])
    z = model.inverse_transform(scores)
    coef = 1 / 200 + scores @ model.expansion_.coef.T
    kernel = Gaussian(sigma=0.7)

    def objective(points):
        return (coef * kernel(points, circle)).sum(axis=1)

    for step in ([1e-3, 0], [-1e-3, 0], [0, 1e-3], [0, -1e-3]):
        assert (objective(z + step) <= objective(z) + 1e-9).all()


def test_no_pre_image(X):
    with pytest.raises(
        InputError, match=r"needs a kernel of the distance .* got Polynomial.*fit_inverse_transform=True"
    ):
        KernelPCA(kernel=Polynomial(2), n_components=2).fit(X).inverse_transform([[0.0, 0.0]])
    with pytest.raises(
        InputError, match="there is no pre-image of strings, of tables or of rows of a precomputed"
    ):
        KernelPCA(kernel="precomputed", n_components=2).fit(X @ X.T).inverse_transform([[0.0, 0.0]])
    with pytest.raises(
        InputError, match="the learned map back gives points as vectors, got the kernel Precomputed"
    ):
        KernelPCA(kernel="precomputed", fit_inverse_transform=True).fit(X @ X.T)
    with pytest.raises(InputError, match="compares scores by the kernel itself"):
        KernelPCA(kernel=Gaussian(sigma=[1.0] * 5), inverse="ridge").fit(X)
    with pytest.raises(
        InputError, match="takes scores of 2 components, got 3 columns: pass what transform returns"
    ):
        KernelPCA(n_components=2).fit(X).inverse_transform(np.zeros((1, 3)))
    with pytest.raises(NotFittedError):
        KernelPCA().inverse_transform([[0.0]])


def test_the_way_back_is_that_of_the_fit(X, Z):
    model = KernelPCA(3, fit_inverse_transform=True).fit(X)
    scores = model.transform(Z)
    learned = model.inverse_transform(scores)
    # the map is there, whatever the parameters say by now
    assert np.array_equal(model.set_params(fit_inverse_transform=False).inverse_transform(scores), learned)
    model.fit(X)
    assert not hasattr(model, "dual_coef_") and not hasattr(model, "scores_fit_")
    found = model.inverse_transform(scores)
    assert np.array_equal(model.set_params(fit_inverse_transform=True).inverse_transform(scores), found)
    with pytest.raises(
        InputError, match=r"needs the map back that fit learns.*: fit again with inverse='ridge'"
    ):
        model.set_params(inverse="ridge").inverse_transform(scores)


@pytest.mark.full
@pytest.mark.filterwarnings("ignore:.* pre-images did not converge")
def test_pre_images_keep_to_the_budget(rng):
    import tracemalloc

    X = rng.normal(size=(1500, 4))
    model = KernelPCA(3, kernel=Gaussian(sigma=1.0), eigen_solver="dense", max_iter=5).fit(X)
    scores = model.transform(X[:1000])
    model.inverse_transform(scores[:10])
    expected = model.inverse_transform(scores)
    with config(memory="20MiB"):
        tracemalloc.start()
        found = model.inverse_transform(scores)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 1.1 * 20 * 2**20 + 1e6
    # products of blocks of other sizes round otherwise
    assert found == pytest.approx(expected, abs=1e-6)


def test_pre_images_obey_max_iter(circle):
    model = KernelPCA(
        kernel=Gaussian(sigma=0.7), n_components=3, eigen_solver="dense", max_iter=1, tol=1e-14
    ).fit(circle)
    with pytest.warns(
        ConvergenceWarning, match=r"of 200 pre-images did not converge \(max_iter\) in 1 steps"
    ):
        assert np.isfinite(model.inverse_transform(model.transform(1.5 * circle))).all()


# --- other data --------------------------------------------------------------------------------------


def test_containers_agree(X, Z):
    expected = KernelPCA(n_components=3).fit(X).transform(Z)
    names = list("abcde")
    frames = (pd.DataFrame(X, columns=names), pd.DataFrame(Z, columns=names))
    for table, new in (
        (X.tolist(), Z.tolist()),
        (sparse.csr_array(X), sparse.csr_array(Z)),
        frames,
        (pl.DataFrame(X, schema=names), pl.DataFrame(Z, schema=names)),
    ):
        assert KernelPCA(n_components=3).fit(table).transform(new) == pytest.approx(expected, abs=1e-8)
    thin, full = (KernelPCA(n_components=3).fit(table) for table in (sparse.csr_array(X), X))
    assert thin.inverse_transform(expected) == pytest.approx(full.inverse_transform(expected), abs=1e-4)


def test_output_names(X):
    model = KernelPCA(n_components=2).set_output(transform="pandas")
    table = model.fit_transform(pd.DataFrame(X, columns=list("abcde")))
    assert table.columns.tolist() == ["kernelpca0", "kernelpca1"] == model.get_feature_names_out().tolist()
    assert model.transform(pd.DataFrame(X, columns=list("abcde"))).shape == (120, 2)


def test_precomputed_equals_direct(X, Z):
    k = Gaussian(sigma=2.0)
    direct = KernelPCA(kernel=k, n_components=3).fit(X)
    given = KernelPCA(kernel="precomputed", n_components=3).fit(k(X))
    assert given.transform(k(Z, X)) == pytest.approx(direct.transform(Z))
    assert given.fit_transform(k(X)) == pytest.approx(direct.transform(X))


def common(a, b):
    return float(len(set(a) & set(b)))


@pytest.mark.filterwarnings("ignore::mercer.errors.SlowPathWarning")
def test_strings():
    words = ["kernel", "colonel", "kern", "corn", "cat", "cattle", "dog", "doll"]
    model = KernelPCA(kernel=common, n_components=2).fit(words)
    assert model.transform(["kernels"]).shape == (1, 2)
    K = np.array([[common(a, b) for b in words] for a in words])
    truth = Peer(2, kernel="precomputed").fit(K).eigenvalues_
    assert model.eigenvalues_ == pytest.approx(truth)
    assert pickle.loads(pickle.dumps(model)).transform(words) == pytest.approx(model.transform(words))
    with pytest.raises(InputError, match="inverse_transform gives points as vectors, got the kernel"):
        model.inverse_transform([[0.0, 0.0]])


def test_pipeline_and_search(X):
    y = np.linalg.norm(X, axis=1) > 3.5
    pipeline = make_pipeline(KernelPCA(kernel=Gaussian(sigma=1.0), n_components=2), KNeighborsClassifier())
    search = GridSearchCV(pipeline, {"kernelpca__kernel__sigma": [1.0, 3.0]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.5


# --- awkward data ------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["dense", "lanczos"])
def test_points_that_coincide(solver):
    with pytest.warns(UserWarning, match="the points do not vary in feature space: every score is zero"):
        model = KernelPCA(n_components=1, eigen_solver=solver, gamma=1.0).fit(np.ones((30, 2)))
    assert (model.transform([[1.0, 1.0], [5.0, 5.0]]) == 0).all()
    assert model.explained_variance_ratio_.tolist() == [0.0]
    assert model.report_.warnings


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_scales_change_nothing(X, Z, scale):
    expected = KernelPCA(kernel="linear", n_components=3, eigen_solver="lanczos").fit(X).transform(Z)
    scaled = (
        KernelPCA(kernel="linear", n_components=3, eigen_solver="lanczos").fit(scale * X).transform(scale * Z)
    )
    assert scaled / scale == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(("dtype", "offset"), [("float64", 1e5), ("float64", 1e7), ("float32", 100.0)])
def test_data_far_from_zero(rng, dtype, offset):
    """What rounding leaves of the mean is not a component."""
    X = rng.normal(size=(100, 3))
    with config(dtype=dtype):
        assert len(KernelPCA(kernel="linear").fit(X + offset).eigenvalues_) <= 3
    with config(dtype=dtype):
        assert len(KernelPCA(kernel="linear").fit(X + offset / 100).eigenvalues_) == 3


def test_duplicates_and_constant_columns(X):
    twice = np.column_stack([np.concatenate([X, X]), np.ones(240)])
    model = KernelPCA(kernel="linear").fit(twice)
    assert len(model.eigenvalues_) == 5
    assert model.explained_variance_ratio_ == pytest.approx(PCA(5).fit(X).explained_variance_ratio_)


@pytest.mark.parametrize("solver", ["dense", "lanczos"])
def test_an_indefinite_kernel_is_refused_or_told(X, solver):
    model = KernelPCA(kernel=Sigmoid(eta=0.1, nu=-1.0), n_components=3, eigen_solver=solver)
    with pytest.raises(InputError, match=r'has the eigenvalue -\S+, .* or pass indefinite="clip"'):
        model.fit(X)
    with pytest.warns(
        UserWarning, match=r"is not positive definite on these points: the eigenvalue -\S+ of K"
    ):
        model.set_params(indefinite="clip").fit(X)
    assert (model.eigenvalues_ > 0).all()
    assert len(model.report_.warnings) == 1


def test_a_good_kernel_brings_no_warning(X):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kernel in ("rbf", "linear", "laplacian", Polynomial(5), Gaussian(sigma=100.0)):
            KernelPCA(kernel=kernel).fit(X)
            KernelPCA(kernel=kernel, n_components=3, eigen_solver="lanczos").fit(X)


def test_rounding_of_a_proved_kernel_is_not_called_indefinite():
    """Its smallest eigenvalues are zero, and some come out below; the kernel is a kernel all the same."""
    points = load_iris(return_X_y=True)[0] / 10
    for indefinite in ("refuse", "clip"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            KernelPCA(
                3, kernel="poly", gamma=0.25, coef0=1.0, eigen_solver="lanczos", indefinite=indefinite
            ).fit(points)


def test_float32(X, Z):
    expected = KernelPCA(n_components=3).fit(X).transform(Z)
    with config(dtype="float32"):
        for solver in ("dense", "lanczos"):
            scores = KernelPCA(n_components=3, eigen_solver=solver).fit(X).transform(Z)
            assert scores == pytest.approx(expected, abs=1e-4)


# --- plan, report, control ---------------------------------------------------------------------------


def test_plan_and_report(X, rng):
    many = np.zeros((20_000, 3))
    with config(memory="4GB"):
        plan = KernelPCA(n_components=10, gamma=1.0).plan(many)
        assert plan.iterative and plan.memory < 1.2e9
        assert "half of K is kept in float32" in str(plan)
        with pytest.raises(
            MemoryBudgetError, match="ask for fewer components, use landmarks or fewer points"
        ):
            KernelPCA(gamma=1.0).fit(many)
    with config(memory="200MB"):
        assert "its values are computed for every product" in str(
            KernelPCA(n_components=5, gamma=1.0).plan(many)
        )
    model = KernelPCA(n_components=2, eigen_solver="lanczos").fit(X)
    assert model.report_.converged and model.report_.iterations == model.n_iter_ > 1
    assert str(model.plan(X)).startswith("block Krylov eigensolver (lanczos) on 120 points")


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"n_components": 200, "eigen_solver": "dense"},
        {"n_components": 5, "fit_inverse_transform": True},
        {"n_components": 20, "eigen_solver": "lanczos"},
    ],
)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_memory_is_as_planned(rng, options, dtype):
    import tracemalloc

    X = rng.normal(size=(600, 3))
    model = KernelPCA(kernel=Gaussian(sigma=1.0), **options).fit(X[:100])
    with config(dtype=dtype):
        tracemalloc.start()
        model.fit(X)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 1.1 * model.report_.memory + 5e5
    assert model.report_.memory < 1.4 * peak


def test_max_iter_warns_and_keeps_the_best(X):
    with pytest.warns(
        ConvergenceWarning,
        match=r"did not converge after 2 iterations, with residuals up to .*raise max_iter",
    ):
        model = KernelPCA(kernel=Gaussian(sigma=0.8), n_components=3, eigen_solver="lanczos", max_iter=2).fit(
            X
        )
    assert model.report_.stopped == "max_iter"
    assert (model.eigenvalues_ > 0).all()


def test_max_time(X):
    with pytest.warns(ConvergenceWarning, match=r"ran out of max_time=1e-09 seconds"):
        KernelPCA(kernel=Gaussian(sigma=0.8), n_components=3, eigen_solver="lanczos", max_time=1e-9).fit(X)


def test_resume_equals_an_uninterrupted_run(X, Z, tmp_path, monkeypatch):
    monkeypatch.setattr(eigen, "_BYTES_KEPT", 0)
    options = {"n_components": 3, "eigen_solver": "lanczos", "tol": 1e-11}
    whole = KernelPCA(kernel=Gaussian(sigma=0.8), **options).fit(X)
    path = tmp_path / "state.npz"
    with pytest.warns(ConvergenceWarning, match="resume=True goes on from"):
        KernelPCA(kernel=Gaussian(sigma=0.8), **options, checkpoint=path, max_iter=2).fit(X)
    resumed = KernelPCA(kernel=Gaussian(sigma=0.8), **options, checkpoint=path, resume=True).fit(X)
    assert np.array_equal(resumed.transform(Z), whole.transform(Z))
    assert resumed.n_iter_ == whole.n_iter_
    with pytest.raises(InputError, match="is the checkpoint of another fit"):
        KernelPCA(kernel=Gaussian(sigma=0.9), **options, checkpoint=path, resume=True).fit(X)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            {"n_components": 0},
            "n_components must be a whole number of at least 1 or a share between 0 and 1, got 0",
        ),
        ({"n_components": 1.0}, "n_components must be .* got 1.0: pass e.g. 10, 0.95, or None for all"),
        ({"n_components": True}, "n_components must be .* got True"),
        (
            {"eigen_solver": "qr"},
            "eigen_solver must be one of 'auto', 'dense', 'lanczos', 'randomized', 'arpack'",
        ),
        ({"inverse": "guess"}, "inverse must be one of 'auto', 'fixed_point', 'ridge', got 'guess'"),
        ({"alpha": -1.0}, "alpha must be non-negative, got -1.0"),
        ({"tol": -1.0}, "tol must be non-negative"),
        ({"max_iter": 0}, "max_iter must be a whole number of at least 1, got 0"),
    ],
)
def test_refused_parameters(X, options, text):
    with pytest.raises(InputError, match=text):
        KernelPCA(**options).fit(X)


def test_repr():
    assert repr(KernelPCA(kernel=Linear(), n_components=2)) == "KernelPCA(kernel=Linear(), n_components=2)"
