"""Numbers of two parts, against fractions."""

from fractions import Fraction

import numpy as np
import pytest

from mercer.runtime.twofold import UNIT, add, divide, multiply, subtract


def _random(rng):
    high = float(rng.normal() * 10.0 ** rng.integers(-20, 20))
    low = float(rng.uniform(-0.5, 0.5) * np.spacing(high))
    return high, low


def _exact(number):
    return Fraction(number[0]) + Fraction(number[1])


@pytest.mark.parametrize(
    ("operation", "truth"),
    [
        (add, lambda a, b: a + b),
        (subtract, lambda a, b: a - b),
        (multiply, lambda a, b: a * b),
        (divide, lambda a, b: a / b),
    ],
)
def test_operations_are_right_to_104_bits(rng, operation, truth):
    for _ in range(300):
        a, b = _random(rng), _random(rng)
        found, right = _exact(operation(*a, *b)), truth(_exact(a), _exact(b))
        size = abs(right) if operation in (multiply, divide) else abs(_exact(a)) + abs(_exact(b))
        assert abs(found - right) <= 4 * Fraction(UNIT) * size


def test_what_cancels_leaves_the_lower_parts():
    assert subtract(1.0, 2.0**-60, 1.0, 2.0**-70) == (2.0**-60 - 2.0**-70, 0.0)
