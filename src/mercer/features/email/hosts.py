r"""Names and numbers of machines: domains that one can register, prefixes of networks, hosts of links."""

from __future__ import annotations

import re
from ipaddress import IPv6Address
from urllib.parse import unquote

from mercer.features.email.suffixes import registered

_NUMBER = re.compile(r"(?<![\d.])\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}(?![\d.])")
_NUMBER_6 = re.compile(r"\[(?:IPv6:)?([0-9a-f]{0,4}:[0-9a-f:.]{1,44})\]", re.IGNORECASE)
_URL = re.compile(r"([a-zA-Z]{2,10}):/{0,3}([^/?#\s]*)([^\s]*)")
_ADDRESS = re.compile(r"([^\s<>\"'(),;:@]{1,100})@([\w.-]{1,200})")
_HOST = re.compile(r"[^\W_][\w.-]*")


def domain(host: str) -> str:
    """The part of a name that somebody registered; a number, or what is nobody's own, stays as it is.

    >>> domain("www.lists.example.co.uk"), domain("mail.example.com"), domain("10.1.2.3")
    ('example.co.uk', 'example.com', '10.1.2.3')
    """
    name = host.lower().strip(".")
    if "." not in name or name.rpartition(".")[2].isdigit():
        return name
    return registered(name) or name


def numbers(text: str) -> list[str]:
    """The IP numbers in a text: those of four bytes in their order, then those of version 6, in brackets.

    >>> numbers("from x (y [66.187.233.211]) version 8.11.6, 300.1.1.1")
    ['66.187.233.211']
    >>> numbers("from x ([IPv6:2A01:0:0::7])")
    ['2a01::7']
    """
    found = [ip for ip in _NUMBER.findall(text) if all(int(byte) < 256 for byte in ip.split("."))]
    if "[" in text and ":" in text:
        for digits in _NUMBER_6.findall(text):
            try:
                found.append(str(IPv6Address(digits)))
            except ValueError:
                continue  # This is a time of day, or anything else in brackets.
    return found


def is_public(ip: str) -> bool:
    """Whether a number is of the whole net, not of somebody's own or of no machine.

    >>> [is_public(ip) for ip in ("66.187.233.211", "127.0.0.1", "192.168.0.7", "172.20.1.1")]
    [True, False, False, False]
    >>> is_public("2a01::7"), is_public("fe80::1")
    (True, False)
    """
    if ":" in ip:
        return IPv6Address(ip).is_global
    a, b = map(int, ip.split(".")[:2])
    private = a in (0, 10, 127) or a >= 224 or (a == 192 and b == 168) or (a == 172 and 16 <= b < 32)
    return not private and (a, b) != (169, 254)


def prefixes(ip: str) -> tuple[str, str, str]:
    """The number, and the networks /24 and /16 that it is of; in version 6, /48 and /32.

    >>> prefixes("66.187.233.211")
    ('66.187.233.211', '66.187.233.0/24', '66.187.0.0/16')
    >>> prefixes("2a01:4f8:1::7")
    ('2a01:4f8:1::7', '2a01:4f8:1::/48', '2a01:4f8::/32')
    """
    if ":" in ip:
        a, b, c = (part.lstrip("0") or "0" for part in IPv6Address(ip).exploded.split(":")[:3])
        return ip, f"{a}:{b}:{c}::/48", f"{a}:{b}::/32"
    a, b, c, _ = ip.split(".")
    return ip, f"{a}.{b}.{c}.0/24", f"{a}.{b}.0.0/16"


def address(field: str) -> tuple[str, str]:
    """The first address of a field: what is before the @, and the host; empty where there is none.

    >>> address('"Joe, Jr." <Joe@Mail.Example.com>')
    ('joe', 'mail.example.com')
    """
    found = _ADDRESS.search(field)
    return (found[1].lower(), found[2].lower().strip(".")) if found else ("", "")


def url(link: str) -> tuple[str, str, str, bool]:
    """The scheme, host and path of a link, and whether a name before an @ pretends to be the host.

    >>> url("http://www.bank.example@10.1.2.3:8080/login?x"), url("/there")
    (('http', '10.1.2.3', '/login?x', True), ('', '', '/there', False))
    >>> url("http://bücher.example/"), url("http://[2a01::7]:80/")
    (('http', 'bücher.example', '/', False), ('http', '[2a01::7]', '/', False))
    """
    found = _URL.match(link)
    if not found:
        return "", "", link, False
    where, path = found[2].lower(), found[3]
    if "%" in where:
        where = unquote(where, errors="replace")
    before, at, host = where.rpartition("@")
    plain = _HOST.match(host.partition(":")[0])
    name = plain.group().strip(".-") if plain else "".join(f"[{ip}]" for ip in numbers(host)[:1])
    is_disguised = bool(at and before) and found[1].lower() != "mailto"
    return found[1].lower(), name, path, is_disguised
