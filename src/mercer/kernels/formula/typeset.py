r"""Pieces of LaTeX: names, numbers, and products whose parts are put into brackets where they need some.

>>> print(product(1, "", "2", [Text("a + b", SUM), Text("c", ATOM)], []).text)
\frac{1}{2} \, \left(a + b\right) c
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple

#: How strongly a text holds together, from the least: what stands in a product or has an exponent is put into
#: brackets unless it is of a higher kind. A series, Σⱼ or Πⱼ of a term, takes all that follows.
SUM, SERIES, PRODUCT, FRACTION, CALL, ATOM = range(6)
_PARAMETERS_SHOWN = 3  # beside a name; of more only those that are not as usual


class Text(NamedTuple):
    """A text, and how strongly it holds together."""

    text: str
    level: int


# --- names and numbers -----------------------------------------------------------------------------------


def escaped(text: str) -> str:
    """A text for letters of a formula: what LaTeX would read as a command is printed as it is."""
    marks = {
        "\\": r"\backslash ",
        "^": r"\hat{}",
        "~": r"\sim ",
        " ": r"\ ",
        "'": r"\text{'}",
        "-": r"\text{-}",
    }
    return "".join(marks.get(c, rf"\{c}" if c in "_{}$%&#" else c) for c in text)


def word(text: str) -> str:
    r"""A name in upright letters; a single letter is a symbol as it is.

    >>> print(word("number_of_rows"), word("c"))
    \mathrm{number\_of\_rows} c
    """
    return text if len(text) == 1 and text.isalpha() else rf"\mathrm{{{escaped(text)}}}"


def decimal(value: float) -> str:
    r"""A number of six digits.

    >>> print(decimal(0.25), decimal(1.2345678e-9))
    0.25 1.23457 \cdot 10^{-9}
    """
    if not math.isfinite(value):
        return r"\mathrm{NaN}" if math.isnan(value) else r"\infty" if value > 0 else r"-\infty"
    digits, _, exponent = f"{value:.6g}".partition("e")
    return rf"{digits} \cdot 10^{{{int(exponent)}}}" if exponent else digits


def called(kernel: Any) -> str:
    r"""The name of a kernel that has no formula, with its parameters where they are few.

    >>> from mercer import BagOfWords, Subsequence
    >>> print(called(Subsequence(2, decay=0.8)), called(BagOfWords(2)), sep="\n")
    \operatorname{Subsequence}_{\mathrm{length}=2,\,\mathrm{decay}=0.8}
    \operatorname{BagOfWords}_{n=2,\,\mathrm{shortest}=1}
    """
    given = {name: vars(kernel)[name] for name in kernel.parameters if _is_telling(kernel, name)}
    if len(given) > _PARAMETERS_SHOWN:
        given = {name: value for name, value in given.items() if _is_new(kernel, name)}
    listed = r",\,".join(f"{word(name)}={_shown(value)}" for name, value in given.items())
    name = rf"\operatorname{{{escaped(type(kernel).__name__)}}}"
    return f"{name}_{{{listed}}}" if listed else name


def _is_telling(kernel: Any, name: str) -> bool:
    """Whether a parameter is a number, a kernel, or a word that is not the usual one."""
    value = vars(kernel).get(name)
    is_word = isinstance(value, bool | str)
    is_number = isinstance(value, int | float) and not is_word
    return is_number or hasattr(value, "formula") or (is_word and _is_new(kernel, name))


def _is_new(kernel: Any, name: str) -> bool:
    """Whether a parameter is not what it is by default."""
    default, value = kernel.parameters[name].default, vars(kernel)[name]
    return type(default) is not type(value) or default != value


def _shown(value: Any) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return decimal(float(value))
    return word(type(value).__name__ if hasattr(value, "formula") else str(value))


# --- layout ----------------------------------------------------------------------------------------------


def between(left: str, text: str, right: str) -> str:
    """A text between delimiters, which are large where it is tall."""
    is_tall = any(mark in text for mark in (r"\frac", r"\sum", r"\prod", r"\begin"))
    return rf"\left{left} {text} \right{right}" if is_tall else f"{left} {text} {right}"


def signed(value: float) -> tuple[int, str, str]:
    """The sign of a number, and what is above and below the line of its fraction, empty for 1."""
    sign, size = (-1 if value < 0 else 1), abs(value)
    if not math.isfinite(size) or size == 0:
        return sign, decimal(size), ""
    for unit, name in ((1.0, ""), (math.pi, r"\pi")):
        for inverse in (False, True) if name else (False,):
            ratio = size * unit if inverse else size / unit
            share = Fraction(ratio).limit_denominator(1000)
            if not share or share.numerator > 10**6 or abs(float(share) - ratio) > 1e-14 * ratio:
                continue
            is_short = not name and share.denominator > 8 and len(f"{size:.12g}") <= 6
            if is_short or (not name and share.denominator == 5):
                return sign, decimal(size), ""
            numbers = ["" if n == 1 else str(n) for n in (share.numerator, share.denominator)]
            numbers[inverse] += name
            return sign, numbers[0], numbers[1]
    square = Fraction(size * size).limit_denominator(1000)
    if 0 < square.numerator <= 1000 and abs(float(square) - size * size) <= 1e-14 * size * size:
        roots = [
            "" if n == 1 else str(math.isqrt(n)) if math.isqrt(n) ** 2 == n else rf"\sqrt{{{n}}}"
            for n in (square.numerator, square.denominator)
        ]
        return sign, roots[0], roots[1]
    return sign, decimal(size), ""


def product(sign: int, number: str, under: str, above: list[Text], below: list[Text]) -> Text:
    """Factors over factors, as one fraction where anything is below the line."""
    mark = "-" if sign < 0 else ""
    is_alone = not number and len(above) == 1
    top = _side(number, above)
    if under and not below and r"\left(" in top:  # What is tall stands beside the fraction, not on it.
        text = rf"{mark}\frac{{{number or 1}}}{{{under}}} \, {_side(' ', above).lstrip()}"
        return Text(text, SUM if mark else SERIES if above[-1].level == SERIES else PRODUCT)
    if under or below:
        return Text(rf"{mark}\frac{{{top}}}{{{_side(under, below)}}}", SUM if mark else FRACTION)
    level = above[0].level if is_alone else PRODUCT if above else ATOM
    if above and above[-1].level == SERIES:
        level = SERIES
    elif mark and level == SUM:
        top = rf"\left({top}\right)"
    return Text(mark + top, SUM if mark else level)


def _side(number: str, factors: list[Text]) -> str:
    """What is above the line of a fraction, or below it."""
    if len(factors) == 1 and not number:
        return factors[0].text
    least = [*[PRODUCT] * len(factors[1:]), SERIES][: len(factors)]
    texts = [
        rf"\left({text}\right)" if level < lowest else text
        for (text, level), lowest in zip(factors, least, strict=True)
    ]
    return " ".join(([number] if number else []) + texts) or "1"
