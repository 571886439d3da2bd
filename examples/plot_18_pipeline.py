r"""
Your own kernel in a pipeline
=============================

You know something about your data that no library knows. **How much must you write to use it?** One
function. It becomes a kernel, is checked, combined with others, and searched over by scikit-learn's tools.
"""

# %%
# A kernel is a formula
# ---------------------
# Yearly data: days in January are near days in December. We write a kernel that has the year built in, with
# a width that can be searched for. Is it one? It is exp of a multiple of :math:`\cos(a - b) = \cos a\cos b
# + \sin a\sin b`, an inner product, and exp of a kernel is a kernel. ``certify`` knows no rule for this
# formula, and says so; it has looked for points against it and found none.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from mercer import Kernel, KernelRidge, Linear, certify
from mercer.kernels import positive
from mercer.kernels.formula.expression import cos, exp


class Season(Kernel):
    """k(x, x') = exp((cos(2π(x - x')/year) - 1) / width²)"""

    width: float = positive(1.0)

    def formula(self, pair):
        return exp(pair.sum(lambda a, b: cos((a - b) * (2 * np.pi / 365.25)) - 1) / self.width**2)


kernel = Season(0.5)
print("January 2nd and December 30th:", kernel([2.0], [364.0]), "   and July 1st:", kernel([2.0], [182.0]))
print(certify(kernel, dim=1))

# %%
# In a pipeline
# -------------
# A made-up series of ten years of weekly temperatures: a season, a slow trend, and noise. The kernel is the
# season plus a line for the trend; the search chooses the width and the penalty, always predicting later
# years from earlier ones.

rng = np.random.default_rng(0)
day = np.arange(0, 3652, 7.0)
season = 10 - 9 * np.cos(2 * np.pi * day / 365.25) + 3 * np.sin(4 * np.pi * day / 365.25)
temperature = season + day / 1500 + 2 * rng.normal(size=len(day))
past, future = day < 7 * 365.25, day >= 7 * 365.25

centre = FunctionTransformer(lambda X: X - 1800.0)
model = make_pipeline(centre, KernelRidge(kernel=Season(0.5) + 1e-6 * Linear()))
grid = {"kernelridge__kernel__k1__width": [0.1, 0.3, 1.0, 3.0], "kernelridge__alpha": [0.1, 1.0, 10.0]}
search = GridSearchCV(model, grid, cv=TimeSeriesSplit(4), scoring="neg_root_mean_squared_error")
search.fit(day[past, None], temperature[past])
predicted = search.predict(day[:, None])
print("chosen:", search.best_params_)
error = np.sqrt(np.mean((predicted - temperature)[future] ** 2))
print(f"error in the three years to come: {error:.2f} (the noise is 2)")

# %%

fig, (left, right) = plt.subplots(1, 2, figsize=(11, 3.6), layout="constrained", width_ratios=[1, 2])
days = np.arange(366.0)[:, None]
for width, colour in ((0.3, "#0072B2"), (1.0, "#009E73"), (3.0, "#E69F00")):
    left.plot(days, Season(width)(days, [[15.0]]), color=colour, label=f"width {width}")
left.set(xlabel="day of the year", title="k(x, January 15th)", ylim=(0, 1.05))
left.legend(frameon=False)
years = 2012 + day / 365.25
right.plot(years[past], temperature[past], ".", color="0.5", markersize=3, label="learned from")
right.plot(years[future], temperature[future], ".", color="#D55E00", markersize=3, label="to come")
right.plot(years, predicted, color="#0072B2", label="predicted")
right.set(ylabel="temperature", title="three years ahead")
right.legend(frameon=False, ncols=3, loc="upper center")
right.margins(y=0.2)

# %%
# **What to see.** The kernel of a day in January rises again in December. A few lines of formula got a
# derivative, compiled code, and a place in a grid search: its width is ``kernelridge__kernel__k1__width``.
