r"""
Kernels on the other side: Fourier, Plancherel, Bochner
=======================================================

A function is a sum of waves, and so is a kernel. **How can one see from its waves whether** :math:`k(x -
x')` **is a kernel?** By Bochner's theorem it is one exactly when none of its waves has a negative weight.
"""

# %%
# Two waves and their spectrum
# ----------------------------
# The lecture's function is :math:`f(x) = 0.7\sin(10x) + \cos(20x)`. Its amplitudes show which waves are in
# it, and its phases where they begin.

import matplotlib.pyplot as plt
import numpy as np

from mercer import BallIndicator, BSpline, Gaussian, Laplacian, certify
from mercer.certify import fourier
from mercer.plots import FourierDisplay


def f(x):
    return 0.7 * np.sin(10 * x) + np.cos(20 * x)


x = np.linspace(-np.pi, np.pi, 1000)
fig, axes = plt.subplots(1, 3, figsize=(12.5, 3.3), layout="constrained")
axes[0].plot(x, f(x), linewidth=1)
axes[0].set(xlabel="x", ylabel="f(x)", title="the function")
display = FourierDisplay.from_function(f, (-np.pi, np.pi), ax=axes[1])
axes[1].set_title("amplitude")
FourierDisplay.from_function(f, (-np.pi, np.pi), shown="phase", ax=axes[2])
wave = fourier(f, (-np.pi, np.pi))
dots = axes[2].plot([10, 20], wave.phase([10.0, 20.0]), "o", color="#D55E00")
axes[2].legend(dots, ["at the two peaks"], loc="upper left")
axes[2].set_title("phase")
print(display.describe())
print("phases at 10 and 20:", wave.phase([10.0, 20.0]).round(4), "(a sine is a cosine, π/2 later)")

# %%
# **What to see.** There are two peaks, at 10 and at 20, with heights in the ratio 0.7 : 1. The small hills
# beside them are there because the waves are cut off at :math:`\pm\pi`; a longer piece makes narrower
# peaks. A phase counts where there is something to begin: at the two peaks, where the dots are.
#
# Plancherel, and derivatives
# ---------------------------
# Nothing is lost on the way: :math:`\int|f|^2dx = \int|\hat f|^2d\omega`. And a derivative is a
# multiplication by :math:`i\omega`, which is why :math:`\int|f'|^2` can be a price per frequency.


def bump(x):
    return np.exp(-(x**2)) * np.sin(3 * x)


def slope(x):
    return np.exp(-(x**2)) * (3 * np.cos(3 * x) - 2 * x * np.sin(3 * x))


t, omega = np.linspace(-7, 7, 4001), np.linspace(-15, 15, 3001)
spectrum, spectrum_of_slope = fourier(bump, (-7, 7))(omega), fourier(slope, (-7, 7))(omega)
power, power_of_slope = np.abs(spectrum) ** 2, np.abs(omega * spectrum) ** 2
print(f"∫f²  = {np.trapezoid(bump(t) ** 2, t):.10f}   ∫|f̂|²   = {np.trapezoid(power, omega):.10f}")
print(f"∫f'² = {np.trapezoid(slope(t) ** 2, t):.10f}   ∫ω²|f̂|² = {np.trapezoid(power_of_slope, omega):.10f}")
difference = np.abs(spectrum_of_slope - 1j * omega * spectrum).max()
print(f"largest difference between the transform of f' and iω f̂: {difference:.1e}")

fig, axes = plt.subplots(1, 3, figsize=(12.5, 3.3), layout="constrained")
axes[0].plot(t, bump(t), color="#0072B2", label="f")
axes[0].plot(t, slope(t), color="#D55E00", label="f '")
axes[0].set(xlabel="x", title="a function and its derivative", xlim=(-4, 4))
axes[1].plot(omega, np.abs(spectrum), color="#0072B2", label=r"$|\hat f(\omega)|$")
axes[1].plot(omega, np.abs(omega * spectrum), color="#D55E00", label=r"$|\omega\,\hat f(\omega)|$")
some = slice(None, None, 50)
axes[1].plot(
    omega[some], np.abs(spectrum_of_slope)[some], "o", color="0.2", fillstyle="none", label="transform of f '"
)
axes[1].set(xlabel="frequency ω", title="times ω", xlim=(-10, 10))
axes[2].plot(t, np.cumsum(bump(t) ** 2) * (t[1] - t[0]), color="#0072B2", label="∫f², up to x")
axes[2].plot(omega, np.cumsum(power) * (omega[1] - omega[0]), color="#009E73", label="∫|f̂|², up to ω")
axes[2].set(xlabel="x, or ω", title="the same in the end (Plancherel)", xlim=(-7, 7))
for ax in axes:
    ax.legend(frameon=False, loc="upper left", fontsize="small")
    ax.margins(y=0.25)
axes[1].set_ylim(0, 2)

# %%
# **What to see.** In the middle the transform of the derivative, computed from :math:`f'` itself, lies on
# :math:`\omega` times that of f: slow waves have hardly a slope, fast ones a steep one. On the right both
# sums end at the same height.

# %%
# Bochner's test
# --------------
# Three kernels and one that is none: the ball indicator, 1 where two points are no further apart than 1.

kernels = {"Gaussian": Gaussian(0.5), "Laplacian": Laplacian(1.0), "B₃-spline": BSpline(degree=3)}
kernels["ball indicator"] = BallIndicator(1.0)
display = FourierDisplay.from_kernels(*kernels.values(), names=list(kernels), limits=(0, 15))
print(display.describe())
print(certify(BallIndicator(1.0)))

# %%
# **What to see.** The density of the ball indicator goes below zero, where it is filled. So there must be
# points whose matrix has a negative eigenvalue; three are enough, and ``certify`` names them: 1, 2 and 3.
