"""What the tests of certificates share: which backend computes."""

from collections.abc import Iterator

import pytest

from mercer import config


@pytest.fixture(autouse=True)
def nothing_is_compiled(request: pytest.FixtureRequest) -> Iterator[None]:
    """What is proved or refuted are formulas: without --full nobody waits until each of them is compiled."""
    with config(backend=None if request.config.option.full else "numpy"):
        yield
