r"""E-mail: eight aspects of a raw message, each a bag for the kernels on sets.

Experimental: names and results may change from one version to the next (README.md).

| aspect      | what is counted |
|-------------|-----------------|
| `words`     | words of the subject and of the texts, in lower case, digits as zeros |
| `pairs`     | words that follow one another |
| `time`      | hour, day of the week, zone, what is odd about them, how long it was under way |
| `path`      | machines that handed it on (Received), outside of the reader's own network |
| `addresses` | IP numbers on the way, and their networks /24 and /16 |
| `sender`    | address, domain, name, whether reply-to and others agree, mail program |
| `encoding`  | content types, charsets, transfer encodings, files, tags of HTML |
| `links`     | hosts and domains, numbers in place of names, links that are not what they say |

A bag is a dict of multiplicities, which `mercer.Intersection` takes as it is. Any message is read, however
broken: what cannot be read is left out. Whose mailbox it is, who else it went to, what other filters wrote
into it and when it was sent are not looked at (see `mercer.features.email.origin`).

>>> mail = read(b"From: Ann <ann@example.org>\nSubject: Lunch?\n\nAt noon, at noon http://example.com/menu")
>>> (
...     mail.words["noon"],
...     mail.pairs["at noon"],
...     mail.sender["domain example.org"],
...     mail.links["host example.com"],
... )
(2, 2, 1, 1)
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mercer.errors import InputTypeError
from mercer.features.email import content, mime, origin
from mercer.features.email.boxes import messages, read_file

__all__ = ["ASPECTS", "Mail", "messages", "read", "table"]


class Mail(NamedTuple):
    """What was found in a message, by aspect: bags, as dicts of multiplicities."""

    words: Mapping[str, float]
    pairs: Mapping[str, float]
    time: Mapping[str, float]
    path: Mapping[str, float]
    addresses: Mapping[str, float]
    sender: Mapping[str, float]
    encoding: Mapping[str, float]
    links: Mapping[str, float]


#: the names of the aspects, in the order of the columns of ``table``
ASPECTS = Mail._fields


def read(message: Any) -> Mail:
    r"""The aspects of one message.

    A message is bytes, as it came over the wire, a text, the path of a file (`pathlib.Path`), an object of
    Python's `email` library, or a Mail, which is returned. A text is the message itself, never a path.

    >>> sorted(read("Date: Sun, 3 Mar 2002 23:10:00 +0100\n\n").time)
    ['day sun', 'hour 0', 'hour 1', 'hour 21', 'hour 22', 'hour 23', 'weekend', 'zone +0100']
    """
    if isinstance(message, Mail):
        return message
    raw, is_text = _bytes(message)
    head, body = mime.split(mime.without_envelope(raw))
    parts = mime.parts(head, body, is_text)
    plain, pages = content.texts(parts)
    words = content.words(head, plain, pages)
    hops = origin.travelled(head)
    return Mail(
        words=_counted(words),
        pairs=content.pairs(words),
        time=origin.time(head, hops),
        path=origin.path(head, hops),
        addresses=origin.addresses(head, hops),
        sender=origin.sender(head),
        encoding=content.encoding(head, parts, plain, pages),
        links=content.links(head, plain, pages),
    )


def _counted(words: list[str]) -> Counter[str]:
    found = Counter(words)
    found.pop(".", None)
    return found


def table(messages: Iterable[Any]) -> np.ndarray:  # (n, aspects) of dicts
    r"""One row per message, one column per aspect: a table for `mercer.ColumnKernel`.

    >>> from mercer import ColumnKernel, Intersection
    >>> mails = table(["Subject: cheap pills\n\nbuy now", "Subject: lunch\n\nbuy bread now"])
    >>> ColumnKernel({ASPECTS.index("words"): Intersection()})(mails)
    array([[6., 2.],
           [2., 5.]])
    """
    if isinstance(messages, str | bytes | os.PathLike) or not isinstance(messages, Iterable):
        raise InputTypeError(
            f"messages must be a list of them, got a single {type(messages).__name__}: pass [message], or "
            "mercer.features.email.messages(path) for the messages of a file or folder"
        )
    rows = [read(message) for message in messages]
    found = np.empty((len(rows), len(ASPECTS)), dtype=object)
    for i, row in enumerate(rows):
        for j, bag in enumerate(row):
            found[i, j] = bag
    return found


def _bytes(message: Any) -> tuple[bytes, bool]:
    """The message as it was sent, and whether it was a text."""
    if isinstance(message, bytes | bytearray | memoryview):
        return bytes(message), False
    if isinstance(message, str):
        try:
            return message.encode("utf-8", "surrogateescape"), True
        except UnicodeEncodeError:
            return message.encode("utf-8", "replace"), True
    if isinstance(message, os.PathLike):
        return read_file(Path(message)), False
    if hasattr(message, "as_bytes") and hasattr(message, "raw_items"):
        return _written(message)
    raise InputTypeError(
        "a message is bytes, a text, a pathlib.Path or an email.message.Message, got "
        f"{type(message).__name__}: read the file with Path(name).read_bytes()"
    )


def _written(message: Any) -> tuple[bytes, bool]:
    """A message of Python's library, which cannot write all that it can hold."""
    try:
        return bytes(message.as_bytes()), False
    except Exception:  # Headers, charsets and letters raise errors of many kinds.
        head = "".join(f"{name}: {value}\n" for name, value in message.raw_items())
        body = getattr(message, "_payload", "")  # get_payload would raise as well.
        return _bytes(f"{head}\n{body if isinstance(body, str) else ''}")
