r"""HTML: the text that a reader sees, the tags, and the links. No parser: patterns, each in one pass.

Every pattern has one way to match, or a limit on how much it looks at, so that no page takes long.
"""

from __future__ import annotations

import html
import re
from collections import Counter

#: what no reader sees; an element that is not closed goes to the end of the page, as in browsers
_HIDDEN = re.compile(
    r"<!--.*?(?:-->|\Z)|<(script|style|title)\b.*?(?:</\1[^<>]*>|\Z)", re.DOTALL | re.IGNORECASE
)
#: tags inside of words, which hide these from filters
_INLINE = re.compile(r"</?(?:b|i|u|s|em|font|strong|span|big|small|tt)\b[^<>]*>", re.IGNORECASE)
_TAG = re.compile(r"<[/!?a-zA-Z][^<>]*>")
_NAME = re.compile(r"<([a-zA-Z][a-zA-Z0-9]{0,15})")
_VALUE = r"\s{0,9}=\s{0,9}[\"']?\s{0,9}([^\"'\s<>]{1,2000})"
_REFERENCE = re.compile(rf"<[a-zA-Z]{{1,15}}\b[^<>]*?\b(?:href|src|action|background){_VALUE}", re.IGNORECASE)
_ANCHOR = re.compile(r"<a\b([^<>]{0,2500})>([^<]{1,200})", re.IGNORECASE)
_HREF = re.compile(rf"\bhref{_VALUE}", re.IGNORECASE)
_STYLE = re.compile(
    r"\b(bgcolor|color|size|face|align|width|height)\s{0,3}=\s{0,3}[\"']?([#\w%+-]{1,12})", re.IGNORECASE
)
_LONG_NUMBER = re.compile(r"&#[xX]?[0-9a-fA-F]{9,};?")


def visible(page: str) -> str:
    r"""The text of a page.

    >>> visible("<style>p {}</style><p>V<b></b>ia<!-- x -->gra &amp; more<br>now")
    ' Viagra & more now'
    """
    return _unescaped(_TAG.sub(" ", _INLINE.sub("", _HIDDEN.sub("", page))))


def _unescaped(text: str) -> str:
    if "&" not in text:
        return text
    return html.unescape(_LONG_NUMBER.sub("", text))  # Python refuses numbers of thousands of digits.


def tags(page: str) -> Counter[str]:
    """How often each tag is opened.

    >>> tags("<P>one<p>two<br/></p>")
    Counter({'p': 2, 'br': 1})
    """
    return Counter(map(str.lower, _NAME.findall(page)))


def styles(page: str) -> Counter[str]:
    """Colours, sizes and the like, as they are given in tags.

    >>> styles('<font color="#FF0000" size=+2>')
    Counter({'color #ff0000': 1, 'size +2': 1})
    """
    return Counter(f"{name} {value}" for name, value in _STYLE.findall(page.lower()))


def references(page: str) -> list[str]:
    """Whatever a page refers to: links, images, addresses of forms.

    >>> references('<a class=x href="http://a.org/?x&amp;y">here</a><img src=cid:7>')
    ['http://a.org/?x&y', 'cid:7']
    """
    return [_unescaped(found) for found in _REFERENCE.findall(page)]


def anchors(page: str) -> list[tuple[str, str]]:
    """Links with the text that the reader sees in their place, up to the next tag.

    >>> anchors('<a href="http://evil.example/">http://bank.example</a>')
    [('http://evil.example/', 'http://bank.example')]
    """
    found = []
    for attributes, text in _ANCHOR.findall(page):
        link = _HREF.search(attributes)
        if link:
            found.append((_unescaped(link[1]), _unescaped(text)))
    return found
