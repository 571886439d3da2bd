r"""A quick start of the command ``mercer``: what it does before anything large is loaded.

SciPy names all of NumPy when it starts, and so loads NumPy's test tools and its compiler of Fortran; Python
looks for garbage among hundreds of thousands of objects that stay. In a process that is the command alone,
the first are loaded when they are used, and the second is put off: until work `begins`, and for good when it
`ends`, for then all memory is given back at once.

>>> is_command(["/usr/bin/mercer"], ["/usr/bin/python", "/usr/bin/mercer", "demo"])
True
>>> is_command(["-m"], ["python", "-X", "dev", "-m", "mercer", "demo"])
True
>>> is_command(["fit.py"], ["python", "fit.py", "-m", "mercer"])
False
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from pathlib import PurePath

from mercer.runtime.imports import deferring

#: parts of NumPy that SciPy names and nothing of ours calls
_UNUSED = ("numpy.f2py", "numpy.testing")
#: objects after which Python looks for garbage while modules are loaded; as many as ours make, about
_SELDOM = 100_000
_usual = gc.get_threshold()


def is_command(arguments: Sequence[str], given: Sequence[str]) -> bool:
    """Whether a process runs ``mercer`` or ``python -m mercer``: its ``sys.argv``, ``sys.orig_argv``."""
    program = arguments[0] if arguments else ""
    if program == "-m":  # Python says so until it has found the module
        return "mercer" in given[given.index("-m") + 1 :][:1]
    return PurePath(program).stem == "mercer"


def begins() -> None:
    """Garbage is looked for as ever from now on, but not among what is loaded."""
    if gc.get_threshold()[0] == _SELDOM:
        gc.freeze()
        gc.set_threshold(*_usual)


def ends() -> None:
    """Garbage is looked for no more: it would take a sixth of the time of a short command."""
    gc.freeze()


if is_command(getattr(sys, "argv", ()), sys.orig_argv):
    gc.set_threshold(_SELDOM, *_usual[1:])
    with deferring(_UNUSED):
        import scipy.special  # noqa: F401
