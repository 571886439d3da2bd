r"""A kernel as a page has it: a line of text, the numbers in it that sliders turn, and Python that makes it.

>>> found = typed_kernel("2*gaussian(1) + linear", {"k1__kernel__sigma": 0.5})
>>> found.source, found.imports
('2 * Gaussian(sigma=0.5) + Linear()', ['from mercer import Gaussian, Linear'])
>>> [(slider["name"], slider["value"]) for slider in found.sliders()]
[('k1__scale', 2), ('k1__kernel__sigma', 0.5)]

A text in r is φ(r), a kernel of the distance, in every room:

>>> print(*typed_kernel("exp(-r)").imports, sep="\n")
from mercer import Kernel
from mercer.kernels.formula.expression import exp, sqrt
<BLANKLINE>
<BLANKLINE>
class OfDistance(Kernel):
    def formula(self, pair):
        r = sqrt(pair.sqdist)
        return exp(-r)
<BLANKLINE>
<BLANKLINE>
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mercer.certify.asked import OfDistance, as_typed, is_profile
from mercer.data.scalars import is_number
from mercer.data.types import Points
from mercer.errors import InputError
from mercer.kernels.base import Kernel
from mercer.kernels.domain import Domain
from mercer.kernels.formula.typed import FUNCTIONS, names_in
from mercer.kernels.parse import COMPOSED, parse_kernel


@dataclass(frozen=True)
class TypedKernel:
    """A kernel, and how it is written."""

    kernel: Kernel
    #: what can be typed to have it again
    text: str
    #: Python for it, and what has to stand before
    source: str
    imports: list[str]

    def on(self, X: Points) -> Kernel:
        """The kernel with its words ("median") taken from the points."""
        return self.kernel.resolve(X)

    def described(self, kernel: Kernel, X: Points) -> dict[str, Any]:
        """For the page: the text, the kernel on the points, what certify may be asked, and the sliders."""
        asks = self.text if isinstance(kernel, OfDistance) else repr(kernel)
        return {"text": self.text, "resolved": repr(kernel), "asks": asks, "sliders": self.sliders(X)}

    def sliders(self, X: Points | None = None) -> list[dict[str, Any]]:
        """The numbers of the kernel that may be turned: name, value, and what they may be."""
        kernel = self.kernel if X is None else self.on(X)
        values = kernel.get_params()
        found = []
        for name, value in values.items():
            owner, _, last = name.rpartition("__")
            declared = type(values[owner] if owner else kernel).parameters.get(last)
            if declared is None or not is_number(value):
                continue
            is_any = declared.accepts(7)  # A choice among few values is no slider.
            if is_any and not declared.accepts(1.5):
                found.append({"name": name, "label": last, "value": value, "kind": "whole"})
            elif is_any:
                kind = (
                    "real"
                    if declared.accepts(-1.0)
                    else "nonnegative"
                    if declared.accepts(0.0)
                    else "positive"
                )
                found.append({"name": name, "label": last, "value": value, "kind": kind})
        return found


def typed_kernel(text: str, parameters: Mapping[str, float] | None = None) -> TypedKernel:
    """The kernel that a text describes, for learners, with some of its numbers set anew."""
    if is_profile(text):
        return _of_distance(text)
    kernel = parse_kernel(text)
    if kernel.domain is Domain.OBJECTS:
        raise InputError(
            f"{kernel!r} compares objects, and the lab's points are numbers: take e.g. gaussian(1)"
        )
    if parameters:
        kernel = _changed(kernel, parameters)
    source = repr(kernel)
    return TypedKernel(kernel, source if parameters else text, source, _imports(source))


def asked_about(text: str) -> TypedKernel:
    """What a text asks about, which need not be a kernel; its source is the text, which certify takes."""
    kernel = as_typed(text)
    return TypedKernel(kernel, text, repr(text), [])


def _changed(kernel: Kernel, parameters: Mapping[str, float]) -> Kernel:
    kernel = kernel.__sklearn_clone__()
    known = kernel.get_params()
    for name, value in parameters.items():
        if name not in known:
            raise InputError(f"{kernel!r} has no number {name!r} to turn: type the kernel anew")
        whole = isinstance(known[name], int) and float(value).is_integer()
        kernel.set_params(**{name: int(value) if whole else value})
    return kernel


def _of_distance(text: str) -> TypedKernel:
    kernel = as_typed(text)
    assert isinstance(kernel, OfDistance)
    source = kernel.function.source
    used = sorted({"sqrt", *(names_in(source) & FUNCTIONS)})
    imports = [
        "from mercer import Kernel",
        f"from mercer.kernels.formula.expression import {', '.join(used)}",
        "",
        "",
        "class OfDistance(Kernel):",
        "    def formula(self, pair):",
        "        r = sqrt(pair.sqdist)",
        f"        return {source}",
        "",
        "",
    ]
    return TypedKernel(kernel, text, "OfDistance()", imports)


def _imports(source: str) -> list[str]:
    """The lines that import what a kernel's ``repr`` names."""
    homes: dict[str, list[str]] = {}
    for name in sorted(names_in(source)):
        homes.setdefault(COMPOSED.get(name, "math" if name == "inf" else "mercer"), []).append(name)
    return [f"from {home} import {', '.join(names)}" for home, names in sorted(homes.items())]
