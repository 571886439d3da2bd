"""mercer: learning with kernels.

Data → kernel → Gram matrix → learning algorithm → f(x) = Σ αᵢ k(xᵢ, x) + b.

Estimators, kernels with compiled code of their own, and the modules beside them (``mercer.geometry``,
``mercer.plots``, …) are loaded when they are first used, so that ``import mercer`` stays quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

import mercer.runtime.clock  # first of all, so that it knows when a process began
import mercer.runtime.start  # noqa: F401  before what it makes quicker
from mercer.certify import Certificate, largest_dimension, repair
from mercer.expansion import Expansion
from mercer.gram import Gram
from mercer.kernels.base import Kernel
from mercer.kernels.formula.expression import exp
from mercer.kernels.objects import FromFunction, Precomputed
from mercer.kernels.spectral.density import Spectral
from mercer.kernels.spectral.radial import Radial
from mercer.kernels.vectors.dotproduct import ArcCosine, Constant, Cosine, Linear, Polynomial, Sigmoid
from mercer.kernels.vectors.histogram import ChiSquared, Min
from mercer.kernels.vectors.mixture import ConditionalExpectation
from mercer.kernels.vectors.stationary import (
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
from mercer.runtime.config import config

if TYPE_CHECKING:
    from mercer.certify import certify  # at run time the module, which is called like the function
    from mercer.certify.smoothness import smoothness
    from mercer.data.sources import DataSource
    from mercer.drop_in import patch_scikit_learn, unpatch_scikit_learn
    from mercer.estimators.fisher import KernelFisherDiscriminant
    from mercer.estimators.landmark_features import LandmarkFeatures
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
    from mercer.estimators.shared.landmarks import Landmarks
    from mercer.estimators.svc import SVC, NuSVC
    from mercer.estimators.svr import SVR, NuSVR
    from mercer.features.random_features import RandomFeatures
    from mercer.gram.lowrank import LowRank
    from mercer.kernels.columns.table import ColumnKernel
    from mercer.kernels.graphs.random_walk import RandomWalk
    from mercer.kernels.graphs.shortest_path import ShortestPath
    from mercer.kernels.graphs.weisfeiler_lehman import NodeLabels, WeisfeilerLehman
    from mercer.kernels.sets.bags import Intersection
    from mercer.kernels.sets.images import bends, rotations, shifts, slants, strokes, zooms
    from mercer.kernels.sets.invariance import Invariant, compositions
    from mercer.kernels.sets.sets import GeneralSetKernel, SetKernel
    from mercer.kernels.strings.alignment import LocalAlignment
    from mercer.kernels.strings.documents import BagOfWords
    from mercer.kernels.strings.mismatch import Mismatch
    from mercer.kernels.strings.spectrum import BlendedSpectrum, GappedKmer, Spectrum, WeightedDegree
    from mercer.kernels.strings.subsequences import Subsequence
    from mercer.kernels.trees.kernels import PartialTree, SubsetTree, SubtreeKernel
    from mercer.persist import load, save
    from mercer.runtime.versions import show_versions
    from mercer.selection.classifier import AutoKernelClassifier
    from mercer.selection.mail import MailClassifier
    from mercer.selection.regressor import AutoKernelRegressor

__version__ = "0.7.0.dev0"

_LATER = {
    "AutoKernelClassifier": "mercer.selection",
    "AutoKernelRegressor": "mercer.selection",
    "BagOfWords": "mercer.kernels.strings.documents",
    "BlendedSpectrum": "mercer.kernels.strings.spectrum",
    "ColumnKernel": "mercer.kernels.columns.table",
    "DataSource": "mercer.data.sources",
    "GappedKmer": "mercer.kernels.strings.spectrum",
    "GeneralSetKernel": "mercer.kernels.sets.sets",
    "Intersection": "mercer.kernels.sets.bags",
    "Invariant": "mercer.kernels.sets.invariance",
    "KernelFisherDiscriminant": "mercer.estimators.fisher",
    "KernelLeastSquares": "mercer.estimators.least_squares",
    "KernelLogisticRegression": "mercer.estimators.logistic",
    "KernelMachineClassifier": "mercer.estimators.machines",
    "KernelMachineRegressor": "mercer.estimators.machines",
    "KernelPCA": "mercer.estimators.pca",
    "KernelPerceptron": "mercer.estimators.perceptron",
    "KernelRidge": "mercer.estimators.ridge",
    "KernelRidgeCV": "mercer.estimators.ridge_cv",
    "LandmarkFeatures": "mercer.estimators.landmark_features",
    "Landmarks": "mercer.estimators.shared.landmarks",
    "LocalAlignment": "mercer.kernels.strings.alignment",
    "LowRank": "mercer.gram.lowrank",
    "MailClassifier": "mercer.selection.mail",
    "Mismatch": "mercer.kernels.strings.mismatch",
    "NodeLabels": "mercer.kernels.graphs.weisfeiler_lehman",
    "NuSVC": "mercer.estimators.svc",
    "NuSVR": "mercer.estimators.svr",
    "OneClassSVM": "mercer.estimators.one_class",
    "PartialTree": "mercer.kernels.trees.kernels",
    "ParzenClassifier": "mercer.estimators.parzen",
    "Perceptron": "mercer.estimators.linear_perceptron",
    "RandomFeatures": "mercer.features.random_features",
    "RandomWalk": "mercer.kernels.graphs.random_walk",
    "SVC": "mercer.estimators.svc",
    "SVR": "mercer.estimators.svr",
    "SetKernel": "mercer.kernels.sets.sets",
    "ShortestPath": "mercer.kernels.graphs.shortest_path",
    "Spectrum": "mercer.kernels.strings.spectrum",
    "Subsequence": "mercer.kernels.strings.subsequences",
    "SubsetTree": "mercer.kernels.trees.kernels",
    "SubtreeKernel": "mercer.kernels.trees.kernels",
    "WeightedDegree": "mercer.kernels.strings.spectrum",
    "WeisfeilerLehman": "mercer.kernels.graphs.weisfeiler_lehman",
    "bends": "mercer.kernels.sets.images",
    "compositions": "mercer.kernels.sets.invariance",
    "load": "mercer.persist",
    "patch_scikit_learn": "mercer.drop_in",
    "rotations": "mercer.kernels.sets.images",
    "save": "mercer.persist",
    "shifts": "mercer.kernels.sets.images",
    "show_versions": "mercer.runtime.versions",
    "slants": "mercer.kernels.sets.images",
    "smoothness": "mercer.certify.smoothness",
    "strokes": "mercer.kernels.sets.images",
    "unpatch_scikit_learn": "mercer.drop_in",
    "zooms": "mercer.kernels.sets.images",
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
    "DataSource",
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
    "LandmarkFeatures",
    "Landmarks",
    "Laplacian",
    "Linear",
    "LocalAlignment",
    "LowRank",
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
    "RandomFeatures",
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
    "patch_scikit_learn",
    "repair",
    "rotations",
    "save",
    "shifts",
    "show_versions",
    "slants",
    "smoothness",
    "strokes",
    "unpatch_scikit_learn",
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
