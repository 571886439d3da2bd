"""Before any test: which doctests are left out because a library is missing, and which tests need PyTorch."""

import gc
import os
import re
from importlib.util import find_spec

import pytest

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # scikit-learn's check of array-API input runs only then

HOMES = {
    "torch": "src/mercer/gram/backends/torch.py",
    "skops": "src/mercer/persist/__init__.py",
    "polars": "src/mercer/tables",
    "typer": "src/mercer/cli",
}

collect_ignore = [path for library, path in HOMES.items() if find_spec(library) is None]


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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test for the torch backend carries the mark ``torch``: `make test-torch` runs these and no others."""
    for item in items:
        parameters = getattr(getattr(item, "callspec", None), "params", {}).values()
        is_backend = any(isinstance(value, str) and value == "torch" for value in parameters)
        if is_backend or "torch" in item.nodeid.split("[")[0]:
            item.add_marker("torch")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]):  # type: ignore[no-untyped-def]
    """A test that is skipped for want of PyTorch without the mark would never run anywhere: it fails."""
    report = yield
    is_missing = report.skipped and re.search(
        "PyTorch is not|import 'torch'|named 'torch'", str(report.longrepr)
    )
    if is_missing and not item.get_closest_marker("torch"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} needs PyTorch: give it @pytest.mark.torch"
    return report
