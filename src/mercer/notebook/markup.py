r"""Pieces of HTML for a notebook: whatever comes from outside is escaped, colours are those of the page.

>>> print(code("Gaussian(sigma=<30 array>)"))
<code>Gaussian(sigma=&lt;30 array&gt;)</code>
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

_TEXT_SHOWN = 400  # letters of a text that is not a formula


def frame(*parts: str) -> str:
    """The whole, in which MathJax looks for formulas only where there are any."""
    return f'<div class="mercer tex2jax_ignore mathjax_ignore">{"".join(parts)}</div>'


def beside(*parts: str) -> str:
    """Parts next to each other, below each other where it is narrow; empty ones are left out."""
    style = "display:flex;flex-wrap:wrap;align-items:center;gap:0.3em 1.8em"
    inside = "".join(f'<div style="max-width:100%">{part}</div>' for part in parts if part)
    return f'<div style="{style}">{inside}</div>'


def code(text: str) -> str:
    """What one would type, shortened where it is long."""
    return f"<code>{escape(text if len(text) <= _TEXT_SHOWN else text[: _TEXT_SHOWN - 1] + '…')}</code>"


def formula(latex: str) -> str:
    """A formula on a line of its own, for MathJax: at the left, as text is, and scrolled where it is long."""
    style = 'style="padding:0.4em 0;overflow-x:auto;overflow-y:hidden"'
    inside = escape(rf"\(\displaystyle {latex}\)", quote=False)
    return f'<div class="tex2jax_process mathjax_process" {style}>{inside}</div>'


def note(text: str) -> str:
    """A line in small letters."""
    return f'<div style="font-size:85%;opacity:0.75">{escape(text)}</div>'


def table(rows: Iterable[tuple[str, str]]) -> str:
    """Two columns, names and what they stand for; the second is HTML already."""
    cell = 'style="text-align:left;vertical-align:top;padding:0.15em 1.2em 0.15em 0"'
    lines = (f"<tr><th {cell}>{escape(name)}</th><td {cell}>{value}</td></tr>" for name, value in rows)
    return f'<table style="margin:0">{"".join(lines)}</table>'


def folded(summary: str, inside: str, is_open: bool) -> str:
    """What unfolds below a line, both HTML already; the line alone where there is nothing below."""
    if not inside:
        return f'<div style="margin-left:1.1em">{summary}</div>'
    mark = ' open="open"' if is_open else ""
    return (
        f'<details{mark}><summary>{summary}</summary><div style="margin-left:1.3em">{inside}</div></details>'
    )
