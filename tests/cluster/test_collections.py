"""Dask arrays and frames as points: what Dask leaves open is settled, or refused in a sentence."""

import time

import dask
import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from mercer import (
    SVC,
    Gaussian,
    Gram,
    KernelLogisticRegression,
    KernelRidge,
    Landmarks,
    Spectrum,
    config,
)
from mercer.errors import InputError, InputTypeError, MemoryBudgetError
from mercer.estimators.shared.landmark_plans import bytes_of_pass
from mercer.gram.blocks import RowBlocks, groups_of
from mercer.runtime.config import format_bytes
from mercer.solvers.landmarks.inner import Weighted


def model(**options):
    return KernelRidge(**{"alpha": 1.0, "landmarks": 50, "tol": 1e-4, **options})


@pytest.fixture
def few(data):
    return data[0][:2000], data[1][:2000]


@pytest.fixture
def frame(few):
    X, y = few
    return dd.from_pandas(pd.DataFrame(X, columns=list("abcd")).assign(y=y, name="x"), npartitions=2)


def test_unknown_sizes_and_other_types_are_put_right(client, few):
    X, y = few
    alone = model().fit(X.astype(np.float32), y)
    points = da.from_array(X.astype(np.float32), chunks=(900, 2))
    found = model().fit(points[points[:, 0] > -100], da.from_array(y[:, None], chunks=(77, 1)))
    assert np.array_equal(alone.expansion_.coef, found.expansion_.coef)
    whole = np.round(X * 10).astype(np.int32)
    alone, found = model().fit(whole, y), model().fit(da.from_array(whole), y)
    assert np.array_equal(alone.expansion_.coef, found.expansion_.coef)


def test_the_array_that_was_given_stays_as_it_is(client, few):
    X, y = few
    points = da.from_array(X, chunks=900)
    points = points[points[:, 0] > -100]
    model().fit(points, y)
    assert np.isnan(points.shape[0])


def test_a_frame_of_true_and_false_beside_numbers(client, few):
    X, y = few
    table = pd.DataFrame(X, columns=list("abcd")).assign(e=X[:, 0] > 0, f=pd.array(np.arange(2000), "Int64"))
    alone, found = model().fit(table, y), model().fit(dd.from_pandas(table, npartitions=2), y)
    assert np.array_equal(alone.expansion_.coef, found.expansion_.coef)


def test_targets_of_dask_beside_points_in_a_file(client, few, tmp_path):
    X, y = few
    np.save(tmp_path / "X.npy", X)
    found = model().fit(tmp_path / "X.npy", da.from_array(y, chunks=300))
    assert np.array_equal(model().fit(X, y).expansion_.coef, found.expansion_.coef)


def test_weights_of_zero_and_words_for_parameters(client, few):
    X, y = few
    weight = np.r_[np.zeros(500), np.ones(1500)]
    alone = model(gamma="scale").fit(X, y, sample_weight=weight)
    found = model(gamma="scale").fit(da.from_array(X, chunks=(900, 4)), y, sample_weight=weight)
    assert alone.kernel_ == found.kernel_
    assert np.array_equal(alone.expansion_.coef, found.expansion_.coef)


def test_a_frame_by_the_names_of_its_columns(client, few, frame):
    X, y = few
    table = frame[list("abcdy")]
    alone = model().fit(pd.DataFrame(X, columns=list("abcd")), y)
    found = model().fit(table, "y")
    assert np.array_equal(alone.expansion_.coef, found.expansion_.coef)
    assert list(found.feature_names_in_) == list("abcd")
    lazy = found.predict(table)  # which has one column more, and may have them in another order
    assert isinstance(lazy, da.Array)
    assert lazy.compute() == pytest.approx(found.predict(pd.DataFrame(X, columns=list("abcd"))), rel=1e-12)
    with pytest.raises(InputError, match="X has no column 'a', which the model was fitted with"):
        found.predict(table[["b", "c", "d"]])
    with pytest.raises(InputTypeError, match=r"column 'name' of X must hold numbers, got .*: turn it"):
        model().fit(frame, "y")
    with pytest.raises(InputError, match="X has no column 'z': it has 'a'"):
        model().fit(frame, "z")


def test_predictions_are_lazy_and_of_the_same_chunks(client, few):
    X, y = few
    points = da.from_array(X, chunks=(700, 2))
    found = KernelLogisticRegression(landmarks=30).fit(points, np.digitize(y, [-0.5, 0.5]))
    for name, width in (("predict", None), ("predict_proba", 3), ("decision_function", 3)):
        lazy = getattr(found, name)(points)
        assert isinstance(lazy, da.Array) and lazy.chunks[0] == (700, 700, 600)
        assert lazy.shape == (2000,) if width is None else (2000, width)
        parts = [getattr(found, name)(X[i : i + 700]) for i in range(0, 2000, 700)]
        assert np.array_equal(lazy.compute(), np.concatenate(parts))
        assert lazy.dtype == parts[0].dtype
    assert found.score(points, np.digitize(y, [-0.5, 0.5])) > 0.8


def test_predictions_have_the_settings_of_the_client(client, few):
    X, y = few
    found = model(kernel=Gaussian(1.0)).fit(X, y)
    with config(dtype="float32"):
        lazy, here = found.predict(da.from_array(X[:300], chunks=(300, 4))), found.predict(X[:300])
    assert np.array_equal(lazy.compute(), here)
    assert not np.array_equal(here, found.predict(X[:300]))


def test_predictions_are_refused_before_they_are_computed(client, few):
    X, y = few
    points = da.from_array(X, chunks=(700, 4))
    with pytest.raises(NotFittedError):
        model().predict(points)
    found = model().fit(X, y)
    with pytest.raises(InputError, match="X has 3 columns, and the fit had 4: pass the same"):
        found.predict(points[:, :3])
    with pytest.raises(InputError, match="must be 2-D, one row per point, got a Dask Array of 1 dim"):
        found.predict(points[:, 0])
    with pytest.raises(InputTypeError, match="must be an array or a frame of Dask, got a Bag"):
        found.predict(db.from_sequence([1, 2]))
    words = KernelRidge(kernel=Spectrum(2)).fit(["abc", "bcd"], [1.0, 2.0])
    with pytest.raises(InputTypeError, match=r"X is a Dask Array of numbers, and Spectrum\(.*other things"):
        words.predict(points)


def test_a_gram_of_dask_rows_multiplies_there(client, few, monkeypatch):
    from mercer.gram import spread

    monkeypatch.setattr(spread, "_SLAB", 700)
    X, y = few
    points, Z, k = da.from_array(X, chunks=(600, 4)), X[:9], Gaussian(1.5)
    K, exact = Gram(k, points), Gram(k, X).dense()
    near = {"rtol": 1e-11, "atol": 1e-11}
    assert K.shape == (2000, 2000)
    np.testing.assert_allclose(K @ y, exact @ y, **near)
    np.testing.assert_allclose(Gram(k, points, Z) @ np.eye(9), exact[:, :9], **near)
    np.testing.assert_allclose(K.block([5, 2], [7]), exact[[5, 2]][:, [7]], **near)
    np.testing.assert_allclose(K.rows([3, 1]), exact[[3, 1]], **near)
    mask = np.arange(2000) % 999 == 0
    np.testing.assert_allclose(K.block(slice(3), mask), exact[:3][:, mask], **near)
    np.testing.assert_allclose(K.rows(mask), exact[mask], **near)
    assert K.rows([]).shape == (0, 2000)
    with pytest.raises(InputError, match="row 2000 is outside"):
        K.block([2000], [0])
    assert K.diag() == pytest.approx(np.ones(2000))
    np.testing.assert_allclose(K.dense(), exact, **near)
    with pytest.raises(InputError, match="K is 2000 × 2000: it multiplies real vectors of length 2000"):
        K @ y[:5]


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda X: X[:, 0], InputError, "X must be 2-D, one row per point, got a Dask Array of 1 dimensions"),
        (lambda X: dd.from_dask_array(X[:, 0]), InputError, r"a Dask Series of 1 dimensions: X.to_frame\(\)"),
        (lambda X: da.ma.masked_greater(X, 1.0), InputTypeError, "got chunks of MaskedArray"),
        (lambda X: db.from_sequence([1, 2]), InputTypeError, "an array or a frame of Dask, got a Bag"),
        (lambda X: dask.delayed(np.ones)((2000, 4)), InputTypeError, "a frame of Dask, got a Delayed"),
        (lambda X: X.astype(str), InputTypeError, "X must be made of NumPy arrays of numbers, got chunks of"),
        (lambda X: X[:0], InputError, "X has no rows"),
        (lambda X: X[:-1], InputError, "X has 1,999 rows and y has 2,000: pass one entry per row"),
        (lambda X: da.where(X > 3, np.nan, X), InputError, "X contains NaN or inf in .* the first at row"),
    ],
)
def test_what_is_refused_in_a_sentence(client, few, make, error, words):
    X, y = few
    with pytest.raises(error, match=words):
        model().fit(make(da.from_array(X, chunks=(500, 2))), y)


def test_an_array_has_no_names(client, few):
    X, y = few
    with pytest.raises(InputTypeError, match="'y' names a column, and X is a Dask array: pass the numbers"):
        model().fit(da.from_array(X), "y")
    with pytest.raises(InputTypeError, match="'w' names a column"):
        model().fit(da.from_array(X), y, sample_weight="w")


def test_objects_are_no_columns(client, few):
    with pytest.raises(InputTypeError, match="a Array of Dask holds columns of numbers, and this kernel"):
        KernelRidge(kernel=Spectrum(2)).fit(da.from_array(few[0]), few[1])


def test_the_exact_problem_brings_points_here_if_they_fit(client, few):
    X, y = few
    points = da.from_array(X, chunks=(500, 4))
    assert np.array_equal(
        SVC().fit(X, y > 0).expansion_.coef, SVC().fit(points, da.from_array(y > 0)).expansion_.coef
    )
    with config(memory="20kB"), pytest.raises(MemoryBudgetError, match="pass landmarks=…, with which rows"):
        SVC().fit(points, y > 0)


def test_without_a_client_points_come_here(few):
    X, y = few
    alone = model().fit(X, y)
    found = model().fit(da.from_array(X, chunks=(500, 4)), da.from_array(y))
    assert np.array_equal(alone.expansion_.coef, found.expansion_.coef)


def test_a_checkpoint_knows_its_rows_whatever_their_chunks(client, few, tmp_path):
    X, y = few

    def resumed(name, first, second):
        options = {"checkpoint": tmp_path / name, "kernel": Gaussian(1.0)}
        with pytest.warns(UserWarning, match="did not converge"):
            model(**options, max_iter=2, tol=1e-10).fit(first, y)
        return model(**options, resume=True, tol=1e-10).fit(second, y).expansion_.coef

    found = resumed("there", da.from_array(X, chunks=(500, 4)), da.from_array(X, chunks=(1100, 2)))
    assert np.array_equal(found, resumed("here", X, X))
    options = {"checkpoint": tmp_path / "there", "kernel": Gaussian(1.0)}
    other = X.copy()
    other[3, 1] += 1e-9
    with pytest.raises(InputError, match="is the checkpoint of another fit"):
        model(**options, resume=True).fit(da.from_array(other, chunks=(1100, 2)), y)


def test_the_plan_says_what_a_cluster_holds_and_sends(client, few):
    X, _ = few
    text = str(KernelRidge(landmarks=Landmarks(50)).plan(da.from_array(X, chunks=(500, 4))))
    assert "a worker holds" in text and "a pass sends" in text
    sent = bytes_of_pass(len(X), 50, 1)
    assert f"about {format_bytes(sent)} in all" in " ".join(text.split())


def test_a_pass_sends_what_the_plan_says(client, three, rng, sent):
    """Rows stay where they are, but for those of a task that an idle worker takes from a busy one."""
    X, m = rng.normal(size=(200_000, 6)), 500
    V, inner = rng.normal(size=(m, 1)), Weighted(np.ones((1, 1)))
    with config(cluster=client):
        K = RowBlocks(Gaussian(2.0), X, X[:m])
        assert sent(K.diag) > X.nbytes
        found = min(sent(lambda: K.pass_over(V, inner)) for _ in range(5))
        most = X.nbytes / len(client.nthreads()) * 1.2
        for _ in range(600):  # Dask takes copies of rows away every two seconds.
            if max(worker.nbytes for worker in three.scheduler.workers.values()) < most:
                break
            time.sleep(0.05)
        else:
            pytest.fail("a worker holds more than its share of the rows")
    tasks = len(groups_of(len(X), m))
    assert found > 8 * m * (len(client.nthreads()) + 2 * tasks)
    assert found == pytest.approx(bytes_of_pass(len(X), m, 1), rel=0.15)
