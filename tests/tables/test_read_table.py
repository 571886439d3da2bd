"""read_table: every format gives the same table, and whatever is wrong is one clear sentence."""

import bz2
import gzip
import io
import lzma
import re
import zipfile
from datetime import timedelta

import numpy as np
import pytest

from mercer import config
from mercer.errors import InputError, InputTypeError
from mercer.tables import read_table
from mercer.tables.frames import write_csv

pl = pytest.importorskip("polars")

TEXT = "age,city,since\n31,Rome,2024-01-05\n45,Oslo,2024-02-01\n,Rome,2024-03-09\n"
FRAME = {
    "age": [31, 45, None],
    "city": ["Rome", "Oslo", "Rome"],
    "since": ["2024-01-05", "2024-02-01", "2024-03-09"],
}


def written(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def assert_is_the_table(table):
    frame = table.frame.with_columns(pl.col("since").cast(pl.Date).cast(pl.String))
    assert frame.to_dict(as_series=False) == FRAME


# --- formats ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", TEXT),
        ("t.tsv", TEXT.replace(",", "\t")),
        ("t.txt", TEXT.replace(",", ";")),
        ("t.dat", TEXT.replace(",", "|")),
        ("bom.csv", b"\xef\xbb\xbf" + TEXT.encode()),
        ("wide.csv", TEXT.encode("utf-16")),
        ("widest.csv", TEXT.encode("utf-32")),
        ("dos.csv", TEXT.replace("\n", "\r\n")),
        ("mac.csv", TEXT.replace("\n", "\r")),
        ("blank.csv", "\n" + TEXT.replace("\n", "\n\n")),
        ("no-end.csv", TEXT.rstrip()),
        (
            "quoted.csv",
            re.sub(r"(\w+)", r'"\1"', TEXT.replace("-", "~")).replace("~", "-").replace('"-"', "-"),
        ),
        ("t.csv.gz", gzip.compress(TEXT.encode(), mtime=0)),
        ("misnamed.csv", bz2.compress(TEXT.encode())),
        ("t.csv.xz", lzma.compress(TEXT.encode())),
        ("twice.gz", gzip.compress(bz2.compress(TEXT.encode()), mtime=0)),
        (
            "dates.csv",
            TEXT.replace("2024-01-05", "05.01.2024")
            .replace("2024-02-01", "01.02.2024")
            .replace("2024-03-09", "09.03.2024"),
        ),
    ],
)
def test_text_in_any_dress(tmp_path, name, content):
    assert_is_the_table(read_table(written(tmp_path, name, content)))


def test_binary_formats(tmp_path):
    frame = pl.DataFrame(FRAME).with_columns(pl.col("since").str.to_date())
    frame.write_parquet(tmp_path / "t.parquet")
    frame.write_ipc(tmp_path / "t.arrow")
    frame.write_ipc_stream(tmp_path / "t.stream")
    for name, kind in (("t.parquet", "parquet"), ("t.arrow", "arrow"), ("t.stream", "arrow")):
        table = read_table(tmp_path / name)
        assert table.format == kind
        assert_is_the_table(table)


def _in_two_frames(zstandard):
    return b"".join(zstandard.ZstdCompressor().compress(part.encode()) for part in (TEXT[:20], TEXT[20:]))


def test_zip_and_zstd(tmp_path):
    with zipfile.ZipFile(tmp_path / "t.zip", "w") as archive:
        archive.writestr("inside.csv", TEXT)
    assert_is_the_table(read_table(tmp_path / "t.zip"))
    zstandard = pytest.importorskip("zstandard")
    packed = zstandard.ZstdCompressor().compress(TEXT.encode())
    assert_is_the_table(read_table(written(tmp_path, "t.csv.zst", packed)))
    assert_is_the_table(read_table(written(tmp_path, "two.zst", _in_two_frames(zstandard))))
    with pytest.raises(InputError, match="is cut off: its zstd data"):
        read_table(written(tmp_path, "cut.zst", packed[:-9]))
    with pytest.raises(InputError, match="is damaged: its zstd data"):
        read_table(written(tmp_path, "bad.zst", packed[:4] + b"\xff" * 40))


def test_standard_input(monkeypatch):
    class Standard:
        buffer = io.BytesIO(gzip.compress(TEXT.encode(), mtime=0))

    monkeypatch.setattr("sys.stdin", Standard)
    assert_is_the_table(read_table("-"))


def test_arff(tmp_path):
    text = (
        "% comment\n@RELATION r\n@attribute age NUMERIC\n@attribute 'city' {Rome, 'Os lo'}\n"
        "@attribute since date 'yyyy-MM-dd'\n\n@DATA\n31,Rome,2024-01-05\n?, 'Os lo' ,'2024-02-01'\n"
        "{0 7, 2 ?}\n"
    )
    table = read_table(written(tmp_path, "t.arff", text))
    assert table.frame["age"].to_list() == [31.0, None, 7.0]
    assert table.frame["city"].to_list() == ["Rome", "Os lo", "Rome"]
    assert [str(day)[:10] for day in table.frame["since"].to_list()] == ["2024-01-05", "2024-02-01", "None"]


def test_arff_agrees_with_scipy(tmp_path, rng):
    from scipy.io import arff

    X = rng.normal(size=(20, 3)).round(6)
    lines = [f"{a},{b},{c},{'yes' if a > 0 else 'no'}" for a, b, c in X]
    head = (
        "@relation r\n"
        + "".join(f"@attribute a{j} real\n" for j in range(3))
        + "@attribute c {yes,no}\n@data\n"
    )
    path = written(tmp_path, "t.arff", head + "\n".join(lines))
    theirs, _ = arff.loadarff(path)
    ours = read_table(path).frame
    for name in ours.columns[:3]:
        assert ours[name].to_list() == theirs[name].tolist()
    assert ours["c"].to_list() == [value.decode() for value in theirs["c"]]


def test_numpy_files(tmp_path, rng):
    X = rng.normal(size=(5, 2))
    np.save(tmp_path / "t.npy", X)
    assert read_table(tmp_path / "t.npy").frame.to_numpy().tolist() == X.tolist()
    np.savez_compressed(tmp_path / "t.npz", X=X, y=np.arange(5))
    table = read_table(tmp_path / "t.npz")
    assert table.columns == ["x1", "x2", "target"]
    assert table.label == "target"
    np.save(tmp_path / "s.npy", np.array([(1, "a"), (2, "b")], dtype=[("n", "i4"), ("c", "U2")]))
    assert read_table(tmp_path / "s.npy").frame.to_dict(as_series=False) == {"n": [1, 2], "c": ["a", "b"]}


# --- guesses ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("1,2.5,a\n2,3.5,b\n", ["column_1", "column_2", "column_3"]),
        ("p,x,s\np,x,y\ne,b,s\n", ["column_1", "column_2", "column_3"]),
        ("0,1,2\n5,6,7\n8,9,10\n", ["0", "1", "2"]),
        ("id,2019,2020\n1,5,6\n2,7,8\n", ["id", "2019", "2020"]),
        ("colour,shape\nred,round\nblue,square\n", ["colour", "shape"]),
        (" a , b\n1,2\n", ["a", "b"]),
        ('a\tb\n1\tsay "no" to it\n2\t"unclosed\n', ["a", "b"]),
        ("a b  c\n1 2  3\n4 5  6\n", ["a", "b", "c"]),
        ("a,b\nr1,1,2\nr2,3,4\n", ["row_name", "a", "b"]),
        ("a,,c\n1,2,3\n", ["a", "column_2", "c"]),
        (",,Rome,yes\na,b,Rome,yes\nc,d,Oslo,no\n", ["column_1", "column_2", "column_3", "column_4"]),
        ('"1,5","2,25"\n"3,5","4,25"\n', ["column_1", "column_2"]),
        ("only\n1\n2\n", ["only"]),
    ],
)
def test_headers(tmp_path, text, columns):
    table = read_table(written(tmp_path, "t.csv", text))
    assert table.columns == columns
    assert table.rows == len(text.strip().splitlines()) - (columns[0] != "column_1")


def test_a_header_can_be_forced(tmp_path):
    path = written(tmp_path, "t.csv", "2019,2020\n1,2\n")
    assert read_table(path, header=True).columns == ["2019", "2020"]
    assert read_table(path, header=False).rows == 2


def test_decimal_commas(tmp_path):
    table = read_table(written(tmp_path, "t.csv", "x;y\n1,5;a\n-2,25;b\n"))
    assert table.frame["x"].to_list() == [1.5, -2.25]
    assert any("decimals with a comma" in note for note in table.notes)


def test_other_encodings_are_said(tmp_path):
    table = read_table(written(tmp_path, "t.csv", "città,n\nZürich,1\nMünchen,2\n".encode("cp1252")))
    assert table.frame.to_dict(as_series=False) == {"città": ["Zürich", "München"], "n": [1, 2]}
    assert table.notes == (f"{tmp_path / 't.csv'} is not UTF-8: it was read as Windows-1252",)


def test_missing_values(tmp_path):
    path = written(tmp_path, "t.csv", "x,y\n1,a\nNA,?\n,b\n-99,c\n")
    assert read_table(path).frame["x"].to_list() == [1, None, None, -99]
    assert read_table(path, missing=["-99"]).frame["x"].to_list() == [1, None, None, None]
    assert read_table(path).frame["y"].to_list() == ["a", None, "b", "c"]


def test_quoted_separators_and_line_ends(tmp_path):
    table = read_table(written(tmp_path, "t.csv", 'a,b\n"x, ""y""\nz",1\nw,2\n'))
    assert table.frame["a"].to_list() == ['x, "y"\nz', "w"]


def test_some_rows(tmp_path):
    table = read_table(written(tmp_path, "t.csv", "x\n" + "\n".join(map(str, range(100)))), rows=10)
    assert table.frame["x"].to_list() == list(range(0, 100, 10))


# --- refusals --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "match"),
    [
        ("t.csv", "", "is empty: pass a file"),
        ("t.csv", "  \n\n", "is empty"),
        ("t.csv", gzip.compress(b"", mtime=0), "is empty inside its packing"),
        ("t.csv", "a,b\n", "has a header and no rows"),
        ("t.csv", "a,b,a\n1,2,3\n", "has the same name more than once: 'a'; give each"),
        ("t.csv", "a,b\n1,2\n3,4,5\n6,7\n", "line 3 of .* has 3 fields where the others have 2: correct it"),
        ("t.csv", "a,b\n1,2\n3\n6,7\n", "line 3 of .* has 1 field where the others have 2"),
        (
            "t.csv",
            "a,b\n1,2\n3,4\n6",
            "line 4 of .*, the last, has 1 field where the others have 2: is the file cut",
        ),
        ("t.csv", 'a,b\n"x\ny",2\n3\n6,7\n', "line 4 of .* has 1 field"),
        (
            "t.csv",
            "n\n" + "1\n" * 20 + "many\n",
            r"column 'n' of .* mixes numbers and text: 20 numbers, and 'many' in row 21",
        ),
        ("t.gz", gzip.compress(TEXT.encode(), mtime=0)[:-12], "is cut off: its gzip data end too early"),
        (
            "t.gz",
            gzip.compress(TEXT.encode(), mtime=0)[:30] + b"xxxxxxxxxxxxxxxxxxxx",
            "is damaged: its gzip data cannot",
        ),
        ("t.bz2", bz2.compress(TEXT.encode())[:-12], "is cut off: its bzip2 data"),
        ("t.xz", lzma.compress(TEXT.encode())[:-12], "is cut off: its xz data"),
        ("t.zip", b"PK\x03\x04 no zip at all", "is damaged or cut off: its zip"),
        ("t.parquet", b"PAR1 and then nothing", "is damaged or cut off: it cannot be read as Parquet"),
        ("t.arrow", b"ARROW1 and then nothing", "is damaged or cut off: it cannot be read as Arrow"),
        ("t.npy", b"\x93NUMPY\x01\x00 nothing", "is damaged or cut off: it cannot be read as NumPy's"),
        ("t.pkl", b"\x80\x04\x95", "is a pickle, which is not read"),
        ("t.feather", b"FEA1....", "Feather file of the first version"),
        ("t.bin", bytes(range(256)), "is no table: it holds null bytes"),
        ("t.html", "<!DOCTYPE html><html></html>", "is a web page"),
        ("t.json", '{"a": 1}', "is JSON"),
        ("t.arff", "@relation r\n@attribute a numeric\n", "has no @data line"),
        (
            "t.arff",
            "@relation r\n@attribute a numeric\n@data\nx\n",
            "line 4 of .* has 'x' where 'a' is a number",
        ),
        (
            "t.arff",
            "@relation r\n@attribute a numeric\n@attribute b real\n@data\n1\n",
            "has 1 field for 2 attributes",
        ),
        (
            "t.arff",
            "@relation r\n@attribute c {x, 'y z'} % two\n@data\nx\n'y z'\nw\n",
            "line 6 of .* has 'w' where 'c' is one of 'x', 'y z': correct it",
        ),
        ("t.libsvm", "1 1:2\n1 2:x\n", "line 2 of .* has '2:x' where a LIBSVM file has index:value"),
        ("t.libsvm", "1 1:nan\n-1 1:2\n", "has a value that is not finite"),
        ("t.libsvm", "1 1:2\n\n1 4:1 2:3 4:5\n", "line 3 of .* has an index twice: give each feature one"),
        ("t.libsvm", f"1 1:2\n1 {10**30}:3\n", "has a feature with the index 10*: indices are from 0 or 1"),
    ],
)
def test_one_clear_sentence(tmp_path, name, content, match):
    with pytest.raises(InputError, match=match) as caught:
        read_table(written(tmp_path, name, content))
    assert "\n" not in str(caught.value)
    assert name.split(".")[0] in str(caught.value)


def test_arrays_that_are_no_tables(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(3))
    np.save(tmp_path / "b.npy", np.array([[object()]]), allow_pickle=True)
    np.savez(tmp_path / "c.npz", first=np.eye(2), second=np.eye(3))
    np.savez(tmp_path / "d.npz", X=np.eye(2), y=np.arange(3))
    for name, match in (
        ("a.npy", r"must be a matrix, one row per point, got shape \(3,\)"),
        ("b.npy", "holds Python objects"),
        ("c.npz", r"has no matrix X and targets y, it has first \(2, 2\), second \(3, 3\)"),
        ("d.npz", r"'X' of shape \(2, 2\) and 'y' of shape \(3,\)"),
    ):
        with pytest.raises(InputError, match=match):
            read_table(tmp_path / name)


def test_no_such_file(tmp_path):
    written(tmp_path, "houses.csv", TEXT)
    with pytest.raises(InputError, match=r"did you mean '.*houses.csv'"):
        read_table(tmp_path / "house.csv")
    with pytest.raises(InputError, match=r"the folder .* does not exist either"):
        read_table(tmp_path / "no" / "house.csv")
    with pytest.raises(InputTypeError, match="got NoneType"):
        read_table(None)
    with pytest.raises(InputError, match="cannot be read"):
        read_table("a\x00b")
    with pytest.raises(InputError, match="rows must be a whole number of at least 2, got 1"):
        read_table(tmp_path / "houses.csv", rows=1)


def test_larger_than_memory(tmp_path):
    """Refused before it is read, also when it only grows while it is unpacked; some rows can be had."""
    text = "x,y\n" + "".join(f"{i},{i % 7}\n" for i in range(60_000))
    plain, packed = (
        written(tmp_path, "t.csv", text),
        written(tmp_path, "t.csv.gz", gzip.compress(text.encode(), mtime=0)),
    )
    pl.read_csv(plain).write_parquet(tmp_path / "t.parquet")
    with config(memory="1MiB"):
        for path in (plain, packed):
            with pytest.raises(InputError, match="and the budget is 1MiB: raise it"):
                read_table(path)
        for path in (plain, packed):
            some = read_table(path, rows=100)
            assert some.rows == 100
            steps = np.diff(some.frame["x"].to_list())
            assert steps.min() >= 512 and steps.max() <= 640  # 60,000 / 100, to a multiple of the stride, 128
            assert some.notes[-1] == "100 of the 60,001 lines were taken, at equal distances"
    with config(memory="100KiB"):
        assert read_table(tmp_path / "t.parquet", rows=100).frame["x"].to_list()[:3] == [0, 600, 1200]


def test_a_small_file_that_holds_a_large_table(tmp_path):
    """Parquet, Arrow and npz pack: what counts is what they hold."""
    zeros = np.zeros(200_000)
    frame = pl.DataFrame({"x": zeros, "y": zeros})
    frame.write_parquet(tmp_path / "t.parquet")
    frame.write_ipc(tmp_path / "t.arrow", compression="zstd")
    np.savez_compressed(tmp_path / "t.npz", X=np.stack([zeros, zeros], axis=1))
    with config(memory="4MiB"):
        for name in ("t.parquet", "t.arrow", "t.npz"):
            assert (tmp_path / name).stat().st_size < 100_000
            with pytest.raises(InputError, match=r"holds 3.05MiB or more, which takes about 9.16MiB"):
                read_table(tmp_path / name)
        for name in ("t.parquet", "t.arrow"):
            assert read_table(tmp_path / name, rows=100).rows == 100


def test_some_lines_of_standard_input_of_any_length(monkeypatch):
    class Standard:
        buffer = io.BytesIO(b"x;y\n" + b"".join(b"%d,5;%d\n" % (i, i % 7) for i in range(100_000)))

    monkeypatch.setattr("sys.stdin", Standard)
    with config(memory="1MiB"):
        table = read_table("-", rows=200)
    x = table.frame["x"].to_numpy()
    assert table.rows == 200
    assert x[0] < 1000 and x[-1] > 99_000
    assert np.diff(x).max() < 2 * 100_000 / 200
    assert np.allclose(x % 1, 0.5)  # decimal commas, as anywhere
    assert "200 of the 100,001 lines were taken, at equal distances" in table.notes


def test_columns_that_have_no_features_are_left_out(tmp_path):
    frame = pl.DataFrame(
        {
            "x": [1, 2],
            "s": [{"a": 1}, {"a": 2}],
            "b": [b"1", b"2"],
            "big": pl.Series([2**70, 5], dtype=pl.Int128),
        }
    )
    frame.write_parquet(tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet")
    assert table.columns == ["x", "big"]
    assert table.frame["big"].to_list() == [2.0**70, 5.0]
    assert [note.partition(" of ")[0] for note in table.notes] == ["column 's'", "column 'b'"]
    frame[["s"]].write_parquet(tmp_path / "t.parquet")
    with pytest.raises(InputError, match="has no column but of Struct"):
        read_table(tmp_path / "t.parquet")
    text = written(tmp_path, "t.csv", f"x,y\n{10**25},1\n{10**24},2\n")
    assert read_table(text).frame["x"].to_list() == [1e25, 1e24]


def test_any_mutation_of_a_file_is_read_or_refused(tmp_path, rng):
    """Bytes changed, cut and doubled: never anything but a table or one sentence."""
    pl.DataFrame(FRAME).write_parquet(tmp_path / "t.parquet")
    np.savez(tmp_path / "t.npz", X=np.eye(4), y=np.arange(4))
    originals = [
        TEXT.encode(),
        gzip.compress(TEXT.encode(), mtime=0),
        b"1 1:2 3:4\n-1 2:1\n",
        b"@relation r\n@attribute a numeric\n@attribute b {x,y}\n@data\n1,x\n2,y\n",
        (tmp_path / "t.parquet").read_bytes(),
        (tmp_path / "t.npz").read_bytes(),
    ]
    read, refused = 0, 0
    for original in originals:
        for _ in range(40):
            content = bytearray(original)
            for _ in range(rng.integers(1, 4)):
                content[rng.integers(len(content))] = rng.integers(256)
            if rng.random() < 0.3:
                del content[rng.integers(len(content)) :]
            try:
                read_table(written(tmp_path, "mutant", bytes(content)))
                read += 1
            except InputError as error:
                assert "\n" not in str(error).strip() or len(str(error)) < 500
                refused += 1
    assert read > 20
    assert refused > 20


def test_a_column_by_name_or_position(tmp_path):
    table = read_table(written(tmp_path, "t.csv", TEXT))
    assert [table.find(which) for which in ("city", 2, "-1", "1", " age ")] == [
        "city",
        "city",
        "since",
        "age",
        "age",
    ]
    with pytest.raises(
        InputError, match=r"has no column 'citty': did you mean 'city'\? It has 'age', 'city', 'since'"
    ):
        table.find("citty")
    with pytest.raises(InputError, match="has no column '4': it has"):
        table.find(4)


def test_lengths_of_time_and_lists_can_be_written():
    frame = pl.DataFrame({"d": [timedelta(hours=30), None], "l": [[1, 2], None]})
    stream = io.BytesIO()
    write_csv(frame, {"p": np.array([0.5, 1.0])}, stream)
    assert stream.getvalue().decode().splitlines() == ["d,l,p", '"1 day, 6:00:00","[1, 2]",0.5', ",,1.0"]
