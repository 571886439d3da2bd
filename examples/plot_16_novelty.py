r"""
What is unusual? Novelty detection
==================================

Sometimes there are examples of one kind only: normal traffic, healthy machines. **Where does the usual
end?** A one-class support vector machine draws the region that holds all but a part :math:`\nu` of the
points, with as smooth an edge as it can.
"""

# %%
# The region, for three values of ν
# ---------------------------------

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from mercer import Gaussian, OneClassSVM

rng = np.random.default_rng(0)
centres = np.array([[-1.2, 0.0], [1.2, 0.4]])
X = centres[rng.integers(2, size=300)] + rng.normal(size=(300, 2)) * [0.35, 0.55]
side = np.linspace(-2.6, 2.6, 120)
grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
fig, axes = plt.subplots(1, 3, figsize=(12, 3.9), layout="constrained", sharey=True)
for ax, nu in zip(axes, (0.02, 0.1, 0.4), strict=True):
    model = OneClassSVM(kernel=Gaussian(0.9), nu=nu).fit(X)
    values = model.decision_function(grid).reshape(120, 120)
    ax.contourf(side, side, values, levels=[0, values.max()], colors=["#56B4E9"], alpha=0.4)
    ax.contour(side, side, values, levels=[0], colors="#0072B2")
    outside = model.predict(X) < 0
    ax.plot(*X[~outside].T, ".", color="0.4", markersize=4)
    ax.plot(*X[outside].T, "x", color="#D55E00", markersize=5)
    ax.set_title(f"ν = {nu}: {100 * outside.mean():.0f} % outside")
    support = len(model.support_) / len(X)
    print(f"ν = {nu}: a part of {outside.mean():.3f} is outside, {support:.3f} are support vectors")

# %%
# **What to see.** :math:`\nu` is a promise: at most that part of the points is outside, and at least that
# part are support vectors.
#
# Digits that are none
# --------------------
# We learn what zeros look like, and ask about all other digits. The value of f is a measure of how usual an
# image is.

D, y = load_digits(return_X_y=True)
zeros = D[y == 0]
model = OneClassSVM(kernel=Gaussian(30.0), nu=0.05).fit(zeros[:120])
values = {digit: model.decision_function(D[y == digit] if digit else zeros[120:]) for digit in range(10)}
wrong = np.concatenate([values[digit] for digit in range(1, 10)])
usual, unusual = 100 * np.mean(values[0] > 0), 100 * np.mean(wrong < 0)
print(f"new zeros found usual: {usual:.0f} %, other digits found unusual: {unusual:.1f} %")

fig, ax = plt.subplots(figsize=(7.5, 3.5), layout="constrained")
ax.boxplot(list(values.values()), tick_labels=list(values), whis=(0, 100), medianprops={"color": "#D55E00"})
ax.axhline(0, color="#0072B2", linewidth=1)
ax.set(xlabel="digit (zeros are new ones)", ylabel="f(x): above 0 is usual")

# %%
# **What to see.** All other digits are far below the line, though the machine has never seen one. Some new
# zeros are below it too: they are drawn in a way that the training zeros were not. A smaller :math:`\nu`
# lets more of them in.
