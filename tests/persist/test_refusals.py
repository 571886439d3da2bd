"""What cannot be saved: code, objects of unknown classes, what holds itself."""

import sys

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import mercer
from mercer import SVC, Expansion, FromFunction, Gaussian, Kernel, config
from mercer.errors import InputError, InputTypeError
from mercer.kernels import positive
from mercer.persist import load, save

from .conftest import labels


class Wave(Kernel):
    """A kernel of a user's."""

    width: float = positive(1.0)

    def formula(self, pair):
        return np.cos(pair.l1 / self.width)


def common(a, b):
    return float(len(set(a) & set(b)))


class Callable:
    def __call__(self, X):
        return X


def itself():
    bag = []
    bag.append(bag)
    return bag


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (FromFunction(lambda a, b: 1.0), r"model\.function: .*holds no code.*'<lambda>'"),
        (FromFunction(common), r"model\.function: .*function 'common' of .*test_refusals"),
        (SVC(kernel=common), r"model\.kernel: .*'common'"),
        (SVC(progress=print), r"model\.progress: .*'print' of builtins"),
        (make_pipeline(FunctionTransformer(np.save), SVC()), r"model\.steps\.func: .*'save' of numpy"),
        (Gaussian(1.0) @ Callable(), r"model\.function.*Callable"),
        (Gaussian(1.0) @ "x".upper, r"model\.function: .*upper"),
        (Wave(2.0), r"model holds a Wave of .*trusted"),
        ({"a": [1, object()]}, r"model holds a object of builtins"),
        ({"a": SVC(class_weight={1: open})}, r"model\.class_weight: .*'open'"),
        (np.array([object()], dtype=object), "holds a object"),
        (10**5000, "digits"),
        ([10**5000], "digits"),
        (iter([1]), "list_iterator"),
        (mercer, "module"),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_what_needs_code_is_refused_by_name(model, message, path):
    with pytest.raises(InputError, match=message):
        save(model, path)
    assert not path.exists()


def test_compiled_trees_are_refused(X, path):
    with pytest.raises(InputError, match=r"Tree of sklearn\.tree"):
        save(RandomForestClassifier(2).fit(X, labels(X)), path)


def test_a_model_that_holds_itself_is_refused(path):
    model = SVC()
    model.own = model
    for wrong in (model, itself()):
        with pytest.raises(InputError, match=r"holds itself"):
            save(wrong, path)


def test_classes_and_functions_of_the_user(path, X):
    model = Expansion(Wave(2.0) * Gaussian(1.0), X, X[:, 0])
    save(model, path, trusted=[Wave])
    with pytest.raises(InputError, match=r"class 'Wave' of .*trusted=\[Wave\]"):
        load(path)
    with config(backend="numpy"):
        np.testing.assert_array_equal(load(path, trusted=Wave)(X), model(X))
    save(FromFunction(common), path, trusted=[common])
    with pytest.raises(InputError, match=r"function 'common'.*trusted"):
        load(path)
    assert load(path, trusted=[common, Wave]).function is common
    for wrong in ("Wave", [3], [None]):
        with pytest.raises(InputTypeError, match="trusted is a list"):
            load(path, trusted=wrong)


def test_the_library_that_is_needed_is_named(path, monkeypatch):
    monkeypatch.setitem(sys.modules, "skops.io", None)
    with pytest.raises(ImportError, match=r"mercer\[models\]"):
        save(SVC(), path)
