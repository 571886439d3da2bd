"""Labels as they come."""

import numpy as np
import pytest

from mercer import SVC
from mercer.errors import InputTypeError


def test_a_missing_label_is_told():
    with pytest.raises(InputTypeError, match="a label for every point, got None for point 1"):
        SVC().fit(np.eye(4), ["a", None, "a", "b"])
