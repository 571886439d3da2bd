"""Parameters that are declared once: what the constructor, scikit-learn and the checks make of them."""

import inspect
from dataclasses import KW_ONLY

import pytest
from sklearn.base import BaseEstimator, clone

from mercer import LandmarkFeatures
from mercer.estimators.shared.parameters import KernelParameters, RunParameters, flag, learner
from mercer.kernels.parameters import positive


@learner
class Thing(KernelParameters, RunParameters, BaseEstimator):
    """A learner without anything but parameters."""

    alpha: float = positive(1.0)
    _: KW_ONLY
    kernel: object = "linear"
    loud: bool = flag(False)


@learner
class Louder(Thing):
    """One with another default, and a parameter without a check."""

    _: KW_ONLY
    loud: bool = True
    name: str = "it"


def test_the_constructor_stores_what_it_is_given():
    model = Louder(2, gamma="auto", name=None)
    assert (model.alpha, model.gamma, model.name, model.loud, model.kernel) == (
        2,
        "auto",
        None,
        True,
        "linear",
    )
    assert clone(model).get_params() == model.get_params()
    assert repr(model) == "Louder(alpha=2, gamma='auto', name=None)"
    with pytest.raises(TypeError, match=r"Thing.__init__\(\) got an unexpected keyword argument 'beta'"):
        Thing(beta=1)
    with pytest.raises(TypeError, match="positional"):
        Thing(1.0, "rbf")


def test_own_parameters_come_first_in_the_signature():
    shared = ["gamma", "degree", "coef0", "max_time", "progress", "checkpoint", "resume"]
    assert list(inspect.signature(Thing).parameters) == ["alpha", "kernel", "loud", *shared]
    assert list(inspect.signature(Louder).parameters) == ["alpha", "loud", "name", "kernel", *shared]


def test_positions_are_those_of_the_constructor():
    assert list(inspect.signature(LandmarkFeatures).parameters)[:2] == ["kernel", "n_components"]
    model = LandmarkFeatures("linear", 7)
    assert (model.kernel, model.n_components) == ("linear", 7)


def test_the_class_itself_has_no_values():
    """A model without one of its parameters is damaged, and must not look whole."""
    model = Louder()
    del model.alpha
    assert not hasattr(model, "alpha") and not hasattr(Louder, "gamma")


def test_checks_are_inherited():
    of_the_run = {"max_time", "progress", "checkpoint", "resume"}
    assert Thing._declared.keys() == Louder._declared.keys() == {"alpha", "loud", *of_the_run}
    assert KernelParameters._declared == {}
