r"""The outer form of a message: fields of its head, and parts with their types, whatever is broken.

A field is a line ``name: value`` and the lines after it that begin with a blank. The body begins at the first
line that is neither, whether or not an empty line is before it: what a reader sees must not vanish. What
cannot be read is left out; nothing here raises. All searches take time in proportion to what they search,
also on messages that were made to be slow: patterns have no two ways to match, and heads, texts, parts and
depths have limits.
"""

from __future__ import annotations

import binascii
import codecs
import re
from dataclasses import dataclass
from functools import lru_cache


class Head(dict[str, list[str]]):
    """Values of fields, by the name in lower case, in the order in which they come."""

    #: the names of the fields as they are spelled
    spelled: tuple[str, ...] = ()


#: These bound the work on one message: bytes of all fields, characters of one field, bytes of a text as it
#: was sent, parts, and how deep parts lie in parts.
_MOST_HEAD_BYTES, _LONGEST_FIELD, _MOST_TEXT_BYTES = 1 << 16, 4000, 1 << 18
_MOST_PARTS, _DEEPEST_PART = 100, 8

_FIELD = re.compile(r"^([!-9;-~]++)[ \t]*+:[ \t]*(.*)", re.MULTILINE)
#: fields with their folded lines, and envelopes that were left between fields
_FIELDS = re.compile(
    rb"(?:(?:>?From [^\n]*\n)*+[!-9;-~]++[ \t]*+:[^\n]*+(?:\n[ \t][^\n]*+)*+(?:\n|\Z))*+", re.DOTALL
)
_ENVELOPE = re.compile(rb"(?:>?From [^\n]*\n)+")
_FOLDED = re.compile(r"\n[ \t]+")
_KIND = re.compile(r"[\w.+-]+/[\w.+-]+")
_PARAMETER = re.compile(r';\s*([^\s;=*]+)(\*[^\s;=]*)?\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;\s]*))')
_ENCODED = re.compile(r"=\?([^?\s*]{1,60})[^?\s]{0,20}\?([bBqQ])\?([^?]*)\?=(?:\s+(?==\?))?")
_GUESSED = re.compile(rb"\n--([^\s-][^\s]*)[ \t]*\n")
_OUTSIDE = re.compile(rb"[^A-Za-z0-9+/]+")
#: text codecs of Python that are no charsets of mails, or that take more than linear time
_NO_CHARSET = {"idna", "punycode", "undefined", "unicode-escape", "raw-unicode-escape", "mbcs", "oem"}


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a message, as it was sent; a multipart itself has no payload."""

    kind: str  # "text/html"
    charset: str  # the name that the part declares
    transfer: str  # "base64", "quoted-printable", "7bit", …, or ""
    name: str  # the name of the file, or ""
    boundary: str
    payload: bytes
    is_text: bool  # Text that was not encoded for the transfer is UTF-8, whatever is declared.

    def text(self) -> str:
        """The payload decoded; what is not of its charset is replaced."""
        is_unicode = self.is_text and self.transfer not in ("base64", "quoted-printable")
        raw = _transferred(self.payload[:_MOST_TEXT_BYTES], self.transfer)
        return decode(raw, "utf-8" if is_unicode else self.charset)


def split(raw: bytes) -> tuple[Head, bytes]:
    r"""The fields, and the body, without the empty line between them if there is one.

    >>> split(b"Subject: one\n two\nTo: me\n\nHello")
    ({'subject': ['one two'], 'to': ['me']}, b'Hello')
    >>> split(b"Subject: one\nHello")
    ({'subject': ['one']}, b'Hello')
    >>> split(b"no field at all")
    ({}, b'no field at all')
    """
    head = Head()
    end = _FIELDS.match(raw).end()  # type: ignore[union-attr]  # no field at all matches too
    fields = _FIELD.findall(_FOLDED.sub(" ", decode(raw[: min(end, _MOST_HEAD_BYTES)])))
    for name, value in fields:
        head.setdefault(name.lower(), []).append(value[:_LONGEST_FIELD].strip())
    head.spelled = tuple(name for name, _ in fields)
    return head, raw[end:].removeprefix(b"\n")


def without_envelope(raw: bytes) -> bytes:
    r"""The message with ``\n`` for the ends of lines, and without the line that separates messages in a file.

    >>> without_envelope(b"From me@here Thu Aug 22 12:36:23 2002\r\nTo: you\r\n\r\n")
    b'To: you\n\n'
    """
    if b"\r" in raw:
        raw = raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    raw = raw.removeprefix(codecs.BOM_UTF8).lstrip(b"\n")
    envelope = _ENVELOPE.match(raw)
    return raw[envelope.end() :] if envelope else raw


def first(head: Head, name: str) -> str:
    """The first value of a field, or an empty text."""
    values = head.get(name)
    return values[0] if values else ""


def readable(value: str) -> str:
    """A field with its encoded words decoded.

    >>> readable("=?iso-8859-1?Q?caf=E9_noir?= and =?utf-8?B?w6k=?= =?utf-8?B?w6k=?=")
    'café noir and éé'
    """
    return _ENCODED.sub(_word, value) if "=?" in value else value


def _word(match: re.Match[str]) -> str:
    charset, kind, text = match.groups()
    raw = text.encode("utf-8", "replace")
    return decode(_base64(raw) if kind in "bB" else binascii.a2b_qp(raw, header=True), charset)


def parts(head: Head, body: bytes, is_text: bool = False) -> list[Part]:
    """The parts of a message from the outside in, in their order; itself if it has none.

    ``is_text``: the message was a text, so that what was not encoded for the transfer is in UTF-8.
    """
    found: list[Part] = []
    waiting = [(head, body, "text/plain", 0)]
    while waiting and len(found) < _MOST_PARTS:
        head, body, unless_said, depth = waiting.pop()
        kind, parameters = _content(head, unless_said)
        transfer = first(head, "content-transfer-encoding").strip(" \t\"'").lower()[:40]
        inner: list[bytes] = []
        if kind.startswith("multipart/") and depth < _DEEPEST_PART:
            inner = _cut(body, parameters.get("boundary", ""))
        elif kind == "message/rfc822" and depth < _DEEPEST_PART:
            inner = [_transferred(body, transfer).lstrip(b"\n")]
        of_parts = "message/rfc822" if kind == "multipart/digest" else "text/plain"
        waiting += [(*split(piece), of_parts, depth + 1) for piece in reversed(inner)]
        charset = parameters.get("charset", "")
        name = parameters.get("name", "") or _disposition(head)
        boundary = parameters.get("boundary", "")
        found.append(Part(kind, charset, transfer, name, boundary, b"" if inner else body, is_text))
    return found


def _content(head: Head, unless_said: str) -> tuple[str, dict[str, str]]:
    """The type of a part and its parameters."""
    value = first(head, "content-type")
    if not value:
        return unless_said, {}
    kind = _KIND.match(value)
    return kind.group().lower() if kind else "text/plain", _parameters(value)


def _parameters(value: str) -> dict[str, str]:
    """Parameters by name, the first of each; those in numbered pieces (RFC 2231) are put together.

    >>> _parameters('text/plain; name*0="a."; name*1=exe; name=x; format=a; format=b')
    {'name': 'a.exe', 'format': 'a'}
    """
    found: dict[str, str] = {}
    for name, piece, quoted, plain in _PARAMETER.findall(value):
        key = name.lower()
        if key not in found or piece.strip("*").lstrip("0"):
            found[key] = found.get(key, "") + (quoted or plain)
    return found


def _disposition(head: Head) -> str:
    value = first(head, "content-disposition")
    return _parameters(value).get("filename", "") if value else ""


def _cut(body: bytes, boundary: str) -> list[bytes]:
    """What lies between lines of a boundary; one that is not given is guessed from the first such line."""
    body = b"\n" + body
    mark = boundary.encode("utf-8", "replace")
    if not mark or mark not in body:
        guessed = _GUESSED.search(body)
        if guessed is None:
            return []
        mark = guessed[1]
    pieces = re.split(rb"\n--" + re.escape(mark) + rb"(--)?[ \t]*(?=\n|\Z)", body, maxsplit=_MOST_PARTS)
    inner = []
    for is_end, piece in zip(pieces[1::2], pieces[2::2], strict=True):
        if is_end:
            break
        if piece:  # Between two boundaries in a row there is no part.
            inner.append(piece.removeprefix(b"\n"))
    return inner


def _transferred(raw: bytes, transfer: str) -> bytes:
    if transfer == "base64":
        return _base64(raw)
    return binascii.a2b_qp(raw) if transfer == "quoted-printable" else raw


def _base64(raw: bytes) -> bytes:
    """The bytes that were encoded, as many as can be told."""
    try:
        return binascii.a2b_base64(raw)
    except binascii.Error:
        letters = _OUTSIDE.sub(b"", raw)
        # A single letter is six bits, which make no byte.
        letters = letters[: len(letters) - (len(letters) % 4 == 1)]
        return binascii.a2b_base64(letters + b"=" * (-len(letters) % 4))


def decode(raw: bytes, charset: str = "") -> str:
    r"""A text in some charset; in UTF-8 or Windows' Latin where none is given, or an unknown one.

    >>> decode(b"caf\xe9"), decode("café".encode()), decode(b"a\x93b", "us-ascii")
    ('café', 'café', 'a“b')
    """
    codec = _codec(charset)
    if codec is not None:
        try:
            return raw.decode(codec, "replace")
        except (UnicodeError, LookupError):
            pass  # The codec cannot replace what it does not know.
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("cp1252", "replace")


@lru_cache(maxsize=1024)
def _codec(charset: str) -> str | None:
    try:
        codec = codecs.lookup(charset.strip(" \t\"'")) if charset else None
    except (LookupError, ValueError):
        return None
    if codec is None or not getattr(codec, "_is_text_encoding", True) or codec.name in _NO_CHARSET:
        return None
    # Texts that claim to be ASCII or Latin-1 mostly have the quotation marks of Windows.
    return "cp1252" if codec.name in ("ascii", "iso8859-1") else codec.name
