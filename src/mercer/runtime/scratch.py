r"""Large memory for the time of a fit, used again by the next one.

The first write to new memory costs: the system finds pages and clears them (0.1 s a gigabyte, and ten times
that on a virtual machine whose host took them back meanwhile), which is more than some fits take. So up to
256 MiB stay with the process when they are given back, marked as free: the system takes them whenever it is
short of memory, and until then writing to them costs nothing.

>>> memory = borrow(10**6)
>>> memory.array(np.float32)[:2] = 1.0
>>> memory.give_back()
"""

from __future__ import annotations

import errno
import mmap
from contextlib import suppress
from typing import Any

import numpy as np

_BYTES_KEPT = 2**28  # These stay with the process, marked free: a choice between memory and time.
_CAN_KEEP = hasattr(mmap, "MADV_FREE") and hasattr(mmap, "MAP_PRIVATE")  # Windows has neither.

_idle: list[Memory] = []  # It holds at most one; a list takes and gives atomically.


class Memory:
    """A block of bytes that somebody borrows and gives back."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.pages: mmap.mmap | np.ndarray
        if _CAN_KEEP:
            self.pages = _mapped(size)
            with suppress(OSError):  # A system without huge pages refuses this advice.
                self.pages.madvise(getattr(mmap, "MADV_HUGEPAGE", mmap.MADV_NORMAL))
        else:
            self.pages = np.empty(size, np.uint8)

    def array(self, dtype: Any) -> np.ndarray:
        """The whole memory as numbers, which begin on a page; nobody may use it once it is given back."""
        return np.frombuffer(self.pages, dtype, self.size // np.dtype(dtype).itemsize)

    def grow(self, size: int) -> bool:
        """Make it larger, keeping what it has; False where that cannot be."""
        if not isinstance(self.pages, mmap.mmap):
            return False
        try:
            self.pages.resize(size)
        except (BufferError, OSError, SystemError):
            # Somebody still looks at the pages, or the system has no such call.
            return False
        self.size = size
        return True

    def give_back(self) -> None:
        """Let others have it: the next who borrows, or the system."""
        if not isinstance(self.pages, mmap.mmap):
            return
        others = [_idle.pop() for _ in _idle[:1]]
        largest = max([self, *others], key=lambda memory: memory.size)
        if largest is self:
            self.pages.madvise(mmap.MADV_FREE)
            if self.size > _BYTES_KEPT:
                self.pages.madvise(mmap.MADV_DONTNEED, _BYTES_KEPT)
        _idle.append(largest)


def _mapped(size: int) -> mmap.mmap:
    """New pages. Where the system has none to give (``ulimit -v``), that is a MemoryError, as everywhere."""
    try:
        return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        if error.errno != errno.ENOMEM:
            raise
        raise MemoryError(
            f"the system has no {size / 2**20:.0f} MiB of memory to give: raise the limit of the process "
            "(ulimit -v), or lower mercer.config(memory=…)"
        ) from None


def borrow(size: int) -> Memory:
    """Memory of at least ``size`` bytes; it is taken from the system as it is written to."""
    size = -(-max(size, _BYTES_KEPT) // mmap.PAGESIZE) * mmap.PAGESIZE
    try:
        memory = _idle.pop()
    except IndexError:
        return Memory(size)
    return memory if memory.size >= size or memory.grow(size) else Memory(size)
