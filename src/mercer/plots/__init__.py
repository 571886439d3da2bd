r"""Pictures of kernels and of what was learned with them, in the style of scikit-learn's displays.

Experimental: names and results may change from one version to the next (README.md).

Every display is made by ``from_estimator``, ``from_predictions``, ``from_kernel`` …, has what it shows as
attributes, draws again with ``plot(ax)``, keeps ``ax_`` and ``figure_``, and says in words what is to be seen
(``describe()``). They need matplotlib: ``pip install "mercer[plot]"``; it is loaded when the first picture is
drawn.

>>> import numpy as np
>>> from mercer import SVC
>>> from mercer.plots import DecisionBoundaryDisplay
>>> X, y = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 1.0], [2.0, 1.0]]), [0, 1, 0, 1]
>>> display = DecisionBoundaryDisplay.from_estimator(SVC(kernel="linear").fit(X, y), X, y)
>>> display.describe()
'4 points along x₁ and x₂, over the regions of 2 classes. The model is right on 100% of the points.
Dashed lines are the edges of the margin.'
"""

from mercer.plots.bands import RegressionBandDisplay
from mercer.plots.boundary import DecisionBoundaryDisplay
from mercer.plots.calibration import CalibrationDisplay
from mercer.plots.components import KernelPCADisplay
from mercer.plots.confusion import ConfusionDisplay
from mercer.plots.fourier import FourierDisplay
from mercer.plots.gram import GramDisplay
from mercer.plots.learning import LearningCurveDisplay
from mercer.plots.paths import PathDisplay
from mercer.plots.proof import MistakeProofDisplay
from mercer.plots.relevance import RelevanceDisplay
from mercer.plots.residuals import ResidualDisplay
from mercer.plots.shapes import KernelShapeDisplay
from mercer.plots.spectrum import SpectrumDisplay, effective_dimension
from mercer.plots.trials import TrialsDisplay

__all__ = [
    "CalibrationDisplay",
    "ConfusionDisplay",
    "DecisionBoundaryDisplay",
    "FourierDisplay",
    "GramDisplay",
    "KernelPCADisplay",
    "KernelShapeDisplay",
    "LearningCurveDisplay",
    "MistakeProofDisplay",
    "PathDisplay",
    "RegressionBandDisplay",
    "RelevanceDisplay",
    "ResidualDisplay",
    "SpectrumDisplay",
    "TrialsDisplay",
    "effective_dimension",
]
