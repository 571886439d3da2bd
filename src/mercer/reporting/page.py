r"""Pieces of an HTML page: every text that goes in is escaped here, and here only."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np

from mercer.data.scalars import is_scalar

_CHARACTERS_OF_A_CELL = 300  # characters of a cell that come from the data


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


def words(value: object) -> Html:
    """Anything as text: escaped, unless it is markup.

    >>> words("a < b"), words(Html("<b>a</b>"))
    ('a &lt; b', '<b>a</b>')
    """
    if isinstance(value, Html):
        return value
    # Control characters and lone surrogates are no part of a page.
    text = "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in str(value))
    return Html(escape(text, quote=True))


def cut(value: object, length: int = _CHARACTERS_OF_A_CELL) -> str:
    """A text from the data, on one line, cut where it is long.

    >>> cut("a  b   c"), cut("abcdef", 4)
    ('a b c', 'abc…')
    """
    text = value if isinstance(value, str) else str(value)
    text = " ".join(text[: 4 * length + 8].split())
    return text if len(text) <= length else f"{text[: length - 1]}…"


def number(value: object, digits: int = 4) -> str:
    """A number for people.

    >>> number(12345), number(0.123456), number(None), number(float("nan")), number(1e-9)
    ('12,345', '0.1235', '–', '–', '1e-09')
    """
    if value is None:
        return "–"
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | np.integer):
        return f"{int(value):,}"
    if isinstance(value, float | np.floating):
        real = float(value)
        if np.isnan(real):
            return "–"
        return f"{int(real):,}" if real.is_integer() and abs(real) < 1e6 else f"{real:.{digits}g}"
    return str(value)


def percent(share: float, digits: int = 1) -> str:
    """A share for people.

    >>> percent(0.1234), percent(1.0, 0)
    ('12.3 %', '100 %')
    """
    return f"{share:.{digits}%}".replace("%", " %")


def paragraph(*texts: Any) -> Html:
    """A paragraph of sentences."""
    return Html(f"<p>{' '.join(words(text) for text in texts)}</p>")


def table(head: Sequence[str], rows: Iterable[Sequence[Any]], caption: str, row_heads: bool = True) -> Html:
    """A table with its caption; the first cell of a row is its head. It scrolls inside its own box.

    >>> print(table(["a", "b"], [["x", 1.5]], "c"))
    <div class="wide" role="region" aria-label="c" tabindex="0"><table>
    <caption><span>c</span></caption>
    <thead><tr><th scope="col">a</th><th scope="col" class="number">b</th></tr></thead>
    <tbody>
    <tr><th scope="row">x</th><td class="number">1.5</td></tr>
    </tbody></table></div>
    """
    body = [list(row) for row in rows]
    numeric = [
        bool(body) and all(is_scalar(row[j]) or row[j] is None for row in body) for j in range(len(head))
    ]
    long = [any(_is_long(row[j]) for row in body) for j in range(len(head))]
    kind = [' class="number"' if numeric[j] else ' class="text"' if long[j] else "" for j in range(len(head))]
    top = "".join(f'<th scope="col"{kind[j]}>{words(name)}</th>' for j, name in enumerate(head))
    lines = []
    for row in body:
        cells = [f"<td{kind[j]}>{_cell(value)}</td>" for j, value in enumerate(row)]
        if row_heads:
            cells[0] = f'<th scope="row"{kind[0]}>{_cell(row[0])}</th>'
        lines.append(f"<tr>{''.join(cells)}</tr>")
    inside = "\n".join(lines)
    return Html(
        f'<div class="wide" role="region" aria-label="{words(caption)}" tabindex="0"><table>\n'
        f"<caption><span>{words(caption)}</span></caption>\n<thead><tr>{top}</tr></thead>\n"
        f"<tbody>\n{inside}\n</tbody></table></div>"
    )


def _is_long(value: object) -> bool:
    return isinstance(value, str) and not isinstance(value, Html) and len(value) > 40


def _cell(value: object) -> Html:
    return words(value if isinstance(value, str) else number(value))


def folded(title: Any, *inside: Html) -> Html:
    """What is there for those who look for it: a line that opens it.

    >>> folded("more", paragraph("a"))
    '<details><summary>more</summary><p>a</p></details>'
    """
    return Html(f"<details><summary>{words(title)}</summary>{''.join(inside)}</details>")


def hinted(text: Any, hint: Any) -> Html:
    """A short text whose long form shows where one points at it.

    >>> hinted("a", "a < b"), hinted("a", "a")
    ('<abbr title="a &lt; b">a</abbr>', 'a')
    """
    return words(text) if text == hint else Html(f'<abbr title="{words(hint)}">{words(text)}</abbr>')


def note(text: Any) -> Html:
    """A sentence to take notice of."""
    return Html(f'<p class="note">{words(text)}</p>')


def definitions(pairs: Iterable[tuple[str, Any]]) -> Html:
    """Terms and what they are."""
    inside = "".join(f"<div><dt>{words(term)}</dt><dd>{_cell(value)}</dd></div>" for term, value in pairs)
    return Html(f"<dl>{inside}</dl>")


def figure(picture: Any, alt: str, caption: str) -> Html:
    """A picture, what it shows for those who do not see it, and what to read from it."""
    return Html(
        f'<figure><div class="picture" role="img" aria-label="{words(alt)}">{picture}</div>'
        f"<figcaption>{words(caption)}</figcaption></figure>"
    )


def figures(*some: Html) -> Html:
    """Pictures, and what belongs to them, side by side where there is room."""
    return Html(f'<div class="figures">{"".join(some)}</div>')


def gallery(items: Iterable[tuple[Html, str]]) -> Html:
    """Small images with what is said of them."""
    inside = "".join(f"<li>{picture}{words(text)}</li>" for picture, text in items)
    return Html(f'<ul class="gallery">{inside}</ul>')


def image(png: bytes, alt: str) -> Html:
    """A small image, inside the page."""
    code = base64.b64encode(png).decode("ascii")
    return Html(f'<img class="small" src="data:image/png;base64,{code}" alt="{words(alt)}">')
