"""What solvers return: one Result, and why a run ended as an enumeration whose members are their words."""

import ast
import dataclasses
import importlib
import json
from pathlib import Path

import numpy as np
import pytest

import mercer
from mercer import SVC, Gaussian, KernelPCA, KernelRidge
from mercer.report import Journal, Plan
from mercer.solvers.result import Result, Stop

SOURCE = Path(mercer.__file__).parent
WORDS = [str(stop) for stop in Stop]


def test_a_member_is_its_word():
    assert WORDS == ["converged", "rounding", "unbounded", "max_iter", "max_time", "interrupted"]
    assert Stop("max_time") is Stop.MAX_TIME and Stop.MAX_TIME == "max_time"
    assert repr(Stop.MAX_TIME) == "'max_time'" and f"{Stop.MAX_TIME}" == "max_time"
    assert json.loads(json.dumps({"stopped": Stop.ROUNDING})) == {"stopped": "rounding"}
    assert np.array([Stop.MAX_ITER, ""]).tolist() == ["max_iter", ""]  # as checkpoints keep it


def test_the_worst_end_counts():
    assert Stop.worst([Stop.CONVERGED]) is Stop.CONVERGED
    assert Stop.worst([Stop.MAX_TIME, Stop.ROUNDING, Stop.MAX_ITER]) is Stop.MAX_TIME
    assert [stop for stop in Stop if stop.is_early] == ["max_iter", "max_time", "interrupted"]


def test_a_run_that_is_cut_short_says_why_by_a_member():
    X, y = np.arange(40.0)[:, None], np.arange(40.0) % 3
    for model in (SVC(max_iter=1), KernelRidge(kernel=Gaussian(3.0), solver="cg", max_iter=1)):
        with pytest.warns(UserWarning, match=type(model).__name__):
            report = model.fit(X, y).report_
        assert report.stopped is Stop.MAX_ITER and report.stopped == "max_iter" and not report.converged
    assert KernelPCA(2).fit(X).report_.stopped is Stop.CONVERGED


def test_a_report_prints_the_word():
    assert str(Journal().report(Plan("Newton", 1, 0, 0.0), Stop.ROUNDING)).startswith(
        "Newton: rounding after"
    )


def solver_files():
    return sorted((SOURCE / "solvers").rglob("*.py"))


def test_whatever_says_how_it_ended_is_a_result():
    found = []
    for path in solver_files():
        name = ".".join(("mercer", *path.relative_to(SOURCE).with_suffix("").parts))
        for item in vars(importlib.import_module(name)).values():
            if isinstance(item, type) and dataclasses.is_dataclass(item) and item.__module__ == name:
                names = {field.name for field in dataclasses.fields(item)}
                assert issubclass(item, Result) == ("stopped" in names), item
                if issubclass(item, Result) and name != "mercer.solvers.result":
                    shared = set().union(*(base.__annotations__ for base in item.__mro__[1:-1]))
                    assert not shared & item.__annotations__.keys(), item
                    found.append(item)
    assert len(found) > 10


def test_nothing_is_decided_by_the_words():
    """Comparisons with why a run ended name members, whoever makes them."""
    texts = {path: path.read_text("utf-8") for path in sorted(SOURCE.rglob("*.py"))}
    for path in [path for path in texts if "stopped" in texts[path]]:
        for node in ast.walk(ast.parse(texts[path])):
            if isinstance(node, ast.Compare) and "stopped" in ast.unparse(node.left):
                assert not any(f"'{word}'" in ast.unparse(node) for word in WORDS), (path, ast.unparse(node))
