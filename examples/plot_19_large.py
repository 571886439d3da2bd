r"""
When n is large: landmarks
==========================

The Gram matrix of a million points has a million times a million entries. **How few of its columns will
do?** A function on M landmarks, learned from all n points, costs n times M instead of n times n; here is
what it loses.
"""

# %%
# Error and time against M
# ------------------------
# Five thousand points of a function of five numbers, learned exactly and with more and more landmarks.

import time

import matplotlib.pyplot as plt
import numpy as np

from mercer import Gaussian, KernelRidge

rng = np.random.default_rng(0)


def sample(n):
    X = rng.uniform(size=(n, 5))
    f = np.sin(6 * X[:, 0] * X[:, 1]) + 2 * (X[:, 2] - 0.5) ** 2 + X[:, 3] + 0.5 * X[:, 4]
    return X, f + 0.1 * rng.normal(size=n)


X, y = sample(5000)
X_test, y_test = sample(3000)
kernel = Gaussian(0.5)


def run(**options):
    """Error on new points, and seconds of the fit."""
    start = time.perf_counter()
    model = KernelRidge(kernel=kernel, alpha=0.1, **options).fit(X, y)
    seconds = time.perf_counter() - start
    return np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2)), seconds


# The first fits compile what they need, and are not counted.
KernelRidge(kernel=kernel, alpha=0.1, landmarks=10).fit(X[:200], y[:200])
KernelRidge(kernel=kernel, alpha=0.1).fit(X[:200], y[:200])
numbers = [10, 20, 50, 100, 200, 400]
found = np.array([run(landmarks=M) for M in numbers])
exact = run()
for M, (error, seconds) in zip(numbers, found, strict=True):
    print(f"M = {M:4d}: error {error:.4f}, {seconds:.2f} s")
print(f"exact   : error {exact[0]:.4f}, {exact[1]:.2f} s (the noise is 0.1)")

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.7), layout="constrained")
left.semilogx(numbers, found[:, 0], "o-", color="#0072B2", label="M landmarks")
left.axhline(exact[0], color="#D55E00", label="all 5,000 points")
left.axhline(0.1, color="0.7", linewidth=1, label="the noise")
left.set(xlabel="landmarks M", ylabel="error on new points", ylim=(0, None))
left.legend(frameon=False)
right.semilogx(numbers, found[:, 1], "o-", color="#0072B2")
right.axhline(exact[1], color="#D55E00")
right.set(xlabel="landmarks M", ylabel="seconds to learn", ylim=(0, None))
for ax in (left, right):
    ax.set_xticks(numbers, numbers)
    ax.minorticks_off()

# %%
# **What to see.** A few hundred landmarks are nearly as good as all points: the kernel is smooth, and its
# eigenvalues fall fast (see the lesson on Mercer's theorem). The times are of the machine that made this
# page, one run each. With twenty times as many points landmarks take about twenty times as long, and a
# factorisation of all of K thousands of times.
#
# What to expect before any work
# ------------------------------
# ``plan`` tells the way, the memory, about how long it will take, and how much of the kernel the landmarks
# leave unexplained.

million = np.random.default_rng(1).uniform(size=(1_000_000, 5))
print(KernelRidge(kernel=kernel, alpha=0.1, landmarks=400).plan(million))
print(KernelRidge(kernel=kernel, alpha=0.1).plan(million))
