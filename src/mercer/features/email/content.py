r"""What a message says, and in what form: words, pairs of words, encoding, links."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise

from mercer.features.email import hosts, markup
from mercer.features.email.mime import Head, Part, first, readable

#: These bound the work on one message: words and links that are counted, characters of all texts.
_MOST_WORDS, _MOST_LINKS, _MOST_CHARACTERS = 5000, 500, 1 << 20
_LONGEST_WORD = 24  # letters; of a longer word only the fact that it is long counts

#: words of letters, also with ' and - inside; numbers and prices; exclamation and question marks
_WORD = re.compile(r"[^\W\d_][^\W_]*(?:['’-][^\W_]+)*|[$£€]?\d[\d.,:]*%?|[!?]+")
_LINK = re.compile(r"\b(?:https?|ftp|mailto):[^\s<>\"']{1,2000}|\bwww\.[^\s<>\"']{1,2000}", re.IGNORECASE)
_ADDRESS = re.compile(r"(?<![\w.+-])[\w.+-]++@[\w.-]{1,200}")
_LOOKS_LIKE_HOST = re.compile(r"\s*(?:https?://)?([a-z0-9-]{1,60}(?:\.[a-z0-9-]{1,60}){1,6})", re.IGNORECASE)
_PATH_WORD = re.compile(r"[a-z]{3,20}", re.IGNORECASE)
_ZEROS = str.maketrans("123456789", "000000000")


def texts(parts: Iterable[Part]) -> tuple[list[str], list[str]]:
    """The plain texts and the pages of HTML of a message, as many as there is room for."""
    plain: list[str] = []
    pages: list[str] = []
    room = _MOST_CHARACTERS
    for part in parts:
        if not part.payload or not part.kind.startswith(("text/", "multipart/", "message/")):
            continue
        text = part.text()[:room]
        room -= len(text)
        is_page = part.kind == "text/html" or text[:200].lstrip()[:6].lower() in ("<html>", "<!doct")
        (pages if is_page else plain).append(text)
    return plain, pages


def words(head: Head, plain: list[str], pages: list[str]) -> list[str]:
    """The words in their order, in lower case, digits as zeros: those of the subject, then of the texts.

    Links and addresses are left out: they have an aspect of their own.
    """
    subject = readable(first(head, "subject"))
    found = _split(subject)
    marked = [f"subject:{word}" for word in found]
    for text in (*plain, *(markup.visible(page) for page in pages)):
        found.append(".")  # There are no pairs of words across texts.
        text = _LINK.sub(" ", text)
        found += _split(_ADDRESS.sub(" ", text) if "@" in text else text)
        if len(found) > _MOST_WORDS:
            del found[_MOST_WORDS:]
            break
    return [*marked, ".", *found]


def _split(text: str) -> list[str]:
    return [_word(word) for word in _WORD.findall(text.lower())]


def _word(word: str) -> str:
    if word[0].isalpha():
        return word if len(word) <= _LONGEST_WORD else "(long)"
    return word.translate(_ZEROS)[:8].rstrip(".,:")


def pairs(words: list[str]) -> Counter[str]:
    """Words that follow one another.

    >>> pairs(["to", "be", ".", "to", "be"])
    Counter({'to be': 2})
    """
    joined = Counter(map(" ".join, pairwise(words)))
    return Counter({pair: count for pair, count in joined.items() if "." not in (pair[0], pair[-1])})


def encoding(head: Head, parts: list[Part], plain: list[str], pages: list[str]) -> Counter[str]:
    """Types, charsets and transfer encodings of the parts, files, shapes of boundaries, tags of HTML."""
    found: Counter[str] = Counter()
    for part in parts:
        found[f"type {part.kind[:60]}"] += 1
        if part.charset:
            found[f"charset {part.charset[:40].lower()}"] += 1
        if part.transfer:
            found[f"transfer {part.transfer}"] += 1
        if part.name:
            found[f"file .{readable(part.name).rpartition('.')[2][:8].lower()}"] += 1
        if part.boundary:
            found[f"boundary {_shape(part.boundary)}"] += 1
    size = sum(map(len, plain)) + sum(map(len, pages))
    found[f"length {size.bit_length()}"] = 1
    kinds = {part.kind for part in parts}
    if "text/html" in kinds and "text/plain" not in kinds:
        found["html alone"] = 1
    if "mime-version" not in head:
        found["no mime version"] = 1
    subject = first(head, "subject")
    if "=?" in subject:
        found[f"subject in {subject.partition('=?')[2].partition('?')[0][:40].lower()}"] = 1
    if not (subject + first(head, "from")).isascii():
        found["8 bits in the head"] = 1
    for page in pages:
        found.update({f"tag {tag}": count for tag, count in markup.tags(page).items()})
        found.update({f"style {value}": count for value, count in markup.styles(page).items()})
    return found


def _shape(text: str) -> str:
    """A text with digits, letters of either case and hexadecimal runs as one sign each, repeats once.

    >>> _shape("----=_NextPart_000_0012_01C0"), _shape("abc123")
    ('-=_a_0_0_0', '0')
    """
    letters = re.sub(r"[A-Za-z]*\d[A-Za-z\d]*", "0", text[:80])
    return re.sub(r"(.)\1+", r"\1", re.sub(r"[A-Za-z]+", "a", letters))[:24]


def links(head: Head, plain: list[str], pages: list[str]) -> Counter[str]:
    """Hosts, domains, schemes and tricks of the links, and which are the sender's own."""
    found: Counter[str] = Counter()
    addresses: list[str] = []
    for text in plain:
        addresses += [link.rstrip(".,;:!?)]") for link in _LINK.findall(text)]
    for page in pages:
        addresses += markup.references(page)
        for link, text in markup.anchors(page):
            says = _LOOKS_LIKE_HOST.match(text)
            if says and (goes := hosts.url(link)[1]) and hosts.domain(says[1]) != hosts.domain(goes):
                found["text is another host"] += 1
    own = hosts.domain(hosts.address(first(head, "from"))[1])
    for link in addresses[:_MOST_LINKS]:
        _add_link(f"http://{link}" if link[:4].lower() == "www." else link, own, found)
    return found


def _add_link(link: str, own: str, found: Counter[str]) -> None:
    scheme, host, path, is_disguised = hosts.url(link)
    if not scheme:
        found["relative"] += 1
        return
    found[f"scheme {scheme}"] += 1
    if host:
        registered = hosts.domain(host)
        if hosts.numbers(host):
            found["host is a number"] += 1
        else:
            found[f"top {registered.rpartition('.')[2][:20]}"] += 1
        found[f"domain {registered}"] += 1
        found[f"host {host[:100]}"] += 1
        if own:
            found["to the sender" if registered == own else "to another"] += 1
    if is_disguised:
        found["disguised host"] += 1
    if "%" in link:
        found["escaped"] += 1
    place = path.partition("?")
    if place[1]:
        found["has a query"] += 1
    end = place[0].rpartition("/")[2].rpartition(".")
    if end[1]:
        found[f"file .{end[2][:6].lower()}"] += 1
    for word in _PATH_WORD.findall(path[:200]):
        found[f"path {word.lower()}"] += 1
