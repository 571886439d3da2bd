"""What the tests of model files share: models, files and ways to forge them."""

import hashlib
import io
import json
import warnings
import zipfile

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

from mercer import SVC, BagOfWords, ColumnKernel, Gaussian
from mercer.errors import SlowPathWarning
from mercer.persist import load, save

METHODS = ("decision_function", "predict", "predict_proba", "transform", "score_samples")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.mercer"


@pytest.fixture
def X(rng):
    return rng.normal(size=(30, 3))


def labels(X):
    return np.where(np.asarray(X)[:, 0] + np.asarray(X)[:, 1] ** 2 > 0.5, "yes", "no")


def fit(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", SlowPathWarning)
        return model.fit(X, y)


def there_and_back(model, path, **options):
    save(model, path, **options)
    return load(path, **options)


def says(model, X):
    """All that a model says about X."""
    found = {}
    for name in METHODS:
        if hasattr(model, name):
            found[name] = np.asarray(getattr(model, name)(X))
    assert found
    return found


def assert_says_the_same(model, other, X):
    before, after = says(model, X), says(other, X)
    assert before.keys() == after.keys()
    for name, values in before.items():
        assert values.dtype == after[name].dtype
        np.testing.assert_array_equal(values, after[name], err_msg=name)


# --- files ----------------------------------------------------------------------------------------------


def seal(body):
    return b"mercer model 2\n" + hashlib.sha256(body).hexdigest().encode() + b"\n" + body


def with_payload(payload):
    return seal(json.dumps({"bytes": len(payload)}).encode() + b"\n" + payload)


def payload_of(raw):
    return raw.split(b"\n", 3)[3]


def rezip(raw, change, compression=zipfile.ZIP_STORED):
    """The file with parts of its archive changed and every checksum right: what an attacker would make."""
    buffer = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(payload_of(raw))) as old,
        zipfile.ZipFile(buffer, "w", compression) as new,
    ):
        for member in old.infolist():
            new.writestr(member.filename, change(member.filename, old.read(member)))
    return with_payload(buffer.getvalue())


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Models of several kinds as bytes, with what they say."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(9, 2)), np.arange(9) % 2
    texts = ["to be or not", "be", "the question is"] * 3
    frame = pd.DataFrame({"a": X[:, 0], "b": texts})
    path = tmp_path_factory.mktemp("files") / "model.mercer"
    found = []
    for kernel, points in (
        (Gaussian(1.0), X),
        (BagOfWords(weighting="tf-idf"), texts),
        (ColumnKernel(), frame),
    ):
        model = SVC(kernel=kernel, class_weight={0: 1.0, 1: 2.0}).fit(points, y)
        save(model, path)
        found.append((path.read_bytes(), points, model.decision_function(points)))
    return found
