r"""
Kernel PCA: curved directions, and cleaning digits
==================================================

Principal components are the straight directions in which data vary most. **What if data vary along
curves?** Then take straight directions in feature space. A point projected on them can be brought back, by
looking for the point whose image is nearest, and what was noise is gone.
"""

# %%
# Components that follow the data
# -------------------------------

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from mercer import Gaussian, KernelPCA

rng = np.random.default_rng(0)
t = rng.uniform(-1, 1, 300)
curve = np.stack([t, t**2], axis=1) + 0.07 * rng.normal(size=(300, 2))
side = np.linspace(-1.5, 1.5, 80)
grid = np.stack(np.meshgrid(side, side + 0.4), axis=-1).reshape(-1, 2)
fig, axes = plt.subplots(1, 4, figsize=(13, 3.2), layout="constrained", sharey=True)
linear, bent = KernelPCA(2, kernel="linear").fit(curve), KernelPCA(3, kernel=Gaussian(0.5)).fit(curve)
shown = [
    ("linear, 1st", linear, 0),
    ("Gaussian, 1st", bent, 0),
    ("Gaussian, 2nd", bent, 1),
    ("Gaussian, 3rd", bent, 2),
]
for ax, (title, pca, component) in zip(axes, shown, strict=True):
    values = pca.transform(grid)[:, component].reshape(80, 80)
    ax.contourf(side, side + 0.4, values, 12, cmap="PuOr_r", alpha=0.8)
    ax.plot(*curve.T, ".", color="0.2", markersize=2)
    ax.set(title=title)

# %%
# **What to see.** Colours are the value of a component. The linear one grows from left to right; the
# Gaussian ones follow the parabola from one end to the other, then from its middle to both ends, then in
# thirds.
#
# Cleaning digits
# ---------------
# We spoil images of digits, project them on the directions that clean digits vary in, and bring them back
# (*pre-images*). Linear PCA is beside it. The numbers of components, 20 and 160, and the width are those that
# clean these very images best: this shows what is possible, and is no honest error.

X, y = load_digits(return_X_y=True)
train, test = X[:1200], X[1200:1600]
noisy = test + 5.0 * rng.normal(size=test.shape)
pca = KernelPCA(160, kernel=Gaussian(30.0)).fit(train)
cleaned = pca.inverse_transform(pca.transform(noisy))
straight = KernelPCA(20, kernel="linear").fit(train)
flat = straight.inverse_transform(straight.transform(noisy))
for name, images in (
    ("noisy", noisy),
    ("linear PCA, 20 components", flat),
    ("kernel PCA, 160 components", cleaned),
):
    print(f"{name:27s} error per pixel {np.sqrt(np.mean((images - test) ** 2)):.2f} (of 16 levels)")

rows = {"clean": test, "noisy": noisy, "linear PCA": flat, "kernel PCA": cleaned}
fig, axes = plt.subplots(4, 10, figsize=(9, 3.9), layout="constrained")
chosen = [int(np.flatnonzero(y[1200:1600] == digit)[0]) for digit in range(10)]
for line, (name, images) in zip(axes, rows.items(), strict=True):
    for ax, i in zip(line, chosen, strict=True):
        ax.imshow(images[i].reshape(8, 8), cmap="gray_r", vmin=0, vmax=16)
        ax.set(xticks=[], yticks=[])
    line[0].set_ylabel(name, rotation=0, ha="right", va="center")

# %%
# **What to see.** Linear PCA leaves clouds of noise around the strokes, for it may add up its components in
# any way. The pre-image of kernel PCA is a mean of training images, weighted by how near they are: smooth,
# and always like a digit, if sometimes like a blend of two.
