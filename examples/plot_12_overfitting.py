r"""
Overfitting: the width of a kernel, bias and variance
=====================================================

A narrow Gaussian passes through every point, noise and all; a wide one misses the shape. **How wide should
it be, and how does one know without looking at the answer?** The error is a sum of two parts that the width
trades against each other.
"""

# %%
# Three widths
# ------------

import matplotlib.pyplot as plt
import numpy as np

from mercer import Gaussian, KernelRidge, KernelRidgeCV

rng = np.random.default_rng(0)


def truth(x):
    return np.sin(2 * np.pi * x) + 0.5 * np.sin(6 * np.pi * x)


def sample(n=40, noise=0.3):
    x = rng.uniform(0, 1, n)
    return x[:, None], truth(x) + noise * rng.normal(size=n)


X, y = sample()
grid = np.linspace(0, 1, 400)
fig, axes = plt.subplots(1, 3, figsize=(12, 3.2), layout="constrained", sharey=True)
for ax, (sigma, word) in zip(
    axes, ((0.01, "too narrow"), (0.08, "about right"), (0.5, "too wide")), strict=True
):
    model = KernelRidge(kernel=Gaussian(sigma), alpha=0.1).fit(X, y)
    ax.plot(X[:, 0], y, ".", color="0.4")
    ax.plot(grid, truth(grid), "--", color="0.6", label="the truth")
    ax.plot(grid, model.predict(grid[:, None]), color="#0072B2", label="learned")
    ax.set(title=f"σ = {sigma}: {word}", xlabel="x", ylim=(-2, 2))
axes[0].legend(frameon=False, loc="lower left")

# %%
# Bias and variance
# -----------------
# We repeat the experiment with fifty samples. The **bias** is how far the average of the learned functions
# is from the truth; the **variance** is how far each is from the average. Here we know the truth, so both
# can be computed.

widths = np.geomspace(0.005, 1.0, 13)
functions = np.empty((len(widths), 50, len(grid)))
for repeat in range(50):
    X, y = sample()
    for i, sigma in enumerate(widths):
        functions[i, repeat] = KernelRidge(kernel=Gaussian(sigma), alpha=0.1).fit(X, y).predict(grid[:, None])
average = functions.mean(axis=1)
bias = ((average - truth(grid)) ** 2).mean(axis=1)
variance = functions.var(axis=1).mean(axis=1)
best = widths[(bias + variance).argmin()]
print(f"bias² + variance is smallest at σ = {best:.3f}: {(bias + variance).min():.3f}")

# %%
# Choosing without the truth
# --------------------------
# In earnest there is one sample and no truth. The error on the training points is of no use: it only falls
# as the kernel gets narrower. Points that are *left out* tell. And the error of the one that is chosen must
# be measured on points that had no part in the choice.

X, y = sample(60)
X_test, y_test = sample(2000)
training = [
    np.mean((KernelRidge(kernel=Gaussian(s), alpha=0.1).fit(X, y).predict(X) - y) ** 2) for s in widths
]
left_out = [np.mean(KernelRidge(kernel=Gaussian(s), alpha=0.1).fit(X, y).loo_residuals_ ** 2) for s in widths]
model = KernelRidgeCV(kernel=[Gaussian(s) for s in widths]).fit(X, y)
error = np.mean((model.predict(X_test) - y_test) ** 2)
print(f"chosen by leaving out one point at a time: σ = {model.kernel_.sigma:.3f}")
print(f"error of this one on new points: {error:.3f}")
print(f"noise, which nobody can predict: {0.3**2:.3f}")

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
left.loglog(widths, bias, color="#D55E00", label="bias²")
left.loglog(widths, variance, color="#0072B2", label="variance")
left.loglog(widths, bias + variance, color="0.2", linewidth=2, label="their sum")
left.axvline(best, color="0.7", linewidth=1)
left.set(xlabel="width σ", title="what is known to those who know the truth", ylim=(1e-3, 2))
left.legend(frameon=False)
right.loglog(widths, training, color="#D55E00", label="on the training points")
right.loglog(widths, left_out, color="#0072B2", label="on points left out")
right.axhline(0.09, color="0.7", linewidth=1)
right.annotate("the noise", (1.0, 0.095), ha="right", fontsize="small", color="0.4")
right.set(xlabel="width σ", title="what one sample tells", ylim=(5e-3, 2))
right.legend(frameon=False)

# %%
# **What to see.** Left, from about 0.07 on the bias grows with the width, and the variance falls: a wide
# kernel cannot follow the waves, and does not follow the noise. Far to the left both are large, for a kernel
# that is narrower than the gaps between the points knows nothing there and says zero, which is a bias, too.
# The sum has a valley. Right, the error left out has its valley at about the same place, without knowing the
# truth; the training error has none.
