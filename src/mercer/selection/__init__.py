"""Choosing kernels, their parameters and penalties, and an honest estimate of the error of the choice.

Experimental: names and results may change from one version to the next (README.md).
"""

from mercer.selection.classifier import AutoKernelClassifier
from mercer.selection.landmark_numbers import LandmarkPath, landmark_path
from mercer.selection.nested import NestedError, nested_error
from mercer.selection.regressor import AutoKernelRegressor

__all__ = [
    "AutoKernelClassifier",
    "AutoKernelRegressor",
    "LandmarkPath",
    "NestedError",
    "landmark_path",
    "nested_error",
]
