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
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from mercer.errors import InputError, MemoryBudgetError

__all__ = ["BAD_INPUT", "DONE", "INTERRUPTED", "MISTAKE", "NO", "UNHEARD", "UNKNOWN", "run", "say"]

DONE, NO, BAD_INPUT, UNKNOWN, MISTAKE, INTERRUPTED, UNHEARD = 0, 1, 2, 3, 70, 130, 141


def say(text: str) -> None:
    """A line on standard error, whatever state it is in."""
    with suppress(OSError, ValueError):  # closed: there is nobody to tell
        print(text, file=sys.stderr, flush=True)


def run(action: Callable[[], int], quiet: bool = False) -> int:
    """The status of an action, and a sentence on standard error if it fails; so for warnings."""

    def show(message: Any, *rest: Any, **more: Any) -> None:
        if not quiet:
            say(f"note: {_one_line(message)}")

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        warnings.filterwarnings("ignore", category=FutureWarning)
        warnings.filterwarnings("ignore", message="The least populated class")  # told of the target already
        warnings.showwarning = show
        try:
            status = action()
            sys.stdout.flush()
            return status
        except KeyboardInterrupt:
            say("mercer: interrupted; nothing was overwritten")
            return INTERRUPTED
        except BrokenPipeError:
            # Python flushes standard output once more when it ends: it must not fail a second time
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            return UNHEARD
        except (InputError, MemoryBudgetError, ImportError) as error:
            say(f"mercer: {_one_line(error)}")
            return BAD_INPUT
        except MemoryError:
            say("mercer: there is not enough memory: pass fewer rows (--rows), or a smaller --memory")
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


def _one_line(error: Any) -> str:
    return " ".join(str(error).split()) or type(error).__name__
