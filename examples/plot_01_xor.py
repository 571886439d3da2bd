r"""
XOR: no line separates it, a plane does
=======================================

Two classes sit on opposite corners of a square. **Is there a linear rule that tells them apart?** In the
plane there is none. In the three features :math:`(x_1^2, \sqrt2 x_1x_2, x_2^2)` there is, and the kernel
perceptron finds it without computing a feature.
"""

# %%
# The four points, and what the perceptron does
# ---------------------------------------------
# The kernel is :math:`k(u, v) = \langle u, v\rangle^2`. The perceptron begins with :math:`f = 0` and visits
# the points one by one; where the sign of :math:`f` is wrong, it adds :math:`y_i k(x_i, \cdot)`. We count
# :math:`\operatorname{sign}(0)` as :math:`-1`, so that the first point is the only mistake it ever makes.

import matplotlib.pyplot as plt
import numpy as np

from mercer import KernelPerceptron, Polynomial
from mercer.features import PolynomialMap
from mercer.plots import DecisionBoundaryDisplay

X = np.array([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]])
y = np.array([1, -1, 1, -1])
kernel = Polynomial(2, c=0)
print(kernel(X))

model = KernelPerceptron(kernel, fit_intercept=False, boundary="negative").fit(X, y)
for visit in model.history_:
    mark = "← mistake" if visit["mistake"] else ""
    print(f"pass {visit['epoch']}, point {visit['index'] + 1}: f = {visit['value']:g}", mark)

# %%
# What it has learned is :math:`f(x) = k(x_1, x) = (x_1 + x_2)^2`. That is right on the four points, but it
# is never negative: the other class lies exactly on the boundary. With the usual rule, where a point on the
# boundary is a mistake whatever its label, there is a second mistake, and the function is :math:`4x_1x_2`.

strict = KernelPerceptron(kernel, fit_intercept=False).fit(X, y)
print("mistakes:", strict.mistakes_, " f(2, 1) =", strict.expansion_([2.0, 1.0]), "= 4 · 2 · 1")

# %%
# The same in three dimensions
# ----------------------------
# The features of this kernel are :math:`(x_1^2, \sqrt2 x_1x_2, x_2^2)`. We draw many points of both classes
# in the plane, and again where the features put them.

rng = np.random.default_rng(0)
cloud = rng.uniform(-1.5, 1.5, (300, 2))
cloud = cloud[np.abs(cloud).min(axis=1) > 0.15]
kinds = np.sign(cloud[:, 0] * cloud[:, 1]).astype(int)
model = KernelPerceptron(kernel, fit_intercept=False).fit(cloud, kinds)
features = PolynomialMap(2)(cloud)

fig = plt.figure(figsize=(10, 4.4), layout="constrained")
flat, lifted = fig.add_subplot(1, 2, 1), fig.add_subplot(1, 2, 2, projection="3d")
DecisionBoundaryDisplay.from_estimator(model, cloud, kinds, ax=flat)
flat.set_title("in the plane: no line, but two", pad=28)
for kind, colour, marker in ((-1, "#0072B2", "o"), (1, "#D55E00", "s")):
    lifted.scatter(*features[kinds == kind].T, color=colour, marker=marker, s=14, depthshade=False)
side = np.array([[0.0, 2.3], [0.0, 2.3]])
lifted.plot_surface(side, np.zeros((2, 2)), side.T, color="0.5", alpha=0.4)
lifted.set(
    xlabel="$x_1^2$",
    ylabel=r"$\sqrt{2}\,x_1 x_2$",
    zlabel="$x_2^2$",
    xticks=[0, 1, 2],
    box_aspect=(1, 1.3, 1),
)
lifted.set_title("in feature space: one plane")
lifted.view_init(elev=16, azim=-22)

# %%
# **What to see.** The plane of the second picture is :math:`\sqrt2 x_1x_2 = 0`. All points of one class are
# on one side of it. It cuts the cone on which the features lie in two lines, the axes of the first picture;
# the perceptron has stopped at a plane that is near this one. The number of features grows fast with the
# degree and the dimension, and the kernel costs one inner product whatever it is:

for degree, columns in ((2, 2), (2, 1000), (6, 100)):
    print(
        f"degree {degree}, {columns:4d} columns: {Polynomial(degree, c=0).n_monomials(columns):,} monomials"
    )
