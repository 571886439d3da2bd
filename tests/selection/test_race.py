"""Widths and C that race, on errors that are known."""

import numpy as np
import pytest
from sklearn import svm as peers
from sklearn.model_selection import StratifiedKFold

from mercer import Gaussian, Linear, config
from mercer.selection.families import family
from mercer.selection.race import race
from mercer.selection.scores import MOST_FOR_FOLDS, PENALTIES, MachineErrors
from mercer.selection.search import Clock

WIDTHS = [Gaussian(sigma=float(width)) for width in range(1, 8)]


class Known:
    """Errors that grow with the distance from a best cell, and what was asked for."""

    def __init__(self, row, column):
        rows, columns = np.mgrid[: len(WIDTHS), : len(PENALTIES)]
        self.errors = 0.1 + 0.01 * np.hypot(rows - row + 0.05, 1.1 * (columns - column) + 0.1)
        self.asked = []

    def path(self, kernel, which, rounds=(0,), part=slice(None), end=np.inf):
        row = WIDTHS.index(kernel)
        cells = self.errors[row, part]
        self.asked.append((len(which), len(rounds), row, len(cells)))
        return cells, np.array(PENALTIES)[part]

    def cells(self, points):
        return sum(count for asked, _, _, count in self.asked if asked == points)


@pytest.mark.parametrize("n", [30, 1000, 1500, 4000, 50_000])
@pytest.mark.parametrize(("row", "column"), [(3, 4), (0, 0), (6, 10), (5, 2)])
def test_the_best_cell_wins(n, row, column):
    score = Known(row, column)
    winner = race(score, WIDTHS, np.arange(n), Clock(None))
    assert winner.points == min(n, 10_240)
    # the mean with the neighbours may favour the cell beside one at an edge
    assert abs(winner.number - row) <= 1
    assert abs(PENALTIES.index(winner.score.penalty) - column) <= 1


def test_a_cell_far_from_an_edge_wins_exactly():
    winner = race(Known(3, 5), WIDTHS, np.arange(5000), Clock(None))
    assert (winner.number, winner.score.penalty) == (3, PENALTIES[5])


def test_fewer_cells_have_more_points():
    score = Known(3, 5)
    race(score, WIDTHS, np.arange(20_000), Clock(None))
    counts = [score.cells(points) for points in (1280, 2560, 5120, 10_240)]
    assert counts[0] == len(WIDTHS) * len(PENALTIES)
    assert counts[1] <= counts[0] / 3 and counts[2] <= counts[1] / 3
    assert counts[3] <= counts[2] / 3 + 5 + 5  # and neighbours of the winner, and a second round


def test_few_points_have_repeated_folds():
    for n, expected in ((1000, {5}), (1001, {1, 2})):  # and of more, two other rounds at the end
        score = Known(3, 5)
        race(score, WIDTHS, np.arange(n), Clock(None))
        assert {rounds for _, rounds, _, _ in score.asked} == expected


def test_the_winner_has_its_neighbours_scored():
    score = Known(3, 5)
    score.errors[3, 5] = 0.0  # and wins at once
    race(score, WIDTHS, np.arange(20_000), Clock(None))
    rows = {row for points, _, row, _ in score.asked if points == 10_240}
    assert rows >= {2, 3, 4}
    assert score.cells(10_240) >= 5


def test_a_larger_c_that_is_the_same_machine_is_not_scored_again():
    score = Known(3, 5)
    score.errors[:, 3:] = score.errors[:, 2:3]  # as where no point is at its bound
    winner = race(score, WIDTHS, np.arange(20_000), Clock(None))
    assert winner.score.penalty in PENALTIES[1:3]
    assert score.cells(2560) <= 3 * len(WIDTHS)


def test_equal_errors_by_chance_hide_no_cell():
    score = Known(3, 5)
    score.errors[3, 4:7] = 0.05, 0.05, 0.06  # the mean with the neighbours is least at the second
    assert race(score, WIDTHS, np.arange(500), Clock(None)).score.penalty == PENALTIES[5]


def test_a_parameter_that_is_no_width_does_not_race():
    assert not family(2.0 * Linear()).has_width
    assert family(2.0 * Gaussian(sigma=1.0)).has_width


def test_cells_that_are_all_equal_have_a_winner():
    score = Known(3, 5)
    score.errors[:] = 0.25
    assert race(score, WIDTHS, np.arange(20_000), Clock(None)).score.error == pytest.approx(0.25)


def test_a_race_ends_with_its_time():
    score = Known(3, 5)
    winner = race(score, WIDTHS, np.arange(20_000), Clock(0.0))
    assert winner.points == 1280 and winner.number == 3  # the first rung has the middle kernel at least
    assert {row for _, _, row, _ in score.asked} == {3}


def test_folds_too_large_to_be_stored_are_those_of_libsvm(rng):
    X = rng.normal(size=(MOST_FOR_FOLDS + 40, 3))
    y = (X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=len(X)) > 0).astype(int)
    seen = []
    with config(progress=seen.append):
        errors, penalties = MachineErrors(X, y, folds=2).path(
            Gaussian(sigma=1.0), np.arange(len(X)), part=slice(1, 3)
        )
    assert penalties == pytest.approx(PENALTIES[1:3])
    wrong = np.zeros(2)
    for train, test in StratifiedKFold(2, shuffle=True, random_state=0).split(X, y):
        for k, C in enumerate(penalties):
            peer = peers.SVC(C=C, gamma=0.5).fit(X[train], y[train])
            wrong[k] += np.count_nonzero(peer.predict(X[test]) != y[test])
    assert not seen  # a bar for each fold would be in the way
    # points within the tolerance of the border, 1e-2 of a margin, may differ: some in a thousand
    assert errors == pytest.approx(wrong / len(X), abs=3e-3)
