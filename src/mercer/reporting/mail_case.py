r"""What a report of a filter of mails is about: messages, read once, and values of f left out."""

from __future__ import annotations

import email
import email.policy
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import expit

from mercer.data.types import Model
from mercer.features.email import read
from mercer.plots.filters import FilterMachine
from mercer.reporting.case import Case, HeldOut


class MailCase(Case):
    """A fitted MailClassifier and messages; ``X`` are their aspects, ``raw`` the messages as they came."""

    raw: list[Any]

    @classmethod
    def of(cls, model: Model, X: Any, y: np.ndarray, **options: Any) -> MailCase:
        raw = list(X)
        case = cls(model, [read(message) for message in raw], y, **options)
        case.raw = raw
        return case

    @property
    def machine(self) -> FilterMachine:
        machine: FilterMachine = self.found.machine
        return machine

    @property
    def columns(self) -> dict[str, slice]:
        """The columns of ``points`` that belong to each aspect."""
        ends = np.cumsum([len(known) for known in self.model.vocabularies_.values()]).tolist()
        return {
            name: slice(start, end)
            for name, start, end in zip(self.model.vocabularies_, [0, *ends[:-1]], ends, strict=True)
        }

    @property
    def learner_name(self) -> str:
        return type(self.model).__name__

    @property
    def unit(self) -> str:
        return "messages"

    @property
    def kernel_text(self) -> str:
        weights = self.model.weights_
        names = sorted(weights, key=lambda name: -weights[name])
        more = " + …" if len(names) > 3 else ""
        return " + ".join(f"{weights[name]:.2g} {name}" for name in names[:3]) + more

    @property
    def kernel_name(self) -> str:
        return self.kernel_text

    @property
    def was_searched(self) -> bool:
        return True

    @cached_property
    def is_training(self) -> bool:
        """Whether the support vectors are among the messages where they were: then c = w Σ αᵢ φ(xᵢ)."""
        model = self.model
        if len(model.left_out_) != self.n:
            return False
        support = self.points[model.support_]
        return bool(np.allclose(support.T @ model.dual_coef_, self.machine.normal, rtol=1e-6, atol=1e-9))

    @cached_property
    def influence(self) -> np.ndarray:  # (support vectors,)
        return np.abs(self.model.dual_coef_)

    @cached_property
    def places(self) -> dict[int, int]:
        return dict(enumerate(map(int, self.model.support_))) if self.is_training else {}

    @cached_property
    def held_out(self) -> HeldOut:
        if self.given is not None:
            return self.given
        model = self.model
        which = np.arange(self.n)
        if not self.is_training:
            how = "Predicted by the filter itself, for which these messages are new."
            P = self.machine.predict_proba(self.points)
            return self._judge(which, np.asarray(model.predict(self.X)), how, P, is_honest=True)
        which = which[np.isfinite(model.left_out_)]
        f = model.left_out_[which]
        slope, offset = model.curve_
        spam = expit(slope * f + offset)
        second, P = (f > model.threshold_), np.column_stack([1 - spam, spam])
        if self.machine.sign < 0:
            second, P = ~second, P[:, ::-1]
        of = f"{len(which):,} of {self.n:,} messages" if len(which) < self.n else f"all {self.n:,} messages"
        how = (
            f"Predicted in folds of {of}, those with the same words in one fold. The weights, C, the "
            "threshold and the curve of probabilities were chosen with them in view, which makes the error a "
            "little too small."
        )
        return self._judge(which, model.classes_[second.astype(int)], how, P)

    def subject(self, place: int) -> str:
        """The subject of a message, or its most frequent words."""
        raw, said = self.raw[place], ""
        try:
            if isinstance(raw, bytes | str):
                policy = email.policy.default
                head = raw[:20_000]
                parsed = (
                    email.message_from_bytes(head, policy=policy)
                    if isinstance(head, bytes)
                    else email.message_from_string(head, policy=policy)
                )
                said = str(parsed["subject"] or "")
        except Exception:  # broken headers are many, and the words are there
            said = ""
        bag = self.X[place].words
        return said or " ".join(sorted(bag, key=lambda word: -bag[word])[:12]) or "(no words)"
