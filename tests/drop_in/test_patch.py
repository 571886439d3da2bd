"""Our learners under scikit-learn's names: what is replaced, what is put back, and what a model then is."""

import importlib
import inspect
import pickle
import subprocess
import sys
import textwrap
import warnings

import joblib
import numpy as np
import pytest
import sklearn
import sklearn.svm
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_digits, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score

import mercer
from mercer.drop_in import PLACES
from mercer.drop_in.adapter import Adapter
from mercer.errors import InputError, SlowPathWarning

ORIGINALS = {name: getattr(importlib.import_module(place), name) for name, (place, _) in PLACES.items()}


def patched(name):
    """A class as it is imported after the patch."""
    mercer.patch_scikit_learn([name])
    return getattr(importlib.import_module(PLACES[name][0]), name)


def values_at(model, X):
    return model.transform(X) if hasattr(model, "transform") else model.predict(X)


def run(script):
    """What a script prints in a process of its own."""
    script = f"import sys\nsys.path[:0] = {sys.path!r}\n" + textwrap.dedent(script)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


# --- names -------------------------------------------------------------------------------------------------


def test_everything_is_patched_and_put_back():
    assert mercer.patch_scikit_learn() == list(PLACES) == mercer.patch_scikit_learn()
    for name, (place, _) in PLACES.items():
        ours = getattr(importlib.import_module(place), name)
        assert ours is not ORIGINALS[name]
        assert issubclass(ours, ORIGINALS[name]) and issubclass(ours, Adapter) and ours.__name__ == name
        assert inspect.signature(ours) == inspect.signature(ORIGINALS[name])
        assert (
            repr(ours()) == repr(ORIGINALS[name]()) and ours().get_params() == ORIGINALS[name]().get_params()
        )
    assert mercer.unpatch_scikit_learn() == list(PLACES)
    for name, (place, _) in PLACES.items():
        assert getattr(importlib.import_module(place), name) is ORIGINALS[name]
    assert mercer.unpatch_scikit_learn() == []


def test_some_names_are_patched():
    assert mercer.patch_scikit_learn(["SVC", "KernelRidge"]) == ["SVC", "KernelRidge"]
    assert sklearn.svm.SVC is not ORIGINALS["SVC"] and sklearn.svm.SVR is ORIGINALS["SVR"]
    assert mercer.unpatch_scikit_learn("SVC") == ["SVC"] and sklearn.svm.SVC is ORIGINALS["SVC"]
    assert mercer.unpatch_scikit_learn() == ["KernelRidge"]


def test_a_name_that_is_unknown_is_refused_before_anything_is_patched():
    with pytest.raises(
        InputError, match=r"no drop-in for 'LinearSVC': pass names among SVC, NuSVC, .* or none for all"
    ):
        mercer.patch_scikit_learn(["SVC", "LinearSVC"])
    assert sklearn.svm.SVC is ORIGINALS["SVC"]


def test_what_somebody_put_there_later_stays(monkeypatch):
    monkeypatch.setattr(sklearn.svm, "SVC", ORIGINALS["SVC"])  # which is put back at the end
    mercer.patch_scikit_learn("SVC")
    monkeypatch.setattr(sklearn.svm, "SVC", int)
    assert mercer.unpatch_scikit_learn() == ["SVC"] and sklearn.svm.SVC is int


def test_mercer_is_imported_without_it():
    out = run(
        "import mercer\nprint([name for name in sys.modules if name in ('mercer.drop_in', 'sklearn.svm')])"
    )
    assert out.strip() == "[]"


# --- models ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_model_goes_through_scikit_learn():
    """``clone``, searches in other processes, frames and ``isinstance``."""
    machine, (X, y) = patched("SVC"), load_iris(return_X_y=True)
    search = GridSearchCV(machine(), {"C": [0.1, 10.0]}, n_jobs=2, cv=3).fit(X, y)
    assert type(search.best_estimator_) is machine and isinstance(search.best_estimator_, ORIGINALS["SVC"])
    assert search.best_score_ > 0.95
    model = clone(machine(C=3.0, kernel="linear")).fit(X, y)
    assert type(clone(model)) is machine and clone(model).get_params() == model.get_params()
    assert isinstance(model.mercer_, mercer.SVC) and np.all(model.mercer_.kkt_violation_ <= 1e-3)
    scores = cross_val_score(machine(), X, y, params={"sample_weight": np.ones(150)})
    assert scores.mean() > 0.95


@pytest.mark.parametrize("name", ["KernelPCA", "Nystroem"])
def test_frames_are_made_where_they_are_asked_for(name):
    pandas = pytest.importorskip("pandas")
    transformer = patched(name)(n_components=3).set_output(transform="pandas")
    X = load_iris(as_frame=True).data
    for out in (transformer.fit_transform(X), transformer.transform(X)):
        assert isinstance(out, pandas.DataFrame)
        assert list(out.columns) == [f"{name.lower()}{i}" for i in range(3)]


def test_models_are_loaded_where_nothing_is_patched(tmp_path, fork):
    """By pickle and by joblib, which keeps arrays beside; and they predict the same."""
    X, y = load_iris(return_X_y=True)
    models = [patched(name)(**({"nu": 0.3} if name == "NuSVC" else {})).fit(X, y) for name in PLACES]
    expected = [values_at(model, X) for model in models]
    joblib.dump((models, pickle.dumps(models), X, expected), tmp_path / "models")
    script = f"""
        import importlib, pickle
        import joblib
        from mercer.drop_in import PLACES
        models, pickled, X, expected = joblib.load({str(tmp_path / "models")!r})
        for loaded in (models, pickle.loads(pickled)):
            for (name, (place, _)), model, values in zip(PLACES.items(), loaded, expected, strict=True):
                theirs = getattr(importlib.import_module(place), name)
                assert isinstance(model, theirs) and type(model) is not theirs, model
                assert hasattr(model, "mercer_") == (name != "Nystroem"), model
                method = "transform" if hasattr(model, "transform") else "predict"
                assert (getattr(model, method)(X) == values).all(), model
        print("all")
    """
    assert fork(textwrap.dedent(script)).said() == "all"


@pytest.mark.parametrize("name", ["KernelRidge", "SVC", "Nystroem", "KernelPCA"])
def test_a_model_of_scikit_learn_is_saved_and_used_under_the_patch(name):
    X, y = load_iris(return_X_y=True)
    model = ORIGINALS[name]().fit(X, y)
    method = "transform" if hasattr(model, "transform") else "predict"
    expected, saved = getattr(model, method)(X), pickle.dumps(model)
    patched(name)
    again = [pickle.loads(saved), pickle.loads(pickle.dumps(model))]
    for loaded in again:
        assert np.allclose(getattr(loaded, method)(X), expected, atol=1e-10)


def test_a_model_is_scikit_learns_where_its_numbers_were_exchanged():
    X, y = [[-1.0], [1.0]], [0, 1]
    model = patched("SVC")(kernel="linear").fit(X, y)
    assert model._learner() is model.mercer_ and model.predict([[0.5]]) == [1]
    model._intercept_ = np.array([9.0])  # LIBSVM's sign: the first class is positive
    assert model._learner() is None and model.predict([[0.5]]) == [0]


@pytest.mark.parametrize("name", list(PLACES))
def test_a_model_that_was_not_fitted_says_so(name):
    with pytest.raises(NotFittedError, match=f"This {name} instance is not fitted yet"):
        values_at(patched(name)(), [[0.0]])


# --- the same answers --------------------------------------------------------------------------------------


def objective(model, K, y):
    """½ γᵀKγ - Σ|γ|, the dual of a classifier of two classes, which is least at its solution."""
    gamma = np.zeros(len(y))
    gamma[model.support_] = model.dual_coef_[0]
    assert np.all(np.sign(gamma[model.support_]) == np.where(y, 1, -1)[model.support_])
    assert abs(gamma.sum()) < 1e-8 * np.abs(gamma).sum() and np.abs(gamma).max() <= model.C * (1 + 1e-12)
    return 0.5 * gamma @ K @ gamma - np.abs(gamma).sum()


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_the_dual_is_as_low_as_libsvms(C):
    """The certificate: LIBSVM's dual value is no more than our gap below ours; and both decide alike."""
    X, digits = load_digits(return_X_y=True)
    X, y = X[:600], (digits[:600] % 2).astype(bool)
    theirs, ours = ORIGINALS["SVC"](C=C).fit(X, y), patched("SVC")(C=C).fit(X, y)
    K = np.exp(-ours._gamma * cdist(X, X, "sqeuclidean"))
    assert ours._gamma == theirs._gamma
    assert objective(ours, K, y) - objective(theirs, K, y) <= ours.mercer_.dual_gap_ + 1e-9
    # f differs by the tolerance of either solution, a few times over
    assert np.allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-2)


@pytest.mark.sample(17)
@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "precomputed", lambda A, B: A @ B.T])
@pytest.mark.parametrize("name", ["SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM"])
def test_machines_find_what_libsvm_finds(name, kernel, is_sparse):
    """At a tolerance at which both have as many digits as are compared."""
    if kernel == "precomputed" and is_sparse:
        pytest.skip("refused by both")
    X, y = load_iris(return_X_y=True)
    # about the origin no plane keeps one class away from it, and LIBSVM goes on for minutes
    X = (X - X.mean(axis=0) * (name != "OneClassSVM")) / X.std(axis=0)
    X = X @ X.T if kernel == "precomputed" else sparse.csr_matrix(X) if is_sparse else X
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    options = {"kernel": kernel, "tol": 1e-8, **({"nu": 0.3} if "Nu" in name or "One" in name else {})}
    options |= {"decision_function_shape": "ovo"} if name.endswith("SVC") else {}
    if callable(kernel) and is_sparse:
        options["kernel"] = lambda A, B: (A @ B.T).toarray()
    theirs = ORIGINALS[name](**options).fit(X, y, sample_weight=weight)
    ours = patched(name)(**options).fit(X, y, sample_weight=weight)
    method = "predict" if "R" in name else "decision_function"
    values, expected = getattr(ours, method)(X), getattr(theirs, method)(X)
    error = 1e-5 * max(1.0, np.abs(theirs.intercept_).max())  # LIBSVM's f is some hundred tolerances off
    assert np.allclose(values, expected, atol=error)
    clear = np.abs(values.reshape(len(y), -1)).min(axis=1) > error
    assert method == "predict" or np.array_equal(ours.predict(X)[clear], theirs.predict(X)[clear])
    assert sparse.issparse(ours.dual_coef_) == sparse.issparse(theirs.dual_coef_)
    assert ours.dual_coef_.shape[0] == theirs.dual_coef_.shape[0] and ours.shape_fit_ == theirs.shape_fit_
    assert np.allclose(ours.intercept_, theirs.intercept_, atol=error)
    if kernel == "linear":
        dense = [m.coef_.toarray() if is_sparse else m.coef_ for m in (ours, theirs)]
        assert np.allclose(*dense, atol=1e-5)


def test_class_weights_are_those_of_scikit_learn():
    """Of classes as they are counted, without the weights of points; and none for ν."""
    X, y = load_iris(return_X_y=True)
    X, y, weight = X[50:130], y[50:130], np.linspace(0.1, 3.0, 80)
    for name, options in (("SVC", {"C": 0.1}), ("NuSVC", {"nu": 0.2})):
        options |= {"class_weight": "balanced", "tol": 1e-8}
        theirs, ours = (
            ORIGINALS[name](**options).fit(X, y, weight),
            patched(name)(**options).fit(X, y, weight),
        )
        assert np.allclose(ours.decision_function(X), theirs.decision_function(X), atol=2e-6)


@pytest.mark.filterwarnings("ignore:The `probability` parameter was deprecated:FutureWarning")
@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities_agree_with_predictions(classes):
    X, y = load_iris(return_X_y=True)
    X, y = X[y >= 3 - classes], y[y >= 3 - classes]
    model = patched("SVC")(probability=True).fit(X, y)
    P = model.predict_proba(X)
    assert np.array_equal(model.classes_[P.argmax(axis=1)], model.predict(X))
    assert np.allclose(np.log(P), model.predict_log_proba(X)) and np.allclose(P.sum(axis=1), 1)
    # what is left for LIBSVM's own formula has the same sense, if one slope instead of two
    model._stands_for["_intercept_"] = None
    assert model._learner() is None
    assert np.mean(model.predict_proba(X).argmax(axis=1) == P.argmax(axis=1)) > 0.95


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"kernel": "rbf", "alpha": 0.1},
        {"kernel": "laplacian", "gamma": 0.3},
        {"kernel": "poly", "degree": 2.0, "coef0": 0.5},
        {"kernel": "polynomial"},
        {"kernel": "cosine"},
        {"kernel": "chi2", "gamma": 1.0},
        {"kernel": lambda a, b, c: float(a @ b) + c, "kernel_params": {"c": 2.0}},
        {"alpha": [0.1, 2.0]},
    ],
    ids=lambda options: ", ".join(map(str, options.values())).split("<")[0] or "linear",
)
@pytest.mark.parametrize("is_weighted", [False, True])
def test_ridge_solves_the_same_system(options, is_weighted):
    X, _ = load_iris(return_X_y=True)
    Y = np.sin(X[:, :2]) if isinstance(options.get("alpha"), list) else np.sin(X[:, 0])
    weight = np.where(np.arange(150) % 10, np.linspace(0.2, 2.0, 150), 0.0) if is_weighted else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SlowPathWarning)  # of a function of two points
        theirs = ORIGINALS["KernelRidge"](**options).fit(X, Y, sample_weight=weight)
        ours = patched("KernelRidge")(**options).fit(X, Y, sample_weight=weight)
        assert np.allclose(ours.predict(X[::3] + 0.1), theirs.predict(X[::3] + 0.1), rtol=1e-7, atol=1e-9)
    assert ours._learner() is not None and ours.dual_coef_.shape == theirs.dual_coef_.shape
    assert np.allclose(ours.dual_coef_, theirs.dual_coef_, rtol=1e-6, atol=1e-7)


def test_ridge_takes_sparse_rows_and_kernel_values():
    X, y = load_diabetes(return_X_y=True)
    expected = ORIGINALS["KernelRidge"](alpha=0.1).fit(X, y).predict(X)
    ridge = patched("KernelRidge")
    for container in (sparse.csr_matrix, sparse.csc_matrix):
        assert np.allclose(ridge(alpha=0.1).fit(container(X), y).predict(container(X)), expected)
    model = ridge(alpha=0.1, kernel="precomputed").fit(X @ X.T, y)
    assert np.allclose(model.predict(X @ X.T), expected)


@pytest.mark.parametrize("solver", ["auto", "dense", "arpack", "randomized"])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "precomputed", "cosine"])
def test_components_are_the_same(kernel, solver):
    X = load_iris(return_X_y=True)[0] / 10
    X = np.exp(-cdist(X, X)) if kernel == "precomputed" else X
    options = {"n_components": 3, "kernel": kernel, "eigen_solver": solver, "random_state": 0}
    theirs, ours = ORIGINALS["KernelPCA"](**options).fit(X), patched("KernelPCA")(**options).fit(X)
    assert np.allclose(ours.eigenvalues_, theirs.eigenvalues_, rtol=1e-6)
    assert np.allclose(ours.transform(X[:9]), theirs.transform(X[:9]), atol=1e-5)
    assert np.allclose(ours.fit_transform(X), ours.transform(X), atol=1e-5)
    ours.eigenvalues_, ours.eigenvectors_ = ours.eigenvalues_[:2], ours.eigenvectors_[:, :2]
    assert ours._learner() is None and np.allclose(
        ours.transform(X[:9]), theirs.transform(X[:9])[:, :2], atol=1e-5
    )


def test_the_map_back_is_the_same():
    X = load_iris(return_X_y=True)[0]
    options = {"n_components": 5, "kernel": "rbf", "fit_inverse_transform": True, "alpha": 0.01}
    theirs, ours = ORIGINALS["KernelPCA"](**options), patched("KernelPCA")(**options)
    expected = theirs.inverse_transform(theirs.fit_transform(X))
    assert np.allclose(ours.inverse_transform(ours.fit_transform(X)), expected, atol=1e-6)
    assert ours.dual_coef_.shape == theirs.dual_coef_.shape


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"kernel": "poly", "degree": 2},
        {"kernel": "rbf", "kernel_params": {"gamma": 0.2}},
        {"kernel": "sigmoid"},
    ],
    ids=["rbf", "poly", "params", "sigmoid"],
)
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix, np.float32])
def test_landmark_features_are_the_same(options, container):
    X = container(load_iris(return_X_y=True)[0])
    options |= {"n_components": 20, "random_state": 3}
    theirs, ours = ORIGINALS["Nystroem"](**options).fit(X), patched("Nystroem")(**options).fit(X)
    out, expected = ours.transform(X), theirs.transform(X)
    assert np.array_equal(ours.component_indices_, theirs.component_indices_) and out.dtype == expected.dtype
    # rounding of k, times the normalisation: scikit-learn's squared distances err by ε ‖x‖², ours do not
    eps = np.finfo(out.dtype).eps
    error = 100 * eps * np.abs(theirs.normalization_).sum(axis=1).max() * 200
    assert np.abs(out - expected).max() < error


# --- what is left to scikit-learn, and said ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "options", "why"),
    [
        ("SVC", {"kernel": "poly", "coef0": -1.0}, "coef0=-1.0: it is not positive definite"),
        ("SVR", {"kernel": "poly", "degree": 0}, "degree=0, which must be a whole number"),
        ("OneClassSVM", {"gamma": 0.0}, "with gamma=0 the kernel 'rbf' is the same for all points"),
        ("KernelRidge", {"kernel": "poly", "degree": 1.5}, "degree=1.5, which must be a whole number"),
        ("KernelRidge", {"kernel": "sigmoid"}, "is not positive definite on these points"),
        ("KernelPCA", {"kernel": "poly", "coef0": -1.0, "n_components": 2}, "coef0=-1.0: it is not positive"),
    ],
)
def test_what_mercer_does_not_learn_is_left_to_scikit_learn_and_said(name, options, why):
    X, y = load_iris(return_X_y=True)
    expected = ORIGINALS[name](**options).fit(X, y)
    model = patched(name)(**options)
    with pytest.warns(SlowPathWarning, match=f"^{name} is left to scikit-learn's own code: .*{why}"):
        model.fit(X, y)
    assert not hasattr(model, "mercer_")
    method = "transform" if name == "KernelPCA" else "predict"
    assert np.allclose(getattr(model, method)(X), getattr(expected, method)(X))
    model.set_params(**{key: value for key, value in type(model)().get_params().items() if key in options})
    assert model.fit(X, y)._learner() is model.mercer_  # and back again


def test_features_of_a_kernel_that_mercer_has_not_are_said():
    X = load_iris(return_X_y=True)[0]
    model = patched("Nystroem")(kernel="poly", degree=1.5, n_components=5, random_state=0).fit(X)
    with pytest.warns(SlowPathWarning, match="no polynomial kernel with degree=1.5"):
        features = model.transform(X)
    expected = ORIGINALS["Nystroem"](kernel="poly", degree=1.5, n_components=5, random_state=0).fit(X)
    assert np.allclose(features, expected.transform(X))


def test_negative_eigenvalues_are_refused_where_they_are_asked_for():
    K = np.diag([3.0, -4.0, -5.0, -6.0])
    pca = patched("KernelPCA")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.all(pca(1, kernel="precomputed").fit(K).eigenvalues_ > 0)
        with pytest.raises(ValueError, match="There are significant negative eigenvalues"):
            pca(3, kernel="precomputed").fit(K)
    with pytest.raises(InputError, match="not positive definite"):
        pca(kernel="precomputed").fit(K)


def test_a_budget_for_kernel_values_is_kept_and_the_default_is_ours():
    machine, X, y = patched("SVC"), [[-1.0], [1.0]], [0, 1]
    assert machine().fit(X, y).mercer_.cache_size == "auto"
    assert machine(cache_size=50).fit(X, y).mercer_.cache_size == 50
