r"""
How hard is a problem for the perceptron?
=========================================

The perceptron adds a point to its weights when it is wrong about it, and stops when it is right about all.
**How many mistakes will it make?** Not more than :math:`R^2/\rho^2`, where :math:`R` is the length of the
longest point and :math:`\rho` the margin of *any* separator: neither the dimension nor the number of points
matters.
"""

# %%
# Mistakes against the margin, and against the number of points
# -------------------------------------------------------------
# We draw points on both sides of a known line and leave a gap of a given width between the classes.

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import gammaln
from sklearn.datasets import make_moons

from mercer import Gaussian, KernelPerceptron, Perceptron
from mercer.plots import MistakeProofDisplay

rng = np.random.default_rng(0)
w_star = np.array([0.6, 0.8])


def sample(n, margin):
    """So many points of the unit disc, none nearer to the line ⟨w*, x⟩ = 0 than the margin."""
    X = rng.uniform(-1, 1, (50 * n + 1000, 2))
    X = X[(np.linalg.norm(X, axis=1) <= 1) & (np.abs(X @ w_star) >= margin)][:n]
    return X, np.sign(X @ w_star).astype(int)


def mistakes(n, margin):
    return Perceptron(fit_intercept=False, max_iter=10_000).fit(*sample(n, margin)).mistakes_


margins = np.geomspace(0.01, 0.4, 9)
sizes = [20, 50, 100, 300, 1000, 3000]
by_margin = np.array([[mistakes(300, margin) for _ in range(8)] for margin in margins])
by_size = np.array([[mistakes(n, 0.05) for _ in range(8)] for n in sizes])

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained", sharey=True)
left.loglog(margins, by_margin, ".", color="#0072B2", alpha=0.5)
left.loglog(margins, by_margin.mean(axis=1), color="#0072B2", label="mistakes, on average")
left.loglog(margins, 1 / margins**2, "--", color="#D55E00", label="the bound R²/ρ²")
left.set(xlabel="margin ρ (300 points)", ylabel="mistakes")
left.legend(frameon=False)
right.loglog(sizes, by_size, ".", color="#0072B2", alpha=0.5)
right.loglog(sizes, by_size.mean(axis=1), color="#0072B2")
right.axhline(1 / 0.05**2, linestyle="--", color="#D55E00")
right.set(xlabel="number of points (margin 0.05)")

# %%
# **What to see.** A narrow gap is a hard problem. The bound holds for the worst points in the worst order,
# and is far above what happens. More points do cost more mistakes at first, because they fill the edge of
# the gap, but they never get past the bound.
#
# The proof, mistake by mistake
# -----------------------------
# With a unit vector :math:`w^*` that separates, each mistake adds at least :math:`\rho` to :math:`\langle
# w, w^*\rangle`, and at most :math:`R^2` to :math:`\lVert w\rVert^2`, because it is a mistake. So after
# :math:`j` of them :math:`j\rho \le \langle w_j, w^*\rangle \le \lVert w_j\rVert \le R\sqrt j`. A line
# overtakes a root in the end.

X, y = sample(1000, 0.02)
model = Perceptron(fit_intercept=False, max_iter=10_000).fit(X, y)
display = MistakeProofDisplay.from_estimator(model, w_star, 0.0, X, y)
print(display.describe())

# %%
# **What to see.** The picture calls the weights f and the separator g, for the kernel perceptron has the same
# proof. The solid lines are what happened, and are caught between the dashed ones. These cross at the bound:
# behind that point there is no room for another mistake.
#
# Few mistakes, few errors to come
# --------------------------------
# The weights depend on the points that were mistakes, and on no others: leave the others out, and the
# training takes the same course. A rule that is told by :math:`d` of :math:`n` points, and is right on the
# rest, has with probability :math:`1-\delta` an error of at most :math:`\big(\ln\binom nd + \ln\frac
# n\delta\big)/(n - d)` on new points. That is the *compression bound*.

n = 5000
X, y = sample(n, 0.02)
model = Perceptron(fit_intercept=False, max_iter=10_000).fit(X, y)
told = np.unique(model.mistake_indices_)
d = len(told)
again = Perceptron(fit_intercept=False, max_iter=10_000).fit(X[told], y[told])
print("the same weights from the mistakes alone:", np.allclose(model.coef_, again.coef_))
choices = gammaln(n + 1) - gammaln(d + 1) - gammaln(n - d + 1)
bound = (choices + np.log(n / 0.05)) / (n - d)
print(f"{d} of {n} points were mistakes: an error of at most {bound:.3f} with probability 95 %")
X_new, y_new = sample(20_000, 0.02)
print(f"the error on new points is {1 - model.score(X_new, y_new):.4f}")

# %%
# Not too many updates
# --------------------
# Where some labels are wrong and the kernel is rich enough, the perceptron goes on until it is right about
# the wrong labels, too. We take two crescents, turn a tenth of the labels round, and look after each pass at
# the error on new points whose labels are right. Beside the last function there is the average of all
# functions on the way.

X, y = make_moons(300, noise=0.15, random_state=0)
noisy = np.where(np.random.default_rng(1).random(300) < 0.1, 1 - y, y)
X_new, y_new = make_moons(2000, noise=0.15, random_state=1)
fig, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
for prediction, colour in (("last", "#D55E00"), ("averaged", "#0072B2")):
    model = KernelPerceptron(Gaussian(0.3), prediction=prediction)
    errors = [1 - model.partial_fit(X, noisy, classes=[0, 1]).score(X_new, y_new) for _ in range(30)]
    ax.plot(range(1, 31), errors, ".-", color=colour, label=f"{prediction} function")
    print(f"{prediction:8s}: after 1 pass {errors[0]:.3f}, after 30 passes {errors[-1]:.3f}")
ax.set(xlabel="passes over the data", ylabel="error on new points", ylim=(-0.01, None))
ax.legend(frameon=False)

# %%
# **What to see.** The last function is now good, now bad: a single update near a wrong label moves it. The
# average is calm and far better, and best after few passes; then it begins to learn the wrong labels.
#
# The version space
# -----------------
# Back in the plane, with labels that are right: the weight vectors that are right about all of a dozen
# points. Each point cuts the plane of weights in two, and what is left is a wedge.

model = None
while model is None or not 6 <= model.mistakes_ <= 12:  # We draw until the way is neither short nor long.
    few, labels = sample(12, 0.05)
    if len(set(labels)) == 2:
        model = Perceptron(fit_intercept=False).fit(few, labels)
path = np.cumsum(np.vstack([np.zeros(2), (labels[:, None] * few)[model.mistake_indices_]]), axis=0)
reach = 1.25 * np.abs(path).max()
grid = np.stack(np.meshgrid(*[np.linspace(-reach, reach, 401)] * 2), axis=-1)
wrong = (labels * (grid @ few.T) <= 0).sum(axis=-1)

fig, ax = plt.subplots(figsize=(5.6, 4.6), layout="constrained")
shown = ax.imshow(wrong, origin="lower", extent=[-reach, reach] * 2, cmap="Greys", vmax=16)
ax.contourf(*np.moveaxis(grid, -1, 0), wrong, levels=[-0.5, 0.5], colors=["#56B4E9"])
ax.plot(*path.T, "o-", color="#D55E00", markersize=4, label="the perceptron's steps")
ax.plot(*path[-1], "*", color="#D55E00", markeredgecolor="white", markersize=15, label="where it stops")
ax.set(xlabel="$w_1$", ylabel="$w_2$", title="blue: right about all points")
ax.legend(loc="lower left")
fig.colorbar(shown, ax=ax, label="points that w is wrong about")

# %%
# **What to see.** Each mistake is a step from the origin. The star is in the blue wedge, and the perceptron
# stops there, wherever in the wedge that is. A support vector machine would look for its middle.
