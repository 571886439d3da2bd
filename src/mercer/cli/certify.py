"""``mercer certify``: is this expression a kernel?"""

from __future__ import annotations

from typing import Any

from mercer.cli.exits import DONE, NO, UNKNOWN
from mercer.cli.screen import Screen

_STATUS = {"proved": DONE, "refuted": NO, "unknown": UNKNOWN}


def certify(expression: str, dim: int | None, screen: Screen) -> int:
    """The verdict on standard output; the status tells it too."""
    from mercer.certify import certify as verdict_on
    from mercer.certify.asked import as_typed

    certificate = verdict_on(as_typed(expression), dim=dim)
    if screen.as_json:
        screen.json(_facts(certificate))
    else:
        print(certificate)
    return _STATUS[certificate.verdict]


def _facts(certificate: Any) -> dict[str, Any]:
    return {
        "kernel": repr(certificate.kernel),
        "verdict": certificate.verdict,
        "reason": certificate.reason,
        "dimension": certificate.dimension,
        "conditional": certificate.conditional,
        "points": None if certificate.points is None else certificate.points,
        "vector": certificate.vector,
        "eigenvalues": certificate.eigenvalues,
    }
