"""The seams of estimators: descriptions in place of questions to oneself, calls that go down, no numerics."""

import ast
import sys
from pathlib import Path

import numpy as np
import pytest

import mercer
from mercer import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from mercer.estimators.shared.support import Dual

SOURCE = Path(mercer.__file__).parent
FILES = sorted((SOURCE / "estimators").rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_estimator_asks_itself_which_problem_it_has(path):
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("hasattr", "getattr"):
            what = ast.unparse(node)
            assert not any(f"(self, '{name}'" in what for name in ("nu", "C", "fit_intercept")), what


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_estimators_leave_linear_algebra_to_solvers(path):
    """But for the eigenvalues of a few points, which tell an indefinite kernel."""
    if path.name != "definite.py":
        text = path.read_text("utf-8")
        assert "np.linalg." not in text and "scipy.linalg" not in text and "conjugate_gradient" not in text


def test_the_fit_of_a_classifier_goes_down_and_never_back():
    """From svc.py to what is shared: nothing that is shared calls a method of svc.py."""
    X = np.random.default_rng(0).normal(size=(30, 2))
    y, folder, back = X[:, 0] > 0, str(SOURCE / "estimators"), []

    def look(frame, event, argument):
        called, caller = frame.f_code.co_filename, frame.f_back and frame.f_back.f_code.co_filename
        if event == "call" and called.endswith("svc.py") and f"{folder}/shared" in (caller or ""):
            back.append(frame.f_code.co_name)

    sys.setprofile(look)
    try:
        SVC(probability=True).fit(X, y)
    finally:
        sys.setprofile(None)
    assert not back


def test_a_machine_says_what_its_dual_is():
    weight = np.array([1.0, 3.0])
    assert SVR(C=2.0, fit_intercept=False)._dual(weight) == Dual(4, 6.0, C=2.0, sums_to_zero=False)
    assert NuSVR(C=2.0, nu=0.3, average=True)._dual(weight) == Dual(4, 1.5, C=2.0, nu=0.3)
    assert OneClassSVM(nu=0.3)._dual(weight) == Dual(2, 3.0, nu=0.3, sums_to_zero=False)
    for model in (SVC(), NuSVC(nu=0.3)):
        assert model.plan(np.arange(6.0)[:, None], [0, 1, 2, 0, 1, 2]).solver.startswith("decomposition of 3")
    assert [Dual(1, 1.0, C=C).is_hard for C in (None, 1.0, np.inf)] == [False, False, True]
