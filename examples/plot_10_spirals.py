r"""
Two spirals, raw and unrolled
=============================

Two interlocking spirals are a classic torture for learners. **Is the problem hard, or are its coordinates
wrong?** With the radius and the angle, :math:`(x_1, x_2) = (r\sin\varphi, r\cos\varphi)`, an arm of a
spiral is a straight line.
"""

# %%
# The spirals
# -----------

import matplotlib.pyplot as plt
import numpy as np

from mercer import SVC, Gaussian, Periodic
from mercer.features import PolarMap
from mercer.plots import DecisionBoundaryDisplay

rng = np.random.default_rng(0)


def spirals(n, noise=0.07):
    """Two arms, r = angle / 2π, the second half a turn after the first."""
    arm = np.arange(n) % 2
    turn = 2 * np.pi * np.sqrt(rng.uniform(0.09, 4.0, n))
    r = turn / (2 * np.pi)
    X = np.stack([r * np.sin(turn + np.pi * arm), r * np.cos(turn + np.pi * arm)], axis=1)
    return X + noise * rng.normal(size=X.shape), arm


X, y = spirals(200)
X_new, y_new = spirals(4000)
polar = PolarMap()(X)
fig, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4), layout="constrained")
for arm, colour, marker in ((0, "#0072B2", "o"), (1, "#D55E00", "s")):
    left.scatter(*X[y == arm].T, s=14, color=colour, marker=marker)
    right.scatter(*polar[y == arm].T, s=14, color=colour, marker=marker)
left.set(title="as they come", xlabel="$x_1$", ylabel="$x_2$", aspect="equal")
right.set(title="PolarMap: straight lines", xlabel="radius r", ylabel="angle φ")
right.set_yticks([-np.pi, 0, np.pi], ["-π", "0", "π"])

# %%
# **What to see.** In polar coordinates the arms are straight stripes. Where the angle passes :math:`\pi` a
# stripe leaves at the top and comes in at the bottom, so that the angle should be compared by a *periodic*
# kernel.
#
# Three machines
# --------------
# One is linear, one has a Gaussian kernel of the points, and one a Gaussian of the radius times a periodic
# kernel of the angle: a kernel composed with a map is a kernel, ``k @ PolarMap()``.

polar_kernel = (Gaussian(0.4).on(0) * Periodic(period=2 * np.pi, length_scale=0.8).on(1)) @ PolarMap()
machines = {"linear": "linear", "Gaussian of x": Gaussian(0.3), "of radius and angle": polar_kernel}
fig, axes = plt.subplots(1, 3, figsize=(13, 4.3), layout="constrained")
for ax, (name, kernel) in zip(axes, machines.items(), strict=True):
    model = SVC(kernel=kernel, C=100.0).fit(X, y)
    DecisionBoundaryDisplay.from_estimator(model, X, y, ax=ax, grid=150)
    ax.set_title(f"{name}: {100 * model.score(X_new, y_new):.1f} % right", pad=28)
    print(f"{name:20s} {model.score(X_new, y_new):.3f} right, {len(model.support_)} support vectors")

# %%
# With fewer points
# -----------------
# Good coordinates are worth data. We train on fewer and fewer points; each number is a mean over ten draws.

sizes = [20, 30, 50, 80, 120, 200]
fig, ax = plt.subplots(figsize=(5.6, 3.6), layout="constrained")
for (name, kernel), colour in zip(list(machines.items())[1:], ("#D55E00", "#0072B2"), strict=True):
    machine = SVC(kernel=kernel, C=100.0)
    errors = [np.mean([1 - machine.fit(*spirals(n)).score(X_new, y_new) for _ in range(10)]) for n in sizes]
    ax.plot(sizes, errors, "o-", color=colour, label=name)
ax.set(xlabel="training points", ylabel="error on new points", ylim=(0, None))
ax.legend(frameon=False)

# %%
# **What to see.** With the right coordinates half as many points do. Given enough points, the Gaussian
# learns the spirals by heart, and the difference is gone.
