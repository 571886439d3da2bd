r"""
A kernel on the line that is none in space
==========================================

A function of the distance, :math:`\varphi(\lVert x - x'\rVert)`, can be written down for points of any
dimension. **If it is a kernel on the line, is it one in space?** No: Schoenberg's theorem has the dimension
in it. Here is a function that is a kernel in :math:`\mathbb R^1` alone, and the points that show it.
"""

# %%
# The hat function
# ----------------
# :math:`\varphi(r) = \max(1 - r, 0)` is tempting: it is simple, and zero for points that are far apart.

import matplotlib.pyplot as plt
import numpy as np

from mercer import Gaussian, Wendland, certify, largest_dimension
from mercer.plots import FourierDisplay


def hat(r):
    return np.maximum(1 - r, 0)


for dim in (1, 2, 3):
    print(f"in ℝ^{dim}: {certify(hat, dim=dim).verdict}")
print("largest dimension:", largest_dimension(hat), "  of the Gaussian:", largest_dimension(Gaussian()))
print("of Wendland's function, which is zero beyond 1 as well:", largest_dimension(Wendland(dim=3)))

# %%
# Its spectral density in one, two and three dimensions
# -----------------------------------------------------

fig, axes = plt.subplots(1, 3, figsize=(12, 3.3), layout="constrained")
for dim, ax in zip((1, 2, 3), axes, strict=True):
    FourierDisplay.from_kernels(hat, dim=dim, limits=(0, 30), ax=ax)
    ax.set(title=f"in $\\mathbb{{R}}^{dim}$", ylabel="v(ω)" if dim == 1 else "")
    top = ax.get_ylim()[1]
    ax.set_ylim(-0.08 * top, 0.3 * top)

# %%
# **What to see.** On the line the density touches zero and never crosses it: it is a square. In the plane
# and in space it is negative at some frequencies, where it is filled (the pictures are cut off above, to
# show what is small).
#
# The witness
# -----------
# So there are points of the plane, and numbers c, with :math:`\sum_{ij} c_ic_j\varphi(\lVert x_i -
# x_j\rVert) < 0`. As the negative part is faint, it takes a pattern of many: signs that alternate like a
# wave of just that frequency.

certificate = certify(hat, dim=2)
points, c = np.asarray(certificate.points), certificate.vector
K = hat(np.linalg.norm(points[:, None] - points, axis=2))
print(f"{len(points)} points, cᵀKc = {c @ K @ c:.4g}, smallest eigenvalue {np.linalg.eigvalsh(K)[0]:.4g}")

fig, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4), layout="constrained")
look = {"cmap": "PuOr_r", "vmin": -abs(c).max(), "vmax": abs(c).max(), "edgecolors": "0.4"}
shown = left.scatter(*points.T, c=c, s=400 * np.abs(c), **look)
left.set(xlabel="$x_1$", ylabel="$x_2$", title="the points, and c", aspect="equal")
left.margins(0.15)
fig.colorbar(shown, ax=left, label="c")
values = np.linalg.eigvalsh(K)[::-1]
right.bar(range(1, len(values) + 1), values, color=np.where(values < 0, "#D55E00", "#0072B2"))
right.axhline(0, color="0.3", linewidth=0.8)
right.annotate(
    f"{values[-1]:.4f}", (len(values), 0), xytext=(len(values), 0.5), ha="center", color="#D55E00",
    arrowprops={"arrowstyle": "->", "color": "#D55E00"},
)  # fmt: skip
right.set(xlabel="rank", title="eigenvalues of the hat's matrix")

# %%
# **What to see.** Neighbours have opposite signs, and the last eigenvalue is negative, by little and for
# certain. A learner that trusts this matrix minimises something that has no minimum. No function of compact
# support is a kernel in every dimension; Wendland's are made for a given one.
