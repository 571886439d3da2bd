r"""The plan of a ridge regression on the values of K that are not zero."""

from __future__ import annotations

from mercer.data import points as data
from mercer.data.types import Points
from mercer.gram import Gram
from mercer.gram.sparse import thinness
from mercer.kernels.base import Kernel
from mercer.report import Method, Plan
from mercer.solvers.linear.near_inverse import BYTES_PER_POINT, NEIGHBOURS

#: Points from which "auto" looks for zeros: a Cholesky factorisation of fewer takes less than a second.
POINTS_WORTH_A_LOOK = 4000
#: What a value of K, or of the factor that makes iterations few, costs in all of them: some twenty products,
#: whose time is that of memory, in operations of a matrix product.
_OPERATIONS_PER_VALUE = 2e4
#: Operations of a value that is computed.
_OPERATIONS_PER_EVALUATION = 20


def sparse_plan(kernel: Kernel, X: Points, n_outputs: int) -> Plan:
    """What conjugate gradients on a sparse K take, from a look at some of its rows."""
    n, found = data.n_points(X), thinness(Gram(kernel, X, cache=0))
    return Plan(
        "conjugate gradients on the values of K that are not zero",
        n,
        found.memory + BYTES_PER_POINT * n + 8 * n * (n_outputs + 1) * 20,
        _OPERATIONS_PER_EVALUATION * found.work
        + n * NEIGHBOURS**3
        + _OPERATIONS_PER_VALUE * (found.entries + 2 * NEIGHBOURS * n) * n_outputs,
        (f"K has about {max(1, round(found.entries / n)):,} values in a row that are not zero",),
        iterative=True,
        method=Method.SPARSE,
    )
