r"""Letters that a stream cannot write: a terminal of Windows, a log in ASCII, ``LC_ALL=C``.

Greek letters are spelled, signs are written with others that look alike, what has an accent loses it, and the
rest is shown by its number. The command never fails over a letter.

>>> "‖x − σ‖² ≤ 3½ λ₁, Matérn, 漢".encode("ascii", SPELLED).decode()
'|x - sigma|^2 <= 3 1/2 lambda_1, Matern, \\u6f22'
>>> "‖x − σ‖² ≤ 3½, Matérn".encode("cp1252", SPELLED).decode("cp1252")
'|x - sigma|² <= 3½, Matérn'
"""

from __future__ import annotations

import codecs
import sys
import unicodedata
from contextlib import suppress

#: the name of the error handler, for ``str.encode`` and for streams
SPELLED = "mercer-spelled"

_SIGNS = {
    "…": "...", "−": "-", "–": "-", "—": "-", "─": "-", "│": "|", "├": "|-", "└": "`-", "‖": "|", "∥": "|",
    "×": "x", "·": "*", "⋯": "...", "∘": "o", "√": "sqrt", "∞": "inf", "≤": "<=", "≥": ">=", "≠": "!=",
    "≈": "~", "±": "+/-", "→": "->", "←": "<-", "↦": "->", "∈": "in", "∂": "d", "∇": "grad ",
    "∫": "integral ", "⟨": "<", "⟩": ">", "⌈": "ceil(", "⌉": ")", "ℓ": "l", "ℝ": "R", "𝒳": "X", "½": " 1/2",
    "¼": " 1/4", "‘": "'", "’": "'", "“": '"', "”": '"', "„": '"', "′": "'", "•": "*", "\xa0": " ",
    "\u202f": " ",
}  # fmt: skip
_LOWERED, _RAISED = "₀₁₂₃₄₅₆₇₈₉₊₋ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿⁱʲᵀᵏ"


def _spelled(letter: str) -> str:
    """The text in ASCII."""
    if letter in _SIGNS:
        return _SIGNS[letter]
    plain = unicodedata.normalize("NFKD", letter)
    if letter in _LOWERED or letter in _RAISED:
        return ("_" if letter in _LOWERED else "^") + plain.replace("−", "-")
    name = unicodedata.name(letter, "")
    if name.startswith("GREEK") and "LETTER " in name:
        word = name.partition("LETTER ")[2].partition(" WITH")[0].replace("LAMDA", "LAMBDA").split()[-1]
        return word.capitalize() if "CAPITAL" in name else word.lower()
    if unicodedata.combining(letter):
        return ""
    plain = "".join(part for part in plain if not unicodedata.combining(part))
    return plain if plain.isascii() and plain else letter.encode("ascii", "backslashreplace").decode()


def _handle(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(_spelled, error.object[error.start : error.end])), error.end


codecs.register_error(SPELLED, _handle)


def never_fail() -> None:
    """Let standard output and standard error write every letter somehow."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # what took its place, in a test or a notebook, keeps its ways
            with suppress(OSError, ValueError):  # the stream is closed
                stream.reconfigure(errors=SPELLED)
