"""What a formula reads of a tile, compiled: products, squared distances, and what was computed elsewhere."""

from __future__ import annotations

from mercer.gram.backends.numba.distances import DIRECT, OWN, SHARED
from mercer.gram.backends.numba.pointers import address_of, call_part, copy, floats, integers, products
from mercer.runtime.native import at

__all__ = ["DOT", "EXTERNAL", "SQDIST", "SUM", "fill_planes"]

DOT, SQDIST, SUM, EXTERNAL = 0, 1, 2, 3  # kinds of planes


def fill_planes(job, tau, unit):  # type: ignore[no-untyped-def]
    """All planes of the tile at hand, each rows × cols, one after the other."""
    rows, cols, P = job.rows, job.cols, job.n_planes
    area = rows * cols
    sizes, q, e = integers(job.sizes), floats(job.q, tau), 0
    for turn in range(2 * P):  # products first: a squared distance may share one
        p = turn % P
        plane = at(integers(job.planes), 4 * p)
        values = at(q, p * area)
        kind, v, how = plane[0], plane[1], plane[2]
        if (kind == SQDIST) != (turn >= P):
            continue
        if kind == EXTERNAL:
            columns = job.j1 - job.j0
            start = (e * (job.i1 - job.i0) + job.it - job.i0) * columns + job.jt - job.j0
            for i in range(rows):
                copy(at(values, i * cols), at(floats(job.external, tau), start + i * columns), cols)
            e += 1
            continue
        view = at(integers(job.views), 4 * v)
        width = view[2]
        xs = view[0] + job.it * width
        ys = view[1] + job.jt * width
        sizes[2 + 3 * v] = xs
        sizes[2 + 3 * v + 1] = width
        product = values
        if kind == SQDIST:
            product = at(q, (P if how == OWN else how - SHARED) * area)
        if kind != SUM and how == OWN:
            products(at(floats(job.x, tau), xs), at(floats(job.y, tau), ys), rows, cols, width, product)
        if kind == SQDIST:
            job.v = v
            job.width = width
            job.plane = address_of(values)
            job.product = address_of(product)
            job.x_here = address_of(at(floats(job.x, tau), xs))
            job.x_exact_here = address_of(at(floats(job.x_exact, unit), xs))
            job.y_exact_here = address_of(at(floats(job.y_exact, unit), ys))
            job.x_norms_here = address_of(at(floats(job.x_norms, tau), v * job.x_points + job.it))
            job.y_norms_here = address_of(at(floats(job.y_norms, tau), v * job.y_points + job.jt))
            part = job.distances_from_differences if how == DIRECT else job.distances_from_products
            call_part(part, job, tau, unit)
    for p in range(P):
        plane = at(integers(job.planes), 4 * p)
        if plane[3]:  # ⟨x, y⟩ from the product of centred points
            left = at(floats(job.x_shift, tau), plane[1] * job.x_points + job.it)
            right = at(floats(job.y_shift, tau), plane[1] * job.y_points + job.jt)
            for i in range(rows):
                line = at(q, p * area + i * cols)
                for j in range(cols):
                    line[j] += left[i] + right[j]
