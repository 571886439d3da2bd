"""Before any test: what is compiled once for all, and which tests are left out and why."""

import gc
import math
import os
import re
import subprocess
import sys
import zlib
from importlib.util import find_spec

import pytest

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # scikit-learn's check of array-API input runs only then
os.environ.setdefault(
    "TRITON_INTERPRET", "1"
)  # kernels of a GPU run as Python; with 0, tests marked gpu run there

HOMES = {
    "torch": ["src/mercer/gram/backends/torch.py", "src/mercer/gram/device"],
    "triton": ["src/mercer/gram/backends/triton"],
    "dask": ["src/mercer/cluster", "tests/cluster"],
    "skops": ["src/mercer/persist/__init__.py"],
    "polars": ["src/mercer/tables"],
    "typer": ["src/mercer/cli"],
}

#: So many cases of a test run without --full, unless a mark says otherwise.
CASES = 8

collect_ignore = [path for library, paths in HOMES.items() if find_spec(library) is None for path in paths]


@pytest.hookimpl(wrapper=True)
def pytest_collection():  # type: ignore[no-untyped-def]
    """Thousands of tests, and the modules they need, are no garbage: nobody looks for any among them.

    Looking took a third of the time to collect the tests, and more again in each test that compiles.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="run every case and example, as .ci/run does once")


def pytest_configure(config: pytest.Config) -> None:
    """Where several processes share the tests, what most of them need is compiled once, before they start."""
    is_first = not hasattr(config, "workerinput")
    if is_first and getattr(config.option, "numprocesses", None) and not config.option.collectonly:
        code = "import sys; from mercer.cli.warm import is_warm; sys.exit(not is_warm())"
        if subprocess.run([sys.executable, "-c", code], check=False).returncode:
            subprocess.run(
                [sys.executable, "-m", "mercer", "warm", "--quiet"], check=True, stdout=subprocess.DEVNULL
            )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give the marks ``torch``, ``cluster`` and ``full``, and leave out what has its own run."""
    mark_torch(items)
    mark_cluster(items)
    if find_spec("torch") is None:
        leave_out("torch", config, items)  # each would be skipped
    if find_spec("playwright") is None:
        leave_out("browser", config, items)
    mark_full(items)
    if not is_all_asked_for(config):
        leave_out("full", config, items)


def is_all_asked_for(config: pytest.Config) -> bool:
    """With ``--full``, and where the command line names tests, as in ``tests/test_install.py::test_show``."""
    return config.option.full or all("::" in argument for argument in config.args)


def leave_out(mark: str, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Take the items that carry a mark from the list."""
    left_out = [item for item in items if item.get_closest_marker(mark)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker(mark)]


def mark_torch(items: list[pytest.Item]) -> None:
    """A test for a backend on PyTorch has the mark ``torch``: `make test-torch` runs these and no others."""
    names = ("torch", "triton", "gram/device")
    for item in items:
        is_backend = any(isinstance(value, str) and value in names for value in parameters(item).values())
        if is_backend or any(name in item.nodeid.split("[")[0] for name in names):
            item.add_marker("torch")


def mark_cluster(items: list[pytest.Item]) -> None:
    """A test of a folder ``cluster`` carries that mark: `make test-cluster` runs these and no others."""
    for item in items:
        if "cluster" in item.path.parts:
            item.add_marker("cluster")


def mark_full(items: list[pytest.Item]) -> None:
    """What runs with ``--full`` alone: see `mark_configurations` and `mark_samples`."""
    mark_configurations(items)
    mark_samples(items)


def mark_samples(items: list[pytest.Item]) -> None:
    """Of a test with many cases some always run, the others are ``full``.

    Those are every n-th with a mark ``sample(n)``, and about `CASES` without it; for scikit-learn's checks
    see `mark_configurations`.
    """
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for name, each in cases.items():
        mark = each[0].get_closest_marker("sample")
        if mark is not None:
            step, begin = mark.args[0], 0
        elif parameters(each[0]).keys() >= {"estimator", "check"}:
            continue
        else:
            step = spread([parameters(item) for item in each])
            begin = zlib.crc32(name.encode()) % min(step, len(each))  # other kernels, say, for other tests
        for place, item in enumerate(each):
            if place % step != begin:
                item.add_marker("full")


def spread(cases: list[dict[str, object]]) -> int:
    """The n for which every n-th case makes about `CASES`, and meets the values of each parameter alike.

    That is so where n has no factor in common with the number of values that a parameter has.
    """
    step = max(1, len(cases) // CASES)
    numbers = [len({id(case.get(name)) for case in cases}) for name in cases[0]] if step > 1 else []
    while any(1 < number < len(cases) and math.gcd(step, number) > 1 for number in numbers):
        step += 1
    return step


def mark_configurations(items: list[pytest.Item]) -> None:
    """Of scikit-learn's checks the first configuration of each class always runs, the others are ``full``.

    So are checks that each class passes in another dress: sparse arrays, and read-only points in float64.
    """
    twins = (
        "check_estimator_sparse_matrix]",
        *("_train]", "_train(readonly_memmap=True,X_dtype=float32)]"),  # of classifiers, regressors, clusters
    )
    first: dict[type, object] = {}
    for item in items:
        given = parameters(item)
        if given.keys() >= {"estimator", "check"}:
            estimator = given["estimator"]
            is_first = first.setdefault(type(estimator), estimator) is estimator
            if not is_first or item.nodeid.endswith(twins):
                item.add_marker("full")


def parameters(item: pytest.Item) -> dict[str, object]:
    return getattr(getattr(item, "callspec", None), "params", {})


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item):  # type: ignore[no-untyped-def]
    """A kernel that a docstring defines counts as one of its module: it is forgotten after the example."""
    if type(item).__name__ != "DoctestItem":
        return (yield)
    from mercer.kernels.base import Kernel

    before = list(Kernel.registry)
    try:
        return (yield)
    finally:
        Kernel.registry[:] = before


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]):  # type: ignore[no-untyped-def]
    """A test that is skipped for want of PyTorch without the mark would never run anywhere: it fails."""
    report = yield
    is_missing = report.skipped and re.search(
        "PyTorch is not|import '(torch|triton)'|named '(torch|triton)'", str(report.longrepr)
    )
    if is_missing and not item.get_closest_marker("torch"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} needs PyTorch: give it @pytest.mark.torch"
    return report
