"""The real data sets, where they are: the folder MERCER_DATA, else ../shared/data."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np

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
