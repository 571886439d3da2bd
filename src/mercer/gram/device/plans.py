"""What a fit takes of a device's memory, before anything is allocated there."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mercer.gram.backends import backend_of
from mercer.gram.backends.torch import where_of
from mercer.gram.device.basis import square_memory
from mercer.gram.device.memory import DeviceRoom
from mercer.gram.device.rows import QUICK_COLUMNS, points_memory
from mercer.gram.device.triangle import panel_of
from mercer.runtime.config import format_bytes, settings


class Needed(NamedTuple):
    """Bytes on the device, and what a plan says of them."""

    total: int
    how: str
    words: str


def landmark_memory(n: int, width: int, M: int) -> Needed:
    """The memory of M landmarks: two matrices and a copy, points, blocks, and K(X, Z) where it fits."""
    room, item = DeviceRoom(where_of(settings().device)), np.dtype(settings().dtype).itemsize
    matrices, points, values = 8 * M * M + square_memory(M), points_memory(n, width, item), item * n * M
    now = settings()
    is_printed = backend_of(now.backend, now.device) == "triton" and now.dtype == "float32"
    is_fused = is_printed and width <= QUICK_COLUMNS
    keeps = matrices + points + values <= room.left and not is_fused
    total = matrices + min(points, room.left) + room.work + (values if keeps else 0)
    how = "computed once and kept" if keeps else "a block at a time"
    how = "computed in each product and never stored" if is_fused else how
    return Needed(total, how, f"of {format_bytes(room.total)} there")


def device_budget() -> int:
    """Bytes that a fit may fill on the device, beside blocks that come and go."""
    return DeviceRoom(where_of(settings().device)).total


class Exact(NamedTuple):
    """Bytes on the device of an exact solver, those that there are, and what a plan says of them."""

    total: int
    left: int
    words: str


def ridge_memory(n: int, width: int, item: int, matrix: int) -> Exact:
    """The memory of a matrix of ``matrix`` bytes, the panel of its factor, the points, and blocks."""
    room = DeviceRoom(where_of(settings().device))
    panel = 2 * item * min(n, panel_of(n)) * n if matrix else 0
    total = matrix + panel + points_memory(n, width, item) + room.work
    return Exact(total, room.total, f"of {format_bytes(room.total)} there")
