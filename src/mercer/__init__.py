"""mercer: learning with kernels.

Data → kernel → Gram matrix → learning algorithm → f(x) = Σ αᵢ k(xᵢ, x) + b.

Estimators are loaded when they are first used, so that ``import mercer`` stays quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mercer.certify import Certificate, certify
from mercer.config import config
from mercer.expansion import Expansion
from mercer.gram import Gram
from mercer.kernels.base import Kernel
from mercer.kernels.dotproduct import ArcCosine, Constant, Cosine, Linear, Polynomial, Sigmoid
from mercer.kernels.expression import exp
from mercer.kernels.histogram import ChiSquared, Min
from mercer.kernels.mixture import ConditionalExpectation
from mercer.kernels.objects import FromFunction, Precomputed
from mercer.kernels.stationary import (
    BallIndicator,
    BSpline,
    Delta,
    Gaussian,
    Laplacian,
    Matern,
    Periodic,
    RationalQuadratic,
    Wendland,
)

if TYPE_CHECKING:
    from mercer.estimators.fisher import KernelFisherDiscriminant
    from mercer.estimators.linear_perceptron import Perceptron
    from mercer.estimators.logistic import KernelLogisticRegression
    from mercer.estimators.machines import KernelMachineClassifier, KernelMachineRegressor
    from mercer.estimators.one_class import OneClassSVM
    from mercer.estimators.parzen import ParzenClassifier
    from mercer.estimators.pca import KernelPCA
    from mercer.estimators.perceptron import KernelPerceptron
    from mercer.estimators.ridge import KernelLeastSquares, KernelRidge
    from mercer.estimators.ridge_cv import KernelRidgeCV
    from mercer.estimators.svc import SVC, NuSVC
    from mercer.estimators.svr import SVR, NuSVR

__version__ = "0.1.0"

_ESTIMATORS = {
    "KernelFisherDiscriminant": "mercer.estimators.fisher",
    "KernelLeastSquares": "mercer.estimators.ridge",
    "KernelLogisticRegression": "mercer.estimators.logistic",
    "KernelMachineClassifier": "mercer.estimators.machines",
    "KernelMachineRegressor": "mercer.estimators.machines",
    "KernelPCA": "mercer.estimators.pca",
    "KernelPerceptron": "mercer.estimators.perceptron",
    "KernelRidge": "mercer.estimators.ridge",
    "KernelRidgeCV": "mercer.estimators.ridge_cv",
    "NuSVC": "mercer.estimators.svc",
    "NuSVR": "mercer.estimators.svr",
    "OneClassSVM": "mercer.estimators.one_class",
    "ParzenClassifier": "mercer.estimators.parzen",
    "Perceptron": "mercer.estimators.linear_perceptron",
    "SVC": "mercer.estimators.svc",
    "SVR": "mercer.estimators.svr",
}

__all__ = [
    "ArcCosine",
    "BSpline",
    "BallIndicator",
    "Certificate",
    "ChiSquared",
    "ConditionalExpectation",
    "Constant",
    "Cosine",
    "Delta",
    "Expansion",
    "FromFunction",
    "Gaussian",
    "Gram",
    "Kernel",
    "KernelFisherDiscriminant",
    "KernelLeastSquares",
    "KernelLogisticRegression",
    "KernelMachineClassifier",
    "KernelMachineRegressor",
    "KernelPCA",
    "KernelPerceptron",
    "KernelRidge",
    "KernelRidgeCV",
    "Laplacian",
    "Linear",
    "Matern",
    "Min",
    "NuSVC",
    "NuSVR",
    "OneClassSVM",
    "ParzenClassifier",
    "Perceptron",
    "Periodic",
    "Polynomial",
    "Precomputed",
    "RationalQuadratic",
    "SVC",
    "SVR",
    "Sigmoid",
    "Wendland",
    "certify",
    "config",
    "exp",
]


def __getattr__(name: str) -> Any:
    if name in _ESTIMATORS:
        return getattr(import_module(_ESTIMATORS[name]), name)
    raise AttributeError(f"module 'mercer' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
