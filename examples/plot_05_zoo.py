r"""
A zoo of kernels
================

**What does a kernel look like, and what does it think of a function?** A kernel is known by three pictures:
its shape :math:`k(x, c)`, the functions it finds likely, and what it charges for a wave of each frequency.
"""

# %%
# Shapes
# ------
# These are the kernels of the lecture. Those on the left depend on :math:`x - c` alone and look the same
# wherever c is; those on the right do not.

import matplotlib.pyplot as plt
import numpy as np

from mercer import BSpline, Gaussian, Laplacian, Linear, Matern, Polynomial
from mercer.certify import invariance
from mercer.plots import FourierDisplay, KernelShapeDisplay

fig, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.8), layout="constrained")
still = {"Gaussian": Gaussian(1.0), "Laplacian": Laplacian(1.0), "B₃-spline": BSpline(degree=3)}
still["Matérn 3/2"] = Matern(nu=1.5)
KernelShapeDisplay.from_kernels(*still.values(), names=list(still), center=1.0, ax=left)
moving = {"linear": Linear(), "cubic polynomial": Polynomial(3, c=1.0) / 10}
KernelShapeDisplay.from_kernels(*moving.values(), names=list(moving), center=1.0, limits=(-3, 2), ax=right)
for name, kernel in (still | moving).items():
    verdicts = [invariance(kernel, under).verdict for under in ("translation", "rotation")]
    print(f"{name:17s} translation-invariant: {verdicts[0]:8s} rotation-invariant: {verdicts[1]}")

# %%
# Functions that a kernel finds likely
# ------------------------------------
# A kernel is also the covariance of a random function. We draw some: with :math:`K = V\Lambda V^\top`, the
# values at the points are :math:`V\Lambda^{1/2}z` for random normal numbers z.

x = np.linspace(-3, 3, 300)[:, None]
rng = np.random.default_rng(0)
zoo = still | moving
fig, axes = plt.subplots(2, 3, figsize=(10.5, 5), layout="constrained", sharex=True)
for ax, (name, kernel) in zip(axes.ravel(), zoo.items(), strict=True):
    values, vectors = np.linalg.eigh(kernel(x))
    ax.plot(x, vectors @ (np.sqrt(np.maximum(values, 0))[:, None] * rng.normal(size=(300, 4))), linewidth=1.2)
    ax.set_title(name)

# %%
# **What to see.** The Laplacian's functions are as jagged as a share price, the Gaussian's have no corner
# anywhere, the Matérn's are between the two. The linear kernel knows lines through the origin and nothing
# else.
#
# What the norm charges
# ---------------------
# A learner keeps :math:`\lVert f\rVert^2 = (2\pi)^{-1/2}\int|\hat f(\omega)|^2/v(\omega)\,d\omega` small.
# So :math:`1/v(\omega)` is the price of a wave.

display = FourierDisplay.from_kernels(*still.values(), shown="cost", names=list(still), limits=(0, 12))
display.ax_.set_ylim(0.8, 1e8)

# %%
# **What to see.** For the Laplacian the price grows like :math:`\omega^2`, for the Matérn like
# :math:`\omega^4`, for the Gaussian faster than every power: it all but forbids fast waves. This is what
# "smooth" means to each of them. The spline charges most for :math:`\omega = 2\pi`: waves as long as its
# steps are no part of any of its functions. The linear and the cubic kernel are no functions of
# :math:`x - x'` and have no spectrum; they know polynomials alone, and charge for their coefficients.
