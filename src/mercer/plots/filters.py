r"""A filter of mails as a kernel machine: rows whose inner products are its kernel, and its f on them.

    z(x) = (√wₐ φₐ(x))ₐ,     ⟨z(x), z(x')⟩ = Σₐ wₐ kₐ(x, x'),     f(x) - t = ⟨v, z(x)⟩ + b - t

with the weights wₐ and the rows φₐ of the aspects (`mercer.selection.mail`), and the threshold t.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin

from mercer.data.types import Model, Points
from mercer.expansion import Expansion
from mercer.features.email import read
from mercer.kernels.vectors.dotproduct import Linear


def is_filter(model: Model) -> bool:
    """Whether it is a fitted MailClassifier."""
    return hasattr(model, "vocabularies_") and hasattr(model, "weights_")


class FilterRows(BaseEstimator):
    """The step of a pipeline that takes messages to z(x)."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def transform(self, X: Iterable[Any]) -> sparse.csr_array:  # (n, elements of all aspects)
        mails = [read(message) for message in X]
        rows = [
            np.sqrt(self.model.weights_[name]) * known.rows([getattr(mail, name) for mail in mails])
            for name, known in self.model.vocabularies_.items()
        ]
        return sparse.csr_array(sparse.hstack(rows))


class FilterMachine(ClassifierMixin, BaseEstimator):
    """What a filter has learned, as a function of z(x): positive for the second of its classes."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.classes_, self.C, self.kernel_ = model.classes_, model.C_, Linear()

    @property
    def sign(self) -> float:
        """1 where the second class is spam, else -1."""
        return 1.0 if self.model._ham_is_first else -1.0

    @property
    def normal(self) -> np.ndarray:  # (elements of all aspects,)
        """v: the coefficients c of the elements, over √w of their aspect."""
        return np.concatenate(
            [
                self.model.coef_[name] / (np.sqrt(self.model.weights_[name]) or 1.0)
                for name in self.model.vocabularies_
            ]
        )

    @property
    def expansion_(self) -> Expansion:
        rest = self.model.intercept_ - self.model.threshold_
        return Expansion(
            self.kernel_, sparse.csr_array(self.normal[None]), np.array([self.sign]), self.sign * rest
        )

    def predict_proba(self, Z: Points) -> np.ndarray:  # (n, 2)
        slope, offset = self.model.curve_
        spam = expit(slope * (self.sign * self.expansion_(Z) + self.model.threshold_) + offset)
        return np.column_stack([1 - spam, spam] if self.sign > 0 else [spam, 1 - spam])
