r"""``TableFeatures``: a table with columns of several kinds as the numbers that kernels on vectors take.

>>> table = np.array([[31.0, "Rome"], [45.0, "Oslo"], [23.0, "Rome"], [None, "Rome"]], dtype=object)
>>> features = TableFeatures().fit(table)
>>> features.transform(table).round(2)
array([[-0.22,  0.  ,  0.  ,  1.  ],
       [ 1.32,  0.  ,  1.  ,  0.  ],
       [-1.1 ,  0.  ,  0.  ,  1.  ],
       [-0.22,  1.  ,  0.  ,  1.  ]])
>>> features.get_feature_names_out().tolist()
['x1', 'x1 is missing', 'x2 = Oslo', 'x2 = Rome']
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self
from weakref import WeakKeyDictionary

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from mercer.data.types import Points, Targets
from mercer.errors import InputError
from mercer.kernels.base import Kernel
from mercer.kernels.columns.cells import gaps, is_date
from mercer.kernels.columns.kinds import choose
from mercer.kernels.columns.table import ColumnKernel
from mercer.kernels.compose import OnColumns
from mercer.kernels.names import as_kernel
from mercer.kernels.vectors.stationary import Gaussian, Laplacian
from mercer.runtime.config import require_memory
from mercer.tables.codes import are_names, may_be_names
from mercer.tables.dates import ORDERS, orders_of
from mercer.tables.encoders import CategoryColumn, DateColumn, NumberColumn, number_block
from mercer.tables.kinds import Kind, is_used, kinds_of
from mercer.tables.view import TableView, chunks

#: the encoders of some features, and the recipes that they were made of: no part of what is kept in a file
_MADE: WeakKeyDictionary[Any, tuple[list[Any], list[Any]]] = WeakKeyDictionary()


class TableFeatures(TransformerMixin, BaseEstimator):
    r"""Numbers, categories and dates as a matrix; texts and sets beside it, for kernels of their own.

    - numbers: standardised; where the tails are heavy, after sign(x) log(1 + \|x\| / u) with the median u of
      \|x\| ≠ 0
    - categories, also whole numbers that are names: a column of zeros and ones each, one for all rare ones;
      an unseen one is all zeros
    - dates: days, standardised, and points of a circle for the time of the year, the week and the day
    - missing values: the median, and a column that marks them where training rows had some
    - constant and empty columns, row numbers and codes that no two rows share: left out (``left_out_``)
    - texts, strings and sets: as they are, in the last columns of a table of objects. ``kernel()`` is for it

    Parameters
    ----------
    logarithm : whether heavy tails are shortened
    codes : whether whole numbers that are names by what they say of y (`mercer.tables.codes`) are categories
    most : categories per column that get a column of their own
    least : rows that a category has at least, or it is rare; None for 2, and more from 6,000 rows on
    keep : columns that are kept also where they look like row numbers or codes
    dates : by column, "day/month" or "month/day" for texts such as 3/4/2026. Of others the one that fits is
        taken, the first of the two if both do

    Attributes
    ----------
    kinds_ : by column, what it holds
    left_out_ : by column, why
    objects_ : names of the columns that stay what they are
    """

    _KNOWN: ClassVar[dict[str, type]] = {
        "number": NumberColumn,
        "category": CategoryColumn,
        "date": DateColumn,
    }

    def __init__(
        self,
        logarithm: bool = True,
        *,
        codes: bool = True,
        most: int = 50,
        least: int | None = None,
        keep: Sequence[str] = (),
        dates: Mapping[str, str] | None = None,
    ) -> None:
        self.logarithm = logarithm
        self.codes = codes
        self.most = most
        self.least = least
        self.keep = keep
        self.dates = dates

    # --- what was learned of each column -----------------------------------------------------------------

    @property
    def encoders_(self) -> list[Any]:
        """What makes numbers of a column, for each that becomes numbers.

        They are kept as plain lists of values: a file of ten thousand objects takes seconds to write.
        """
        if "encoders_" in vars(self):  # Files of earlier versions hold them.
            return list(vars(self)["encoders_"])
        recipes, encoders = _MADE.get(self, (None, []))
        if recipes is not self.recipes_:
            encoders = [self._KNOWN[kind](*given) for kind, *given in self.recipes_]
            _MADE[self] = self.recipes_, encoders
        return encoders

    @encoders_.setter
    def encoders_(self, encoders: list[Any]) -> None:
        kinds = {known: kind for kind, known in self._KNOWN.items()}
        self.recipes_ = [[kinds[type(encoder)], *vars(encoder).values()] for encoder in encoders]

    # --- fitting -----------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Targets | None = None) -> Self:
        """Learn what each column holds and how it becomes numbers."""
        view = TableView.of(X)
        names = view.names
        if not names or view.rows == 0:
            raise InputError(f"the table has no rows or no columns, got shape {X.shape}: pass some of both")
        self.n_features_in_, self.columns_ = len(names), names
        self._check(names)
        found = kinds_of(view, self.keep)
        self.left_out_ = {n: k.why for n, k in zip(names, found, strict=True) if not is_used(k)}
        if len(self.left_out_) == len(names):
            which = "; ".join(f"{name!r}: {why}" for name, why in list(self.left_out_.items())[:5])
            raise InputError(f"no column can tell rows apart ({which}): pass a column that varies")
        if self.codes and y is not None and np.ndim(y) == 1:
            for j in _codes(view, found, np.asarray(y)):
                found[j] = Kind("category", "whole numbers that are names")
        self.kinds_ = {name: kind.kind for name, kind in zip(names, found, strict=True)}
        self.encoders_ = self._encoders(view, found)
        objects = [j for j, kind in enumerate(found) if is_used(kind) and kind.kind not in self._KNOWN]
        self.objects_ = [names[j] for j in objects]
        self.object_kernels_ = [self._object_kernel(view.column(j)) for j in objects]
        return self

    def _check(self, names: list[str]) -> None:
        """Refuse parameters that do not fit the table."""
        wrong = [order for order in (self.dates or {}).values() if order not in ORDERS]
        if wrong:
            raise InputError(
                f"dates are written {' or '.join(ORDERS)}, got {wrong[0]!r}: pass one of the two"
            )
        unknown = sorted(set(self.keep) - set(names))
        if unknown:
            raise InputError(
                f"there is no column {unknown[0]!r} to keep: the table has {', '.join(names[:12])}"
            )

    def _encoders(self, view: TableView, kinds: list[Kind]) -> list[Any]:
        """An encoder for each column that becomes numbers, in the order of the table."""
        of = np.array([kind.kind for kind in kinds])
        found: dict[int, Any] = {}
        for some in chunks(np.flatnonzero(of == "number"), view.rows):
            names = [view.names[j] for j in some]
            block = number_block(view, some)
            found |= zip(some.tolist(), NumberColumn.learn_all(block, names, self.logarithm), strict=True)
        for j in np.flatnonzero((of == "date") | (of == "category")).tolist():
            name, column = view.names[j], view.column(j)
            if of[j] == "date":
                given = (self.dates or {}).get(name)
                order = "" if is_date(column) else given or orders_of(column)[0]
                found[j] = DateColumn.learn(column, name, order)
            else:
                least = max(2, len(column) // 2000) if self.least is None else self.least
                found[j] = CategoryColumn.learn(column, name, self.most, least)
        return [found[j] for j in sorted(found)]

    @staticmethod
    def _object_kernel(column: np.ndarray) -> Kernel:
        """What is chosen for a column of texts or sets, by its kind."""
        (kernel,) = choose(_one_column(column)).values()
        return kernel

    # --- transforming ------------------------------------------------------------------------------------

    def transform(self, X: Points) -> np.ndarray:  # (n, features): floats, or objects where there are any
        """The same columns of another table as numbers; columns that the fit did not see are ignored."""
        check_is_fitted(self)
        view, encoders = TableView.of(X), self.encoders_
        self._require_columns(view, [*(encoder.name for encoder in encoders), *self.objects_])
        n, widths = view.rows, [encoder.width for encoder in encoders]
        require_memory(8 * n * sum(widths), f"a table of {n:,} × {sum(widths):,} features", "pass fewer rows")
        Z, starts = np.empty((n, sum(widths))), np.concatenate([[0], np.cumsum(widths)]).astype(np.intp)
        numbers = [i for i, encoder in enumerate(encoders) if isinstance(encoder, NumberColumn)]
        for some in chunks(np.array(numbers, dtype=np.intp), n):
            chosen = [encoders[i] for i in some]
            block = number_block(view, np.array([view.place[encoder.name] for encoder in chosen]))
            NumberColumn.write_all(chosen, block, Z, starts[some])
        for i in sorted(set(range(len(encoders))) - set(numbers)):
            column = view.column(view.place[encoders[i].name])
            encoders[i].write(column, Z[:, starts[i] : starts[i + 1]])
        if not self.objects_:
            return Z
        table = np.empty((n, Z.shape[1] + len(self.objects_)), dtype=object)
        table[:, : Z.shape[1]] = Z
        for j, name in enumerate(self.objects_, start=Z.shape[1]):
            table[:, j] = _plain_objects(view.column(view.place[name]), self.kinds_[name])
        return table

    @staticmethod
    def _require_columns(view: TableView, used: list[str]) -> None:
        absent = [name for name in used if name not in view.place]
        if absent:
            which = ", ".join(map(repr, absent[:5])) + (" and more" if len(absent) > 5 else "")
            noun, names = "column" if len(absent) == 1 else "columns", view.names
            raise InputError(
                f"the table has no {noun} {which}, which the model was trained on: it has "
                f"{', '.join(map(repr, names[:12]))}{', …' if len(names) > 12 else ''}"
            )

    def unseen(self, X: Points) -> dict[str, list[str]]:
        """For each column, the categories that the training rows had not: they become zeros."""
        check_is_fitted(self)
        view = TableView.of(X)
        known = [e for e in self.encoders_ if isinstance(e, CategoryColumn) and e.name in view.place]
        found = {encoder.name: encoder.unseen(view.column(view.place[encoder.name])) for encoder in known}
        return {name: labels for name, labels in found.items() if labels}

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """What each column of the result is."""
        check_is_fitted(self)
        return np.array(
            [n for encoder in self.encoders_ for n in encoder.names()] + self.objects_, dtype=object
        )

    def sources(self) -> list[str]:
        """The column of the table that each column of the result is made of.

        >>> table = np.array([[31.0, "Rome"], [45.0, "Oslo"], [23.0, "Rome"]], dtype=object)
        >>> TableFeatures().fit(table).sources()
        ['x1', 'x2', 'x2']
        """
        check_is_fitted(self)
        return [encoder.name for encoder in self.encoders_ for _ in range(encoder.width)] + self.objects_

    # --- kernels -----------------------------------------------------------------------------------------

    def by_position(self, kernel: Kernel) -> Kernel:
        """A kernel ``.on`` columns of the table by name, on the columns of ``transform`` they become."""
        check_is_fitted(self)
        places, start = {}, 0
        for encoder in self.encoders_:
            places[encoder.name] = list(range(start, start := start + encoder.width))
        kernel = clone(kernel)
        for part in kernel.parts():
            if not isinstance(part, OnColumns):
                continue
            unknown = [c for c in part.columns if isinstance(c, str) and c not in places]
            if unknown:
                why = self.left_out_.get(unknown[0]) or "it is no column of numbers, categories or dates"
                raise InputError(
                    f"the kernel is on the column {unknown[0]!r}, which has no features: {why}; there are "
                    f"{', '.join(map(repr, places))}"
                )
            found = [places[c] if isinstance(c, str) else [c] for c in part.columns]
            part.set_params(columns=tuple(position for some in found for position in some))
        return kernel

    def kernel(self, numbers: Kernel, weight: float = 1.0) -> Kernel:
        """The kernel on what ``transform`` gives: ``numbers`` on the matrix, and those of texts and sets.

        They are added up, those of texts and sets times ``weight``.
        """
        check_is_fitted(self)
        if not self.objects_:
            return numbers
        width = sum(encoder.width for encoder in self.encoders_)
        own = {width + j: kernel for j, kernel in enumerate(self.object_kernels_)}
        if width == 0:
            return ColumnKernel(own)
        weights = None if weight == 1.0 else dict.fromkeys(own, weight)
        return ColumnKernel({tuple(range(width)): numbers, **own}, weights=weights)

    def kernels(self, given: Any) -> list[Any]:
        """What to choose from on what ``transform`` gives: texts and sets have kernels of their own.

        ``given`` is a kernel, a name or "auto", or a list of such.
        """
        wanted = [
            self.by_position(kernel) if isinstance(kernel, Kernel) else kernel
            for kernel in (given if isinstance(given, list | tuple) else [given])
        ]
        if not self.objects_:
            return wanted
        if not self.encoders_:
            return [self.kernel(Gaussian())]  # no numbers that another kernel could be for
        if wanted == ["auto"]:
            smooth, rough = Gaussian(sigma="median"), Laplacian(gamma="auto")
            return [self.kernel(smooth), self.kernel(rough), self.kernel(rough, weight=4.0)]
        return [self.kernel(as_kernel(kernel)) for kernel in wanted]

    def describe(self) -> dict[str, str]:
        """What becomes of each column, in words."""
        check_is_fitted(self)
        words = {encoder.name: encoder.describe() for encoder in self.encoders_}
        words |= {name: repr(k) for name, k in zip(self.objects_, self.object_kernels_, strict=True)}
        words |= {name: f"left out: {why}" for name, why in self.left_out_.items()}
        return {name: words[name] for name in self.columns_}


# --- columns -----------------------------------------------------------------------------------------------


def _codes(view: TableView, kinds: list[Kind], y: np.ndarray) -> list[int]:
    """Positions of the columns of numbers that are names, by what they say of y."""
    numbers = np.array([kind.kind == "number" for kind in kinds])
    found = np.flatnonzero(numbers & ~view.is_number).tolist()
    for some in chunks(np.flatnonzero(numbers & view.is_number), view.rows):
        found += some[may_be_names(view.numbers(some))].tolist()
    return [j for j in found if _are_names(view.column(j), y)]


def _are_names(column: np.ndarray, y: np.ndarray) -> bool:
    is_gap = gaps(column)
    try:
        numbers = column[~is_gap].astype(np.float64)
    except (TypeError, ValueError):
        return False
    return are_names(numbers, y[~is_gap])


def _one_column(column: np.ndarray) -> np.ndarray:
    table = np.empty((len(column), 1), dtype=object)
    table[:, 0] = column
    return table


def _plain_objects(column: np.ndarray, kind: str) -> np.ndarray:
    """Texts and sets in the plainest form, None where missing: what model files hold."""
    result = np.empty(len(column), dtype=object)
    for i, (value, gap) in enumerate(zip(column, gaps(column), strict=True)):
        if gap:
            result[i] = None
        elif kind == "set":
            result[i] = dict(value) if hasattr(value, "items") else list(value)
        else:
            result[i] = str(value)
    return result
