r"""The evidence for a kernel and a penalty: how likely the targets are under their Gaussian process.

Process   y = f + b + noise, f of covariance (σ²/α) k, noise of variance σ², b anything (0 without an
          intercept); a point of weight w stands for w observations, as in `posterior`
Given     J, the minimum of Σ wᵢ (yᵢ - f(xᵢ) - b)² + α ‖f‖², and the eigenvalues λⱼ of S K S, S = diag(√wᵢ)
          (of its part without a mean, where there is b)
Evidence  with ν = Σw - 1 (Σw without b) and σ² = J / ν, which makes y most likely,
              -2 log p(y) = ν (1 + log(2π J/ν)) + Σⱼ log(1 + λⱼ/α) + log Σw     (the last term with b alone)
          That of b is what an integral of p(y | b) over all b gives.

On landmarks K is K̂ = Φ Φᵀ, and λⱼ are those of Φ̃ᵀWΦ̃: it is the evidence of that process.

Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, sections 2.7 and 5.4.1; on landmarks,
Quiñonero-Candela and Rasmussen, A unifying view of sparse approximate Gaussian process regression, Journal
of Machine Learning Research 6 (2005), 1939-1959.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def surprise(
    objective: np.ndarray,  # J of any shape
    log_spread: Any,  # Σⱼ log(1 + λⱼ/α), of a shape that fits
    total: float,  # Σw
    fit_intercept: bool,
) -> np.ndarray:
    """-log p(y) / Σw, for each observation: the smaller, the more the targets speak for kernel and penalty.

    >>> from scipy.stats import norm
    >>> y = np.array([1.0, -2.0, 2.0])  # Nothing is known of f but that it is 0: λ = 0.
    >>> bool(np.isclose(surprise(y @ y, 0.0, 3, False), -norm.logpdf(y, scale=3**0.5).mean()))
    True
    """
    free = max(total - fit_intercept, np.finfo(float).tiny)
    # Targets that f + b meets at no cost have J = 0, and any kernel explains them.
    size = np.maximum(objective, np.finfo(float).tiny)
    twice = free * (1 + np.log(2 * np.pi * size / free)) + log_spread
    return np.asarray((twice + (np.log(total) if fit_intercept else 0.0)) / (2 * total))
