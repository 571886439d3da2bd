r"""
The representer theorem, put to the test
========================================

Learning looks for the best function in a space that may have infinitely many dimensions. The theorem says
that the best one is :math:`\sum_i\alpha_i k(x_i, \cdot)`, with one bump on each data point and none
elsewhere. **Can we beat it with bumps in other places?**
"""

# %%
# A rich dictionary
# -----------------
# The problem is :math:`\frac1n\sum_i(y_i - f(x_i))^2 + \lambda\lVert f\rVert^2`. One competitor may use
# bumps on the 12 data points. The others may use up to 200 bumps anywhere as well, and are given the best
# coefficients there are.

import matplotlib.pyplot as plt
import numpy as np

from mercer import Expansion, Gaussian, KernelRidge

rng = np.random.default_rng(0)
kernel, lam = Gaussian(0.4), 1e-3
X = np.sort(rng.uniform(-3, 3, 12))[:, None]
y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=12)


def objective(f):
    return np.mean((y - f(X)) ** 2) + lam * f.norm() ** 2


def best_on(points):
    """The minimiser among all functions with bumps on the given points."""
    F, K = kernel(X, points), kernel(points)
    return Expansion(kernel, points, np.linalg.lstsq(F.T @ F + len(y) * lam * K, F.T @ y, rcond=None)[0])


f = KernelRidge(kernel=kernel, lam=lam, fit_intercept=False).fit(X, y).expansion_
print(f"bumps on the 12 data points: objective {objective(f):.6f}")
elsewhere = rng.uniform(-4, 4, (200, 1))
counts = [1, 2, 5, 12, 25, 50, 100, 200]
objectives = [objective(best_on(elsewhere[:count])) for count in counts]
for count, value in zip(counts, objectives, strict=True):
    print(f"{count:3d} bumps elsewhere:         {value - objective(f):+.1e} against that")
both = best_on(np.concatenate([X, elsewhere]))
print(f"both:                        {objective(both) - objective(f):+.1e} against that")

fig, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
ax.loglog(counts, objectives, "o-", color="#D55E00", label="bumps elsewhere, the best there are")
ax.axhline(objective(f), color="#0072B2", label="12 bumps, on the data")
ax.set(xlabel="number of bumps elsewhere", ylabel="objective")
ax.set_xticks(counts, counts)
ax.minorticks_off()
ax.legend(frameon=False)

# %%
# **What to see.** Bumps in other places come close from above, if there are many, and never get below.
# Allowed to use both, the best function is the same as on the data alone, up to rounding.
#
# Why: what lies across only costs
# --------------------------------
# Any function is :math:`f = f^\parallel + f^\perp`, with :math:`f^\perp` orthogonal to every :math:`k(x_i,
# \cdot)`. Then :math:`f^\perp(x_i) = \langle f^\perp, k(x_i, \cdot)\rangle = 0`: it changes nothing at the
# data, and adds to the norm. We make such a function and see.

bump = Expansion(kernel, [[-0.7]], [1.0])
projection = Expansion(kernel, X, np.linalg.solve(kernel(X), bump(X)))
across = bump - projection
print(f"largest value at the data points: {np.abs(across(X)).max():.0e}, norm: {across.norm():.3f}")
steps = np.linspace(-2, 2, 81)
costs = [objective(f + step * across) for step in steps]

grid = np.linspace(-3.5, 3.5, 500)[:, None]
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained", width_ratios=[1.4, 1])
for step, colour in ((-2, "#E69F00"), (2, "#D55E00")):
    left.plot(
        grid,
        (f + step * across)(grid),
        color=colour,
        linewidth=1,
        label=f"with {step:+d} times the part across",
    )
left.plot(grid, f(grid), color="#0072B2", linewidth=2, label="the best function")
left.plot(X, y, "o", color="0.3")
left.set(xlabel="x", title="all agree on the data")
left.legend(frameon=False, fontsize="small", loc="upper right")
left.margins(y=0.3)
right.plot(steps, costs, color="#0072B2")
right.plot([0], [objective(f)], "o", color="#0072B2")
right.set(xlabel="how much of the part across", title="objective")

# %%
# **What to see.** The functions on the left agree at every data point, so that the data cannot choose among
# them. The norm does: the parabola on the right has its minimum where nothing lies across.
