"""The same bits whoever computes the blocks: threads, one worker or three; from arrays, files or chunks."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import mercer
from mercer import (
    DataSource,
    Gaussian,
    KernelFisherDiscriminant,
    KernelLeastSquares,
    KernelLogisticRegression,
    KernelMachineClassifier,
    KernelMachineRegressor,
    KernelPCA,
    KernelRidge,
    KernelRidgeCV,
    LandmarkFeatures,
    Landmarks,
    config,
)
from mercer.cluster.spread import work
from mercer.gram.blocks import RowBlocks


def same(one, other):
    assert one.kernel_ == other.kernel_
    for name in ("anchors", "coef", "intercept"):
        assert np.array_equal(getattr(one.expansion_, name), getattr(other.expansion_, name)), name


LEARNERS = {
    "ridge": lambda: KernelRidge(alpha=0.1, landmarks=150),
    "pivoted": lambda: KernelRidge(alpha=0.1, landmarks=Landmarks(60, "pivoted")),
    "logistic": lambda: KernelLogisticRegression(kernel=Gaussian(2.0), landmarks=60),
    "kinks": lambda: KernelMachineRegressor(loss="absolute", kernel=Gaussian(2.0), landmarks=30, tol=1e-3),
    "path": lambda: KernelRidgeCV(kernel=Gaussian("median"), landmarks=80),
    "components": lambda: KernelPCA(3, kernel=Gaussian(2.0), landmarks=80),
    "classes": lambda: KernelMachineClassifier(kernel=Gaussian(2.0), landmarks=30, tol=1e-3),
    "fisher": lambda: KernelFisherDiscriminant(kernel=Gaussian(2.0), landmarks=60),
    "least squares": lambda: KernelLeastSquares(kernel=Gaussian(2.0), landmarks=60),
}
#: those that learn classes
CLASSIFIERS = ("logistic", "classes", "fisher")


@pytest.mark.parametrize("name", LEARNERS)
def test_a_learner_on_a_dask_array_is_that_on_one_machine(client, data, name):
    """Chunks of odd sizes, of columns too, and targets chunked in another way."""
    X, y = data
    y = np.digitize(y, [-0.5, 0.5]) if name in CLASSIFIERS else y
    alone = LEARNERS[name]().fit(X, y)
    same(alone, LEARNERS[name]().fit(da.from_array(X, chunks=(1777, 3)), da.from_array(y, chunks=999)))


def test_pivots_among_the_rows_of_a_dask_array(client, data):
    X = data[0][:3000]
    alone, there = (
        LandmarkFeatures(Gaussian(1.0), 60, landmarks="pivoted", random_state=3).fit(points)
        for points in (X, da.from_array(X, chunks=(777, 3)))
    )
    assert np.array_equal(alone.component_indices_, there.component_indices_)
    same(alone, there)


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_any_number_of_workers(client, three, data, workers):
    X, y = data
    alone = LEARNERS["ridge"]().fit(X, y)
    three.scale(workers)
    with config(cluster=client):
        same(alone, LEARNERS["ridge"]().fit(X, y))


def test_every_verb(client, rng):
    X, V, weight = rng.normal(size=(9000, 3)), rng.normal(size=(400, 2)), rng.uniform(size=9000)

    class Cube:
        def __call__(self, rows, F):
            return F**3, np.array([F.sum(), weight_of[rows] @ F[:, 0]]), F[:1]

        def part(self, rows):
            part = Part()
            part.weight = weight[rows]
            return part

    class Part:
        def __call__(self, rows, F):
            return F**3, np.array([F.sum(), self.weight[rows] @ F[:, 0]]), F[:1]

    weight_of = weight

    def everything():
        K, kept = RowBlocks(Gaussian(1.0), X, X[:400]), {}
        rows = np.arange(0, 9000, 2)
        total, sums = K.pass_over(V, Cube(), 2, each=lambda rows, first: kept.update({rows.start: first}))
        first = np.concatenate([kept[start] for start in sorted(kept)])
        some, rough = K.some(rows).values(V), K.rough().values(V)
        square, ones = K.square(weight)
        adjoint = K.adjoint(V[:1] * X[:, :2])
        return [total, sums, first, some, rough, adjoint, K.diag(), np.tril(square), ones]

    alone = everything()
    with config(cluster=client):
        for one, other in zip(alone, everything(), strict=True):
            assert np.array_equal(one, other)


def test_workers_read_a_table_in_a_file_themselves(client, data, tmp_path):
    X, y = data
    np.save(tmp_path / "points.npy", X)
    source = DataSource(tmp_path / "points.npy")
    alone = LEARNERS["ridge"]().fit(source, y)
    with config(cluster=client):
        K = RowBlocks(Gaussian(1.0), source.open().points, X[:5])
        assert K._spread._file is not None
        same(alone, LEARNERS["ridge"]().fit(source, y))


def test_files_of_parquet_in_a_folder_that_workers_see(client, data, tmp_path):
    X, y = data
    for part in range(3):
        columns = {name: X[part::3, i] for i, name in enumerate("abcd")}
        pd.DataFrame(columns).to_parquet(tmp_path / f"rides-{part}.parquet")
    y = np.concatenate([y[part::3] for part in range(3)])

    def source(folder):
        return DataSource(str(tmp_path / "rides-*.parquet"), folder=tmp_path / folder)

    alone = LEARNERS["ridge"]().fit(source("here"), y)
    with config(cluster=client):
        K = RowBlocks(Gaussian(1.0), source("there").open().points, X[:5])
        assert K._spread._file is not None
        same(alone, LEARNERS["ridge"]().fit(source("there"), y))


def test_workers_read_parts_of_a_map_where_they_lie(client, rng, tmp_path):
    """A part of a map has the offset of all of it; a private map may hold other numbers."""
    np.save(tmp_path / "points.npy", rng.normal(size=(3000, 3)))
    mapped = np.load(tmp_path / "points.npy", mmap_mode="r")
    for X in (mapped[700:], np.asarray(mapped[200:])[500:], mapped[:9]):
        alone = RowBlocks(Gaussian(1.0), X, X[:5]).values(np.ones((5, 1)))
        with config(cluster=client):
            K = RowBlocks(Gaussian(1.0), X, X[:5])
        assert K._spread._file is not None
        assert np.array_equal(K.values(np.ones((5, 1))), alone)
    own = np.load(tmp_path / "points.npy", mmap_mode="c")
    own[:] += 1.0
    with config(cluster=client):
        assert RowBlocks(Gaussian(1.0), own, own[:5])._spread._file is None


def test_objects_and_sparse_rows_travel_too(client, rng):
    from scipy import sparse

    from mercer import Linear, Spectrum

    words = ["".join(rng.choice(list("abc"), size=6)) for _ in range(300)]
    rows = sparse.random_array((300, 20), density=0.2, rng=rng, format="csr")
    for kernel, X in ((Spectrum(2), words), (Linear(), rows)):
        alone = RowBlocks(kernel, X, X[:7]).values(np.ones((7, 1)))
        with config(cluster=client):
            assert np.array_equal(RowBlocks(kernel, X, X[:7]).values(np.ones((7, 1))), alone)


def test_an_active_client_alone_leaves_arrays_to_our_threads(client, data):
    X, _ = data
    assert RowBlocks(Gaussian(1.0), X, X[:5])._spread is None


def test_a_worker_without_a_nanny_has_one_thread_of_blas_too():
    """A nanny starts its worker with one; two would give products other bits."""

    def threads():
        return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}

    with threadpool_limits(limits=2, user_api="blas"):
        assert work(mercer.__version__, threads) == {1}
