"""What a column holds, and which task a target asks for."""

from datetime import date

import numpy as np
import pytest

from mercer.errors import InputError, InputTypeError
from mercer.tables import find_target, read_table
from mercer.tables.kinds import kind_of

SENTENCES = [f"the {i} quick brown foxes jump over {i * i} lazy dogs" for i in range(30)]


@pytest.mark.parametrize(
    ("values", "name", "kind"),
    [
        ([1.5, 2.5, 3.5], "x", "number"),
        ([1, 2, 2], "x", "number"),
        ([None, 2, 2.5], "x", "number"),
        ([None, 2, 2], "x", "number"),  # whether it is missing tells something
        ([True, False, True], "x", "category"),
        ([True, None, True], "x", "category"),
        (["a", "b", "a"], "x", "category"),
        (["a", None, "a"], "x", "category"),
        ([date(2024, 1, 1), date(2024, 1, 2), None], "x", "date"),
        (SENTENCES, "comment", "text"),
        ([w * 5 for w in "abcdefghijklmnopqrstuvwxyz" * 2], "x", "category"),
        (["".join(np.random.default_rng(i).choice(list("ACGT"), 12)) for i in range(60)], "dna", "string"),
        ([["a"], ["b", "c"], []], "tags", "set"),
        ([{"a": 1}, {"b": 2}, {}], "tags", "set"),
        (list(range(1, 31)), "x", "id"),
        (list(range(1950, 1980)), "year", "number"),
        (list(range(30, 0, -1)), "rank", "number"),
        ([i * 7919 % 104729 for i in range(30)], "customer_id", "id"),
        ([i * 7919 % 104729 for i in range(30)], "size", "number"),
        ([f"u{i:05}" for i in range(30)], "code", "id"),
        ([3.0, 3.0, 3.0], "x", "constant"),
        (["a", "a"], "x", "constant"),
        ([None, None], "x", "empty"),
        ([float("nan")] * 3, "x", "empty"),
    ],
)
def test_kinds(values, name, kind):
    column = np.empty(len(values), dtype=object)
    column[:] = values
    assert kind_of(column, name).kind == kind
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        assert kind_of(np.array(values), name).kind == kind


def test_a_categorical_type_is_one_of_categories():
    assert kind_of(np.array([1, 2, 3]), "x", categorical=True).kind == "category"


def test_what_has_no_features():
    column = np.array([1j, 2j, "x"], dtype=object)
    with pytest.raises(
        InputTypeError, match="column 'z' holds complex, str, for which there are no features"
    ):
        kind_of(column, "z")


# --- the target ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "task", "kind"),
    [
        (["a", "b"] * 5, "classification", "U"),
        ([True, False] * 5, "classification", "U"),
        ([0, 1] * 5, "classification", "i"),
        ([0.5, 1.5] * 5, "classification", "U"),
        (list(range(5)) * 5, "classification", "i"),
        ([float(i) for i in range(5)] * 5, "classification", "i"),
        (list(range(25)) * 10, "regression", "f"),
        (list(range(10)), "regression", "f"),  # one row for each value
        ([0.1 * i for i in range(5)] * 5, "regression", "f"),
    ],
)
def test_the_task_is_found(values, task, kind):
    target = find_target(np.array(values), "y")
    assert target.task == task
    assert target.y.dtype.kind == kind
    assert target.rows.tolist() == list(range(len(values)))


def test_the_task_can_be_given():
    values = np.array(list(range(5)) * 5)
    target = find_target(values, "y", "regression")
    assert target.y.tolist() == values.tolist()
    assert target.notes == ()
    assert "pass --task regression for the other" in find_target(values, "y").notes[0]
    with pytest.raises(InputError, match="task must be 'classification' or 'regression', got 'ranking'"):
        find_target(values, "y", "ranking")


def test_rows_without_a_target_are_left_out():
    target = find_target(np.array([1.5, np.nan, 2.5, 3.5]), "y")
    assert target.y.tolist() == [1.5, 2.5, 3.5]
    assert target.rows.tolist() == [0, 2, 3]
    assert target.notes == ("1 rows without a target were left out",)


@pytest.mark.parametrize(
    ("values", "task", "match"),
    [
        (["a"] * 4, None, "the target 'y' has one class, 'a', in all 4 rows"),
        ([1, 1, 1], None, "the target 'y' has one class, 1, in all 3 rows"),
        ([1.5, 1.5], "regression", "the target 'y' is 1.5 in every row: there is nothing to learn"),
        ([None, None], None, "the target 'y' is missing in every row"),
        ([date(2024, 1, 1)] * 3, None, "the target 'y' holds dates"),
        (
            [f"row {i}" for i in range(9)],
            None,
            "the target 'y' has 9 different values in 9 rows, too many for",
        ),
        (["a"] * 4 + ["b"], None, "has 2 classes, of which 1 have a single row .'b'.: add rows of at least"),
        (
            ["a", "b"],
            "regression",
            "the target 'y' holds 'a', which is no number: choose a column of numbers",
        ),
        ([1.0, np.inf, 2.0], None, "the target 'y' is infinite in row 2"),
        (
            [i / 10 for i in range(9)],
            "classification",
            "too many for classes: choose a column of classes, or take",
        ),
    ],
)
def test_targets_that_cannot_be(values, task, match):
    column = np.empty(len(values), dtype=object)
    column[:] = values
    with pytest.raises(InputError, match=match):
        find_target(column, "y", task)


def test_single_rows_of_a_class_are_said():
    target = find_target(np.array(["a"] * 4 + ["b"] * 4 + ["c"]), "y")
    assert "1 of the 3 classes of 'y' have a single row ('c')" in target.notes[0]


@pytest.mark.parametrize("factor", [1e200, 1e-200, 1.7e308])
@pytest.mark.filterwarnings("error")  # NumPy's own too
def test_a_target_whose_errors_cannot_be_squared(factor):
    with pytest.raises(InputError, match="too wide or too narrow a range for errors to be squared"):
        find_target(factor * np.array([-1.0, 0.5, 1.0]), "y")


def test_numbers_filled_up_with_zeros_can_be_a_target():
    values = np.array([f"{i:05}" for i in range(60)], dtype=object)
    assert find_target(values, "y").task == "regression"
    few = np.array(["001", "002", "003"] * 20, dtype=object)
    assert list(find_target(few, "y").y[:2]) == ["001", "002"]
    assert find_target(few, "y", "regression").y[2] == 3.0


def test_nominal_values_of_arff_in_another_spelling(tmp_path):
    path = tmp_path / "t.arff"
    path.write_text("@relation r\n@attribute a {0,1}\n@attribute b {yes,no}\n@data\n1.0,YES\n0,no\n")
    assert read_table(path).frame.rows() == [("1", "yes"), ("0", "no")]
    path.write_text(path.read_text() + "2,no\n")
    with pytest.raises(InputError, match="has '2' where 'a' is one of"):
        read_table(path)
