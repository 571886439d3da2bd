r"""The compiled tile loop: every Gram on the CPU goes through ``sweep``.

For a range of rows and columns, tile by tile while it is in cache: fill the planes that the formula reads
(``planes``), let the kernel's own compiled ``tile`` turn them into values, then store the values, or leave
them to a function of ``finish``.

Every part is a C function that is called through its address, and compiled on its own, once per precision,
when it is first needed: what is compiled into its callers is compiled twice. All of them read one record
(``job``). ``min``, tuples and loops that copy are left out where they can be: they take long to compile.
"""

from __future__ import annotations

from mercer.gram.backends.numba.pointers import (
    address_of,
    call_part,
    call_tile,
    floats,
    integers,
)
from mercer.runtime.native import at

STORE, MULTIPLY, MIRROR, SCATTER, SUMS = 0, 1, 2, 3, 4  # what to do with a tile


def sweep(job, tau, unit):  # type: ignore[no-untyped-def]
    """Rows i0:i1 × columns j0:j1 of the Gram matrix, into out[oi:, oj:] or multiplied with vectors into it.

    K is in the precision of ``tau``; the points that distances are repaired from are in that of ``unit``.
    """
    sizes, views, n_views = integers(job.sizes), integers(job.views), job.n_views
    stride = 2 + 3 * n_views  # where the kernel's function is told how long a row of its output is
    for jt in range(job.j0, job.j1, job.breadth):
        cols = job.breadth if job.breadth < job.j1 - jt else job.j1 - jt
        job.jt = jt
        job.cols = cols
        turned = floats(job.yt, tau)
        place = 0
        for v in range(n_views):
            sizes[2 + 3 * v + 2] = place
            if views[4 * v + 3]:
                width = views[4 * v + 2]
                points = at(floats(job.y, tau), views[4 * v + 1] + jt * width)
                for j in range(cols):
                    for k in range(width):
                        turned[place + k * cols + j] = points[j * width + k]
                place += cols * width
        for it in range(job.i0, job.i1, job.height):
            rows = job.height if job.height < job.i1 - it else job.i1 - it
            if job.mode == MIRROR and jt > it + rows - 1:
                continue  # above the diagonal: mirrored from below
            job.it = it
            job.rows = rows
            sizes[0] = rows
            sizes[1] = cols
            if job.copy_values != 0:
                call_part(job.copy_values, job, tau, unit)
            call_part(job.fill_planes, job, tau, unit)
            if job.mode == SUMS:
                call_part(job.add_by_sets, job, tau, unit)
                continue
            row, column = job.oi + it - job.i0, job.oj + jt - job.j0
            target = floats(job.values, tau)
            job.stride = cols
            if job.is_direct:
                target = at(floats(job.out, tau), row * job.out_width + column)
                job.stride = job.out_width
            job.target = address_of(target)
            sizes[stride] = job.stride
            call_tile(job.tile, job.q, job.lefts, job.rights, job.x, job.yt, job.params, target, sizes)
            if job.mode == MULTIPLY:
                call_part(job.multiply, job, tau, unit)
                continue
            if not job.is_direct:
                call_part(job.scatter, job, tau, unit)
            if job.mode == MIRROR:
                is_below = column + cols <= row
                call_part(job.mirror_below if is_below else job.mirror_diagonal, job, tau, unit)
