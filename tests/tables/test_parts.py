"""Several files that are one table: as if their rows were in one file, or a sentence."""

import numpy as np
import polars as pl
import pytest

from mercer import config
from mercer.errors import InputError
from mercer.tables import read_table, train


def write(folder, **texts):
    paths = [folder / f"{name}.csv" for name in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        path.write_text(text)
    return paths


def whole_and_parts(folder, header, *bodies):
    """One file of all rows, and the same rows in several."""
    [whole] = write(folder, whole=header + "".join(bodies))
    parts = write(folder, **{f"part{i}": header + body for i, body in enumerate(bodies)})
    return read_table(whole, texts=True), read_table(parts, texts=True)


@pytest.mark.parametrize(
    ("header", "bodies"),
    [
        ("a,b\n", ("1,x\n2,y\n", "3.5,z\n")),  # whole numbers, and fractions
        ("a,b\n", ("1,12\n2,13\n", "3,12b\n4,A7\n5,B8\n")),  # numbers that turn out to be codes
        ("a,b\n", ("1,\n2,NA\n", "3,0.5\n")),  # nothing but gaps
        ("a,b\n", ("1,\n2,NA\n", "3,word\n")),
        ("a,b\n", ("1,007\n2,008\n", "3,123\n")),  # codes that look like numbers
        ("a,b\n", ("1,2026-01-31\n", "3,2026-02-01\n")),
        ("a,b\n", ("1,2026-01-31\n", "3,some day\n")),
        ("d,b\n", ("3/4/2026,1\n", "3/14/2026,2\n")),  # The second part tells the order of the first.
        ("d,b\n", ("3/4/2026,1\n", "5/6/2026,2\n")),
        ("a;b\n", ("1,5;2\n2,5;3\n", "2;2\n3;3\n")),
        ("a,b\n", ('"x, y",2\n"v",3\n', '"a ""b""",2\n')),
    ],
)
def test_parts_are_what_one_file_is(tmp_path, header, bodies):
    whole, parts = whole_and_parts(tmp_path, header, *bodies)
    assert parts.frame.equals(whole.frame) and parts.frame.schema == whole.frame.schema
    assert parts.dates == whole.dates and parts.format == whole.format
    assert parts.as_written().equals(whole.as_written())
    told = [note.replace(whole.name, "") for note in whole.notes if "decimals" not in note]
    assert [note.replace(parts.name, "") for note in parts.notes if "decimals" not in note] == told


def test_folders_patterns_and_lists(tmp_path):
    (tmp_path / "rides").mkdir()
    first, second = write(tmp_path / "rides", b="x,y\n3,4\n", a="x,y\n1,2\n")
    (tmp_path / "rides" / "_SUCCESS").write_text("")
    for path in (tmp_path / "rides", f"{tmp_path}/rides/*.csv", [second, first], [tmp_path / "rides"]):
        table = read_table(path)
        assert table.frame["x"].to_list() == [1, 3]
        assert table.name == f"{tmp_path}/rides (2 files)"
    assert read_table([first]).name == str(first)


def test_columns_may_have_another_order(tmp_path):
    table = read_table(write(tmp_path, a="x,y\n1,2\n", b="y,x\n20,10\n"))
    assert table.frame.rows() == [(1, 2), (10, 20)]


def test_other_formats(tmp_path):
    frame = pl.DataFrame({"x": [1, 2], "when": [None, None], "t": ["a", "b"]})
    other = pl.DataFrame({"x": [0.5], "when": [1.0], "t": ["c"]})
    for write_, suffix in (("write_parquet", "parquet"), ("write_ipc", "arrow")):
        getattr(frame, write_)(tmp_path / f"a.{suffix}")
        getattr(other, write_)(tmp_path / f"b.{suffix}")
        found = read_table(f"{tmp_path}/*.{suffix}").frame
        assert found.rows() == [(1.0, None, "a"), (2.0, None, "b"), (0.5, 1.0, "c")]
    for name, X in (("a", np.eye(2)), ("b", np.ones((1, 2)))):
        np.save(tmp_path / f"{name}.npy", X)
    assert read_table(f"{tmp_path}/*.npy").frame.rows() == [(1.0, 0.0), (0.0, 1.0), (1.0, 1.0)]


def test_parts_of_a_sparse_table_may_end_with_other_columns(tmp_path):
    a, b = write(tmp_path, a="1 1:0.5 3:2\n-1 2:1\n", b="1 5:4\n-1 1:1\n")
    [whole] = write(tmp_path, whole="1 1:0.5 3:2\n-1 2:1\n1 5:4\n-1 1:1\n")
    one, parts = read_table(whole), read_table([a, b])
    assert np.array_equal(one.matrix.toarray(), parts.matrix.toarray())
    assert np.array_equal(one.labels, parts.labels) and parts.frame.equals(one.frame)
    [words] = write(tmp_path, words="yes 1:0.5\nno 2:1\n")
    with pytest.raises(
        InputError, match=r"labels of .*a\.csv are numbers and those of .*words\.csv are texts"
    ):
        read_table([a, words])


def test_rows_are_taken_of_all_parts(tmp_path):
    rows = ["\n".join(map(str, part)) for part in np.split(np.arange(1000), [100])]
    few, many = write(tmp_path, few=f"x\n{rows[0]}\n", many=f"x\n{rows[1]}\n")
    table = read_table([few, many], rows=50)
    assert table.rows == 50
    assert 2 <= table.frame["x"].is_between(0, 99).sum() <= 8 and table.frame["x"].max() > 950
    assert table.notes[-1].startswith(f"50 rows of {tmp_path} (2 files) were taken, of each file as many as")
    assert read_table([few, many], rows=5000).rows == 1000
    with config(memory=2000), pytest.raises(InputError, match=r"\(2 files\) holds .* raise it"):
        read_table([few, many])


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ({"a": "x,y\n1,2\n", "b": "x,z\n1,2\n"}, r"a\.csv has the column 'y', and .*b\.csv has not: pass"),
        ({"a": "x\n1\n", "b": "x,y,z\n1,2,3\n"}, r"b\.csv has the column 'y' and 1 more of its columns, and"),
        (
            {"a": "x,y\n1,2\n", "b": "1 1:2\n-1 1:3\n"},
            r"a\.csv is csv and .*b\.csv is libsvm: pass files of one",
        ),
        ({"a": "x,y\n1,2\n", "b": ""}, r"b\.csv is empty: pass a file with at least one row"),
        ({"a": "x,y\n1,2\n", "b": "x,y\n"}, r"b\.csv has a header and no rows"),
        ({"a": "x,y\n1,2\n", "b": "x,y\n1,2\n3\n"}, r"line 3 of .*b\.csv, the last, has 1 field"),
        (
            {"a": "x\n" + "1\n" * 9, "b": "x\nword\n"},
            r"column 'x' of .* \(2 files\) mixes numbers and text: 9 numbers, and 'word' in row 10",
        ),
    ],
)
def test_what_is_no_table_is_refused(tmp_path, texts, words):
    with pytest.raises(InputError, match=words):
        read_table(write(tmp_path, **texts))


def test_other_refusals(tmp_path):
    [file] = write(tmp_path, a="x,y\n1,2\n")
    with pytest.raises(InputError, match=r"a\.csv is named twice: rows that a model learns from"):
        read_table([file, tmp_path / "." / "a.csv"])
    with pytest.raises(InputError, match="no file is named: pass at least one"):
        read_table([])
    with pytest.raises(InputError, match=r"standard input \(-\) is a table by itself"):
        read_table(["-", file])
    with pytest.raises(InputError, match=r"nowhere\.csv cannot be read"):
        read_table([file, "nowhere.csv"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="has no files: pass a folder whose files are the parts"):
        read_table(tmp_path / "empty")
    for name, cells in (("n", [1]), ("t", ["a"])):
        pl.DataFrame({"x": cells}).write_parquet(tmp_path / f"{name}.parquet")
    with pytest.raises(
        InputError, match=r"column 'x' holds numbers in .*n\.parquet and texts in .*t\.parquet"
    ):
        read_table(f"{tmp_path}/*.parquet")


def test_a_training_takes_parts_as_one_table(tmp_path, rng):
    x = rng.uniform(-2, 2, 60).round(3)
    lines = [f"{a},{b:.4f}\n" for a, b in zip(x, np.sin(x), strict=True)]
    [whole] = write(tmp_path, whole="x,y\n" + "".join(lines))
    parts = write(tmp_path, a="x,y\n" + "".join(lines[:25]), b="x,y\n" + "".join(lines[25:]))
    options = {"kernel": "gaussian(sigma=1.0)", "folds": 2}
    one, other = train(whole, "y", **options), train(parts, "y", **options)
    assert one.honest.error == other.honest.error
    assert other.model.about_["source"] == f"{tmp_path.name} (2 files)"
