"""The real data sets, where they are: the folder MERCER_DATA, else ../shared/data."""

from __future__ import annotations

import gzip
import os
from functools import cache
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.datasets import load_svmlight_file

FOLDER = Path(os.environ.get("MERCER_DATA", Path(__file__).parents[2] / "shared" / "data"))


def usps() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """7291 and 2007 digits of 256 numbers in [-1, 1]: X, y of training, X, y of test."""
    with np.load(FOLDER / "images" / "usps.npz") as file:
        X, y, X_test, y_test = (file[name] for name in ("X_train", "y_train", "X_test", "y_test"))
    return X.astype(np.float64), y.astype(int), X_test.astype(np.float64), y_test.astype(int)


def fashion(part: str = "train") -> tuple[np.ndarray, np.ndarray]:
    """Images of 784 numbers in [0, 1], and ten classes; part is "train" or "t10k"."""
    folder = FOLDER / "images"
    with gzip.open(folder / f"{part}-images-idx3-ubyte.gz") as file:
        X = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784)
    with gzip.open(folder / f"{part}-labels-idx1-ubyte.gz") as file:
        y = np.frombuffer(file.read(), np.uint8, offset=8)
    return X / 255.0, y.astype(int)


def a9a() -> tuple[sparse.csr_array, np.ndarray, sparse.csr_array, np.ndarray]:
    """32,561 and 16,281 people by 123 yes-or-no features, sparse: X, y of training, X, y of test."""
    parts: list = []
    for name in ("a9a.gz", "a9a.t.gz"):
        X, y = load_svmlight_file(str(FOLDER / "libsvm" / name), n_features=123)
        parts += [sparse.csr_array(X), y.astype(int)]
    return tuple(parts)


def covtype(
    n: int, n_test: int = 20_000, skip: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Cover types in 54 standardised columns, the second (1) against the rest (0), in a fixed order.

    Training takes n rows after the first ``skip``, the test the last ones.
    """
    kept = FOLDER / "large" / "covtype.csv.gz"
    table = _large(str(kept))
    order = np.random.default_rng(0).permutation(len(table))
    X, y = table[order, :-1], (table[order, -1] == 2).astype(int)
    train, test = slice(skip, skip + n), slice(len(X) - n_test, None)
    mean, spread = X[train].mean(axis=0), X[train].std(axis=0)
    X = (X - mean) / np.where(spread > 0, spread, 1.0)
    return X[train], y[train], X[test], y[test]


@cache
def _large(path: str) -> np.ndarray:
    import polars as pl

    return pl.read_csv(path).to_numpy().astype(np.float64)


def regression(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """A UCI table, fold 0, columns and target standardised: X, y of training, X, y of test."""
    folder = FOLDER / "tables" / f"uci_{name}"
    table = np.loadtxt(folder / "data.csv.gz", delimiter=",")
    test = np.loadtxt(folder / "test_mask.csv.gz", delimiter=",")[:, 0].astype(bool)
    table = (table - table[~test].mean(axis=0)) / table[~test].std(axis=0)
    return table[~test, :-1], table[~test, -1], table[test, :-1], table[test, -1]


def donors(n: int) -> tuple[np.ndarray, np.ndarray]:
    """School projects in 10 standardised columns, in a fixed random order, and whether each is an anomaly."""
    with np.load(FOLDER / "large" / "adbench_11_donors.npz") as file:
        X, y = file["X"], file["y"]
    order = np.random.default_rng(0).permutation(len(X))[:n]
    X = X[order].astype(np.float64)
    return (X - X.mean(axis=0)) / X.std(axis=0), y[order].astype(int)


def noisy(n: int, d: int = 50, n_test: int = 5000) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Two classes with a curved border, columns ever narrower, and a tenth of the labels turned over.

    With C = 100 and γ = 0.08, two fifths of 20,000 points are support vectors at their bound.
    """
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n + n_test, d))
    y = X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * (X[:, 3] ** 2 - 1) > 0
    y = np.where(rng.random(n + n_test) < 0.1, ~y, y).astype(int)
    X /= np.arange(1, d + 1)
    return X[:n], y[:n], X[n:], y[n:]
