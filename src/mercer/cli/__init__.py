r"""The command ``mercer``: from a file to a model one can trust.

>>> main(["--version"])
mercer ...
0
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from mercer.cli.encoding import never_fail
from mercer.cli.exits import run
from mercer.runtime import start
from mercer.runtime.imports import lean

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status (see `mercer.cli.exits`).

    Without arguments they are those of the process, which then has nothing else to do.
    """
    given = sys.argv[1:] if arguments is None else arguments
    if given[:1] == ["patched"]:  # a script is not ours: its streams, warnings and errors are left alone
        from mercer.drop_in.script import run as run_script

        return run_script(given[1:])
    never_fail()

    def command() -> int:  # what it imports takes a while, in which it can be interrupted
        from mercer.errors import require

        require("typer", "cli")
        require("rich", "cli")
        from mercer.cli.commands import invoke

        return invoke(arguments)

    is_alone = arguments is None
    with lean(is_alone):
        status = run(command)
    if is_alone:
        start.ends()
    return status
