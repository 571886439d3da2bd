r"""A kernel as mathematics is written: LaTeX, its parameters by their letters, and what these are.

>>> from mercer import Gaussian, Polynomial
>>> print(latex(Gaussian(sigma=1.5)))
k(x, x') = \exp\left(-\frac{\lVert x - x' \rVert^{2}}{2 \sigma^{2}}\right), \quad \sigma = 1.5
>>> print(latex(0.3 * Polynomial(2)))
k(x, x') = 0.3 \left(\gamma \langle x, x' \rangle + c\right)^{d}, \quad \gamma = 1,\; c = 1,\; d = 2
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

from mercer.errors import InputError
from mercer.kernels.base import Kernel
from mercer.kernels.formula.calculus import substitute
from mercer.kernels.formula.expression import Expression, Number
from mercer.kernels.formula.latex import Printed, parameters
from mercer.kernels.formula.latex import latex as formula_latex
from mercer.kernels.formula.pair import Mean, ParameterLeaf
from mercer.kernels.formula.program import Path
from mercer.kernels.formula.typeset import called, decimal, word
from mercer.kernels.parameters import is_vector
from mercer.kernels.vectors.dotproduct import Constant

_GREEK = (
    "alpha",
    "beta",
    "gamma",
    "delta",
    "eta",
    "theta",
    "kappa",
    "lambda",
    "mu",
    "nu",
    "rho",
    "sigma",
    "tau",
)
_LETTERS = {name: rf"\{name}" for name in _GREEK} | {
    "length_scale": r"\ell", "degree": "d", "period": "p", "radius": r"\rho", "scale": "h",
}  # fmt: skip
#: A kernel of more parts is called by its name alone: its formula would fill pages.
_MOST_PARTS = 40
_NUMBERS_SHOWN = 4  # a parameter may have one for each column


def latex(kernel: Kernel) -> str:
    r"""The formula of a kernel in LaTeX, without dollar signs; also of sums, products, maps and means.

    Numbers that make a kernel of others (2 k, k³) are written as they are, and other parameters by a letter.
    Kernels on objects, and those of Python functions, have a name instead of a formula; so has a formula that
    would fill pages.

    >>> from mercer import Linear, Spectrum
    >>> print(latex(2 * Linear() + 1.0), latex(Spectrum(3)), sep="\n")
    k(x, x') = 2 \langle x, x' \rangle + 1
    k(x, x') = \operatorname{Spectrum}_{k=3}\left(x, x'\right)
    """
    found = _formula(kernel)
    if found is None:
        return rf"k(x, x') = {called(kernel)}\left(x, x'\right)"
    (formula, where), values = found
    if not where:
        return f"k(x, x') = {formula}" + "".join([r", \quad " + r",\; ".join(values)] if values else [])
    lines = [rf"{name} &= {text}" for name, text in [("k(x, x')", formula), *where]]
    lines += [r",\; ".join(values).replace(" = ", " &= ", 1)] if values else []
    return r"\begin{aligned} " + r" \\ ".join(lines) + r" \end{aligned}"


def _formula(kernel: Kernel) -> tuple[Printed, list[str]] | None:
    """The formula, and "letter = value" of its parameters; None where nobody would read it."""
    if len(list(islice(kernel.parts(), _MOST_PARTS + 1))) > _MOST_PARTS:
        return None
    copy = kernel.__sklearn_clone__()
    words = dict(_without_words(copy, ()))
    try:
        expression = copy.expression()
    except InputError:  # It waits for data in a way of its own.
        return None
    expression = substitute(expression, lambda leaf: _as_number(leaf, copy))
    paths = list(dict.fromkeys(parameters(expression)))
    letters = _letters(paths)

    def scaling(path: Path) -> str:
        match _owner(copy, path).parameters[path[-1]].per_column:
            case 1.0:
                return letters[path]
            case 0.5:
                return rf"\sqrt{{{letters[path]}}}"
            case power:
                return f"{letters[path]}^{{{power:g}}}"

    printed = formula_latex(expression, letters.__getitem__, scaling)
    values = (words.get(path, vars(_owner(copy, path))[path[-1]]) for path in paths)
    listed = [f"{letters[path]} = {_value(value)}" for path, value in zip(paths, values, strict=True)]
    return None if printed is None else (printed, listed)


def _without_words(kernel: Kernel, path: Path) -> Iterator[tuple[Path, str]]:
    """Words such as "median" by their paths; in a kernel of ours 1 stands for them, as any number would."""
    for name, value in vars(kernel).items():
        if isinstance(value, Kernel):
            yield from _without_words(value, (*path, name))
        elif isinstance(value, str) and (given := kernel.parameters.get(name)) and value in given.words:
            if not given.symbolic:
                continue
            vars(kernel)[name] = 1.0
            yield (*path, name), value


def _as_number(leaf: Expression, kernel: Kernel) -> Expression | None:
    """The number of a kernel that is made of others, or of a constant, which has no letter."""
    if isinstance(leaf, Mean):
        return replace(leaf, inner=substitute(leaf.inner, lambda inner: _as_number(inner, kernel)))
    if isinstance(leaf, ParameterLeaf):
        owner = _owner(kernel, leaf.path)
        return Number(leaf.value) if owner.children() or isinstance(owner, Constant) else None
    return None


def _owner(kernel: Kernel, path: Path) -> Kernel:
    for name in path[:-1]:
        kernel = kernel.children()[name]
    return kernel


def _letters(paths: list[Path]) -> dict[Path, str]:
    """A letter for each parameter; an index where several have the same one."""
    plain = {path: _LETTERS.get(path[-1]) or word(path[-1]) for path in paths}
    counts = Counter(plain.values())
    found: Counter[str] = Counter()
    for path, letter in plain.items():
        if counts[letter] > 1:
            found[letter] += 1
            plain[path] = f"{letter}_{{{found[letter]}}}"
    return plain


def _value(value: Any) -> str:
    if isinstance(value, str):
        return word(value)
    if not is_vector(value):
        return decimal(float(value))
    numbers = [decimal(float(number)) for number in value[:_NUMBERS_SHOWN]]
    if len(value) > _NUMBERS_SHOWN:
        numbers = [*numbers[:2], r"\dots", decimal(float(value[-1]))]
    return rf"\left({', '.join(numbers)}\right)"
