"""AutoKernelClassifier under a time limit: many classes."""

import numpy as np
import pytest

from mercer import Gaussian
from mercer.selection import AutoKernelClassifier


@pytest.mark.filterwarnings("ignore:the last fit takes")
def test_many_classes_are_set_against_the_rest_where_time_is_short():
    rng = np.random.default_rng(0)
    y = np.arange(160) % 40
    X = 4 * rng.normal(size=(40, 6))[y] + rng.normal(size=(160, 6))
    # 780 pairs take a quarter of a second, however few points they have
    short, long = (
        AutoKernelClassifier(Gaussian(sigma=5.0), max_time=limit).fit(X, y).model_ for limit in (0.5, 60.0)
    )
    assert (short.multi_class, long.multi_class) == ("ovr", "ovo")
    assert np.mean(short.predict(X) == y) > 0.9
