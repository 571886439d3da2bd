import email
import email.mime.message
import email.policy
import html
import random
from email.message import EmailMessage
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mercer import ColumnKernel, Intersection
from mercer.errors import InputError, InputTypeError
from mercer.features.email import ASPECTS, Mail, content, hosts, markup, messages, mime, origin, read, table
from mercer.features.email.boxes import located

RICH = b"""\
From fork-admin@lists.example Thu Aug 22 12:36:23 2002
Return-Path: <bounce@mailer.example.net>
Received: from localhost (localhost [127.0.0.1]) by phobos.reader.example (Postfix) with ESMTP id D03E;
 Thu, 22 Aug 2002 07:36:16 -0400 (EDT)
Received: from phobos [127.0.0.1] by localhost with IMAP (fetchmail-5.9.0); Thu, 22 Aug 2002 12:36:16 +0100
Received: from relay.example.com (mx7.example.com [66.187.233.211]) by dogma.reader.example (8.11.6/8.11.6)
 with ESMTP id g7MB for <me@reader.example>; Thu, 22 Aug 2002 12:34:53 +0100
Received: from WS17 ([204.5.6.7]) by relay.example.com with SMTP id 7; Thu, 22 Aug 2002 07:30:00 -0400
From: "Big =?iso-8859-1?Q?D=E9al?=" <deal99@shop.example.co.uk>
Reply-To: other@free.example
To: me@reader.example
Subject: =?utf-8?B?RlJFRSBtb25leQ==?= !!!
Date: Thu, 22 Aug 2002 07:26:25 -0400
Message-Id: <20020822.AB12@shop.example.co.uk>
X-Mailer: Outlook Express 5.50.4133
MIME-Version: 1.0
Content-Type: multipart/alternative; boundary="----=_Part_000"
X-Spam-Status: Yes, hits=12.0

This is a preamble that nobody sees.
------=_Part_000
Content-Type: text/plain; charset="iso-8859-15"
Content-Transfer-Encoding: quoted-printable

Only 9.95 =80 to=
day

------=_Part_000
Content-Type: text/html; charset=utf-8
Content-Transfer-Encoding: base64

PGh0bWw+PGEgaHJlZj0iaHR0cDovLzEwLjEuMi4zOjgwODAvYS9yZW1vdmUucGhwP3g9MSI+aHR0cDovL2JhbmsuZXhhbXBsZTwvYT4=
------=_Part_000--
an epilogue
"""


# --- aspects ------------------------------------------------------------------------------------------


def test_a_message_with_everything():
    mail = read(RICH)
    assert mail.words["subject:free"] == 1 and mail.words["money"] == 1 and mail.words["!!!"] == 1
    assert mail.words["today"] == 1 and mail.words["0.00"] == 1  # decoded; digits as zeros
    assert "preamble" not in mail.words and "epilogue" not in mail.words
    assert mail.pairs["free money"] == 1 and mail.pairs["subject:free subject:money"] == 1
    assert mail.time["hour 7"] == 1.0 and 0 < mail.time["hour 8"] < 1
    assert {"day thu", "workday", "zone -0400", "under way for minutes"} <= set(mail.time)
    assert mail.path["border example.com"] == 1 and mail.path["border is who it says"] == 1
    assert mail.path["inner calls itself no domain"] == 1 and mail.path["inner has no name"] == 1
    assert mail.path["relay example.com"] == 1 and mail.path["hops 2"] == 1
    assert {"66.187.233.211", "66.187.233.0/24", "66.187.0.0/16", "204.5.6.7"} <= set(mail.addresses)
    assert {"domain example.co.uk", "name big", "name déal", "digits in the address"} <= set(mail.sender)
    assert {"reply-to disagrees", "return-path example.net", "id agrees"} <= set(mail.sender)
    assert {"x-mailer outlook express"} <= set(mail.sender)
    assert {"type multipart/alternative", "charset iso-8859-15", "transfer base64", "tag a"} <= set(
        mail.encoding
    )
    assert {"host 10.1.2.3", "host is a number", "text is another host", "file .php"} <= set(mail.links)
    assert mail.links["path remove"] == 1


def test_what_would_give_labels_away_is_not_looked_at():
    """Other filters' verdicts, the reader's own relays and address, and the date of the message."""
    everything = " ".join(key for bag in read(RICH) for key in bag)
    assert not any(
        word in everything for word in ("hits", "reader", "phobos", "dogma", "fetchmail", "2002", "aug")
    )
    later = RICH.replace(b"Aug 2002", b"Sep 2016").replace(b"Aug 22", b"Sep 22")  # also a Thursday
    assert read(later) == read(RICH)


def test_without_hops_the_path_says_nothing():
    bare = read(b"From: a@b.example\n\nhello")
    local = read(b"Received: from localhost (localhost [127.0.0.1]) by x.example with SMTP; now\n\nhello")
    assert bare.path == {} == bare.addresses and local.path == {} == local.addresses


@pytest.mark.parametrize(
    ("date", "wanted"),
    [
        ("Thu, 22 Aug 2002 18:26:25 +0700", {"hour 18", "day thu", "zone +0700"}),
        ("22 Aug 02 18:26 EST", {"hour 18", "day thu", "day not stated", "zone est"}),
        ("Mon, 22 Aug 2002 18:26:25 -1900", {"day wrong", "zone odd"}),
        ("Thu, 22 Aug 2002 18:26:25", {"zone missing", "zone odd"}),
        ("Thu, 31 Feb 2002 18:26:25 +0000", {"date unreadable"}),
        ("yesterday", {"date unreadable"}),
    ],
)
def test_dates(date, wanted):
    assert wanted <= set(read(f"Date: {date}\n\n").time)
    assert "no date" in read("From: a@b.example\n\n").time


def test_moments_are_those_of_pythons_library(rng):
    for _ in range(200):
        stamp = email.utils.format_datetime(
            email.utils.datetime.datetime.fromtimestamp(int(rng.integers(0, 2**31)), email.utils.datetime.UTC)
        )
        when, wanted = origin.moment(stamp), email.utils.parsedate_to_datetime(stamp)
        days = wanted.toordinal() * 86400 + wanted.hour * 3600 + wanted.minute * 60 + wanted.second
        assert (when.weekday, int(when.hour), when.seconds) == (wanted.weekday(), wanted.hour, days)


def test_a_message_from_the_future():
    late = RICH.replace(b"Date: Thu, 22 Aug", b"Date: Sun, 25 Aug")
    assert "sent days after its arrival" in read(late).time


@pytest.mark.parametrize(
    ("page", "wanted"),
    [
        ("<p>one<p>two", "one two"),
        ("V<b></b>ia<font color=x>g</font>ra", "Viagra"),
        ("a<!-- b -->c", "ac"),
        ("a<script>b</script>c<style>d", "ac"),
        ("a <!-- never closed", "a"),
        ("2 < 3 &amp;&#32;4 &gt; 1", "2 < 3 & 4 > 1"),
        ("&#" + "9" * 6000 + ";x", "x"),
        ("<", "<"),
        ("", ""),
    ],
)
def test_what_a_reader_sees_of_a_page(page, wanted):
    assert markup.visible(page).split() == wanted.split()


def test_links_and_their_tricks():
    page = (
        "<A HREF='http://www.bank.example@66.1.2.3/%41'>x</a> <img src=//there.example/i.gif> <a name=x>y</a>"
        "<form action=mailto:me@list.example> <a href=http://same.example/>www.same.example</a>"
    )
    found = content.links(mime.Head(), ["see www.plain.example/a.html, or ftp://f.example."], [page])
    assert {"disguised host", "host 66.1.2.3", "escaped", "scheme mailto", "relative"} <= set(found)
    assert {"host www.plain.example", "file .html", "scheme ftp", "domain f.example"} <= set(found)
    assert "text is another host" not in found
    own = content.links(
        mime.Head({"from": ["a@mail.plain.example"]}), ["www.plain.example http://f.example"], []
    )
    assert own["to the sender"] == 1 and own["to another"] == 1


def test_names_of_hosts():
    assert hosts.domain("a.b.example.com.br") == "example.com.br" and hosts.domain("localhost") == "localhost"
    assert hosts.numbers("1.2.3.4.5 256.1.1.1 1.2.3.4") == ["1.2.3.4"]


# --- broken messages ----------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", [email.policy.default, email.policy.compat32, email.policy.SMTP])
@pytest.mark.parametrize("transfer", ["base64", "quoted-printable", "8bit"])
@pytest.mark.parametrize("charset", ["utf-8", "iso-8859-2", "koi8-r", "gb2312", "utf-16"])
def test_texts_are_those_of_pythons_library(policy, transfer, charset):
    """On messages that are right, Python's parser is the truth."""
    text = {"koi8-r": "привет, мир", "gb2312": "你好"}.get(
        charset, "žluťoučký kůň" if "8859" in charset else "naïve ∑"
    )
    if transfer == "8bit" and charset == "utf-16":
        pytest.skip("line ends would be inside of letters")
    inner = EmailMessage(policy=email.policy.default)
    inner.set_content(f"{text}\n" * 3, charset=charset, cte=transfer)
    outer = MIMEMultipart(_subparts=[MIMEText("first", "plain", "us-ascii")])
    outer.attach(inner)
    raw = outer.as_bytes(policy=policy.clone(cte_type="8bit")) if transfer == "8bit" else outer.as_bytes()
    parsed = email.message_from_bytes(raw, policy=email.policy.default)
    wanted = [part.get_content() for part in parsed.walk() if not part.is_multipart()]
    found = [part.text() for part in mime.parts(*mime.split(mime.without_envelope(raw))) if part.payload]
    assert [t.split() for t in found] == [t.split() for t in wanted]
    assert text in found[1]


def test_nested_and_forwarded_parts_are_read_in_order():
    letter = EmailMessage()
    letter["Subject"] = "inner subject"
    letter.set_content("third")
    message = MIMEMultipart("mixed", _subparts=[MIMEText("first")])
    nested = MIMEMultipart("alternative", _subparts=[MIMEText("second"), MIMEText("<b>second</b>", "html")])
    message.attach(nested)
    forwarded = email.mime.message.MIMEMessage(letter)
    message.attach(forwarded)
    mail = read(message.as_bytes())
    kinds = [part.kind for part in mime.parts(*mime.split(message.as_bytes()))]
    assert kinds == [
        "multipart/mixed",
        "text/plain",
        "multipart/alternative",
        "text/plain",
        "text/html",
        "message/rfc822",
        "text/plain",
    ]
    assert mail.words["first"] == 1 and mail.words["second"] == 2 and mail.words["third"] == 1


@pytest.mark.parametrize(
    ("raw", "word"),
    [
        (b"Content-Type: multipart/mixed; boundary=lost\n\n--other\n\nhello", "hello"),
        (b"Content-Type: multipart/mixed\n\nhello", "hello"),
        (b"Content-Type: multipart/mixed; boundary=x\n\n--x\nContent-Type: text/plain\n\nhello", "hello"),
        (b"Content-Type: nonsense\n\nhello", "hello"),
        (b"Content-Type: text/plain; charset=no-such\n\nhello", "hello"),
        (b"Content-Type: text/plain; charset=idna\n\nhello", "hello"),
        (b'Content-Type: text/plain; charset="\x00"\n\nhello', "hello"),
        (b"Content-Type: text/plain; charset=zlib\n\nhello", "hello"),
        (b"Content-Transfer-Encoding: base64\n\naGVsbG8gaGVsbG8g!aGVsbG8\n", "hello"),
        (b"Content-Transfer-Encoding: BASE64 \n\naGVsbG8=A", "hello"),
        (b"no head at all, hello", "hello"),
        (b"\xff\xfeSubject: x\n\nhello", "hello"),
        (b"Subject: hello", "hello"),
        (b"Subject: =?utf-8?B?aGVsbG8?= =?no-such?Q?_x?= =?broken", "hello"),
        (b"a: b\r\rhello", "hello"),
        (b"\n\nSubject: x\n\nhello", "hello"),
        (b"Content-Type: text/html\n\n<p <b>hello", "hello"),
    ],
)
def test_broken_messages_are_read_as_far_as_possible(raw, word):
    assert read(raw).words[word] >= 1


def test_every_kind_of_message_is_the_same(tmp_path):
    file = tmp_path / "mail"
    file.write_bytes(RICH)
    wanted = read(RICH)
    parsed = email.message_from_bytes(RICH)
    same = [
        bytearray(RICH),
        memoryview(RICH),
        file,
        RICH.decode("ascii"),
        parsed,
        wanted,
        RICH.replace(b"\n", b"\r\n"),
    ]
    assert all(read(message) == wanted for message in same)
    modern = read(email.message_from_bytes(RICH, policy=email.policy.default))
    assert modern.links == wanted.links and modern.path == wanted.path
    assert read("Content-Type: text/plain; charset=iso-8859-1\n\ncafé").words["café"] == 1
    assert read("odd \ud800 letters").words["letters"] == 1
    assert read(b"").words == {} and read("").words == {}


def test_an_object_that_python_cannot_write():
    message = email.message_from_string("Subject: x\n\ncaf\xe9 \ud800")
    with pytest.raises(UnicodeEncodeError):
        message.as_bytes()
    assert read(message).words["subject:x"] == 1 and read(message).words["café"] == 1


@pytest.mark.parametrize("wrong", [None, 3, ["a"], {"a": 1}, object()])
def test_what_is_no_message_is_refused(wrong):
    with pytest.raises(InputTypeError, match=r"a message is bytes, a text, a pathlib.Path .* got"):
        read(wrong)


def test_files_and_folders(tmp_path):
    (tmp_path / "a").write_bytes(
        b"From x Thu Aug 22\nSubject: one\n\nhi\n\nFrom y Thu Aug 22\nSubject: two\n\nho\n"
    )
    (tmp_path / "deeper").mkdir()
    (tmp_path / "deeper" / "b").write_bytes(b"Subject: three\n\nhi\n\nFrom here on it is no separator\n")
    (tmp_path / "cmds").write_bytes(b"mv a b")
    (tmp_path / ".hidden").write_bytes(b"x")
    found = messages(tmp_path)
    assert [mime.first(mime.split(mime.without_envelope(raw))[0], "subject") for raw in found] == [
        "one",
        "two",
        "three",
    ]
    assert read(found[0]).words["hi"] == 1 and "ho" not in read(found[0]).words
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="has no files"):
        messages(tmp_path / "empty")
    with pytest.raises(InputError, match="cannot be read"):
        messages(tmp_path / "missing")
    with pytest.raises(InputError, match="cannot be read"):
        read(tmp_path)


def test_a_line_of_a_letter_that_begins_with_from_begins_no_message(tmp_path):
    """A message with its envelope, as collections have them, is one, whatever its paragraphs begin with."""
    (tmp_path / "a").write_bytes(b"From x Thu\nSubject: one\n\nhi\n\nFrom now on we meet at noon.\nbye\n")
    [(name, raw)] = located(tmp_path)
    assert (name, read(raw).words["noon"]) == (str(tmp_path / "a"), 1)
    twice = b"From x Thu\r\nSubject: one\r\n\r\nhi\r\n\r\nFrom y Fri\r\nX-A : b\r\n\r\nho\r\n"
    (tmp_path / "a").write_bytes(twice)
    assert [name for name, _ in located(tmp_path)] == [f"{tmp_path / 'a'}[1]", f"{tmp_path / 'a'}[2]"]


def test_an_empty_line_before_a_mailbox(tmp_path):
    box = b"From x Thu\nSubject: one\n\nhi\n\nFrom y Fri\nSubject: two\n\nho\n"
    for before in (b"\n", b"\r\n\n", b"\xef\xbb\xbf"):
        (tmp_path / "a").write_bytes(before + box)
        assert len(messages(tmp_path)) == 2


def test_folders_in_folders(tmp_path):
    """As deep as a name can be; links to folders are not followed, and said to be not."""
    folders = [tmp_path]
    for _ in range(1100):
        folders.append(folders[-1] / "a")
        folders[-1].mkdir()
    (folders[-1] / "b").write_bytes(b"Subject: one\n\nhi\n")
    assert len(messages(tmp_path)) == 1
    (folders[-1] / "b").rename(tmp_path / "a" / "b")
    for folder in folders[:1:-1]:  # Python's own way to remove them is recursive
        folder.rmdir()
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "a").symlink_to(tmp_path / "a", target_is_directory=True)
    with pytest.raises(InputError, match="links to folders are not followed"):
        messages(tmp_path / "links")
    with pytest.raises(InputError, match="empty"):
        messages("")


def test_of_a_maildir_only_what_was_delivered_is_read(tmp_path):
    for name in (
        "cur/1:2,S",
        "new/2",
        "tmp/3",
        "dovecot-uidlist",
        ".Junk/cur/4",
        "deeper/cur/5",
        "deeper/new/6",
    ):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"Subject: x\n\nhi")
    (tmp_path / "loop").symlink_to(tmp_path, target_is_directory=True)
    found = [str(Path(name).relative_to(tmp_path)) for name, _ in located(tmp_path)]
    assert found == ["cur/1:2,S", "deeper/cur/5", "deeper/new/6", "new/2"]
    plain = tmp_path / "plain"
    (plain / "tmp").mkdir(parents=True)
    (plain / "tmp" / "7").write_bytes(b"Subject: x\n\nhi")
    assert len(messages(plain)) == 1  # no Maildir: a folder may have any name


def test_numbers_of_version_6_and_names_in_any_letters():
    hop = b"Received: from a.example (b.example [IPv6:2A01:4F8:1::7]) by me.example; Thu\n"
    mail = read(hop + b"\nhttp://[2a01::8]/x http://b\xc3\xbccher.example/ http://[12:30]/")
    assert {"2a01:4f8:1::7", "2a01:4f8:1::/48", "border 2a01:4f8::/32"} <= set(mail.addresses)
    assert "border b.example" in mail.path
    assert mail.links["host is a number"] == 1 and mail.links["host bücher.example"] == 1
    assert (
        read(hop.replace(b"2A01:4F8:1::7", b"fe80::7") + b"\nx").addresses == {}
    )  # the reader's own network


@pytest.mark.parametrize(
    "name",
    [
        b"name*0*=utf-8''caf%C3%A9; name*1=.exe",
        b'name="=?utf-8?B?Y2Fmw6kuZXhl?="',
        b"name*=utf-8''caf%C3%A9.exe",
        b"name=a.EXE; name=b.txt",
    ],
)
def test_names_of_files_however_they_are_written(name):
    assert read(b"Content-Type: application/x; " + name + b"\n\nx").encoding["file .exe"] == 1


# --- never crashes, never slow ------------------------------------------------------------------------

PIECES = [
    b"Content-Type: ",
    b"multipart/mixed; boundary=",
    b"text/html; charset=",
    b"base64",
    b"\n\n",
    b"\n--",
    b"x",
]
PIECES += [
    b"Received: from ",
    b" by ",
    b"[1.2.3.4]",
    b"=?utf-8?B?",
    b"?=",
    b"<a href=",
    b"<!--",
    b"&#",
    b"\r",
    b"\0",
]
PIECES += [
    b"Date: Thu, 22 Aug 2002 ",
    b"99:99:99 +9999",
    b"Content-Transfer-Encoding: ",
    b"utf-7",
    b"\xff\xfe",
    b";",
]


def check(mail):
    """Eight bags of texts, with finite multiplicities above zero."""
    assert isinstance(mail, Mail) and len(mail) == len(ASPECTS) == 8
    for bag in mail:
        assert all(isinstance(key, str) and 0 < value < np.inf for key, value in bag.items())


@settings(max_examples=300)
@given(st.one_of(st.binary(max_size=400), st.lists(st.sampled_from(PIECES), max_size=40).map(b"".join)))
@example(b"Content-Type: multipart/mixed; boundary=\n\n--\n\n----\n")
@example(b"Received: from . by .; \n\n")
def test_any_bytes_are_read(raw):
    check(read(raw))


@settings(max_examples=150)
@given(st.text(max_size=300))
def test_any_text_is_read(text):
    check(read(text))
    check(
        read(
            f"From: {text}\nSubject: {text}\nReceived: {text}\nContent-Type: {text}\n\n<a href={text}>{text}"
        )
    )


def test_mutated_messages_are_read(tries):
    generator = random.Random(0)
    for _ in tries(1500):
        raw = bytearray(RICH)
        for _ in range(generator.randrange(1, 12)):
            at, kind = generator.randrange(len(raw) + 1), generator.randrange(4)
            if kind == 0:
                raw[at : at + 1] = bytes([generator.randrange(256)])
            elif kind == 1:
                del raw[at : at + generator.randrange(200)]
            elif kind == 2:
                raw[at:at] = generator.choice(PIECES)
            else:
                raw[at:at] = raw[generator.randrange(len(raw) + 1) :][: generator.randrange(300)]
        check(read(bytes(raw)))


SLOW = {
    "spaces": b"<a href=" + b" " * 200_000,
    "tags": b"<a href=x" * 30_000,
    "anchors": b"<a href=x>" * 30_000,
    "comments": b"<!--" * 60_000 + b"<script" * 30_000,
    "entities": b"&#" * 100_000 + b"9" * 100_000,
    "letters": b"a" * 250_000,
    "dashes": b"a-" * 125_000,
    "addresses": b"a@" * 125_000 + b"b." * 50_000,
    "dots": b"1." * 125_000,
    "boundaries": b"\n--x" * 60_000,
}


@pytest.mark.parametrize("name", SLOW)
@pytest.mark.parametrize("head", [b"text/html", b"text/plain", b"multipart/mixed; boundary=x"])
def test_no_message_takes_long(name, head, within_cpu):
    """A quarter of a megabyte of anything takes well under a second; quadratic time would take minutes."""
    with within_cpu(2.0):
        check(read(b"Content-Type: " + head + b"\n\n" + SLOW[name]))


@pytest.mark.parametrize(
    "unit", [b";a", b';a="', b"=?u?q?", b" ", b"x" * 70 + b"\n", b"a@", b"[1.", b"from ("]
)
@pytest.mark.parametrize("name", [b"Content-Type: ", b"Received: ", b"From: ", b"Date: ", b"Subject: "])
def test_no_head_takes_long(name, unit, within_cpu):
    with within_cpu(2.0):
        check(read(name + unit * (60_000 // len(unit)) + b"\n\n"))


@pytest.mark.parametrize("part", [b"a" * ((1 << 18) - 2) + b"@ ", (b"<a " + b"href " * 49) * 1000])
def test_no_number_of_parts_takes_long(part, within_cpu):
    """A hundred of the largest."""
    with within_cpu(2.0):
        check(read(b"Content-Type: multipart/mixed; boundary=q\n\n" + (b"--q\n\n" + part + b"\n") * 99))


def test_depth_and_numbers_of_parts_have_limits():
    deep = b"Content-Type: message/rfc822\n\n" * 2000 + b"Subject: x\n\nhello"
    check(read(deep))
    nested = b"".join(b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (i, i) for i in range(500))
    check(read(nested))
    wide = b"Content-Type: multipart/mixed; boundary=b\n\n" + b"--b\n\nhello\n" * 5000
    assert 50 <= read(wide).words["hello"] <= 100


# --- kernels ------------------------------------------------------------------------------------------


def test_the_table_is_for_kernels_of_columns():
    raw = [RICH, RICH.replace(b"Only", b"Just"), b"From: ann@example.org\n\nlunch?"]
    mails = table(raw)
    assert mails.shape == (3, 8)
    kernel = ColumnKernel({j: Intersection() for j in range(8)}, weights={0: 2.0})
    by_hand = [
        [
            sum(
                (2.0 if j == 0 else 1.0) * sum(min(count, b[j].get(key, 0)) for key, count in a[j].items())
                for j in range(8)
            )
            for b in mails
        ]
        for a in mails
    ]
    np.testing.assert_allclose(kernel(mails), by_hand, rtol=1e-12)
    with pytest.raises(InputTypeError, match=r"messages must be a list .* pass \[message\]"):
        table(RICH)


def test_encoded_text_escapes(rng):
    """What Python escapes is read back."""
    for _ in range(50):
        text = "".join(chr(rng.integers(33, 0x2000)) for _ in range(30)).replace("\x7f", "")
        assert markup._unescaped(html.escape(text)) == text
