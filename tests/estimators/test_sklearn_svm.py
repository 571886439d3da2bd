"""scikit-learn's tests of SVC, NuSVC, SVR, NuSVR and OneClassSVM, run on mercer's.

Each test is scikit-learn's, read from the installed package; ``CANNOT_APPLY`` lists those that are about
something else. One that has none of the five classes in it is skipped. One that has is run all the same, and
must fail: should it pass one day, it leaves the list.
"""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.utils.fixes import parse_version

import mercer

# tests are no package
_spec = importlib.util.spec_from_file_location("_sklearn_svm", Path(__file__).with_name("_sklearn_svm.py"))
assert _spec is not None and _spec.loader is not None
upstream = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(upstream)

OURS = {name: getattr(mercer, name) for name in ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM")}

#: test → why it cannot apply
CANNOT_APPLY = {
    "test_linearsvr_fit_sampleweight": "LinearSVR only: another solver, not one of the five",
    "test_linearsvc_parameters": "LinearSVC only: another solver, not one of the five",
    "test_linearsvc": "LinearSVC only: another solver, not one of the five",
    "test_linearsvc_crammer_singer": "LinearSVC only: another solver, not one of the five",
    "test_linearsvc_fit_sampleweight": "LinearSVC only: another solver, not one of the five",
    "test_crammer_singer_binary": "LinearSVC only: another solver, not one of the five",
    "test_linearsvc_iris": "LinearSVC only: another solver, not one of the five",
    "test_dense_liblinear_intercept_handling": "LinearSVC only: another solver, not one of the five",
    "test_liblinear_set_coef": "LinearSVC only: another solver, not one of the five",
    "test_linearsvc_verbose": "LinearSVC only: another solver, not one of the five",
    "test_linear_svm_convergence_warnings": "LinearSVC and LinearSVR only: another solver",
    "test_lsvc_intercept_scaling_zero": "LinearSVC only: another solver, not one of the five",
    "test_linearsvm_liblinear_sample_weight": "LinearSVC and LinearSVR only: another solver",
    "test_dual_auto": "a private function of LinearSVC",
    "test_dual_auto_edge_cases": "a private function of LinearSVC",
    "test_tweak_params": "writes to LIBSVM's private _dual_coef_; coefficients here belong to expansion_",
    "test_svc_raises_error_internal_representation": "writes to LIBSVM's private _n_support",
    "test_svr_errors": "a function that gives no kernel matrix is refused by fit already",
    "test_bad_input": "a model of dense points that refuses sparse ones; mercer's predicts on both",
    "test_svc_nonfinite_params": "data that overflow are refused earlier, with another text",
    "test_probability_raises_futurewarning": "scikit-learn is about to remove `probability`; mercer keeps it",
    "test_svc_nusvc_probA_probB_deprecated": "attributes that scikit-learn is about to remove",
}

IS_OLD = parse_version(sklearn.__version__) < parse_version("1.9")

_source = upstream.find_source()
if _source is None:
    pytest.skip("this scikit-learn was installed without its tests", allow_module_level=True)

_cases = upstream.tests_of(upstream.load(_source, OURS))
_used = upstream.names_used(_source)
globals().update(_cases)


def is_about_ours(name):
    """Whether a test mentions one of the five classes."""
    return bool(_used[name] & OURS.keys())


@pytest.fixture
def global_random_seed():
    """scikit-learn's tests ask for this by name; 42 is its default."""
    return 42


@pytest.fixture(autouse=True)
def cannot_apply(request):
    name = request.node.originalname
    reason = CANNOT_APPLY.get(name)
    if name == "test_negative_sample_weights_mask_all_samples" and IS_OLD:
        pytest.skip("the words for weights that are all zero were others before scikit-learn 1.9")
    if reason is None:
        return
    if is_about_ours(name):
        request.applymarker(pytest.mark.xfail(reason=reason, strict=True))
    else:
        pytest.skip(reason)


# --- the tests of these tests ------------------------------------------------------------------------


def test_upstream_is_whole():
    """Every test of the file is here, and uses mercer's classes."""
    assert len(_cases) >= 60
    assert _cases.keys() == {name for name in _used if name.startswith("test_")}
    for name, ours in OURS.items():
        assert getattr(_cases["test_svr"].__globals__["svm"], name) is ours
    assert _cases["test_n_support"].__globals__["NuSVR"] is mercer.NuSVR


@pytest.mark.skipif(IS_OLD, reason="the list is for 1.9")
def test_every_exception_exists_upstream():
    assert CANNOT_APPLY.keys() <= _cases.keys()


def test_reasons_are_one_line():
    assert all(reason and "\n" not in reason for reason in CANNOT_APPLY.values())


# --- what remains of those that cannot apply ---------------------------------------------------------

X = np.array([[-2, -1], [-1, -1], [-1, -2], [1, 1], [1, 2], [2, 1]])
Y = np.array([1, 1, 1, 2, 2, 2])


@pytest.mark.parametrize("container", [sparse.lil_array, sparse.csr_array])
def test_sparse_points_for_a_model_of_dense_ones(container):
    model = mercer.SVC().fit(X, Y)
    np.testing.assert_allclose(
        model.decision_function(container(X.astype(float))), model.decision_function(X), rtol=1e-12
    )


def test_shapes_that_do_not_fit():
    """The rest of scikit-learn's test_bad_input."""
    for points, targets in ((X, Y[:-1]), (X[:-1], Y)):
        with pytest.raises(ValueError, match=r"inconsistent numbers of samples|5.*6|6.*5"):
            mercer.SVC().fit(points, targets)
    model = mercer.SVC().fit(np.asfortranarray(X), np.tile(Y, (2, 1)).T[:, -1])
    assert model.predict([[-1, -1], [2, 2], [3, 2]]).tolist() == [1, 2, 2]
    with pytest.raises(ValueError, match="2 features"):
        model.predict(X.T)
    with pytest.raises(ValueError, match="6 features"):
        mercer.SVC().fit(X @ X.T, Y).predict(X)
    with pytest.raises(ValueError, match=r"\(6, 2\)|6 × 2|square"):
        mercer.SVC(kernel="precomputed").fit(X, Y)


def test_data_that_overflow():
    with pytest.raises(ValueError, match=r"overflow.*rescale the columns"):
        mercer.SVC().fit(np.finfo(np.float64).max * np.array([[0.1], [0.5], [0.9]]), [0, 1, 0])
