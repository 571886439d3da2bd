r"""Which regular expressions a model file may have: those that no text can keep busy for long.

Python tries every way in which the repeated parts of an expression can share a text: ``(\w+)+!`` takes 2ⁿ
steps for n letters without an exclamation mark, and ``\w*\w*\w*!`` takes n⁴. What finds words needs no more
than one part of any length at a time, and no groups. Such an expression takes at most about n² steps.

>>> is_quick(r"(?u)\b\w\w+\b"), is_quick(r"[a-z]+|\d+"), is_quick(r"-?\d{1,3}")
(True, True, True)
>>> is_quick(r"(\w+)+!"), is_quick(r"\w*\w*!"), is_quick("a?" * 30)
(False, False, False)
"""

from __future__ import annotations

import re
from typing import Any

from mercer.errors import InputError, shown

_LONGEST_PATTERN = 200  # characters: more than a pattern of words needs
_MOST_WAYS = 16  # in how many ways parts of several lengths can share a text: a factor of the time

_FLAGS = re.compile(r"\(\?[aiu]{1,3}\)")
#: a place in a text, or a letter (a class, a set in brackets, one letter) and how often it may come
_PART = re.compile(
    r"\\[bB]|[\^$]"
    r"|(?:\\[wWdDsS]|\\[^A-Za-z0-9]|\[\^?\]?(?:\\.|[^\]\\])*\]|[^\\()\[\]{}|*+?^$])"
    r"(?P<times>[*+?]|\{\d{1,3}\}|\{\d{0,3},\d{0,3}\})?"
)


def is_quick(pattern: str) -> bool:
    """Whether an expression is one of those; others may be harmless too, but that is hard to tell."""
    if len(pattern) > _LONGEST_PATTERN:
        return False
    flags = _FLAGS.match(pattern)
    place = flags.end() if flags else 0
    ways: list[float] = [1.0]
    has_open = False
    while place < len(pattern):
        if pattern[place] == "|":
            ways.append(1.0)
            has_open = False
            place += 1
            continue
        part = _PART.match(pattern, place)
        if part is None:
            return False
        count = _lengths(part["times"] or "{1}")
        if count == float("inf"):
            if has_open:
                return False
            has_open = True
        else:
            ways[-1] *= count
        place = part.end()
    return sum(ways) <= _MOST_WAYS


def _lengths(times: str) -> float:
    """How many lengths a repeated part may have."""
    if times in "*+":
        return float("inf")
    if times == "?":
        return 2.0
    least, comma, most = times[1:-1].partition(",")
    if not comma:
        return 1.0
    return float(int(most) - int(least or 0) + 1) if most else float("inf")


def check_pattern(part: Any, trusted: dict[str, Any]) -> None:
    r"""Refuse a kernel or an estimator that finds words by an expression which may take for ever.

    >>> from mercer import BagOfWords
    >>> check_pattern(BagOfWords(pattern=r"(\w+)+!"), {})
    Traceback (most recent call last):
    mercer.errors.InputError: BagOfWords has the regular expression '(\\w+)+!', which may take ...
    """
    found, kind = vars(part), type(part)
    pattern = found.get("pattern", found.get("token_pattern"))
    if not isinstance(pattern, str) or f"{kind.__module__}.{kind.__qualname__}" in trusted:
        return
    if not is_quick(pattern):
        raise InputError(
            f"{kind.__name__} has the regular expression {shown(pattern)}, which may take for ever on some "
            "texts: a model file may have letters, classes and sets such as [a-z], at most one of which is "
            "repeated without limit, and no groups. If you know the expression, pass "
            f"trusted=[{kind.__name__}], both to save and to load"
        )
