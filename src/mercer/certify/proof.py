r"""A derivation: which rule gave which statement, from which others.

>>> print(Step("k1 + k2", "a sum of kernels", (Step("k1", "an inner product"), Step("k2", "a constant"))))
k1 + k2: a sum of kernels
├─ k1: an inner product
└─ k2: a constant
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """A statement, the rule it follows by, and the statements the rule was applied to."""

    subject: str
    rule: str
    parts: tuple[Step, ...] = ()
    #: what the points must satisfy for this step to hold: "points in ℝ^m, m ≤ 3", …
    needs: tuple[str, ...] = ()

    @property
    def conditions(self) -> tuple[str, ...]:
        """What this step and all below it ask of the points, each once."""
        return tuple(dict.fromkeys(need for step in self.walk() for need in step.needs))

    def walk(self) -> Iterator[Step]:
        """The step itself, then those below it, depth first."""
        yield self
        for part in self.parts:
            yield from part.walk()

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        needs = "".join(f" [{need}]" for need in self.needs)
        yield f"{self.subject}: {self.rule}{needs}"
        for i, part in enumerate(self.parts):
            last = i == len(self.parts) - 1
            first, *rest = part._lines()
            yield ("└─ " if last else "├─ ") + first
            yield from (("   " if last else "│  ") + line for line in rest)


def step(subject: str, rule: str, *parts: Step | None) -> Step | None:
    """A step whose parts must all be proved."""
    proved = tuple(part for part in parts if part is not None)
    return Step(subject, rule, proved) if len(proved) == len(parts) else None


@dataclass(frozen=True)
class Open:
    """Nothing proved: the reason says where the derivation stopped."""

    reason: str
    #: whether the reason is a theorem by which it is no kernel
    fails: bool = False
