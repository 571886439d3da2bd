r"""``mercer patched SCRIPT``: a script as Python runs it, with mercer's learners in scikit-learn's place.

Arguments, ``__main__``, the first place that modules are imported from, exit status and tracebacks are those
of ``python SCRIPT``, or ``python -m MODULE``. It needs no library that mercer itself does not need.
"""

from __future__ import annotations

import os
import runpy
import sys
import zipfile
from collections.abc import Sequence
from importlib.machinery import SourceFileLoader
from types import ModuleType, TracebackType

from mercer.drop_in import PLACES, patch_scikit_learn
from mercer.runtime import start

_USAGE = f"""\
Usage: mercer patched SCRIPT [ARGS]...
       mercer patched -m MODULE [ARGS]...

Run a script with mercer's learners in scikit-learn's place:
  {", ".join(PLACES)}
"""
_BAD_INPUT = 2  # what Python ends with, too, where there is no such script


def run(arguments: Sequence[str]) -> int:
    """Run what the arguments name, and return 0; what the script raises, ``SystemExit`` too, goes through."""
    if arguments[:1] in (["-h"], ["--help"]):
        print(_USAGE, end="")
        return 0
    if list(arguments) in ([], ["-m"]):
        print(_USAGE, end="", file=sys.stderr)
        return _BAD_INPUT
    is_module = arguments[0] == "-m"
    sys.argv = list(arguments[is_module:])
    name = sys.argv[0]
    if not is_module and not os.path.exists(name):
        print(f"mercer: there is no script {name!r}", file=sys.stderr)
        return _BAD_INPUT
    if not sys.flags.safe_path:  # Without ``python -P`` the first place is that of what is run.
        sys.path[0] = os.getcwd() if is_module else os.path.dirname(os.path.realpath(name))
    patch_scikit_learn()
    start.begins()
    show = sys.excepthook

    def show_its_own(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        trace = _below(trace)
        show(kind, error.with_traceback(trace), trace)

    sys.excepthook = show_its_own
    if is_module:
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    elif os.path.isdir(name) or zipfile.is_zipfile(name):
        runpy.run_path(name, run_name="__main__")
    else:
        path = os.path.abspath(name)
        main = ModuleType("__main__")
        main.__file__, main.__loader__ = path, SourceFileLoader("__main__", path)
        sys.modules["__main__"] = main  # it stays, for what the script has left running may look for it
        source = main.__loader__.get_data(path)
        exec(compile(source, path, "exec", dont_inherit=True), main.__dict__)
    return 0


def _below(trace: TracebackType | None) -> TracebackType | None:
    """What a traceback shows of the script: the frames below ours, and below those of ``runpy``."""
    while trace is not None and trace.tb_frame.f_code is not run.__code__:
        trace = trace.tb_next
    trace = None if trace is None else trace.tb_next
    while trace is not None and trace.tb_frame.f_globals.get("__name__") == "runpy":
        trace = trace.tb_next
    return trace
