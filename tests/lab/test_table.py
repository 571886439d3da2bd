"""Points from a CSV."""

import pytest

from mercer.errors import InputError
from mercer.lab.rooms import answer


def points(text, room="classify"):
    return answer("table", {"text": text, "room": room})["points"]


def test_separators_and_names_of_columns():
    true = [[0.0, 1.0, -1], [2.0, -3.5, 1]]
    for text in (
        "a,b,c\n0,1,-1\n2,-3.5,1\n",
        "0;1;-1\n2;-3.5;1",
        "0\t1\tno\r\n2\t-3.5\tyes\r\n",
        "\ufeff0,1,0\n\n2,-3.5,1\n",
    ):
        assert points(text) == true


def test_numbers_that_name_classes_are_in_order():
    assert [row[2] for row in points("0,0,10\n1,1,9\n2,2,10\n")] == [1, -1, 1]


def test_without_a_third_column_there_is_one_class():
    assert points("0,1\n2,3") == [[0, 1, -1], [2, 3, -1]]


def test_a_curve_takes_two_columns():
    assert points("x,y,z\n0,1,9\n2,3,9", "curve") == [[0, 1], [2, 3]]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "the table has no rows"),
        ("a,b\n", "the table has no rows"),
        ("1,2\n3,x\n", "row 2 must begin with two numbers, got \\['3', 'x'\\]"),
        ("1,2\nnan,1\n", "row 2 must begin"),
        ("1\n2\n", "row 1 must begin"),
        ("0,0,a\n0,0,b\n0,0,c\n", "the third column has 3 values"),
        ("0,0,a\n" * 2001, "2,001 rows, and the lab takes 2,000"),
        ("0,0\n" * 200_000, "at most 500,000 characters"),
    ],
)
def test_refusals(text, says):
    with pytest.raises(InputError, match=says):
        points(text)
