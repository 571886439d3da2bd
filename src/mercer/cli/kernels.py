"""``mercer kernels``: what ``--kernel`` and ``certify`` take; and the names as the shell completes them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from mercer.cli.screen import Screen

#: Kernels that take a function, a matrix or a density, which only Python can write.
_FROM_PYTHON = {
    "FromFunction",
    "Precomputed",
    "ConditionalExpectation",
    "Invariant",
    "Derivative",
    "PolynomialOf",
}
_POINTS = {"vectors": "numbers", "nonnegative": "numbers ≥ 0", "objects": "objects", "any": "anything"}


class _Entry(NamedTuple):
    name: str
    formula: str
    parameters: dict[str, Any]
    points: str


def kernels(screen: Screen) -> int:
    """A table on standard output: names, formulas, parameters with their defaults."""
    found = sorted(_entries(), key=lambda entry: (list(_POINTS.values()).index(entry.points), entry.name))
    synonyms = {"rbf": "gaussian(gamma=…)", "poly": "polynomial", "chi2": "chisquared"}
    if screen.as_json:
        screen.json({"kernels": [entry._asdict() for entry in found], "synonyms": synonyms})
        return 0
    for points in dict.fromkeys(entry.points for entry in found):
        rows = [(_call(entry), entry.formula) for entry in found if entry.points == points]
        screen.grid(f"\nOn {points}", ("kernel", "formula"), rows)
    print()
    screen.facts(
        [
            (
                "names",
                "in any case; as in scikit-learn " + ", ".join(f"{a} = {b}" for a, b in synonyms.items()),
            ),
            ("widths", "a number, or a word that follows the data: gaussian(sigma=median), rbf(gamma=scale)"),
            ("together", "2*gaussian(1) + linear, gaussian(1)*delta, polynomial(2)**2, exp(linear)"),
            ("after it", ".normalized(), .centered(), .on(age, height), .polynomial([1, 2])"),
        ]
    )
    return 0


def _entries() -> Iterator[_Entry]:
    import mercer
    from mercer.kernels.parse import kernel_names

    for name, known in kernel_names().items():
        if known in _FROM_PYTHON or not hasattr(mercer, known):
            continue
        kind = getattr(mercer, known)
        given = {name: parameter.default for name, parameter in kind.parameters.items()}
        domain = kind.domain if isinstance(kind.domain, str) else "any"
        yield _Entry(name, kind.__doc__.splitlines()[0].replace("``", ""), given, _POINTS[domain])


def _call(entry: _Entry) -> str:
    """The call as it is written; of a parameter without a value of its own, the name alone.

    >>> _call(_Entry("matern", "", {"nu": 1.5, "length_scale": 1.0}, "numbers"))
    'matern(nu=1.5, length_scale=1.0)'
    """
    inside = [
        name if value is None else f"{name}={_short(value)}" for name, value in entry.parameters.items()
    ]
    return f"{entry.name}({', '.join(inside)})" if inside else entry.name


def _short(value: object) -> str:
    return f"{value!r}" if len(repr(value)) < 25 else "…"


def complete(incomplete: str) -> list[tuple[str, str]]:
    """How a text of a kernel may go on, for the shell: its last word is the beginning of a name.

    >>> [text for text, _ in complete("2*gaussian(1) + Ma")]
    ['2*gaussian(1) + matern']
    """
    begun = re.search(r"[A-Za-z_]*$", incomplete)
    assert begun is not None  # An empty text is a beginning, too.
    before, word = incomplete[: begun.start()], begun[0].lower().replace("_", "")
    if before.count("(") > before.count(")") or before.endswith("."):
        return []  # a parameter, or a method
    names = [("auto", "the default list")] if not before else []
    names += [(entry.name, entry.formula) for entry in _entries()]
    return [(before + name, formula) for name, formula in names if name.startswith(word)]
