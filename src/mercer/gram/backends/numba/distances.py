r"""Squared distances of a tile, compiled: from differences or from products, with their repair.

‖x-y‖² = ‖x‖² + ‖y‖² - 2⟨x,y⟩ on centred data costs one matrix product, but cancels when x and y are close.
For few columns the differences are taken directly. Either way, where the result is below a fraction τ of
‖x‖² + ‖y‖² it is computed again from float64 differences; what is kept has a relative error of at most about
ε/τ. τ = 2⁻⁷ for float32 and 2⁻²⁰ for float64 products; τ³ for float32 differences, which are exact but for
the rounding of x and y; float64 differences need no repair.
"""

from __future__ import annotations

import numpy as np

from mercer.gram.backends.numba.pointers import call_part, either, floats, integers
from mercer.runtime.native import at, bits

OWN, DIRECT, SHARED = 0, 1, 2  # a plane has its own product; differences; that of plane (how - SHARED)


def distances_from_differences(job, tau, unit):  # type: ignore[no-untyped-def]
    """The plane at hand as Σₖ (xₖ - yₖ)², row after row, four coordinates a pass."""
    width, cols = job.width, job.cols
    a, s = floats(job.x_here, tau), floats(job.plane, tau)
    for i in range(job.rows):
        y = at(floats(job.yt, tau), integers(job.sizes)[2 + 3 * job.v + 2])
        for j in range(cols):
            s[j] = 0
        k = 0
        while k + 4 <= width:
            a0 = a[k]
            a1 = a[k + 1]
            a2 = a[k + 2]
            a3 = a[k + 3]
            y1 = at(y, cols)
            y2 = at(y1, cols)
            y3 = at(y2, cols)
            for j in range(cols):
                d0 = a0 - y[j]
                d1 = a1 - y1[j]
                d2 = a2 - y2[j]
                d3 = a3 - y3[j]
                s[j] += (d0 * d0 + d1 * d1) + (d2 * d2 + d3 * d3)
            k += 4
            y = at(y3, cols)
        while k < width:
            a0 = a[k]
            for j in range(cols):
                d0 = a0 - y[j]
                s[j] += d0 * d0
            k += 1
            y = at(y, cols)
        a = at(a, width)
        s = at(s, cols)
        if job.itemsize < 8:
            # Differences lose ε‖x‖/‖x-y‖, the square root of what products lose.
            job.row = i
            call_part(job.repair_distances, job, tau * tau * tau, unit)


def distances_from_products(job, tau, unit):  # type: ignore[no-untyped-def]
    """The plane at hand as ‖x‖² + ‖y‖² - 2⟨x, y⟩, with its repair."""
    cols, s, product = job.cols, floats(job.plane, tau), floats(job.product, tau)
    nx, ny = floats(job.x_norms_here, tau), floats(job.y_norms_here, tau)
    for i in range(job.rows):
        n = nx[i]
        signs = bits(n - n)
        for j in range(cols):
            scale = n + ny[j]
            s[j] = scale - (product[j] + product[j])
            signs = either(signs, bits(s[j] - tau * scale))  # The sign bit says s < τ(‖x‖² + ‖y‖²).
        if signs < 0:
            job.row = i
            call_part(job.repair_distances, job, tau, unit)
        s = at(s, cols)
        product = at(product, cols)


def repair_distances(job, tau, unit):  # type: ignore[no-untyped-def]
    """Where s < τ(‖x‖² + ‖y‖²) in a row of the plane, s again, from float64 differences."""
    width, cols, s = job.width, job.cols, at(floats(job.plane, tau), job.row * job.cols)
    x, y = at(floats(job.x_exact_here, unit), job.row * width), floats(job.y_exact_here, unit)
    n, ny = floats(job.x_norms_here, tau)[job.row], floats(job.y_norms_here, tau)
    signs = bits(n - n)
    for j in range(cols):
        signs = either(signs, bits(s[j] - tau * (n + ny[j])))
    if signs < 0:
        for j in range(cols):
            if s[j] < tau * (n + ny[j]):
                total = 0.0
                for k in range(width):
                    d = np.float64(x[k]) - np.float64(y[j * width + k])
                    total += d * d
                s[j] = total
