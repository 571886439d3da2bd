r"""The door to the public-suffix list: below which names people register names of their own.

Whose a host is cannot be seen from its labels: ``go.jp`` and ``co.uk`` are ministries' and companies', and
everybody may have a name below ``github.io``. Mozilla's list says so; the library ``publicsuffixlist`` brings
a copy of it, which is read once, on first use. Nothing is asked of the net.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

from mercer.errors import require


@cache
def _list() -> Any:
    return require("publicsuffixlist", extra="mail").PublicSuffixList()


@lru_cache(maxsize=1 << 14)
def registered(host: str) -> str | None:
    """The shortest name of a host that is somebody's own, or None where no part of it is.

    >>> registered("www.alice.github.io"), registered("a.b.go.jp"), registered("me.uk")
    ('alice.github.io', 'b.go.jp', None)
    """
    found: str | None = _list().privatesuffix(host)
    return found
