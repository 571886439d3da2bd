r"""The command ``mercer``: from a file to a model one can trust.

>>> main(["--version"])
mercer ...
0
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status (see `mercer.cli.exits`)."""
    from mercer.errors import require

    try:
        require("typer", "cli")
        require("rich", "cli")
    except ImportError as error:
        print(f"mercer: {error}", file=sys.stderr)
        return 2
    from mercer.cli.commands import invoke

    return invoke(arguments)
