"""A kernel that a search has tried, and what it is worth."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mercer.kernels.base import Kernel
from mercer.kernels.words import short_name
from mercer.selection.families import Family


@dataclass(frozen=True)
class Score:
    """What a kernel is worth on some points, at the best penalty that was tried."""

    #: the error; less is better
    error: float
    #: This decides between equal errors; less is better.
    tie: float
    #: the penalty
    penalty: float


@dataclass(frozen=True, eq=False)
class Trial:
    """One kernel that was tried."""

    kernel: Kernel
    #: λ beside K, by the evidence
    noise: float
    score: Score
    #: the number of points that score it
    points: int
    #: whether each column has a parameter of its own
    per_column: bool
    seconds: float
    family: Family
    #: L per point, of the points it was learned on; comparable on the same ones
    evidence: float
    #: the number of points that it was learned on; none of them scores it
    learned_on: int

    @property
    def rank(self) -> tuple[float, float]:
        """The key by which trials on the same points are ordered."""
        return self.score.error, self.score.tie

    @property
    def shown(self) -> Trial:
        """The trial of the kernel on the points as they were given."""
        family = self.family
        if family.shown is None:
            return self
        given, kernel = self.kernel.get_params(), family.shown.__sklearn_clone__()
        kernel.set_params(**{name: given[name] for name in family.names})
        return replace(self, kernel=kernel, family=replace(family, kernel=family.shown, shown=None))

    @property
    def name(self) -> str:
        """A short name, for people."""
        has_scales = self.per_column and not self.family.has_map
        return short_name(self.shown.kernel) + (", a scale per column" if has_scales else "")

    def __str__(self) -> str:
        return f"{self.score.error:.4g} on {self.points} points, {self.seconds:.1f} s: {self.kernel!r}"
