r"""Where a message comes from, and when: the time, the path, IP numbers, the sender.

The path is a list of ``Received`` fields, the last relay first. Its first hops are those of the reader's
own network: fetched from a mailbox, or handed on between machines with private numbers. They tell where a
message was read, which must not decide, so they are left out. The first hop with a public number is the
*border*, the only one that a sender cannot have made up. A message without hops, or with private ones
alone, has no path: the aspect is empty, and says nothing.

Of dates only the hour, the day of the week and the zone are kept, and how long a message was under way. The
date itself would tell when a collection was made.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from itertools import pairwise

from mercer.features.email import hosts
from mercer.features.email.mime import Head, first, readable

_MOST_HOPS = 40  # Servers between sender and reader: more than an honest mail has; the others are not read.
_FROM = re.compile(r"from\s+\[?([^\s()\[\]]{1,200})", re.IGNORECASE)
_NAMED = re.compile(r"\(\s*(?:[^\s()@]{1,100}@)?([\w.-]{1,200}\.[a-zA-Z]{2,20})[.\s]*[\[(]")
_BY = re.compile(r"\bby\s+([^\s();]{1,200})", re.IGNORECASE)
_WITH = re.compile(r"\bwith\s+([A-Za-z0-9]{1,20})")
_DATE = re.compile(
    r"(?:([A-Za-z]{3})[a-z]{0,6},?\s{1,3})?(\d{1,2})[\s-]{1,3}([A-Za-z]{3})[a-z]{0,6}\.?[\s-]{1,3}(\d{2,4}),?\s{1,3}"
    r"(\d{1,2}):(\d\d)(?::(\d\d))?\s{0,3}([+-]\d{4}|[A-Za-z]{1,5})?"
)
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTHS = {name: i + 1 for i, name in enumerate(_MONTH_NAMES)}
_ZONES = {
    "ut": 0,
    "gmt": 0,
    "utc": 0,
    "z": 0,
    "est": -300,
    "edt": -240,
    "cst": -360,
    "cdt": -300,
    "mst": -420,
}
_ZONES |= {"mdt": -360, "pst": -480, "pdt": -420, "bst": 60, "ist": 60, "cet": 60, "cest": 120}
#: how alike two times of day are that lie 0, 1, 2 hours apart: a bump on the clock
_NEAR = {0: 1.0, 1: 0.6, -1: 0.6, 2: 0.15, -2: 0.15}


# --- time ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Moment:
    """A date as it was written."""

    stated: str  # the day of the week as it is written, "" where none is given
    weekday: int  # the day of the week of the date; 0 is Monday
    hour: float  # local time
    zone: int | None  # minutes that local time is ahead of UTC
    zone_text: str
    seconds: float  # seconds since the year 1, in UTC
    year: int


def moment(text: str) -> Moment | None:
    """The first date in a text; None where none can be read.

    >>> found = moment("Thu, 22 Aug 2002 18:26:25 +0700")
    >>> _DAYS[found.weekday], int(found.hour), found.zone
    ('thu', 18, 420)
    """
    found = _DATE.search(text[:400])
    if not found:
        return None
    stated, day, month, year, hour, minute, second, zone_text = found.groups()
    short = int(year)
    full = short if len(year) == 4 else short + (2000 if short < 70 else 1900)
    try:
        days = date(full, _MONTHS[month.lower()], int(day))
    except (ValueError, KeyError):
        return None
    if int(hour) > 24 or int(minute) > 59:
        return None
    zone = _zone(zone_text or "")
    seconds = (
        days.toordinal() * 86400 + int(hour) * 3600 + int(minute) * 60 + int(second or 0) - 60 * (zone or 0)
    )
    stated = (stated or "").lower()
    return Moment(
        stated, days.weekday(), int(hour) % 24 + int(minute) / 60, zone, zone_text or "", float(seconds), full
    )


def _zone(text: str) -> int | None:
    if text[:1] in ("+", "-"):
        minutes = int(text[1:3]) * 60 + int(text[3:])
        return -minutes if text[0] == "-" else minutes
    return _ZONES.get(text.lower())


def time(head: Head, hops: list[Hop]) -> Counter[str]:
    """Hour on the clock, day of the week, zone, what is odd about them, and the time under way."""
    found: Counter[str] = Counter()
    value = first(head, "date")
    when = moment(value)
    if when is None:
        found["date unreadable" if value else "no date"] = 1
        return found
    bump: dict[str, float] = {}
    for shift, near in _NEAR.items():
        bump[f"hour {int(when.hour + shift) % 24}"] = near
    found.update(bump)  # Multiplicities need not be whole numbers.
    found[f"day {_DAYS[when.weekday]}"] = 1
    found["weekend" if when.weekday > 4 else "workday"] = 1
    if not when.stated:
        found["day not stated"] = 1
    elif when.stated != _DAYS[when.weekday]:
        found["day wrong"] = 1
    found[f"zone {when.zone_text[:6].lower() or 'missing'}"] = 1
    if when.zone is None or abs(when.zone) > 14 * 60 or when.zone % 30:
        found["zone odd"] = 1
    arrival = next((hop.moment for hop in hops if hop.moment), None)
    if arrival:
        found[_under_way((arrival.seconds - when.seconds) / 3600)] = 1
    return found


def _under_way(hours: float) -> str:
    for limit, name in ((-24, "days"), (-1.5, "hours")):
        if hours < limit:
            return f"sent {name} after its arrival"
    for limit, name in ((0.25, "minutes"), (1.5, "an hour"), (12, "hours"), (72, "days")):
        if hours < limit:
            return f"under way for {name}"
    return "under way for weeks"


# --- the path ------------------------------------------------------------------------------------------


def _first(pattern: re.Pattern[str], text: str) -> str:
    return found[1].lower() if (found := pattern.search(text)) else ""


@dataclass(frozen=True)
class Hop:
    """One ``Received`` field: from whom a relay has the message."""

    text: str

    @cached_property
    def source(self) -> str:
        """What the relay says about the machine before it."""
        return self.text[: found.start()] if (found := _BY.search(self.text)) else self.text.partition(";")[0]

    @cached_property
    def numbers(self) -> list[str]:
        """Public IP numbers of the machine before it."""
        return [ip for ip in hosts.numbers(self.source) if hosts.is_public(ip)]

    @cached_property
    def helo(self) -> str:
        """The name by which that machine presents itself."""
        return _first(_FROM, self.source).strip(".")

    @cached_property
    def name(self) -> str:
        """The name that the relay's name server has for its number."""
        return _first(_NAMED, self.source)

    @cached_property
    def by(self) -> str:
        """The name of the relay."""
        return _first(_BY, self.text).strip(".")

    @cached_property
    def protocol(self) -> str:
        """How it was handed over: SMTP, ESMTP, HTTP, …"""
        return _first(_WITH, self.text)

    @cached_property
    def moment(self) -> Moment | None:
        """The moment at which it was handed over."""
        return moment(self.text.rpartition(";")[2])


def travelled(head: Head) -> list[Hop]:
    """The hops outside of the reader's own network, the border first."""
    hops = [Hop(text[:1000]) for text in head.get("received", [])[:_MOST_HOPS]]
    border = next((i for i, hop in enumerate(hops) if hop.numbers), len(hops))
    return hops[border:]


def path(head: Head, hops: list[Hop]) -> Counter[str]:
    """Domains of the machines on the way, how they present themselves, how many, and whose they are."""
    found: Counter[str] = Counter()
    own = hosts.domain(hosts.address(first(head, "from"))[1])
    for i, hop in enumerate(hops):
        where = "inner" if i else "border"
        if hop.name:
            found[f"{where} {hosts.domain(hop.name)}"] += 1
            found[f"{where} top {hop.name.rpartition('.')[2]}"] += 1
        else:
            found[f"{where} has no name"] += 1
        if hop.helo:
            found[f"{where} calls itself {hosts.domain(hop.helo)[:60]}"] += 1
            found[f"{where} {_honesty(hop)}"] += 1
        if hop.protocol:
            found[f"{where} by {hop.protocol}"] += 1
        if i and hop.by:
            found[f"relay {hosts.domain(hop.by)[:60]}"] += 1
        if own and own in (hosts.domain(hop.name), hosts.domain(hop.helo)):
            found[f"{where} is the sender's"] += 1
    if hops:
        found[f"hops {min(len(hops), 8)}"] = 1
    return found


def _honesty(hop: Hop) -> str:
    if hop.helo.replace(".", "").isdigit():
        return "calls itself a number"
    if "." not in hop.helo:
        return "calls itself no domain"
    if not hop.name:
        return "cannot be checked"
    return "is who it says" if hosts.domain(hop.helo) == hosts.domain(hop.name) else "is another"


def addresses(head: Head, hops: list[Hop]) -> Counter[str]:
    """IP numbers on the way with their networks, and those of the sender that web mailers write down."""
    found: Counter[str] = Counter()
    numbers = [ip for hop in hops for ip in hop.numbers]
    for name in ("x-originating-ip", "x-sender-ip", "x-client-ip"):
        numbers += [
            ip for value in head.get(name, [])[:3] for ip in hosts.numbers(value) if hosts.is_public(ip)
        ]
    for ip in numbers:
        found.update(hosts.prefixes(ip))
    for ip in hops[0].numbers if hops else ():
        found.update(f"border {prefix}" for prefix in hosts.prefixes(ip)[1:])
    return found


# --- the sender ----------------------------------------------------------------------------------------

_NAME_WORD = re.compile(r"[^\W\d_]{2,30}")
#: fields that the sender's program writes, in an order and spelling of its own
# fmt: off
_WRITTEN = {
    "from", "to", "cc", "subject", "date", "message-id", "mime-version", "content-type", "reply-to", "sender",
    "content-transfer-encoding", "content-disposition", "x-mailer", "user-agent", "x-mimeole", "x-priority",
    "x-msmail-priority", "importance", "organization", "in-reply-to", "references",
}
# fmt: on
#: fields that others add on the way: filters, lists of readers, the reader's own programs
_NOT_THE_SENDERS = re.compile(
    r"x-(?:mercer|spam|pyzor|razor|dcc|virus|scanned|original|mailman|been|list|loop|uidl|status|keywords|mozilla|"
    r"evolution|delivered|envelope|apparently|received|authentication|filter|bogosity|image|e?groups)"
)
_SIGN = re.compile(r"[A-Za-z]+")
_NUMBERS = re.compile(r"[\d.,;:/()\[\]_-]+")


def sender(head: Head) -> Counter[str]:
    """Address, domain and name of the sender, whether other fields agree with them, and the mail program."""
    found: Counter[str] = Counter()
    field = readable(first(head, "from"))
    local, host = hosts.address(field)
    registered = hosts.domain(host)
    if host:
        found |= Counter(
            {
                f"address {local}@{host}": 1,
                f"domain {registered}": 1,
                f"top {registered.rpartition('.')[2]}": 1,
            }
        )
        if any(sign.isdigit() for sign in local):
            found["digits in the address"] = 1
    else:
        found["no address"] = 1
    name = field.partition("<")[0] if "<" in field else field.partition("(")[2]
    for word in _NAME_WORD.findall(name.lower()):
        found[f"name {word}"] += 1
    if not name.strip(' "'):
        found["no name"] = 1
    for other in ("reply-to", "return-path", "sender", "errors-to"):
        theirs = hosts.domain(hosts.address(first(head, other))[1])
        if theirs:
            found[f"{other} {theirs}"] = 1
            found[f"{other} {'agrees' if theirs == registered else 'disagrees'}"] = 1
        elif other in head:
            found[f"{other} without address"] = 1
    found.update(_identity(first(head, "message-id"), registered))
    found.update(_program(head))
    if local and local in first(head, "to").lower():
        found["writes to itself"] = 1
    return found


def _identity(value: str, registered: str) -> list[str]:
    """What the mail program made up as the message's own name."""
    if not value:
        return ["no message id"]
    own, _, host = value.strip("<> ").rpartition("@")
    shape = re.sub(r"(.)\1+", r"\1", _SIGN.sub("a", re.sub(r"\d+", "0", own[:60])))
    agrees = "agrees" if hosts.domain(host) == registered else "disagrees"
    return [f"id shape {shape[:16]}", f"id {agrees}", *([] if "." in host else ["id without domain"])]


def _program(head: Head) -> list[str]:
    """The mail program, without its version, whether the message answers another, and how urgent it is."""
    found = []
    for name in (
        "x-mailer",
        "user-agent",
        "x-mimeole",
        "x-priority",
        "x-msmail-priority",
        "importance",
        "precedence",
    ):
        value = first(head, name).lower()
        if value:
            plain = value[:40] if name == "x-priority" else " ".join(_NUMBERS.sub(" ", value).split())[:40]
            found.append(f"{name} {plain}")
    answers = "in-reply-to" in head or "references" in head
    claims = first(head, "subject")[:3].lower() == "re:"
    if answers:
        found.append("answers")
    if claims and not answers:
        found.append("pretends to answer")
    if "to" not in head:
        found.append("to nobody")
    written = [name for name in head.spelled if name.lower() in _WRITTEN]
    found += [f"writes {name}" for name in written]
    found += [f"has {name}" for name in head if name.startswith("x-") and not _NOT_THE_SENDERS.match(name)]
    ordered = [name.lower() for name in written]
    return found + [f"{a} before {b}" for a, b in pairwise(ordered)]
