"""What it takes to learn on landmarks: on our threads, on a device, on a cluster."""

from __future__ import annotations

from dataclasses import replace
from time import thread_time
from typing import Any

import numpy as np

from mercer.cluster import DaskRows
from mercer.data import points as data
from mercer.data.types import Points
from mercer.gram.blocks import BLOCK_BYTES, RowBlocks, groups_of
from mercer.gram.device import is_used
from mercer.kernels.base import Kernel
from mercer.report import RATE, Method, Plan
from mercer.runtime.config import config, format_bytes, settings, thread_count
from mercer.solvers.landmarks.features import sample_size

#: Operations of a value of K in a pass beside those of ⟨x, z⟩: with 3 columns it takes about 1 ns of a
#: core in float32 and 2 in float64, as long as 80 of a matrix product.
_WORK_OF_A_VALUE = 80
_WIDTH_OF_OBJECTS = 20  # columns that objects are counted as, where nothing was measured
_LIKE_VECTORS = "the time is that of vectors: comparing two objects may take a hundred times as long"
#: Objects that are compared with as many others, and seconds from which this is done once only.
_OBJECTS_TIMED, _SECONDS_TIMED = 100, 0.05
#: Bytes that a task's messages take beside its sums, as measured on two workers.
_MESSAGES = 6_000
#: M × M matrices that are held at a time, by solvers that iterate and by those that take eigenvalues.
MATRICES, MATRICES_SQUARED = 3, 6


def landmark_plan(X: Points, M: int, passes: float, n_outputs: int, why: str, squares: float = 0.0) -> Plan:
    """The plan of learning on M landmarks."""
    n, threads = data.n_points(X), thread_count()
    width = data.n_columns(X) or _WIDTH_OF_OBJECTS
    item = np.dtype(settings().dtype).itemsize
    matrices, block = MATRICES_SQUARED if squares else MATRICES, min(BLOCK_BYTES, 8 * n * M)
    memory = (
        matrices * 8 * M * M
        + (threads * (item // 4) + item // 2) * block
        + 8 * n * (3 + 8 * n_outputs)
        + 64 * 8 * M * n_outputs
    )
    values = (passes * n + M + (0 if squares else sample_size(n, M))) * M
    flops = values * (2.0 * width + _WORK_OF_A_VALUE) + passes * n * M * 4 * n_outputs + 20.0 * float(M) ** 3
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
        why_so.append(_LIKE_VECTORS)
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
        kernel_values=values,
    )


def with_time_of_objects(plan: Plan, kernel: Kernel, X: Points) -> Plan:
    """The plan with the time that values of K take, of which some are computed.

    What a row costs by itself (to encode an object) and what each of its values costs are told apart by few
    landmarks and more of them.
    """
    rng, n = np.random.default_rng(0), data.n_points(X)
    rows, Z = (data.take(X, rng.choice(n, min(n, _OBJECTS_TIMED), replace=False)) for _ in range(2))
    count, few = data.n_points(rows), -(-data.n_points(rows) // 4)
    with config(threads=1):
        by_few, by_all = (
            _seconds(RowBlocks(kernel, rows, data.take(Z, slice(0, m)), spread=None)) for m in (few, count)
        )
    value = max(by_all - by_few, 0.0) / (count * max(count - few, 1))
    row = max(by_few / count - few * value, 0.0)
    seconds = value + row / plan.landmarks
    known = 2.0 * _WIDTH_OF_OBJECTS + _WORK_OF_A_VALUE
    why = f"a value of K takes about {seconds * 1e6:.2g} µs of a core, by {count:,} of the objects"
    return replace(
        plan,
        flops=max(plan.flops + plan.kernel_values * (seconds * RATE[plan.dtype] - known), 0.0),
        why=tuple(why if one == _LIKE_VECTORS else one for one in plan.why),
    )


def _seconds(K: RowBlocks) -> float:
    """What a pass takes of a core, when all that it needs is compiled."""
    V = np.zeros((K.shape[1], 1))
    K.some(np.arange(1)).values(V)
    taken: list[float] = []
    while len(taken) < 3 and sum(taken) < _SECONDS_TIMED:
        began = thread_time()
        K.values(V)
        taken.append(thread_time() - began)
    return min(taken)


def lives_on_device(X: Any) -> bool:
    """Whether a problem on landmarks is solved on the device: rows on a cluster stay where they are."""
    return is_used() and settings().cluster is None and not isinstance(X, DaskRows)


def device_landmark_plan(
    X: Points, M: int, passes: float, n_outputs: int, why: str, squares: float = 0.0
) -> Plan:
    """The plan of learning on M landmarks on a device."""
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


def bytes_of_pass(n: int, M: int, n_outputs: int) -> int:
    """What a pass over n rows sends: the sums of a task go to the scheduler, and from there to the client."""
    return len(groups_of(n, M)) * (2 * 8 * M * n_outputs + _MESSAGES)


def on_cluster(X: Any, M: int, n_outputs: int) -> tuple[int, tuple[str, ...]] | None:
    """The bytes that each thread of a worker takes, and what the plan says of a cluster; None without one."""
    client = X.client if isinstance(X, DaskRows) else settings().cluster
    if client is None:
        return None
    n = data.n_points(X)
    row = X.shape[1] * X.dtype.itemsize if hasattr(X, "dtype") else 100
    item, tasks = np.dtype(settings().dtype).itemsize, len(groups_of(n, M))
    sums, sent = 8 * M * n_outputs, bytes_of_pass(n, M, n_outputs)
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
