import pytest

import mercer


@pytest.fixture(autouse=True)
def unpatched():
    """Whatever a test patches is put back."""
    assert mercer.unpatch_scikit_learn() == []
    yield
    mercer.unpatch_scikit_learn()
