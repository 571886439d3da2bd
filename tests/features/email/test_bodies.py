"""Where the body of a message begins, against Python's own reader; and whose a host is."""

import email
import importlib.util
import re
import socket
import sys
from pathlib import Path

import pytest

from mercer.features.email import hosts, mime, read, suffixes


def _folder():
    """CPython's messages, which not every Python brings along."""
    try:
        found = importlib.util.find_spec("test.test_email")
    except ModuleNotFoundError:
        found = None
    return Path(found.origin).parent / "data" if found else Path("missing")


MESSAGES = sorted(_folder().glob("msg_*.txt"))
needs_messages = pytest.mark.skipif(not MESSAGES, reason="this Python is installed without its own tests")


def texts(raw):
    """The texts of a message by our reader, as words, without empty ones."""
    parts = mime.parts(*mime.split(mime.without_envelope(raw)))
    found = [
        mime._transferred(part.payload, part.transfer) for part in parts if part.kind.startswith("text/")
    ]
    return [text.split() for text in found if text.split()]


def texts_of_python(raw):
    parts = email.message_from_bytes(raw).walk()
    leaves = [p for p in parts if not p.is_multipart() and p.get_content_maintype() == "text"]
    found = [leaf.get_payload(decode=True) for leaf in leaves]
    return [text.split() for text in found if text and text.split()]


#: their texts are another matter: in two no line is the declared boundary, where we take that which is there
#: and Python finds no part; the third refers to a file elsewhere, whose address we read as a text of its kind
OTHERWISE = {"msg_25.txt", "msg_31.txt", "msg_36.txt"}


@needs_messages
def test_heads_and_texts_are_those_of_pythons_reader():
    assert len(MESSAGES) > 40
    for file in MESSAGES:
        raw = file.read_bytes()
        theirs = email.message_from_bytes(raw)
        head, _ = mime.split(mime.without_envelope(raw))
        assert list(head.spelled) == [name for name, _ in theirs.raw_items()], file.name
        for name, values in head.items():
            wanted = [str(value).split() for value in theirs.get_all(name)]
            assert [value.split() for value in values] == wanted, (file.name, name)
        if file.name not in OTHERWISE:
            assert texts(raw) == texts_of_python(raw), file.name
        else:
            assert len(texts(raw)) + len(texts_of_python(raw)) >= 2


@needs_messages
def test_they_are_also_without_the_empty_lines_after_heads():
    """Every part of every message loses that line, where its text does not look like a field itself."""
    compared = 0
    for file in MESSAGES:
        raw = mime.without_envelope(file.read_bytes())
        bare = re.sub(rb"(?m)^([!-9;-~]+:.*(?:\n[ \t].*)*)\n\n(?=[^\s:-]+[ ,.!])(?!From )", rb"\1\n", raw)
        if bare != raw and file.name not in OTHERWISE:
            assert texts(bare) == texts_of_python(bare), file.name
            compared += 1
    assert compared >= 15


@pytest.mark.parametrize(
    "raw",
    [
        b"From: a@b.example\nSubject: hi\nBuy pills at http://evil.example/x now\n",
        b"From: a@b.example\nSubject: hi\n folded\n\t and again\nBuy pills at http://evil.example/x now\n",
        b"From: a@b.example\r\nSubject: hi\r\nBuy pills at http://evil.example/x now\r\n",
        b"From: a@b.example\nSubject: hi\nBuy pills\n\nat http://evil.example/x now\n\nlater: than this\n",
        b"From: a@b.example\nSubject: hi\n \nBuy pills at http://evil.example/x now\n",
        b"Subject: hi\nContent-Type: text/html\n<p>Buy pills at <a href='http://evil.example/x'>x</a>\n",
        b"Subject: hi\nContent-Type: multipart/mixed; boundary=q\n--q\nContent-Type: text/plain\n"
        b"Buy pills at http://evil.example/x now\n--q--\n",
        b"Subject: hi\nContent-Type: multipart/mixed; boundary=q\n\n--q\nBuy pills at http://evil.example/x\n--q--\n",
        b"Subject: hi\nContent-Type: message/rfc822\n\nSubject: inner\nBuy pills at http://evil.example/x\n",
        b"Subject: hi\nContent-Type: multipart/digest; boundary=q\n\n--q\n\nSubject: inner\n"
        b"Buy pills at http://evil.example/x\n--q\n--q--\n",
        b"From x Thu\nFrom y Fri\nSubject: hi\nBuy pills at http://evil.example/x",
        b"Subject: hi\n>From y Fri\nTo: b@c.example\nBuy pills at http://evil.example/x",
        b" Buy pills at http://evil.example/x\nSubject: hi",
        b"Buy pills at http://evil.example/x\nSubject: hi\n\nor not",
    ],
)
def test_text_and_links_never_vanish(raw):
    mail = read(raw)
    assert mail.words["buy"] == 1 and mail.words["pills"] == 1 and mail.pairs["buy pills"] == 1
    assert mail.links["host evil.example"] == 1
    assert "subject:hi" in mail.words or mail.words["hi"] == 1


def test_a_field_may_have_blanks_before_its_colon():
    head, body = mime.split(b"Subject : x\nTo: y\nz : w : v\n\nhello")
    assert head == {"subject": ["x"], "to": ["y"], "z": ["w : v"]} and body == b"hello"


def test_a_head_of_megabytes_ends_where_it_ends():
    head, body = mime.split(b"X-A: b\n" * 300_000 + b"hello")
    assert body == b"hello" and len(head["x-a"]) < 20_000


# --- whose a host is ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "wanted"),
    [
        ("alice.github.io", "alice.github.io"),
        ("www.alice.github.io", "alice.github.io"),
        ("a.b.go.jp", "b.go.jp"),
        ("www.joe.me.uk", "joe.me.uk"),
        ("me.uk", "me.uk"),
        ("WWW.Example.CO.UK.", "example.co.uk"),
        ("a.b.example.com.br", "example.com.br"),
        ("a.city.kobe.jp", "city.kobe.jp"),
        ("x.y.no-such-top", "y.no-such-top"),
        ("www.bücher.example", "bücher.example"),
        ("www.xn--bcher-kva.de", "xn--bcher-kva.de"),
        ("localhost", "localhost"),
        ("66.1.2.3", "66.1.2.3"),
        ("a..b", "a..b"),
        ("", ""),
    ],
)
def test_registered_domains(host, wanted):
    assert hosts.domain(host) == wanted


def test_neighbours_on_one_host_are_not_one_sender():
    mail = read("From: a@alice.github.io\nReply-To: b@bob.github.io\n\nhttp://carol.github.io/x")
    assert "domain alice.github.io" in mail.sender and "reply-to disagrees" in mail.sender
    assert mail.links["domain carol.github.io"] == 1 and mail.links["to another"] == 1


def test_the_list_is_never_fetched(monkeypatch):
    def refuse(*_args, **_kwargs):
        raise AssertionError("the net was asked")

    monkeypatch.setattr(socket, "socket", refuse)
    suffixes._list.cache_clear()
    suffixes.registered.cache_clear()
    assert hosts.domain("www.alice.github.io") == "alice.github.io"


def test_without_the_library_its_line_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "publicsuffixlist", None)
    suffixes._list.cache_clear()
    suffixes.registered.cache_clear()
    try:
        with pytest.raises(ImportError, match=r'pip install "mercer\[mail\]"'):
            read("From: a@www.example.org\n\nhello")
    finally:
        suffixes._list.cache_clear()
