"""From a file with rows and columns to numbers, targets and a model that takes such files again.

Experimental: names and results may change from one version to the next (README.md).
"""

from mercer.tables.features import TableFeatures
from mercer.tables.formats import read_table
from mercer.tables.model import TableModel
from mercer.tables.table import Table
from mercer.tables.target import Target, find_target
from mercer.tables.training import Training, train

__all__ = [
    "Table",
    "TableFeatures",
    "TableModel",
    "Target",
    "Training",
    "find_target",
    "read_table",
    "train",
]
