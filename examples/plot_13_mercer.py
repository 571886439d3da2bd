r"""
Mercer's theorem, drawn
=======================

A kernel is an inner product in a space of features. **Which features?** On an interval, Mercer's theorem
names them: :math:`k(x, x') = \sum_i \lambda_i\varphi_i(x)\varphi_i(x')`, where the :math:`\varphi_i` are
functions that the kernel, as an integral operator, only multiplies by :math:`\lambda_i`.
"""

# %%
# Eigenfunctions
# --------------
# For :math:`\min(s, t)` on [0, 1], the covariance of Brownian motion, the books have the answer:
# :math:`\lambda_i = 1/((i-\frac12)^2\pi^2)` and :math:`\varphi_i(x) = \sqrt2\sin((i-\frac12)\pi x)`. For
# the others it is computed.

import matplotlib.pyplot as plt
import numpy as np

from mercer import Gaussian, Laplacian, Min
from mercer.features import eigenfunctions

x = np.linspace(0, 1, 201)
kernels = {"min(s, t)": Min(), "Laplacian": Laplacian(5.0), "Gaussian": Gaussian(0.2)}
fig, axes = plt.subplots(1, 3, figsize=(12, 3.2), layout="constrained", sharey=True)
for ax, (name, kernel) in zip(axes, kernels.items(), strict=True):
    pairs = eigenfunctions(kernel, (0.0, 1.0), count=4)
    lines = ax.plot(x, pairs(x))
    words = [f"λ = {value:.3f}" for value in pairs.values]
    ax.legend(lines, words, fontsize="small", frameon=False, ncols=2, loc="lower left")
    ax.set(title=name, xlabel="x", ylim=(-3.4, 2.2))

brownian = eigenfunctions(Min(), count=4)
known = 1 / ((np.arange(4) + 0.5) * np.pi) ** 2
print("computed:", brownian.values.round(5))
print("the book:", known.round(5))

# %%
# **What to see.** They look like vibrations of a string: each has one more zero than the one before, and
# the smoother the kernel is, the faster their weights fall.
#
# The sum converges
# -----------------
# We add one term after the other, and look at the kernel as a picture and at the largest error anywhere.

kernel = Gaussian(0.1)
pairs = eigenfunctions(kernel, count=16)
Phi, K = pairs.features(x), kernel(x[:, None])
fig, axes = plt.subplots(1, 5, figsize=(13, 3), layout="constrained")
for ax, terms in zip(axes, (1, 3, 6, 12), strict=False):
    ax.imshow(Phi[:, :terms] @ Phi[:, :terms].T, vmin=0, vmax=1, extent=(0, 1, 1, 0), cmap="cividis")
    ax.set(title=f"{terms} term{'s' * (terms > 1)}", xticks=[0, 1], yticks=[0, 1])
axes[4].imshow(K, vmin=0, vmax=1, extent=(0, 1, 1, 0), cmap="cividis")
axes[4].set(title="the kernel", xticks=[0, 1], yticks=[0, 1])
for terms in (1, 3, 6, 12, 16):
    error = np.abs(Phi[:, :terms] @ Phi[:, :terms].T - K).max()
    share = pairs.values[:terms].sum() / pairs.trace
    print(f"{terms:2d} terms: largest error {error:.4f}, share of the trace {share:.4f}")

# %%
# The Gram matrix knows them
# --------------------------
# The eigenvalues of the Gram matrix of n random points, divided by n, tend to the :math:`\lambda_i`: this
# is why few directions suffice to learn with a smooth kernel, however many points there are.

rng = np.random.default_rng(0)
fig, ax = plt.subplots(figsize=(5.6, 3.8), layout="constrained")
ranks = np.arange(1, 17)
for n, colour in ((20, "#E69F00"), (100, "#56B4E9"), (1000, "#0072B2")):
    values = np.linalg.eigvalsh(kernel(rng.uniform(size=(n, 1))))[::-1][:16] / n
    ax.semilogy(
        ranks[: len(values)], np.maximum(values, 1e-9), ".-", color=colour, label=f"K/n of {n} points"
    )
ax.semilogy(ranks, pairs.values, "o", fillstyle="none", color="0.2", label="λᵢ of Mercer's theorem")
ax.set(xlabel="i", ylim=(1e-7, 1))
ax.legend(frameon=False)

# %%
# **What to see.** A hundred points know the first sixteen eigenvalues already; twenty know the first eight
# or so.
