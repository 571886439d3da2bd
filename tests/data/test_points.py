import datetime
import decimal
import fractions

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

import mercer
from mercer.data import points
from mercer.data.agreement import require_nonnegative, require_same_width
from mercer.data.points import (
    as_objects,
    as_vectors,
    columns,
    n_points,
    take,
)
from mercer.errors import InputError, InputTypeError

FORMATS = ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"]


def refusal(function, *arguments, **named):
    """The text of the refusal."""
    with pytest.raises(InputError) as caught:
        function(*arguments, **named)
    return str(caught.value)


# --- as_vectors: what it takes ----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_is_right_already_is_not_copied(dtype):
    X = np.ones((3, 2), dtype=dtype)
    assert as_vectors(X) is X
    S = sparse.csr_array(X)
    assert as_vectors(S) is S


@pytest.mark.parametrize(
    "dtype", [bool, np.int8, np.uint64, np.int64, np.float16, np.longdouble, ">f8", "<i2"]
)
def test_other_numbers_become_float64(dtype):
    X = as_vectors(np.array([[1, 0], [1, 1]], dtype=dtype))
    assert X.dtype == np.float64 and X.dtype.isnative
    np.testing.assert_array_equal(X, [[1, 0], [1, 1]])


def test_swapped_bytes_of_float32_stay_float32():
    X = as_vectors(np.array([[1.5]], dtype=">f4"))
    assert X.dtype == np.float32 and X.dtype.isnative and X[0, 0] == 1.5


@pytest.mark.parametrize("X", [np.ones((4, 6), order="F"), np.ones((4, 6))[:, ::2], np.ones((4, 6))[::-1]])
def test_the_result_is_c_contiguous(X):
    assert as_vectors(X).flags.c_contiguous


@pytest.mark.parametrize(
    "X",
    [
        [[1, 2.5], [3, 4]],
        ((1, 2.5), (3, 4)),
        [np.array([1, 2.5]), [3, 4]],
        np.array([[1, fractions.Fraction(5, 2)], [decimal.Decimal(3), True + 3]], dtype=object),
        np.matrix([[1, 2.5], [3, 4]]),
    ],
)
def test_lists_objects_and_matrices(X):
    result = as_vectors(X)
    assert type(result) is np.ndarray and result.dtype == np.float64
    np.testing.assert_array_equal(result, [[1, 2.5], [3, 4]])


def test_a_memory_map_is_not_read_into_memory(tmp_path):
    X = np.lib.format.open_memmap(tmp_path / "X.npy", mode="w+", dtype=np.float64, shape=(5, 2))
    assert np.shares_memory(as_vectors(X), X)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("kind", [sparse.coo_array, sparse.coo_matrix])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, bool])
def test_sparse_formats(form, kind, dtype):
    dense = np.array([[1, 0, 1], [0, 0, 0], [1, 1, 0]], dtype=dtype)
    S = as_vectors(kind(dense).asformat(form))
    assert type(S) is sparse.csr_array and S.has_canonical_format
    assert S.dtype == (np.float32 if dtype == np.float32 else np.float64)
    np.testing.assert_array_equal(S.toarray(), dense)


@given(hnp.arrays(np.float64, hnp.array_shapes(min_dims=2, max_dims=2), elements=st.floats(-1e3, 1e3)))
def test_every_door_leads_to_the_same_table(X):
    for given_table in (X.tolist(), np.asfortranarray(X), X.astype(object)):
        np.testing.assert_array_equal(as_vectors(given_table), X)
    np.testing.assert_array_equal(as_vectors(sparse.csc_array(X)).toarray(), X)


def test_a_sum_that_overflows_is_not_an_infinite_value():
    X = np.full((2, 2), 1.7e308)
    assert as_vectors(X) is X


# --- as_vectors: data frames and tensors ------------------------------------------------------------


@pytest.fixture(params=["pandas", "polars"])
def frames(request):
    return pytest.importorskip(request.param)


def test_frames(frames):
    X = frames.DataFrame({"a": [1, 2], "b": [True, False], "c": [0.5, 1.5]})
    result = as_vectors(X)
    assert result.dtype == np.float64 and result.flags.c_contiguous
    np.testing.assert_array_equal(result, [[1, 1, 0.5], [2, 0, 1.5]])


def test_frames_of_float32_stay_float32(frames):
    X = frames.DataFrame({"a": np.ones(2, np.float32), "b": np.zeros(2, np.float32)})
    assert as_vectors(X).dtype == np.float32


def test_frames_of_decimals(frames):
    X = frames.DataFrame({"a": [decimal.Decimal("1.5"), decimal.Decimal("2.5")]})
    np.testing.assert_array_equal(as_vectors(X), [[1.5], [2.5]])


def test_frames_with_text_name_the_column(frames):
    X = frames.DataFrame({"age": [1, 2], "city": ["Bern", "Rome"]})
    assert refusal(as_vectors, X, "Y") == (
        "row 0 of column 'city' of Y is 'Bern': this argument must be free of strings and other objects "
        "that are "
        "not numbers; encode them first, or take kernel=mercer.ColumnKernel(), or the features of "
        "mercer.tables.TableFeatures"
    )


def test_frames_with_dates_name_the_column(frames):
    X = frames.DataFrame({"age": [1, 2], "born": [datetime.datetime(2000, 1, 1)] * 2})
    text = refusal(as_vectors, X)
    assert text.startswith("column 'born' of X must hold numbers, got datetime64[")
    assert text.endswith(
        "or take kernel=mercer.ColumnKernel(), or the features of mercer.tables.TableFeatures"
    )


@pytest.mark.parametrize("values", [[1, None, 3], [True, None, False], [1.5, None, 2.5]])
def test_frames_with_missing_values_name_the_column(frames, values):
    X = frames.DataFrame({"a": [1, 2, 3], "b": values})
    assert refusal(as_vectors, X) == (
        "X contains 1 NaN, the first at row 1 of column 'b': drop those rows or fill the gaps (for "
        "example with "
        "sklearn.impute.SimpleImputer)"
    )


def test_frames_without_rows_or_columns(frames):
    X = frames.DataFrame({"a": [1.0, 2.0]})
    assert refusal(as_vectors, X[:0]) == "X has no points, got shape (0, 1): pass at least one row"
    if frames.__name__ == "pandas":  # a polars frame without columns has no rows either
        assert "0 feature(s) (shape=(2, 0)) while a minimum of 1 is required" in refusal(as_vectors, X[[]])


def test_series_are_one_dimensional(frames):
    assert "got shape (2,). Reshape your data" in refusal(as_vectors, frames.Series([1.0, 2.0]))


def test_a_lazy_frame_is_not_a_table():
    polars = pytest.importorskip("polars")
    text = refusal(as_vectors, polars.DataFrame({"a": [1.0]}).lazy())
    assert text.startswith("X is a LazyFrame of Polars")


def test_pandas_in_particular():
    pandas = pytest.importorskip("pandas")

    class Frame(pandas.DataFrame):
        pass

    np.testing.assert_array_equal(as_vectors(Frame({"a": [1, 2]})), [[1], [2]])
    nullable = pandas.DataFrame({"a": pandas.array([1, 2], dtype="Int64")})
    np.testing.assert_array_equal(as_vectors(nullable), [[1], [2]])
    same_name = pandas.DataFrame(np.array([[1.0, 2.0]]), columns=["a", "a"])
    np.testing.assert_array_equal(as_vectors(same_name), [[1, 2]])
    assert refusal(as_vectors, pandas.DataFrame({"z": [1j]})) == (
        "Complex data not supported: column 'z' of X must hold real numbers, got complex128; pass the "
        "real and "
        "imaginary parts as columns of their own"
    )


@pytest.mark.torch
def test_tensors():
    torch = pytest.importorskip("torch")
    X = torch.tensor([[1.0, 2.0]], dtype=torch.float64)
    assert np.shares_memory(as_vectors(X), X.numpy())
    assert as_vectors(X.float()).dtype == np.float32
    np.testing.assert_array_equal(as_vectors(X.bfloat16()), [[1, 2]])
    np.testing.assert_array_equal(as_vectors(X.requires_grad_()), [[1, 2]])
    np.testing.assert_array_equal(as_vectors(torch.tensor([[1, 2]])), [[1, 2]])
    assert "Complex data not supported" in refusal(as_vectors, X.to(torch.complex128))
    assert refusal(as_vectors, X.detach().to_sparse()) == (
        "X must be a dense tensor, got layout torch.sparse_coo: pass X.to_dense(), or a scipy.sparse matrix"
    )


# --- as_vectors: what it refuses --------------------------------------------------------------------


def test_nothing():
    assert refusal(as_vectors, None) == "X must be a table of numbers, got None: pass one row per point"


def test_masked_arrays():
    X = np.ma.masked_array([[1.0, 2.0]], mask=[[True, False]])
    assert refusal(as_vectors, X) == (
        "X must not be a masked array, got shape (1, 2) with 1 masked: "
        "pass X.filled(value), or drop the rows with masked values"
    )


@pytest.mark.parametrize("as_sparse", [False, True])
def test_values_that_are_not_finite(as_sparse):
    def table(*values):
        X = np.zeros((3, 3))
        X.flat[[1, 5, 7]] = values
        return sparse.csr_array(X) if as_sparse else X

    nan, inf = np.nan, np.inf
    fill = "drop those rows or fill the gaps (for example with sklearn.impute.SimpleImputer)"
    assert refusal(as_vectors, table(1, nan, nan)) == f"X contains 2 NaN, the first at X[1, 2]: {fill}"
    assert refusal(as_vectors, table(-inf, nan, inf), "Y") == (
        f"Y contains 1 NaN and 2 inf, the first at Y[0, 1]: {fill}"
    )
    assert refusal(as_vectors, table(1, 1, inf)) == (
        "X contains 1 inf, the first at X[2, 1]: drop those rows or clip the values to finite ones"
    )


@pytest.mark.parametrize("X", [np.array([[1j]]), [[1j]], sparse.csr_array(np.array([[1j]]))])
def test_complex_numbers(X):
    assert refusal(as_vectors, X) == (
        "Complex data not supported: X must hold real numbers, got complex128; pass the real and "
        "imaginary parts as "
        "columns of their own"
    )


@pytest.mark.parametrize(
    ("X", "dtype"),
    [
        ([["a", "b"]], "<U1"),
        (np.array([[b"a"]]), "|S1"),
        (["1.5", "2"], "<U3"),
        (np.array([["2020-01-01"]], dtype="datetime64[D]"), "datetime64[D]"),
    ],
)
def test_text_and_dates(X, dtype):
    assert refusal(as_vectors, X) == (
        f"X must hold numbers, got {dtype}: turn text and dates into numbers first (OneHotEncoder, "
        "X.astype(float)), or use a kernel on objects"
    )


@pytest.mark.parametrize("value", ["1.5", b"1", {"foo": "bar"}, 1j, "a long text " * 9])
def test_objects_that_are_not_numbers(value):
    X = np.array([[1, 2], [3, None]], dtype=object)
    X[1, 1] = value
    text = refusal(as_vectors, X)
    shown = repr(value) if len(repr(value)) <= 40 else repr(value)[:37] + "…"
    assert text == (
        f"X[1, 1] is {shown}: this argument must be free of strings and other objects that are not numbers; "
        "encode them first, or use a kernel on objects"
    )
    with pytest.raises(TypeError, match=r"argument must be .* string.* number"):  # what scikit-learn checks
        as_vectors(X)


def test_none_among_numbers_is_missing():
    assert refusal(as_vectors, [[1, None]]).startswith("X contains 1 NaN, the first at X[0, 1]")


@pytest.mark.parametrize("digits", [400, 5000])
def test_integers_too_large_for_a_float(digits):
    text = refusal(as_vectors, [[1, 2], [10**digits, 3]])
    assert text.startswith("X[1, 0] is too large for a float, got ")
    assert text.endswith(": rescale the column, or take its logarithm") and len(text) < 150


def test_integers_that_only_just_fit():
    assert as_vectors([[2**70, 1]])[0, 0] == 2.0**70


@pytest.mark.parametrize(
    "X", [[[1, 2], [3]], [np.ones(2), np.ones(1)], np.array([[1, 2], [3]], dtype=object), ([1], [2, 3])]
)
def test_ragged_rows(X):
    assert refusal(as_vectors, X) == (
        "X must have rows of equal length, got lengths 1, 2: pad or drop the odd ones, or use a kernel "
        "on objects"
    )


def test_one_dimension():
    text = (
        "Z must be 2-D, one row per point, got shape (3,). Reshape your data: "
        "Z.reshape(-1, 1) for points with one column, Z.reshape(1, -1) for one point"
    )
    assert refusal(as_vectors, [1, 2, 3], "Z") == text
    assert refusal(as_vectors, np.arange(3.0), "Z") == text
    assert refusal(as_vectors, sparse.coo_array(np.arange(3.0)), "Z") == text


def test_three_dimensions():
    assert refusal(as_vectors, np.ones((5, 2, 3))) == (
        "X must be 2-D, one row per point, got shape (5, 2, 3). Reshape your data: "
        "X.reshape(5, -1) makes one row of each X[i]"
    )


@pytest.mark.parametrize(
    ("X", "what"),
    [
        (3.0, "float"),
        (np.array(3.0), "ndarray"),
        ("text", "str"),
        ({"a": 1}, "dict"),
        ({1, 2}, "set"),
        (iter([]), "list_iterator"),
    ],
)
def test_what_is_not_a_table(X, what):
    assert refusal(as_vectors, X) == (
        f"X must be 2-D, one row per point, got a single {what}: "
        "pass a 2-D array, a list of rows, a data frame or a sparse matrix"
    )


@pytest.mark.parametrize("X", [[], np.empty((0, 2)), sparse.csr_array((0, 2))])
def test_no_points(X):
    shape = (0,) if isinstance(X, list) else (0, 2)
    assert refusal(as_vectors, X) == f"X has no points, got shape {shape}: pass at least one row"


@pytest.mark.parametrize("X", [[[], []], np.empty((2, 0)), sparse.csr_array((2, 0))])
def test_no_columns(X):
    assert refusal(as_vectors, X) == (
        "X has 0 feature(s) (shape=(2, 0)) while a minimum of 1 is required: pass at least one column"
    )


# --- as_objects ---------------------------------------------------------------------------------------


def test_lists_and_tuples_of_objects_stay_themselves():
    for X in (["a", "bc"], ("a", "bc"), [{1, 2}, {3}], [None]):
        assert as_objects(X) is X


def test_arrays_and_series_of_objects():
    assert as_objects(np.array(["a", "bc"])) == ["a", "bc"]
    assert type(as_objects(np.array(["a"]))[0]) is str
    objects = np.empty(2, dtype=object)
    objects[:] = [[1, 2], "a"]
    assert as_objects(objects) == [[1, 2], "a"]
    images = as_objects(np.ones((3, 2, 2)))
    assert len(images) == 3 and images[0].shape == (2, 2)


def test_series_of_objects(frames):
    assert as_objects(frames.Series(["a", "bc"])) == ["a", "bc"]


def test_frames_are_not_objects(frames):
    assert refusal(as_objects, frames.DataFrame({"a": ["x"]})) == (
        "X must be a list of objects, got a DataFrame: pass one of its columns, X['column']"
    )


@pytest.mark.parametrize("text", ["abc", b"abc"])
def test_a_bare_text(text):
    assert refusal(as_objects, text) == (
        f"X must be a list of objects, got the single text {text!r}: pass [text]"
    )


@pytest.mark.parametrize(
    "X", [None, {"a": 1}, {1}, frozenset(), 3, (x for x in "ab"), np.array(3), sparse.eye_array(2)]
)
def test_what_is_not_a_list_of_objects(X):
    text = refusal(as_objects, X, "documents")
    assert text == (
        f"documents must be a list of objects, got a {type(X).__name__}: pass a list, "
        "list(…) of what you have, or [object] for a single one"
    )
    with pytest.raises(InputTypeError):
        as_objects(X)


@pytest.mark.parametrize("X", [[], (), np.array([])])
def test_no_objects(X):
    assert refusal(as_objects, X) == (
        f"X has no points, got an empty {type(X).__name__}: pass at least one object"
    )


# --- requirements -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.array, sparse.csr_array])
def test_negative_values(kind):
    X = kind([[0.0, 1.0], [-1.0, 0.0], [0.0, -2.5]])
    require_nonnegative(abs(X), "X", "Min")
    require_nonnegative(kind([[0.0, -0.0]]), "X", "Min")
    text = refusal(require_nonnegative, X, "X", "HistogramIntersection")
    assert text == (
        "Negative values in data: HistogramIntersection compares histograms, got X[2, 1] = -2.5 as the "
        "smallest "
        "value; pass counts or other values that are zero or more"
    )


def test_widths():
    require_same_width(np.ones((1, 2)), sparse.csr_array((5, 2)), "X", "Y")
    assert refusal(require_same_width, np.ones((1, 2)), np.ones((1, 3)), "X", "the training data") == (
        "X and the training data must have the same number of columns, got 2 and 3: "
        "pass points described by the same columns"
    )


# --- parts of a table ---------------------------------------------------------------------------------


def test_n_points(frames):
    tables = [[1, 2, 3], "abc", np.ones((3, 2)), sparse.csr_array((3, 2)), frames.DataFrame({"a": [1, 2, 3]})]
    assert [n_points(X) for X in tables] == [3] * 5


@pytest.mark.parametrize(
    "index", [np.array([2, 0]), [2, 0], slice(1, 3), np.array([True, False, True]), [], [-1]]
)
def test_take_agrees_for_every_container(frames, index):
    X = np.arange(6.0).reshape(3, 2)
    rows = np.asarray(index, dtype=int) if isinstance(index, list) else index
    expected = X[rows]
    np.testing.assert_array_equal(take(X, index), expected)
    np.testing.assert_array_equal(np.reshape(take(X.tolist(), index), (-1, 2)), expected)
    np.testing.assert_array_equal(take(sparse.csr_array(X), index).toarray(), expected)
    np.testing.assert_array_equal(take(sparse.coo_array(X), index).toarray(), expected)
    frame = take(
        frames.DataFrame(X, ["a", "b"]) if frames.__name__ == "polars" else frames.DataFrame(X, [7, 8, 9]),
        index,
    )
    assert type(frame) is frames.DataFrame
    np.testing.assert_array_equal(frame.to_numpy(), expected)
    series = take(frames.Series(X[:, 0]), index)
    np.testing.assert_array_equal(series.to_numpy(), expected[:, 0])


@pytest.mark.torch
def test_take_from_tensors():
    torch = pytest.importorskip("torch")
    np.testing.assert_array_equal(take(torch.eye(3), np.array([2, 0])).numpy(), np.eye(3)[[2, 0]])


@pytest.mark.parametrize(
    "which",
    [
        [2, 0],
        (2, 0),
        np.array([2, 0]),
        1,
        np.int64(1),
        slice(0, 2),
        slice(None, None, -1),
        [-1],
        [True, False, True],
    ],
)
def test_columns_by_position(frames, which):
    X = np.arange(6.0).reshape(2, 3)
    chosen = [which] if isinstance(which, int | np.integer) else which
    expected = X[:, list(chosen) if isinstance(chosen, tuple) else chosen]
    np.testing.assert_array_equal(columns(X, which), expected)
    np.testing.assert_array_equal(columns(X.tolist(), which), expected)
    for form in FORMATS:
        np.testing.assert_array_equal(columns(sparse.coo_array(X).asformat(form), which).toarray(), expected)
    frame = columns(frames.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]}), which)
    assert type(frame) is frames.DataFrame
    np.testing.assert_array_equal(frame.to_numpy(), expected)


def test_columns_by_name(frames):
    X = frames.DataFrame({"a": [1, 2], "b": [3, 4], "c": [5, 6]})
    for which in (["c", "a"], np.array(["c", "a"]), ["c", 0]):
        assert list(columns(X, which).columns) == ["c", "a"]
    assert list(columns(X, "b").columns) == ["b"]


def test_a_slice_of_an_array_is_a_view():
    X = np.ones((2, 3))
    assert np.shares_memory(columns(X, slice(0, 2)), X)


def test_columns_of_a_mixed_table_keep_their_values():
    X = [[1.5, "a"], [2.5, "b"]]
    np.testing.assert_array_equal(as_vectors(columns(X, [0])), [[1.5], [2.5]])
    assert columns(X, [1]).tolist() == [["a"], ["b"]]


@pytest.mark.torch
def test_columns_of_a_tensor():
    torch = pytest.importorskip("torch")
    np.testing.assert_array_equal(columns(torch.eye(3), [1]), np.eye(3)[:, [1]])


def test_columns_with_repeated_names():
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(np.ones((2, 3)), columns=["a", "b", "a"])
    assert columns(X, ["a"]).shape == (2, 2)


def test_columns_that_are_not_there(frames):
    X = frames.DataFrame({"a": [1], "b": [2]})
    assert refusal(columns, X, ["a", "z"]) == "X has no column 'z': it has 'a', 'b'"
    assert refusal(columns, X, [2], "table") == "table has no column 2: it has 2 columns, 0 to 1"
    assert refusal(columns, np.ones((2, 3)), [-4]) == "X has no column -4: it has 3 columns, 0 to 2"
    wide = frames.DataFrame({f"c{j}": [j] for j in range(30)})
    assert refusal(columns, wide, "z").endswith("'c18', 'c19', … (30 in all)")


def test_names_on_an_array():
    for X in (np.ones((2, 3)), sparse.csr_array((2, 3)), [[1, 2, 3]]):
        assert refusal(columns, X, ["age"]) == (
            "the columns of X have no names, got 'age': pass positions, 0 to 2, or a data frame"
        )


@pytest.mark.parametrize("which", [[], slice(5, 9), [False, False, False]])
def test_no_columns_chosen(which):
    assert refusal(columns, np.ones((2, 3)), which) == (
        f"no column of X is chosen, got {which!r}: choose at least one of its 3 columns"
    )


def test_other_wrong_choices_of_columns():
    assert refusal(columns, np.ones((2, 3)), [True]) == (
        "a mask of columns of X must have 3 entries, one per column, got 1: "
        "pass one entry per column, or positions"
    )
    assert refusal(columns, np.ones((2, 3)), slice("a", "c")) == (
        "a slice of columns of X takes positions, got slice('a', 'c', None): pass a list of names instead"
    )
    assert refusal(columns, 3, [0]) == "X must be a table, got a single int: pass a 2-D array or a data frame"
    assert "Reshape your data" in refusal(columns, [1, 2], [0])
    assert "rows of equal length" in refusal(columns, [[1, 2], [3]], [0])


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_column_of_text_is_named_with_what_takes_it(library):
    frames = pytest.importorskip(library)
    frame = frames.DataFrame({"age": [31.0, 45.0, 7.0, 8.0], "city": ["Rome", "Oslo", "Rome", "Oslo"]})
    message = (
        r"column 'city' of X .*mercer\.ColumnKernel\(\), or the features of mercer\.tables\.TableFeatures"
    )
    for task in (
        lambda: mercer.SVC().fit(frame, [0, 1, 0, 1]),
        lambda: mercer.KernelRidge().fit(frame, [0.0, 1.0, 0.0, 1.0]),
        lambda: mercer.Gaussian(1.0)(frame),
        lambda: mercer.KernelPCA().fit(frame),
    ):
        with pytest.raises(InputTypeError, match=message):
            task()
    assert mercer.SVC(kernel=mercer.ColumnKernel()).fit(frame, [0, 1, 0, 1]).predict(frame).shape == (4,)


@pytest.mark.parametrize(
    "y", [["a", 1, "a", 1], ("a", 2.5, "a", 2.5), np.array(["a", 1, "a", 1], dtype=object), [1, "a", 1, "a"]]
)
def test_labels_of_two_types_are_refused_as_such(y):
    X = np.arange(8.0).reshape(4, 2)
    for name in ("SVC", "KernelPerceptron", "ParzenClassifier", "KernelLogisticRegression", "NuSVC"):
        with pytest.raises(
            InputTypeError, match=r"y must hold labels of one type, got str \('a'\) and (int|float)"
        ):
            getattr(mercer, name)().fit(X, y)
    assert list(mercer.SVC().fit(X, [True, 0, 1, False]).classes_) == [0, 1]


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_many_numbers_are_looked_at_by_all_threads(dtype, monkeypatch):
    monkeypatch.setattr(points, "_WORTH_THREADS", 1000)
    X = np.ones((170, 50), dtype)
    assert points.has_finite_sum(X) and as_vectors(X) is X
    assert points.has_finite_sum(X[:, ::2])  # rows that are not neighbours
    X[169, 49] = np.nan
    assert not points.has_finite_sum(X)
    with pytest.raises(InputError, match=r"X contains 1 NaN, the first at X\[169, 49\]"):
        as_vectors(X)
    large = np.full(
        (170, 50), np.finfo(dtype).max
    )  # Sums overflow, and the numbers are looked at one by one.
    assert not points.has_finite_sum(large) and as_vectors(large) is large
