r"""
The widest street between two classes
=====================================

A support vector machine draws the boundary that leaves the widest margin. **What if no line will do, and
what does C change?** The Gaussian kernel bends the boundary, and C says how much a point inside the street
may cost.
"""

# %%
# Linear against Gaussian, both with C = 1
# ----------------------------------------
# The data are two interleaved crescents; the Gaussian has :math:`\sigma^2 = \frac12`, as in the lecture.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from mercer import SVC, Gaussian
from mercer.plots import DecisionBoundaryDisplay

X, y = make_moons(200, noise=0.25, random_state=0)
X_new, y_new = make_moons(2000, noise=0.25, random_state=1)
fig, axes = plt.subplots(1, 2, figsize=(9.5, 4.2), layout="constrained")
for ax, kernel in zip(axes, ("linear", Gaussian(sigma=np.sqrt(0.5))), strict=True):
    model = SVC(kernel=kernel, C=1.0).fit(X, y)
    DecisionBoundaryDisplay.from_estimator(model, X, y, ax=ax)
    name = "linear" if kernel == "linear" else "Gaussian, σ² = ½"
    ax.set_title(f"{name}: {100 * model.score(X_new, y_new):.1f} % right on new points", pad=28)
    print(f"{name}: {len(model.support_)} support vectors, margin 2/‖f‖ = {model.margin_:.2f}")

# %%
# **What to see.** The line cuts through both crescents, and most points are in its street. The curved
# boundary follows them. Points with a ring are the *support vectors*: they alone decide, and all others
# could be taken away.
#
# Margin against C
# ----------------
# A small C lets points into the street, so that it may be wide. A large one does not, and the street is
# narrow.

penalties = np.logspace(-2, 4, 25)
models = [SVC(kernel=Gaussian(sigma=np.sqrt(0.5)), C=C).fit(X, y) for C in penalties]
fig, axes = plt.subplots(1, 3, figsize=(12, 3.5), layout="constrained")
axes[0].loglog(penalties, [model.margin_ for model in models], color="#0072B2")
axes[0].set(xlabel="C", title="margin 2/‖f‖")
axes[1].semilogx(penalties, [len(model.support_) for model in models], color="#0072B2")
axes[1].set(xlabel="C", title="support vectors, of 200", ylim=(0, 205))
axes[2].semilogx(
    penalties, [1 - model.score(X, y) for model in models], color="#D55E00", label="seen in training"
)
axes[2].semilogx(
    penalties, [1 - model.score(X_new, y_new) for model in models], color="#0072B2", label="new points"
)
axes[2].set(xlabel="C", title="error", ylim=(0, None))
axes[2].legend(frameon=False)

# %%
# **What to see.** The margin only shrinks as C grows. The error on the training points falls on the whole;
# the error on new points has a valley between too wide a street and too narrow a one.
