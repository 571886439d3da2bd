"""How much of a device's memory a fit may fill: ``config(device_memory=…)``, and who has which part of it."""

from __future__ import annotations

from typing import Any

from mercer.errors import MemoryBudgetError
from mercer.gram.backends.torch import torch
from mercer.runtime.config import format_bytes, memory_budget, settings

#: The share of the free memory that is used where ``config(device_memory=…)`` says nothing.
_SHARE = 0.9
#: The share of that memory which is for blocks that come and go, and how many bytes they take at most.
_WORK_SHARE, _MOST_WORK = 0.125, 2**32


def free_memory(where: Any) -> int:
    """Bytes that could be filled there; of the CPU the memory budget."""
    if where.type != "cuda":
        return memory_budget()
    free, _ = torch.cuda.mem_get_info(where)
    kept = torch.cuda.memory_reserved(where) - torch.cuda.memory_allocated(where)  # PyTorch uses it again
    return int(free + kept)


class DeviceRoom:
    """A budget that is handed out before anything is allocated.

    >>> from mercer import config
    >>> from mercer.gram.backends.torch import where_of
    >>> with config(device_memory="8MiB"):
    ...     room = DeviceRoom(where_of("cpu"))
    >>> room.work, room.left
    (1048576, 7340032)
    >>> room.take(2**20, "a matrix", "take fewer points")
    >>> room.require(2**23, "another", "take fewer points")
    Traceback (most recent call last):
    mercer.errors.MemoryBudgetError: another needs 8MiB on the device, more than the 6MiB that are left of
    8MiB: take fewer points, or raise the budget with mercer.config(device_memory=…)
    """

    def __init__(self, where: Any) -> None:
        chosen = settings().device_memory
        self.where = where
        self.total = int(_SHARE * free_memory(where)) if chosen is None else chosen
        #: bytes for blocks that come and go, one at a time
        self.work = min(int(_WORK_SHARE * self.total), _MOST_WORK)
        self.left = self.total - self.work

    def require(self, n_bytes: int, what: str, remedy: str) -> None:
        """Refuse what does not fit."""
        if n_bytes > self.left:
            raise MemoryBudgetError(
                f"{what} needs {format_bytes(n_bytes)} on the device, more than the "
                f"{format_bytes(self.left)} that are left of {format_bytes(self.total)}: {remedy}, or raise "
                "the budget with mercer.config(device_memory=…)"
            )

    def take(self, n_bytes: int, what: str, remedy: str) -> None:
        """Hand it out; refuse what does not fit."""
        self.require(n_bytes, what, remedy)
        self.left -= n_bytes

    def give(self, n_bytes: int) -> None:
        """Give bytes back to the budget."""
        self.left += n_bytes
