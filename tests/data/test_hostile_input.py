"""What users pass: every form of the same numbers gives the same model, and what is none gives a sentence."""

import copy
import io
import pickle
import warnings
from inspect import signature

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier

import mercer
from mercer import (
    SVC,
    SVR,
    KernelFisherDiscriminant,
    KernelLeastSquares,
    KernelLogisticRegression,
    KernelMachineClassifier,
    KernelMachineRegressor,
    KernelPCA,
    KernelPerceptron,
    KernelRidge,
    KernelRidgeCV,
    NuSVC,
    NuSVR,
    OneClassSVM,
    ParzenClassifier,
    Perceptron,
)
from mercer.features import PolynomialMap

RNG = np.random.default_rng(0)
N = 12
X = np.round(RNG.normal(size=(N, 3)) * 64) / 64  # the same numbers in float16
LABELS, VALUES = (X[:, 0] + 0.3 * X[:, 1] > 0).astype(int), X[:, 1]
ESTIMATORS = [
    *(SVC(), SVC(kernel="linear"), NuSVC(nu=0.2), SVR(), NuSVR(), OneClassSVM(), KernelRidge()),
    *(KernelRidgeCV(), KernelLeastSquares(), KernelLogisticRegression(), KernelFisherDiscriminant()),
    *(KernelPCA(n_components=2), ParzenClassifier(), KernelPerceptron(max_iter=20), Perceptron(max_iter=20)),
    *(KernelMachineClassifier(), KernelMachineRegressor(), PolynomialMap()),
]


class Sub(np.ndarray):
    """An array of somebody's own."""


def _int64():
    rows = sparse.csr_array(X)
    rows.indices, rows.indptr = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
    return rows


def _unsorted():
    rows = sparse.csr_array(X)
    for i in range(N):
        row = slice(rows.indptr[i], rows.indptr[i + 1])
        rows.indices[row], rows.data[row] = rows.indices[row][::-1].copy(), rows.data[row][::-1].copy()
    return rows


def _repeated():
    once = sparse.coo_array(X)
    row, column = (np.concatenate([part, part]) for part in once.coords)
    return sparse.coo_array((np.tile(once.data / 2, 2), (row, column)), shape=X.shape)


def _read_only():
    table = X.copy()
    table.setflags(write=False)
    return table


def _broken():
    rows = sparse.csr_array(X)
    rows.indptr[1] = -5
    return rows


SAME = {
    "Fortran": np.asfortranarray(X),
    "read-only": _read_only(),
    "other bytes": X.astype(">f8"),
    "long": X.astype(np.longdouble),
    "objects": X.astype(object),
    "own": X.view(Sub),
    "list": X.tolist(),
    "strided": np.repeat(X, 2, axis=0)[::2],
    "frame": pd.DataFrame(X),
    "frame of objects": pd.DataFrame(X).astype(object),
    "frame that may miss": pd.DataFrame(X).astype("Float64"),
    "half": X.astype(np.float16),
    **{
        kind: sparse.csr_array(X).asformat(kind) for kind in ("csr", "csc", "coo", "lil", "dok", "bsr", "dia")
    },
    "csr_matrix": sparse.csr_matrix(X),
    "int64": _int64(),
    "unsorted": _unsorted(),
    "repeated": _repeated(),
}
#: what is passed, and a part of the sentence
WRONG = {
    "0-d": (np.array(1.0), "1|2-D|2D"),
    "1-d": (X[:, 0], "2D|2-D"),
    "3-d": (X[None], "dim|2-D"),
    "masked": (
        np.ma.masked_array(X, X > 1),
        "X must not be a masked array, got shape .* masked: pass X.filled",
    ),
    "complex": (X + 1j, "Complex data not supported"),
    "dates": (
        np.full((N, 3), np.datetime64("2020-01-01")),
        r"X must hold numbers, got datetime64\[D\]: turn",
    ),
    "spans": (np.full((N, 3), np.timedelta64(1, "s")), r"X must hold numbers, got timedelta64\[s\]"),
    "dates in a frame": (
        pd.DataFrame({"a": pd.date_range("2020", periods=N), "b": VALUES}),
        "column 'a' of X must hold numbers, got datetime64",
    ),
    "texts in a frame": (pd.DataFrame({"a": ["x"] * N, "b": VALUES}), "column 'a' of X"),
    "twice": (
        pd.DataFrame(X, columns=["a", "a", "b"]),
        "X has 2 columns of the name 'a': rename them, or pass",
    ),
    "NaN": (np.where(X > 1, np.nan, X), "NaN"),
    "infinite": (np.where(X > 1, np.inf, X), "infinity|inf"),
    "NA": (pd.DataFrame({"a": pd.array([pd.NA, *[1] * (N - 1)], dtype="Int64")}), "NaN|missing"),
    "broken": (_broken(), "X has an indptr that does not count up from 0"),
    "no rows": (X[:0], "0 sample|no points"),
    "no columns": (X[:, :0], "0 feature"),
    "nothing": (None, "None|scalar|2D"),
    "a text": ("abc", "X must be a table of numbers, got the single text 'abc'"),
    "huge": (
        np.array([[10**400, 1, 1]] * N, dtype=object),
        "holds a whole number that is too large for a float",
    ),
    "ragged": ([[1, 2], [3]], "inhomogeneous|equal length"),
}


def target(model):
    return LABELS if is_classifier(model) else VALUES


def values(model, X):
    method = next(name for name in ("decision_function", "predict", "transform") if hasattr(model, name))
    return np.asarray(getattr(model, method)(X), dtype=float)


def fitted(model, X, y, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clone(model).fit(X, y, **more)


@pytest.mark.sample(4)
@pytest.mark.parametrize("model", ESTIMATORS, ids=lambda model: repr(model)[:40])
def test_the_same_numbers_are_the_same_model(model):
    """To 1e-7: sums over columns come in another order, and solvers stop at a tolerance of their own."""
    expected = values(fitted(model, X, target(model)), X)
    for name, table in SAME.items():
        found = values(fitted(model, table, target(model)), table)
        np.testing.assert_allclose(found, expected, atol=1e-7 * max(1, abs(expected).max()), err_msg=name)


@pytest.mark.parametrize("model", ESTIMATORS, ids=lambda model: repr(model)[:40])
def test_what_is_no_table_of_numbers_gives_a_sentence(model):
    good = fitted(model, X, target(model))
    warnings.simplefilter("ignore")  # of the names that the columns of a frame have, until the test ends
    for table, message in WRONG.values():
        with pytest.raises((ValueError, TypeError), match=message):
            fitted(model, table, target(model))
        with pytest.raises((ValueError, TypeError), match=r".{20}"):
            values(good, table)


WEIGHTS = {
    "zeros": np.zeros(N),
    "negative": -np.ones(N),
    "NaN": np.append(np.nan, np.ones(N - 1)),
    "infinite": np.append(np.inf, np.ones(N - 1)),
    "short": np.ones(N - 1),
    "wide": np.ones((N, 2)),
    "texts": ["a"] * N,
    "none": [None] * N,
    "complex": np.ones(N) * 1j,
}


@pytest.mark.parametrize("model", ESTIMATORS, ids=lambda model: repr(model)[:40])
def test_weights(model):
    if "sample_weight" not in signature(model.fit).parameters:
        return
    for weight in WEIGHTS.values():
        with pytest.raises((ValueError, TypeError), match=r".{20}"):
            fitted(model, X, target(model), sample_weight=weight)
    for weight in (np.full(N, 1e300), np.full(N, 1e-300)):
        try:
            found = values(fitted(model, X, target(model), sample_weight=weight), X)
        except ValueError as error:
            assert len(str(error)) > 20
        else:
            assert np.isfinite(found).all()


NO_LABELS = {
    "NA": pd.array([0, pd.NA, *[1, 0] * 5], dtype="Int64"),
    "NA of objects": pd.Series([0, pd.NA, *[1, 0] * 5], dtype=object),
    "NA of texts": pd.Series(["a", pd.NA, *["a", "b"] * 5], dtype="string"),
    "NA of categories": pd.Series(["a", None, *["a", "b"] * 5]).astype("category"),
    "NA in a list": [0, pd.NA, *[1, 0] * 5],
    "None": [0, None, *[1, 0] * 5],
    "NaN": np.array([0, np.nan, *[1, 0] * 5]),
    "NaT": np.array(["2020-01-01", "NaT", *["2020-01-01", "2020-01-02"] * 5], dtype="datetime64[D]"),
}


@pytest.mark.parametrize(
    "model", [m for m in ESTIMATORS if hasattr(m, "predict")], ids=lambda m: repr(m)[:40]
)
def test_targets(model):
    if isinstance(model, OneClassSVM):
        return
    what = "label" if is_classifier(model) else "value"
    for y in NO_LABELS.values():
        with pytest.raises(
            TypeError, match=f"y must hold a {what} for every point, got (None|NaN|NaT|NA) for point 1: leave"
        ):
            fitted(model, X, y)
    with pytest.raises(
        TypeError, match=rf"y must not be a masked array, got \d of 12 masked: leave out .*{what}"
    ):
        fitted(model, X, np.ma.masked_array(LABELS, LABELS > 0))
    if not is_classifier(model):
        with pytest.raises(TypeError, match=r"y must hold numbers, got datetime64\[D\]: say in which unit"):
            fitted(model, X, np.full(N, np.datetime64("2020-01-01")))
    else:
        with pytest.raises(ValueError, match="at least two classes, got one class"):
            fitted(model, X, np.zeros(N))
        for y in (np.array(["no", "yes"])[LABELS], LABELS.astype(bool)):
            assert set(fitted(model, X, y).predict(X)) <= set(y)


# --- copies ---------------------------------------------------------------------------------------------


def _by_joblib(thing):
    buffer = io.BytesIO()
    joblib.dump(thing, buffer)
    buffer.seek(0)
    return joblib.load(buffer)


COPIES = [lambda thing: pickle.loads(pickle.dumps(thing)), copy.copy, copy.deepcopy, _by_joblib]


@pytest.mark.parametrize("how", COPIES, ids=["pickle", "copy", "deepcopy", "joblib"])
def test_everything_public_can_be_copied(how):
    for name in mercer.__all__:
        how(getattr(mercer, name))
    assert how(mercer.certify) is mercer.certify
    assert how(mercer.smoothness(mercer.Gaussian(1.0))).density(1.0) == pytest.approx(
        mercer.smoothness(mercer.Gaussian(1.0)).density(1.0)
    )
    model = SVC().fit(X, LABELS)
    for thing in (model, model.report_, model.expansion_, mercer.Gram(model.kernel_, X), model.plan(X)):
        assert type(how(thing)) is type(thing)
    np.testing.assert_array_equal(how(model).decision_function(X), model.decision_function(X))
