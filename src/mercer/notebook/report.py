"""Plans and reports in a notebook: small tables, with the reasons and the warnings."""

from __future__ import annotations

from html import escape

from mercer.notebook.markup import frame, table
from mercer.report import Plan, Report


def html(shown: Plan | Report) -> str:
    """The table of a plan, or of a report."""
    rows = shown.facts()
    return frame(table((name, "<br/>".join(map(escape, lines))) for name, lines in rows.items()))
