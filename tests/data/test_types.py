"""The names of types: what they take, and that signatures say them instead of Any."""

import ast
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import mercer
from mercer.data.sparse import dense, is_sparse

SOURCE = Path(mercer.__file__).parent
#: the parameters that have a type with a name, and files that handle any container there is
NAMED = {"X": "Points", "y": "Targets", "sample_weight": "Weights", "model": "Model"}
CONTAINERS = {"data/points.py", "kernels/one_point.py", "kernels/sets/bags.py", "plots/shuffling.py"}


def public_functions(path):
    """The functions and methods of a file that other files may call."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            yield node


@pytest.mark.parametrize(
    "room", ["certify", "data", "features", "kernels", "losses", "persist", "plots", "selection"]
)
def test_signatures_name_what_they_take(room):
    for path in (SOURCE / room).rglob("*.py"):
        if str(path.relative_to(SOURCE)) in CONTAINERS:
            continue
        for function in public_functions(path):
            for argument in [*function.args.args, *function.args.kwonlyargs]:
                untyped = argument.arg in NAMED and ast.unparse(argument.annotation) == "Any"
                assert not untyped, (
                    f"{path}: {function.name}({argument.arg}: Any), write {NAMED[argument.arg]}"
                )


def test_dense_gives_an_array_of_whatever_comes():
    rows = sparse.csr_matrix(np.eye(2))
    assert is_sparse(rows)
    assert not is_sparse(np.eye(2))
    for X in (rows, np.eye(2), [[1.0, 0.0], [0.0, 1.0]]):
        np.testing.assert_array_equal(dense(X), np.eye(2))
