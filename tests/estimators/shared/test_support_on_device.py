"""Support vector machines whose vectors are on a device: what they find is what the CPU finds."""

import numpy as np
import pytest
from scipy import sparse

from mercer import SVC, SVR, NuSVC, NuSVR, OneClassSVM, config
from mercer.errors import InputError
from mercer.estimators.shared import support

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

MACHINES = [
    SVC(C=10.0),
    SVC(C=10.0, fit_intercept=False, precision="float64"),
    NuSVC(nu=0.3),
    SVR(C=3.0),
    NuSVR(C=3.0),
    OneClassSVM(nu=0.2),
]


@pytest.fixture(autouse=True)
def few_points_are_enough(monkeypatch):
    monkeypatch.setattr(support, "FEWEST_ON_DEVICE", 1100)


def data(model, rng, n=1200):
    """Points, and targets, labels or none."""
    X = rng.normal(size=(n, 4))
    target = np.sin(X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=n)
    return X, target > 0.5 if isinstance(model, SVC | NuSVC) else target


def require_the_same(there, here, X):
    """Both are above the minimum by their gaps at most; so ‖f - g‖² is at most twice the sum of these."""
    gaps = np.sum(there.dual_gap_) + np.sum(here.dual_gap_)
    assert abs(there.report_.objective - here.report_.objective) <= 1.001 * gaps
    # who has converged may add as much for rounding as the tolerance is, and no more
    assert np.max(there.kkt_violation_) <= 2 * there.tol and there.report_.converged
    if not isinstance(there, NuSVC):  # Its functions are divided by a margin.
        f, g = (model._values_at(X) - model.intercept_ for model in (there, here))
        assert np.abs(f - g).max() <= np.sqrt(2 * gaps) + 1e-6


@pytest.mark.parametrize("model", MACHINES, ids=repr)
def test_the_five_machines(model, rng):
    X, y = data(model, rng)
    here = model.__sklearn_clone__().fit(X, y)
    with config(backend="torch"):
        there = model.__sklearn_clone__().fit(X, y)
    assert "rows of K, slopes and selection are on 'cpu'" in there.report_.plan.why
    require_the_same(there, here, X)


@pytest.mark.parametrize("way", ["ovo", "ovr"])
def test_several_classes_with_weights(way, rng):
    X = rng.normal(size=(2700, 3))
    y = rng.integers(0, 3, 2700)
    X[np.arange(2700), y] += 1.5
    weight = rng.choice([0.0, 1.0, 2.0], 2700)
    here = SVC(multi_class=way, class_weight={0: 2.0}).fit(X, y, weight)
    with config(backend="torch", dtype="float32"):
        there = SVC(multi_class=way, class_weight={0: 2.0}).fit(X, y, weight)
    assert any("are on 'cpu'" in why for why in there.report_.plan.why)
    require_the_same(there, here, X)


def test_few_rows_on_the_device(rng, monkeypatch):
    X, y = data(SVC(), rng)
    here = SVC().fit(X, y)
    with config(backend="torch"):
        there = SVC(cache_size=0.5).fit(X, y)  # 100 rows of 1200
        assert there.report_.plan.why[1].startswith("room for 109 of")
        require_the_same(there, here, X)
        monkeypatch.setattr(support, "device_room", lambda device: 10**5)
        assert "selection" not in str(SVC().plan(X, y))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda X, y: (X[:1000], y[:1000]), "so small a problem is no work for it"),
        (lambda X, y: (X, np.arange(len(y)) % 9), "so small a problem is no work for it"),
        (lambda X, y: (sparse.csr_array(X), y), "it holds no sparse points, objects or given kernel values"),
    ],
    ids=["few points", "many classes", "sparse"],
)
def test_the_cpu_takes_what_is_no_work_for_a_device(change, why, rng):
    """PyTorch's device "meta" computes nothing: the CPU does it all, and says so."""
    X, y = change(*data(SVC(), rng))
    here = SVC().fit(X, y)
    with config(device="meta"):
        there = SVC().fit(X, y)
    assert there.report_.plan.why[-1] == f"the CPU solves it, not 'meta': {why}"
    np.testing.assert_array_equal(there.decision_function(X), here.decision_function(X))


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without CUDA")
def test_a_missing_device_is_refused_at_any_size(rng):
    with config(device="cuda"), pytest.raises(InputError, match="device 'cuda' cannot be used"):
        SVC().fit([[0.0], [1.0]], [0, 1])


@pytest.mark.gpu
@pytest.mark.parametrize("model", MACHINES, ids=repr)
def test_the_five_machines_on_a_gpu(model, rng):
    X, y = data(model, rng, 5000)
    here = model.__sklearn_clone__().fit(X, y)
    with config(device="cuda"):
        there = model.__sklearn_clone__().fit(X, y)
    assert "rows of K, slopes and selection are on 'cuda'" in there.report_.plan.why
    require_the_same(there, here, X)
