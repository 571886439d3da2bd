"""AutoKernelClassifier under a time limit: many classes, and none for more than one trial."""

import numpy as np
import pytest

from mercer import Gaussian
from mercer.selection import AutoKernelClassifier


@pytest.mark.full
@pytest.mark.filterwarnings("ignore:the last fit takes")
def test_many_classes_are_set_against_the_rest_where_time_is_short(cpu_clock):
    rng = np.random.default_rng(0)
    y = np.arange(120) % 30
    X = 4 * rng.normal(size=(30, 6))[y] + rng.normal(size=(120, 6))
    # 435 pairs take a seventh of a second, however few points they have
    short, long = (
        AutoKernelClassifier(Gaussian(sigma=5.0), max_time=limit).fit(X, y).model_ for limit in (0.25, 60.0)
    )
    assert (short.multi_class, long.multi_class) == ("ovr", "ovo")
    assert np.mean(short.predict(X) == y) > 0.9


def test_a_trial_is_counted_once_where_time_was_up(rng):
    """There was no time for a last choice about the winner: it is among the trials already."""
    X = rng.normal(size=(60, 2))
    model = AutoKernelClassifier(Gaussian(sigma="median"), max_time=1e-9).fit(X, X[:, 0] > 0)
    assert len(model.trials_) == len(set(map(id, model.trials_))) == 1
