r"""Intervals from errors left out, whose coverage does not rest on the model being right.

Given     for each of n observations a prediction interval of a new point, made of the fit without that
          observation and of its error there: [mᵢ - rᵢ, mᵢ + rᵢ]; and the coverage that is wanted, p
Interval  from the k-th largest of the lower ends to the k-th smallest of the upper ends, k = ⌈p (n + 1)⌉;
          without an end where k > n. Observations with weights count as often as their weight says.
Jackknife+  mᵢ = f₋ᵢ(x), rᵢ = sᵢ(x) |eᵢ| / sᵢ(xᵢ), eᵢ the error left out and sᵢ > 0 any scale that is made
          without the i-th target. If observations come in no order (exchangeable) and the fit treats them
          alike, a new one is inside with a probability of at least 1 - 2(1 - p), whatever their distribution;
          and usually of about p.
Jackknife   mᵢ = f(x): there is no such bound, and the same coverage where f₋ᵢ(x) is close to f(x), as of many
          observations.

Barber, Candès, Ramdas and Tibshirani, Predictive inference with the jackknife+, Annals of Statistics 49
(2021), 486-507; with scales: Gupta, Kuchibhotla and Ramdas, Nested conformal prediction and quantile
out-of-bag ensemble methods, Pattern Recognition 127 (2022).
"""

from __future__ import annotations

import math

import numpy as np

_ROUNDING = 1e-9  # p (n + 1) may be off by it where a whole number is meant


def quantile(values: np.ndarray, coverage: float, weight: np.ndarray | None = None) -> np.ndarray:
    """The k-th smallest value of each column, k = ⌈p (n + 1)⌉; infinite where k > n.

    With weights, (n,): the smallest value such that the weight up to it is at least p (Σw + 1). Values may be
    changed in their order.

    >>> values = np.arange(9.0)[:, None]
    >>> quantile(values, 0.9), quantile(values, 0.95), quantile(values, 0.5, np.full(9, 2.0))
    (array([8.]), array([inf]), array([4.]))
    """
    n, m = values.shape
    if weight is None or bool((weight == 1).all()):
        k = math.ceil(coverage * (n + 1) - _ROUNDING)
        if k > n:
            return np.full(m, np.inf)
        values.partition(k - 1, axis=0)
        return np.array(values[k - 1])
    order = values.argsort(axis=0)
    total = np.cumsum(weight[order], axis=0)
    is_enough = total >= coverage * (weight.sum() + 1) - _ROUNDING
    first = is_enough.argmax(axis=0)
    columns = np.arange(m)
    found = values[order[first, columns], columns]
    return np.where(is_enough[first, columns], found, np.inf)
