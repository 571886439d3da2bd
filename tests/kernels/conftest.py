"""What the tests of kernels share: every backend in turn."""

from importlib import import_module

import pytest

from mercer import config
from mercer.gram.backends import BACKENDS


@pytest.fixture(params=list(BACKENDS))
def backend(request):
    """The name of a backend, in force while the test runs."""
    try:
        import_module(BACKENDS[request.param][0])
    except ImportError as error:
        pytest.skip(f"backend {request.param} cannot be loaded: {error}")
    with config(backend=request.param):
        yield request.param
