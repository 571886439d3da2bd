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

from mercer import Perceptron
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
# Not too many updates, and the version space
# -------------------------------------------
# Where a tenth of the labels are wrong, no line is right about all, and the perceptron runs on for ever.
# Its error on new points jumps about from pass to pass. The average of all the weights on the way is
# calmer.
#
# On the right is the *version space* of a dozen points that can be separated: all weight vectors that are
# right about them. Each point cuts the plane of weights in two, and the perceptron walks until it is in the
# white wedge.

X, y = sample(300, 0.05)
noisy = np.where(rng.random(300) < 0.1, -y, y)
X_new, y_new = sample(5000, 0.05)
errors = {"last": [], "averaged": []}
for prediction, seen in errors.items():
    model = Perceptron(fit_intercept=False, prediction=prediction)
    for _ in range(30):
        seen.append(1 - model.partial_fit(X, noisy, classes=[-1, 1]).score(X_new, y_new))

model = None
while model is None or model.mistakes_ < 6:  # We draw until the way is long enough to be seen.
    few, labels = sample(12, 0.02)
    if len(set(labels)) == 2:
        model = Perceptron(fit_intercept=False).fit(few, labels)
path = np.cumsum(np.vstack([np.zeros(2), (labels[:, None] * few)[model.mistake_indices_]]), axis=0)
reach = 1.25 * np.abs(path).max()
grid = np.stack(np.meshgrid(*[np.linspace(-reach, reach, 301)] * 2), axis=-1)
wrong = (labels * (grid @ few.T) <= 0).sum(axis=-1)

fig, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.9), layout="constrained")
for (name, seen), colour in zip(errors.items(), ("#D55E00", "#0072B2"), strict=True):
    left.plot(range(1, 31), seen, ".-", color=colour, label=name)
left.set(xlabel="passes over the data", ylabel="error on new points", ylim=(0, None))
left.legend(frameon=False)
shown = right.imshow(wrong, origin="lower", extent=[-reach, reach] * 2, cmap="Greys", vmax=16)
right.plot(*path.T, "o-", color="#D55E00", markersize=4, label="the perceptron's steps")
right.plot(*path[-1], "*", color="#D55E00", markersize=13)
right.set(xlabel="$w_1$", ylabel="$w_2$")
right.legend(frameon=False, loc="upper right")
fig.colorbar(shown, ax=right, label="points that w is wrong about")

# %%
# **What to see.** Left, the last weights are now good, now bad, and the average is nearly always right
# about points whose labels are. Right, each mistake is a step; the star is in the white wedge, and the
# perceptron stops there, wherever in the wedge that is. A support vector machine would look for its middle.
