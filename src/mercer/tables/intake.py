r"""Bytes on their way in, within the memory budget: all of them, or some of their lines.

>>> from mercer import config
>>> intake = Intake("numbers", rows=3)
>>> with config(memory=300):
...     for i in range(200):
...         intake.add(f"{i}\n".encode())
>>> intake.content(), intake.lines
(b'0\n16\n32\n48\n64\n80\n96\n112\n128\n144\n160\n176\n192\n', 200)
"""

from __future__ import annotations

import numpy as np

from mercer.errors import InputError
from mercer.runtime.config import format_bytes, memory_budget

#: bytes of memory that a byte of a file takes until it is features: the text, the frame, the matrix
PER_BYTE = 3

_NEWLINE = 10
_SOME = 1000  # lines that are kept, however little time there is: a search compares kernels on as many
_TIMES = 8  # as many lines are kept as rows are asked for: a choice among them is nearly equally spaced
#: what is read as a whole or not at all: its lines are not its rows, or it has none
_NO_LINES = (b"@", b"%", b"\xff\xfe", b"\xfe\xff", b"PAR1", b"ARROW1", b"\x93NUMPY", b"PK")


def require_room(n_bytes: int, name: str) -> None:
    """Refuse a table of so many bytes of text if it cannot become features within the budget."""
    budget = memory_budget()
    if PER_BYTE * n_bytes > budget:
        raise InputError(
            f"{name} holds {format_bytes(n_bytes)} or more, which takes about "
            f"{format_bytes(PER_BYTE * n_bytes)} of memory, and the budget is {format_bytes(budget)}: "
            "raise it (--memory, mercer.config(memory=…)), or read some rows only ('mercer train --rows', "
            "rows=…)"
        )


class Intake:
    """Collects blocks of bytes. What exceeds the budget is refused; with ``rows`` lines of it are left out.

    Every s-th line is kept, the first one always, which may be a header. Where they become many more than
    ``rows``, every other of them goes and s doubles: one pass does, and standard input may be long.
    """

    def __init__(self, name: str, rows: int | None = None) -> None:
        self.name, self._rows = name, rows
        self._blocks: list[bytes] = []
        self._size = 0
        #: how many lines there were, where some were left out
        self.lines: int | None = None
        self._kept: list[bytes] = []
        self._stride, self._rest = 1, b""

    def add(self, block: bytes) -> None:
        if self.lines is not None:
            self._thin(block)
            return
        self._blocks.append(block)
        self._size += len(block)
        if PER_BYTE * self._size <= memory_budget():
            return
        if self._rows is None or not _has_lines(self._blocks[0]):
            require_room(self._size, self.name)
        self.lines = 0
        self._thin(b"".join(self._blocks).lstrip(b"\r\n"))
        self._blocks = []

    def _thin(self, block: bytes) -> None:
        assert self.lines is not None and self._rows is not None
        block = self._rest + block
        ends = np.flatnonzero(np.frombuffer(block, np.uint8) == _NEWLINE) + 1
        starts = np.concatenate([[0], ends])
        first = -self.lines % self._stride  # the first of this block's lines that is kept
        for i in range(first, len(ends), self._stride):
            self._kept.append(block[starts[i] : ends[i]])
        self.lines, self._rest = self.lines + len(ends), block[starts[-1] :]
        held, most = sum(map(len, self._kept)), _TIMES * self._rows
        while len(self._kept) > most or (
            PER_BYTE * held > memory_budget() and len(self._kept) > 2 * self._rows
        ):
            self._kept, self._stride = self._kept[::2], 2 * self._stride
            held = sum(map(len, self._kept))
        require_room(held, f"{len(self._kept):,} lines of {self.name}")

    def content(self) -> bytes:
        """What was collected."""
        if self.lines is None:
            return b"".join(self._blocks)
        if self._rest:
            self._thin(b"\n")
        return b"".join(self._kept)


def fewer_lines(content: bytes, most: int) -> tuple[bytes, int | None]:
    r"""Lines at equal distances, as many as ``most`` bytes hold, and how many there were; None with all.

    The first line, which may be a header, is always among them, and so are a thousand others. Where quotes
    may hold ends of lines, and where lines are no rows, all is kept.

    >>> some, lines = fewer_lines(b"x\n" + b"1\n" * 5000, 4000)
    >>> some[:4], len(some), lines
    (b'x\n1\n', 4000, 5001)
    >>> fewer_lines(b"x\n1\n2\n", 2)
    (b'x\n1\n2\n', None)
    """
    if len(content) <= most or b'"' in content or not _has_lines(content):
        return content, None
    ends = np.flatnonzero(np.frombuffer(content, np.uint8) == _NEWLINE) + 1
    if not len(ends) or ends[-1] < len(content):
        ends = np.append(ends, len(content))
    below, kept = len(ends) - 1, max(int((len(ends) - 1) * most / len(content)), _SOME)
    if below <= kept:
        return content, None
    which = np.concatenate([[0], 1 + np.arange(kept) * below // kept])
    starts = np.concatenate([[0], ends[:-1]])
    return b"".join(content[starts[i] : ends[i]] for i in which.tolist()), below + 1


def _has_lines(start: bytes) -> bool:
    return not start.lstrip().startswith(_NO_LINES) and b"\x00" not in start[:4096]
