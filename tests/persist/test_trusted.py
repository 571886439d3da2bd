"""Models that skops itself writes and reads, as MLflow does: the classes of mercer are named."""

import numpy as np
import pytest
import skops.io
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import SVC, Gaussian, KernelFisherDiscriminant, KernelPerceptron, KernelRidge
from mercer.persist import trusted_types

from .conftest import assert_says_the_same, fit


@pytest.mark.parametrize(
    "model",
    [
        SVC(probability=True),
        KernelRidge(),
        KernelFisherDiscriminant(),
        KernelPerceptron(max_iter=3),
        make_pipeline(StandardScaler(), SVC(kernel=2 * Gaussian(1.0) + 1)),
    ],
    ids=lambda model: type(model).__name__,
)
def test_skops_loads_models_with_the_trusted_types(model, X, tmp_path):
    fit(model, X, np.arange(len(X)) % 2)
    skops.io.dump(model, tmp_path / "model.skops")
    unknown = skops.io.get_untrusted_types(file=tmp_path / "model.skops")
    assert unknown and set(unknown) <= set(trusted_types())
    back = skops.io.load(tmp_path / "model.skops", trusted=trusted_types())
    assert_says_the_same(model, back, X)


def test_the_trusted_types_are_classes_that_a_model_file_may_name():
    names = trusted_types()
    assert len(names) > 150 and names == sorted(set(names))
    assert not any(
        name.startswith(("mercer.cli", "mercer.persist", "mercer.solvers.control")) for name in names
    )
    names.clear()
    assert trusted_types()  # a list of one's own
