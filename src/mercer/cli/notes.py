r"""What a fit has to say, in the words of the command: its options instead of Python's parameters.

>>> in_command_words("raise max_time, or the memory budget with mercer.config(memory=…)")
'give it more time with --time, or more memory with --memory'
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["held_back", "in_command_words"]

#: what Python's users are told, and what the command says for it
_WORDS: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (r"ran out of max_time=([\d.e+-]+) seconds", lambda found: f"ran out of time ({float(found[1]):.3g} s)"),
    ("raise max_time", "give it more time with --time"),
    (r"raise the (memory )?budget with mercer\.config\(memory=…\)", "give it more memory with --memory"),
    (r"the (memory )?budget with mercer\.config\(memory=…\)", "more memory with --memory"),
    (r"raise it \(--memory, mercer\.config\(memory=…\)\)", "raise it with --memory"),
)


def in_command_words(text: str) -> str:
    """A warning or an error as the command says it.

    >>> in_command_words("SVC ran out of max_time=2.00527 seconds after 3 iterations: raise max_time")
    'SVC ran out of time (2.01 s) after 3 iterations: give it more time with --time'
    """
    for pattern, words in _WORDS:
        text = re.sub(pattern, words, text)
    return text


@contextmanager
def held_back() -> Iterator[None]:
    """Without warnings of fits on the way: those of the model that is kept are told when it is there."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=ConvergenceWarning)
        warnings.filterwarnings("ignore", message="the last fit takes")
        yield
