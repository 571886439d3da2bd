r"""How good a model is, in one sentence and one set of numbers: the same wherever they are shown.

>>> verdict = Verdict(True, 4 / 91, (0.0121, 0.1087), 35 / 91, 91)
>>> verdict.sentence
'Right on 87 of 91 rows never seen (95.6 %); the most frequent class alone would be right on 56.'
>>> verdict.shown(verdict.error), verdict.shown(verdict.baseline)
('4.4 %', '38.5 %')
>>> Verdict(False, 2.1, None, 7.4, 120).sentence
'Off by 2.1 on 120 rows never seen (root mean square), where guessing the mean is off by 7.4.'
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


def percent(share: float) -> str:
    """A share for people.

    >>> percent(0.0123), percent(0.5), percent(0.0), percent(0.99996), percent(1.0)
    ('1.23 %', '50.0 %', '0 %', '99.996 %', '100 %')
    """
    value = 100 * share
    if value == 0 or value == 100:
        return f"{value:.0f} %"
    if value > 99.9:  # what is missing counts, and must not be rounded away
        return f"{100 - float(f'{100 - value:.1g}'):.10g} %"
    return f"{value:.1f} %" if value >= 10 else f"{value:.3g} %"


def constant_error(y: np.ndarray, seen: np.ndarray, is_class: bool) -> float:
    """The error on y of the constant that suits ``seen`` best: its most frequent class, or its mean.

    >>> constant_error(np.array(["a", "b"]), np.array(["a", "a", "b"]), True)
    0.5
    >>> constant_error(np.array([1.0, 3.0]), np.array([2.0, 2.0]), False)
    1.0
    """
    if is_class:
        labels, counts = np.unique(seen, return_counts=True)
        return float(np.mean(y != labels[counts.argmax()]))
    return float(np.sqrt(np.mean((y - seen.mean(axis=0)) ** 2)))


@dataclass(frozen=True)
class Verdict:
    """An error, what it is to be compared with, and on how many rows it was found."""

    #: a share of wrong labels, or the root of a mean square
    is_class: bool
    error: float
    interval: tuple[float, float] | None = None
    #: the error of always predicting the most frequent class, or the mean
    baseline: float | None = None
    #: predictions that the error is of; None where nobody knows
    count: int | None = None
    unit: str = "rows"
    #: what those rows are: "never seen" by anything that made the model, or only "left out" of its fit
    which: str = "never seen"

    def shown(self, value: float) -> str:
        """An error as text: a share in per cent, or a number."""
        return percent(value) if self.is_class else f"{value:.4g}"

    @property
    def span(self) -> str:
        """The limits of the interval as text; empty without one."""
        return "" if self.interval is None else " to ".join(map(self.shown, self.interval))

    @property
    def sentence(self) -> str:
        """What one would say to somebody who asks how good the model is."""
        if self.count is None:
            return self._plain()
        where = f"{self.count:,} {self.unit} {self.which}"
        if not self.is_class:
            told = f"Off by {self.shown(self.error)} on {where} (root mean square)"
            if self.baseline is not None:
                told += f", where guessing the mean is off by {self.shown(self.baseline)}"
            return f"{told}."
        told = f"Right on {self._right(self.error):,} of {where} ({percent(1 - self.error)})"
        if self.baseline is not None:
            told += f"; the most frequent class alone would be right on {self._right(self.baseline):,}"
        return f"{told}."

    def _right(self, error: float) -> int:
        assert self.count is not None
        return self.count - round(error * self.count)

    def _plain(self) -> str:
        """Without a number of rows."""
        told = f"The error is {self.shown(self.error)}" + ("" if self.is_class else " (root mean square)")
        if self.baseline is not None:
            alone = "the most frequent class alone" if self.is_class else "guessing the mean"
            told += f", that of {alone} {self.shown(self.baseline)}"
        return f"{told}."
