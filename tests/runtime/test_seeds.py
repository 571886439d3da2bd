"""What may stand as a random_state."""

import numpy as np
import pytest

from mercer import MailClassifier
from mercer.errors import InputError
from mercer.runtime.seeds import seed_of
from mercer.selection import AutoKernelClassifier


def test_numbers_none_and_generators():
    assert (seed_of(0), seed_of(np.int64(12)), seed_of(None)) == (0, 12, 0)
    for make in (np.random.default_rng, np.random.RandomState):
        assert seed_of(make(3)) == seed_of(make(3)) != seed_of(make(4))


@pytest.mark.parametrize("given", [-1, 2**40, 0.5, "seven", True, False, np.True_])
def test_anything_else_is_refused(given):
    with pytest.raises(InputError, match="random_state must be a number"):
        seed_of(given)


def test_estimators_say_so():
    X, y = np.arange(20.0)[:, None], np.arange(20) % 2
    with pytest.raises(InputError, match="random_state"):
        AutoKernelClassifier(random_state=-1).fit(X, y)
    mails = [f"Subject: {i}\n\nwords {i}".encode() for i in range(20)]
    with pytest.raises(InputError, match="random_state"):
        MailClassifier(random_state=-1).fit(mails, y)
