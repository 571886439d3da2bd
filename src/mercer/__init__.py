"""mercer: learning with kernels.

Data → kernel → Gram matrix → learning algorithm → f(x) = Σ αᵢ k(xᵢ, x) + b.

Estimators, kernels with compiled code of their own, and the modules beside them (``mercer.geometry``,
``mercer.plots``, …) are loaded when they are first used, so that ``import mercer`` stays quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mercer.certify import Certificate, largest_dimension, repair
from mercer.config import config
from mercer.expansion import Expansion
from mercer.gram import Gram
from mercer.kernels.base import Kernel
from mercer.kernels.dotproduct import ArcCosine, Constant, Cosine, Linear, Polynomial, Sigmoid
from mercer.kernels.expression import exp
from mercer.kernels.histogram import ChiSquared, Min
from mercer.kernels.mixture import ConditionalExpectation
from mercer.kernels.objects import FromFunction, Precomputed
from mercer.kernels.radial import Radial
from mercer.kernels.spectral import Spectral
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
    from mercer.certify import certify  # at run time the module, which is called like the function
    from mercer.certify.smoothness import smoothness
    from mercer.estimators.fisher import KernelFisherDiscriminant
    from mercer.estimators.least_squares import KernelLeastSquares
    from mercer.estimators.linear_perceptron import Perceptron
    from mercer.estimators.logistic import KernelLogisticRegression
    from mercer.estimators.machines import KernelMachineClassifier, KernelMachineRegressor
    from mercer.estimators.one_class import OneClassSVM
    from mercer.estimators.parzen import ParzenClassifier
    from mercer.estimators.pca import KernelPCA
    from mercer.estimators.perceptron import KernelPerceptron
    from mercer.estimators.ridge import KernelRidge
    from mercer.estimators.ridge_cv import KernelRidgeCV
    from mercer.estimators.svc import SVC, NuSVC
    from mercer.estimators.svr import SVR, NuSVR
    from mercer.kernels.alignment import LocalAlignment
    from mercer.kernels.bags import Intersection
    from mercer.kernels.columns import ColumnKernel
    from mercer.kernels.documents import BagOfWords
    from mercer.kernels.images import bends, rotations, shifts, slants, strokes, zooms
    from mercer.kernels.invariance import Invariant, compositions
    from mercer.kernels.mismatch import Mismatch
    from mercer.kernels.random_walk import RandomWalk
    from mercer.kernels.sets import GeneralSetKernel, SetKernel
    from mercer.kernels.shortest_path import ShortestPath
    from mercer.kernels.strings import BlendedSpectrum, GappedKmer, Spectrum, WeightedDegree
    from mercer.kernels.subsequences import Subsequence
    from mercer.kernels.tree_kernels import PartialTree, SubsetTree, SubtreeKernel
    from mercer.kernels.weisfeiler_lehman import NodeLabels, WeisfeilerLehman
    from mercer.persist import load, save
    from mercer.selection.classifier import AutoKernelClassifier
    from mercer.selection.mail import MailClassifier
    from mercer.selection.regressor import AutoKernelRegressor
    from mercer.versions import show_versions

__version__ = "0.1.0"

_LATER = {
    "AutoKernelClassifier": "mercer.selection",
    "AutoKernelRegressor": "mercer.selection",
    "BagOfWords": "mercer.kernels.documents",
    "BlendedSpectrum": "mercer.kernels.strings",
    "ColumnKernel": "mercer.kernels.columns",
    "GappedKmer": "mercer.kernels.strings",
    "GeneralSetKernel": "mercer.kernels.sets",
    "Intersection": "mercer.kernels.bags",
    "Invariant": "mercer.kernels.invariance",
    "KernelFisherDiscriminant": "mercer.estimators.fisher",
    "KernelLeastSquares": "mercer.estimators.least_squares",
    "KernelLogisticRegression": "mercer.estimators.logistic",
    "KernelMachineClassifier": "mercer.estimators.machines",
    "KernelMachineRegressor": "mercer.estimators.machines",
    "KernelPCA": "mercer.estimators.pca",
    "KernelPerceptron": "mercer.estimators.perceptron",
    "KernelRidge": "mercer.estimators.ridge",
    "KernelRidgeCV": "mercer.estimators.ridge_cv",
    "LocalAlignment": "mercer.kernels.alignment",
    "MailClassifier": "mercer.selection.mail",
    "Mismatch": "mercer.kernels.mismatch",
    "NodeLabels": "mercer.kernels.weisfeiler_lehman",
    "NuSVC": "mercer.estimators.svc",
    "NuSVR": "mercer.estimators.svr",
    "OneClassSVM": "mercer.estimators.one_class",
    "PartialTree": "mercer.kernels.tree_kernels",
    "ParzenClassifier": "mercer.estimators.parzen",
    "Perceptron": "mercer.estimators.linear_perceptron",
    "RandomWalk": "mercer.kernels.random_walk",
    "SVC": "mercer.estimators.svc",
    "SVR": "mercer.estimators.svr",
    "SetKernel": "mercer.kernels.sets",
    "ShortestPath": "mercer.kernels.shortest_path",
    "Spectrum": "mercer.kernels.strings",
    "Subsequence": "mercer.kernels.subsequences",
    "SubsetTree": "mercer.kernels.tree_kernels",
    "SubtreeKernel": "mercer.kernels.tree_kernels",
    "WeightedDegree": "mercer.kernels.strings",
    "WeisfeilerLehman": "mercer.kernels.weisfeiler_lehman",
    "bends": "mercer.kernels.images",
    "compositions": "mercer.kernels.invariance",
    "load": "mercer.persist",
    "rotations": "mercer.kernels.images",
    "save": "mercer.persist",
    "shifts": "mercer.kernels.images",
    "show_versions": "mercer.versions",
    "slants": "mercer.kernels.images",
    "smoothness": "mercer.certify.smoothness",
    "strokes": "mercer.kernels.images",
    "zooms": "mercer.kernels.images",
}

#: modules that are there after ``import mercer``, and loaded when they are asked for
_MODULES = (
    "features",
    "geometry",
    "losses",
    "persist",
    "plots",
    "reporting",
    "selection",
    "tables",
    "testing",
)

__all__ = [
    "ArcCosine",
    "AutoKernelClassifier",
    "AutoKernelRegressor",
    "BSpline",
    "BagOfWords",
    "BallIndicator",
    "BlendedSpectrum",
    "Certificate",
    "ChiSquared",
    "ColumnKernel",
    "ConditionalExpectation",
    "Constant",
    "Cosine",
    "Delta",
    "Expansion",
    "FromFunction",
    "GappedKmer",
    "Gaussian",
    "GeneralSetKernel",
    "Gram",
    "Intersection",
    "Invariant",
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
    "LocalAlignment",
    "MailClassifier",
    "Matern",
    "Min",
    "Mismatch",
    "NodeLabels",
    "NuSVC",
    "NuSVR",
    "OneClassSVM",
    "PartialTree",
    "ParzenClassifier",
    "Perceptron",
    "Periodic",
    "Polynomial",
    "Precomputed",
    "Radial",
    "RandomWalk",
    "RationalQuadratic",
    "SVC",
    "SVR",
    "SetKernel",
    "ShortestPath",
    "Sigmoid",
    "Spectral",
    "Spectrum",
    "Subsequence",
    "SubsetTree",
    "SubtreeKernel",
    "WeightedDegree",
    "WeisfeilerLehman",
    "Wendland",
    "bends",
    "certify",
    "compositions",
    "config",
    "exp",
    "largest_dimension",
    "load",
    "repair",
    "rotations",
    "save",
    "shifts",
    "show_versions",
    "slants",
    "smoothness",
    "strokes",
    "zooms",
]


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    if name in _MODULES:
        return import_module(f"mercer.{name}")
    raise AttributeError(f"module 'mercer' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_MODULES])
