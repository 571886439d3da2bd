r"""How the command ends: the exit status, and one sentence instead of a traceback.

| status | |
|---|---|
| 0 | done; `certify`: proved; `mail classify`: no spam |
| 1 | the answer is no: `certify`: refuted; `mail classify`: spam |
| 2 | the input cannot be used, or a library is missing |
| 3 | `certify`: unknown |
| 70 | a mistake in mercer |
| 130 | interrupted (Ctrl-C) |
| 141 | nobody reads the output any more |

>>> def refuse():
...     raise InputError("there is no file 'x'")
>>> run(refuse)
2
"""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
import warnings
from _thread import interrupt_main
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from mercer.errors import InputError, MemoryBudgetError

_SOON = 0.05  # seconds

DONE, NO, BAD_INPUT, UNKNOWN, MISTAKE, INTERRUPTED, UNHEARD = 0, 1, 2, 3, 70, 130, 141


def say(text: str) -> None:
    """A line on standard error, whatever state it is in."""
    if sys.stderr is None:  # ``print`` would take standard output instead
        return
    bars = sys.modules.get("mercer.runtime.progress")  # a bar is on the terminal only if this was imported
    with suppress(OSError, ValueError):  # A closed stream has nobody to tell.
        if bars is not None:
            bars.make_room()
        print(text, file=sys.stderr, flush=True)


def run(action: Callable[[], int], quiet: bool = False) -> int:
    """The status of an action, and a sentence on standard error if it fails; so for warnings."""

    def show(message: Any, *rest: Any, **more: Any) -> None:
        if not quiet:
            say(f"note: {as_options(_one_line(message))}")

    if sys.stdout is None:  # closed before Python began: files are written all the same
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    with warnings.catch_warnings(), _interruptible():
        warnings.simplefilter("default")
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        warnings.filterwarnings("ignore", category=FutureWarning)
        warnings.filterwarnings("ignore", category=ResourceWarning)  # what Ctrl-C left open
        warnings.filterwarnings("ignore", message="The least populated class")  # A note tells of it.
        warnings.showwarning = show
        try:
            status = action()
            sys.stdout.flush()
            return status
        except KeyboardInterrupt:
            say("mercer: interrupted; no file was left half written")
            return INTERRUPTED
        except BrokenPipeError:
            # Python flushes standard output once more when it ends: it must not fail a second time
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            return UNHEARD
        except (InputError, MemoryBudgetError, ImportError) as error:
            say(f"mercer: {as_options(_one_line(error))}")
            return BAD_INPUT
        except MemoryError:
            say("mercer: there is not enough memory: pass fewer rows, or end other programs")
            return BAD_INPUT
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            say(f"mercer: {where}{error.strerror or error}")
            return BAD_INPUT
        except Exception as error:
            if os.environ.get("MERCER_DEBUG"):
                raise
            say(
                f"mercer: a mistake in mercer, please report it: {type(error).__name__}: {_one_line(error)} "
                "(set MERCER_DEBUG=1 to see where)"
            )
            return MISTAKE


@contextmanager
def _interruptible() -> Iterator[None]:
    """Ctrl-C ends the command: solvers, which would return what they have, leave a handler of ours alone."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    def interrupt_again(lost: Any) -> None:
        """Where Ctrl-C meets code that can raise nothing (a ``__del__``, a callback), soon after it."""
        if not issubclass(lost.exc_type, KeyboardInterrupt):
            before(lost)
            return
        timers.append(threading.Timer(_SOON, _interrupt_main))
        timers[-1].start()

    timers: list[threading.Timer] = []
    before, sys.unraisablehook = sys.unraisablehook, interrupt_again
    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.unraisablehook = before
        for timer in timers:
            timer.cancel()


def _interrupt_main() -> None:
    """Ctrl-C for the main thread; a signal, where threads have signals, also ends a call that waits."""
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:
        interrupt_main()


#: what warnings and errors call by its name in Python, and the command by another
_OPTIONS = (
    (re.compile(r"ran out of max_time=[\d.e+-]+ seconds"), "ran out of --time"),
    (
        re.compile(r"raise max_time, or the memory budget with mercer\.config\(memory=…\)"),
        "raise --time or --memory",
    ),
    (re.compile(r"raise the budget with mercer\.config\(memory=…\)"), "raise --memory"),
    (re.compile(r"the memory budget with mercer\.config\(memory=…\)"), "--memory"),
    (re.compile(r"mercer\.config\(memory=…\)"), "--memory"),
    (re.compile(r"\bmax_time\b"), "--time"),
    (re.compile(r"\bkeep=\[(.*?)\] keeps"), r"--keep \1 keeps"),
    (re.compile(r"\brows=N\b"), "--rows N"),
    (re.compile(r"\btarget=…"), "--target"),
    (re.compile(r"\bgroups=…"), "--group"),
    (re.compile(r"\btimes=…"), "--time-column"),
    (re.compile(r"\bprobabilities=True\b"), "--proba"),
    (re.compile(r"\ba smaller number of folds"), "a smaller --folds"),
)


def as_options(text: str) -> str:
    """A message in the words of the command line.

    >>> as_options("SVC ran out of max_time=2.5 seconds: the model is the best so far; raise max_time")
    'SVC ran out of --time: the model is the best so far; raise --time'
    """
    for pattern, words in _OPTIONS:
        text = pattern.sub(words, text)
    return text


def _one_line(error: Any) -> str:
    r"""A message in one line; what its last line points at with ^^^ is quoted instead.

    >>> _one_line("cannot read it: what is this?\n    2 * gausian\n        ^^^^^^^")
    "cannot read it: what is this? ('gausian' in '2 * gausian')"
    """
    text = str(error)
    *said, shown, marks = ["", "", *text.splitlines()]
    if said[2:] and marks.strip() and not marks.strip().strip("^"):
        marked = shown[marks.index("^") : len(marks.rstrip())].strip()
        where = f"{marked!r} in" if marked else "at the end of"
        text = f"{' '.join(said)} ({where} {shown.strip()!r})"
    return " ".join(text.split()) or type(error).__name__
