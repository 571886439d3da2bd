"""What it takes to learn on landmarks: on our threads, on a device, on a cluster."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.cluster import DaskRows
from mercer.data import points as data
from mercer.data.types import Points
from mercer.gram.blocks import BLOCK_BYTES, groups_of
from mercer.gram.device import is_used
from mercer.report import Method, Plan
from mercer.runtime.config import format_bytes, settings, thread_count
from mercer.solvers.landmarks.features import sample_size

#: Operations of a value of K in a pass beside those of ⟨x, z⟩: with 3 columns it takes about 1 ns of a
#: core in float32 and 2 in float64, as long as 80 of a matrix product.
_WORK_OF_A_VALUE = 80
#: Bytes that a task's messages take beside its sums, as measured on two workers.
_MESSAGES = 6_000
#: M × M matrices that are held at a time, by solvers that iterate and by those that take eigenvalues.
MATRICES, MATRICES_SQUARED = 3, 6


def landmark_plan(X: Points, M: int, passes: float, n_outputs: int, why: str, squares: float = 0.0) -> Plan:
    """What it takes to learn on M landmarks."""
    n, threads = data.n_points(X), thread_count()
    width = data.n_columns(X) or 20
    item = np.dtype(settings().dtype).itemsize
    matrices, block = MATRICES_SQUARED if squares else MATRICES, min(BLOCK_BYTES, 8 * n * M)
    memory = (
        matrices * 8 * M * M
        + (threads * (item // 4) + item // 2) * block
        + 8 * n * (3 + 8 * n_outputs)
        + 64 * 8 * M * n_outputs
    )
    flops = passes * n * M * (2.0 * width + _WORK_OF_A_VALUE + 4 * n_outputs) + 20.0 * float(M) ** 3
    why_so = [why]
    if not squares:
        rows = sample_size(n, M)
        memory += 8 * rows * width
        flops += 2.0 * rows * float(M) ** 2
        which = "all rows are" if rows == n else f"{rows:,} rows, drawn at random, are"
        why_so.append(f"{which} solved for directly: a start, a preconditioner and a certificate")
    if squares:  # Three blocks of rows of each thread: values, features, and their squares.
        memory += 3 * threads * block + item // 2 * block
        flops += squares * n * float(M) ** 2
    how = "eigenvalues of the features" if squares else "conjugate gradients"
    why_so.append(f"about {passes:.0f} passes over the rows of K(X, Z), which is never stored")
    if data.n_columns(X) is None:
        why_so.append("the time is that of vectors: comparing two objects may take a hundred times as long")
    elsewhere = on_cluster(X, M, n_outputs)
    return Plan(
        f"{how} on {M:,} landmarks",
        n,
        int(memory),
        flops,
        (*why_so, *([] if elsewhere is None else elsewhere[1])),
        iterative=not squares,
        method=Method.LANDMARKS,
        landmarks=M,
    )


def lives_on_device(X: Any) -> bool:
    """Whether a problem on landmarks is solved on the device: rows on a cluster stay where they are."""
    return is_used() and settings().cluster is None and not isinstance(X, DaskRows)


def device_landmark_plan(
    X: Points, M: int, passes: float, n_outputs: int, why: str, squares: float = 0.0
) -> Plan:
    """What it takes to learn on M landmarks on a device."""
    from mercer.gram.device.plans import landmark_memory

    n, width = data.n_points(X), data.n_columns(X) or 20
    needed = landmark_memory(n, width, M)
    rows = squares * n / 2 if squares else sample_size(n, M, 1, 4)
    flops = passes * n * M * (2.0 * width + _WORK_OF_A_VALUE + 4 * n_outputs)
    flops += 2.0 * rows * float(M) ** 2 + (10.0 if squares else 1.0) * float(M) ** 3
    how = "eigenvalues of the features" if squares else "conjugate gradients"
    memory = 8 * n * (3 + 8 * n_outputs) + 64 * 8 * M * n_outputs + (2 * 8 * M * M if squares else 0)
    why_so = (
        why,
        f"about {passes:.0f} passes over the rows of K(X, Z): {needed.how}",
        f"points, kernel values, factors and sums are on {settings().device!r}, {needed.words}; for each "
        f"product {M:,} numbers come and go",
    )
    return Plan(
        f"{how} on {M:,} landmarks",
        n,
        int(memory),
        flops,
        why_so,
        iterative=not squares,
        method=Method.LANDMARKS,
        landmarks=M,
        device_memory=needed.total,
    )


def on_cluster(X: Any, M: int, n_outputs: int) -> tuple[int, tuple[str, ...]] | None:
    """The bytes that each thread of a worker takes, and what the plan says of a cluster; None without one."""
    client = X.client if isinstance(X, DaskRows) else settings().cluster
    if client is None:
        return None
    n = data.n_points(X)
    row = X.shape[1] * X.dtype.itemsize if hasattr(X, "dtype") else 100
    item, tasks = np.dtype(settings().dtype).itemsize, len(groups_of(n, M))
    sums = 8 * M * n_outputs
    # The sums of a task go to the scheduler, and from there to the client.
    sent = tasks * (2 * sums + _MESSAGES)
    # Landmarks as they came and centred, and four blocks of kernel values; T, its copy and the square beside.
    worker = (
        2 * M * row
        + -(-n // tasks) * row
        + item // 2 * BLOCK_BYTES
        + 3 * 8 * M * M
        + item * min(2**22, n * M)
    )
    words = (
        f"a worker holds {format_bytes(worker)} for each of its threads at most, and rows where these are "
        f"sent, {format_bytes(n * row)} in all",
        f"a pass sends {format_bytes(item * M * n_outputs)} to every worker and {format_bytes(sums)} back "
        f"from each of {tasks:,} tasks, about {format_bytes(sent)} in all by way of the scheduler; "
        f"targets, weights and values take {format_bytes(8 * n)} each",
    )
    return worker, words
