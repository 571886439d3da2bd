"""Relevance by cells of other rows: all columns before any finely, and how precise it is."""

import numpy as np
import pytest
from scipy import sparse

from mercer.plots import RelevanceDisplay, shuffling
from mercer.plots.shuffling import Shuffling, with_cells_of_others
from mercer.plots.style import new_figure


class Clock:
    """Seconds that pass by rows computed alone."""

    def __init__(self, monkeypatch, each=1e-3):
        self.now, self.each = 0.0, each
        monkeypatch.setattr(shuffling, "now", lambda: self.now)

    def values(self, column):
        """f(x) = 3 x of one column + x of the first."""

        def f(rows):
            self.now += self.each * len(rows)
            return (3 * rows[:, column] + rows[:, 0])[:, None]

        return f


def test_all_columns_are_measured_before_any_finely(monkeypatch, rng):
    """The last of 40 columns leads, though there is time for no more than a few rounds."""
    X, clock = rng.normal(size=(400, 40)), Clock(monkeypatch)
    found = Shuffling(clock.values(39), X, max_time=2.0)
    assert clock.now < 2.0 * 1.3
    assert (found.rows >= 16).all()
    assert found.relevance.argmax() == 39
    assert found.rows[39] == found.rows.max() > found.rows.min()
    # those that f does not depend on are where they belong, and known exactly
    assert (found.relevance[1:39] == 0).all()
    assert (found.precision[1:39] == 0).all()


def test_with_time_enough_all_columns_are_measured_alike(monkeypatch, rng):
    X = rng.normal(size=(100, 5))
    found = Shuffling(Clock(monkeypatch).values(4), X, max_time=1e6, repeats=3)
    assert found.rows.tolist() == [300] * 5


def test_the_precision_is_that_of_the_number(rng):
    """f = x₀ has relevance √2 on normal data; in 60 samples the errors are as large as is said."""
    off = []
    for seed in range(60):
        X = rng.normal(size=(200, 2))
        found = Shuffling(lambda rows: rows[:, :1], X, repeats=1, seed=seed)
        off.append((found.relevance[0] * found.spread - np.sqrt(2)) / (found.precision[0] * found.spread))
    # rows lend to several others, so that the squares depend on each other a little
    assert 0.7 < np.std(off) < 1.5


def test_what_was_not_measured_is_not_ranked(monkeypatch, rng):
    X, clock = rng.normal(size=(64, 300)), Clock(monkeypatch, each=1.0)
    found = Shuffling(clock.values(299), X, max_time=1.0)
    seen = found.rows > 0
    assert 0 < seen.sum() < 300
    assert np.isnan(found.relevance[~seen]).all()
    assert np.isnan(found.precision[~seen]).all()
    assert not seen[: seen.sum()].all()  # by chance, not in the order of the file
    names = tuple(f"c{j}" for j in range(300))
    shown = RelevanceDisplay(
        found.relevance, names, "change", "permutation", precision=found.precision, rows=found.rows
    ).plot(new_figure()[1])
    assert set(shown.order()) == set(np.flatnonzero(seen))
    assert f"of the {seen.sum()} columns that were measured, of 300" in shown.describe()


@pytest.mark.parametrize("kind", ["pandas", "polars", "sparse"])
def test_tables_of_any_kind(kind, rng):
    import pandas as pd
    import polars as pl

    X = rng.integers(0, 5, (10, 4)).astype(float)
    make = {
        "pandas": lambda X: pd.DataFrame(X, columns=list("abcd"), index=np.arange(10) + 7),
        "polars": lambda X: pl.DataFrame(X, schema=list("abcd")),
        "sparse": sparse.csr_array,
    }[kind]
    rows, columns = np.array([1, 3, 8]), np.array([2, 0])
    lenders = rng.integers(0, 10, (2, 3))
    changed = with_cells_of_others(make(X), rows, columns, lenders)
    truth = with_cells_of_others(X, rows, columns, lenders)
    np.testing.assert_array_equal(changed.toarray() if kind == "sparse" else np.asarray(changed), truth)
    assert truth[:3, 2].tolist() == X[lenders[0], 2].tolist()
    assert truth[:3, 0].tolist() == X[rows, 0].tolist()


def test_groups_change_together_and_what_has_no_columns_changes_nothing(rng):
    X = rng.normal(size=(50, 3))
    groups = [np.array([0, 2]), np.array([], dtype=int), np.array([1])]
    changed = with_cells_of_others(X, np.arange(2), np.array([0, 2]), np.array([[7, 8], [9, 9]]), groups)
    np.testing.assert_array_equal(changed[:2], np.column_stack([X[7:9, 0], X[:2, 1], X[7:9, 2]]))
    np.testing.assert_array_equal(changed[2:], np.column_stack([X[:2, 0], X[[9, 9], 1], X[:2, 2]]))
    measured = Shuffling(lambda rows: rows[:, [0]] - rows[:, [2]], X, groups=groups)
    # f is a function of the first group alone: √2, up to chance
    assert measured.relevance == pytest.approx([np.sqrt(2), 0.0, 0.0], abs=0.3)
    assert (measured.rows == 100).all() and measured.precision[1] == 0
