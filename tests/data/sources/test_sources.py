"""Tables in files: every format gives the same numbers, once converted; errors leave nothing behind."""

import csv
import errno
import os
import subprocess
import sys
import textwrap
import tracemalloc
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

import mercer
from mercer import (
    SVC,
    AutoKernelRegressor,
    DataSource,
    Gaussian,
    KernelPCA,
    KernelPerceptron,
    KernelRidge,
    Spectrum,
    config,
)
from mercer.data.sources import cache as caches
from mercer.data.sources import convert as converting
from mercer.data.sources import delimited
from mercer.errors import InputError, InputTypeError

N = 60


@pytest.fixture
def frame(rng):
    """Numbers of several kinds, a target, a weight and labels."""
    X = rng.normal(size=(N, 3))
    return pl.DataFrame(
        {
            "a": X[:, 0],
            "b": (np.round(8 * X[:, 1]) / 8).astype(np.float32),  # which text holds exactly
            "c": rng.integers(-100, 100, N).astype(np.int16),
            "flag": X[:, 2] > 0,
            "y": X[:, 0] - X[:, 1],
            "w": rng.integers(1, 4, N),
            "label": np.where(X[:, 2] > 0, "yes", "no"),
        }
    )


POINTS = ["a", "b", "c", "flag"]
WRITERS = {"parquet": "write_parquet", "arrow": "write_ipc", "csv": "write_csv"}


def numbers(frame, columns=POINTS):
    return np.column_stack([frame[name].to_numpy().astype(float) for name in columns])


def write(frame, place, format_):
    """The frame as a file of a format, or as a folder of several."""
    kind, _, is_folder = format_.partition(" ")
    if is_folder:
        place = place / f"{kind} parts"
        place.mkdir()
        for number, start in enumerate(range(0, len(frame), 25)):
            write(frame[start : start + 25], place / str(number), kind)
        (place / "_SUCCESS").touch()
        (place / ".hidden").touch()
        return place
    place = place.with_name(f"{place.name}.{kind}") if place.suffix == "" and not place.is_dir() else place
    place = place / f"table.{kind}" if place.is_dir() else place
    if kind == "npy":
        np.save(place, numbers(frame))
    elif kind == "tsv":
        frame.write_csv(place, separator="\t")
    else:
        getattr(frame, WRITERS[kind])(place)
    return place


FORMATS = [
    "npy",
    "npy folder",
    "parquet",
    "parquet folder",
    "arrow",
    "arrow folder",
    "csv",
    "csv folder",
    "tsv",
]


# --- the same numbers, whatever the format --------------------------------------------------------


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("rows", [7, 10**6])
def test_every_format_gives_the_same_array(frame, tmp_path, format_, rows, monkeypatch):
    """In batches of 7 rows as in one; CSV holds the shortest decimals of each float, so all are equal."""
    monkeypatch.setattr(converting, "_BATCH_BYTES", 8 * 4 * rows)
    monkeypatch.setattr(delimited, "_READ_BYTES", 100 * rows)
    path = write(frame, tmp_path, format_)
    columns = None if "npy" in format_ else POINTS
    table = DataSource(path, columns=columns).open()
    np.testing.assert_array_equal(table.points, numbers(frame))
    assert table.names == (None if "npy" in format_ else tuple(POINTS))
    assert table.points.dtype == np.float64 and table.points.flags.c_contiguous


@pytest.mark.parametrize("format_", ["parquet folder", "csv folder"])
def test_patterns_and_targets(frame, tmp_path, format_):
    path = write(frame, tmp_path, format_)
    table = DataSource(f"{path}/*.{format_.split()[0]}", columns=["b", "a"]).open("label", "w")
    np.testing.assert_array_equal(table.points, numbers(frame, ["b", "a"]))
    np.testing.assert_array_equal(table.targets, frame["label"].to_numpy())
    np.testing.assert_array_equal(table.weights, frame["w"].to_numpy().astype(float))
    assert table.targets.dtype.kind == "U" and table.names == ("b", "a")


@pytest.mark.parametrize("format_", ["parquet", "csv"])
def test_targets_keep_their_kind(frame, tmp_path, format_):
    """Whole numbers and yes or no are labels, and must not become 0.0 and 1.0."""
    source = DataSource(write(frame, tmp_path, format_), columns=["a"])
    kinds = {name: source.open(name).targets.dtype.kind for name in ("w", "flag", "label", "y")}
    assert kinds == {"w": "i", "flag": "b", "label": "U", "y": "f"}
    np.testing.assert_array_equal(source.open("w").targets, frame["w"].to_numpy())


def test_whole_numbers_in_text_that_turn_out_to_be_none(tmp_path, monkeypatch):
    monkeypatch.setattr(delimited, "_SAMPLE_BYTES", 20)
    path = tmp_path / "t.csv"
    path.write_text("x,y\n" + "1,2\n" * 50 + "1.5,2.5\n", "utf-8")
    table = DataSource(path).open("y")
    assert table.points[-1, 0] == 1.5 and table.targets[-1] == 2.5 and table.targets.dtype == np.float64


def test_precision_is_what_holds_the_values(frame, tmp_path):
    path = write(frame, tmp_path, "parquet")
    assert DataSource(path, columns=["b", "c", "flag"]).open().points.dtype == np.float32
    assert DataSource(path, columns=["b", "a"]).open().points.dtype == np.float64
    assert DataSource(path, columns=["w"]).open().points.dtype == np.float64  # 64 bits
    with mercer.config(dtype="float32"):
        found = DataSource(path, columns=["a"]).open().points
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found[:, 0], frame["a"].to_numpy().astype(np.float32))


def test_an_array_is_read_where_it_lies(tmp_path, rng):
    X = rng.normal(size=(9, 2)).astype(np.float32)
    np.save(tmp_path / "x.npy", X)
    table = DataSource(tmp_path / "x.npy", folder=tmp_path / "cache").open()
    np.testing.assert_array_equal(table.points, X)
    assert not (tmp_path / "cache").exists() and not table.points.flags.writeable
    np.save(tmp_path / "f.npy", np.asfortranarray(X))
    np.testing.assert_array_equal(DataSource(tmp_path / "f.npy").open().points, X)


def test_quoted_texts_with_line_breaks_and_other_columns(tmp_path, monkeypatch):
    monkeypatch.setattr(delimited, "_READ_BYTES", 16)
    text = '\ufeffx;note;z\r\n1;"a\nb";2\r\n3;"say ""c;d""";4\r\n5;e;6'
    (tmp_path / "t.csv").write_bytes(text.encode())
    table = DataSource(tmp_path / "t.csv", columns=["z", "x"]).open("note")
    np.testing.assert_array_equal(table.points, [[2, 1], [4, 3], [6, 5]])
    assert table.targets.tolist() == ["a\nb", 'say "c;d"', "e"]


@given(st.lists(st.text('ab,"\n\u00e9', min_size=1), min_size=1, max_size=20), st.integers(1, 40))
def test_text_is_cut_between_lines_wherever_it_is_cut(notes, size):
    """Against what Python's csv writes: quotes, commas and line breaks inside of fields."""
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder, pytest.MonkeyPatch.context() as patch:
        path = Path(folder, "t.csv")
        with path.open("w", encoding="utf-8", newline="") as stream:
            csv.writer(stream, quoting=csv.QUOTE_ALL).writerows([("x", "note"), *enumerate(notes)])
        patch.setattr(delimited, "_READ_BYTES", size)
        table = DataSource(path, folder=Path(folder, "cache")).open("note")
        assert table.points[:, 0].tolist() == list(range(len(notes))) and table.targets.tolist() == notes


@pytest.mark.parametrize("size", [3, 1000])
def test_blank_lines_at_the_end_of_text_are_no_rows(tmp_path, monkeypatch, size):
    monkeypatch.setattr(delimited, "_READ_BYTES", size)
    for text in ("a,b\n1,2\n3,4\n\n\n", "a,b\r\n1,2\r\n3,4\r\n\r\n"):
        (tmp_path / "t.csv").write_bytes(text.encode())
        assert DataSource(tmp_path / "t.csv").open().points.tolist() == [[1, 2], [3, 4]]
    (tmp_path / "t.csv").write_text("a,b\n1,2\n\n\n3,4\n", "utf-8")
    with pytest.raises(InputError, match=r"row 1 \(from 0\) of column 'a' .* is missing"):
        DataSource(tmp_path / "t.csv").open()


def test_text_without_a_header_has_no_names(tmp_path):
    (tmp_path / "t.csv").write_text("1,2.5\n3,4\n", "utf-8")
    table = DataSource(tmp_path / "t.csv").open()
    assert table.names is None and table.points.tolist() == [[1.0, 2.5], [3.0, 4.0]]


def test_decimals_are_numbers(tmp_path):
    frame = pl.DataFrame({"d": pl.Series(["1.5", "2.25"]).cast(pl.Decimal(10, 2))})
    frame.write_parquet(tmp_path / "d.parquet")
    np.testing.assert_array_equal(DataSource(tmp_path / "d.parquet").open().points, [[1.5], [2.25]])


# --- converted once, and checked against the source -----------------------------------------------


@pytest.fixture
def reads(monkeypatch):
    """How often a table was read."""
    calls = []
    read = converting._read
    monkeypatch.setattr(converting, "_read", lambda *given: calls.append(1) or read(*given))
    return calls


def test_a_second_time_finds_what_the_first_made(frame, tmp_path, reads):
    path, folder = write(frame, tmp_path, "parquet"), tmp_path / "cache"
    source = DataSource(path, columns=POINTS, folder=folder)
    first = source.open("y").points
    second = source.open("y").points
    assert len(reads) == 1 and len(list(folder.iterdir())) == 2
    np.testing.assert_array_equal(first, second)
    source.open()  # X alone: it is there
    assert len(reads) == 1
    source.open("label")  # only the labels are made
    assert len(reads) == 2 and len(list(folder.iterdir())) == 3


def test_a_changed_file_is_converted_again_and_the_old_arrays_go(frame, tmp_path, reads):
    path, folder = write(frame, tmp_path, "parquet"), tmp_path / "cache"
    other = write(frame, tmp_path, "csv")
    DataSource(other, columns=["a"], folder=folder).open()
    before = DataSource(path, columns=["a"], folder=folder).open().points
    (2 * frame.select("a")).write_parquet(path)
    os.utime(path, ns=(1, 1))
    after = DataSource(path, columns=["a"], folder=folder).open().points
    np.testing.assert_array_equal(after, 2 * numbers(frame, ["a"]))
    np.testing.assert_array_equal(before, numbers(frame, ["a"]))  # who has the old one keeps it
    assert len(reads) == 3 and len(list(folder.iterdir())) == 2


def test_a_folder_that_grows_is_another_table(frame, tmp_path, reads):
    path, folder = write(frame, tmp_path, "parquet folder"), tmp_path / "cache"
    DataSource(path, columns=["a"], folder=folder).open()
    frame.head(3).write_parquet(path / "3.parquet")
    assert len(DataSource(path, columns=["a"], folder=folder).open().points) == N + 3
    assert len(reads) == 2 and len(list(folder.iterdir())) == 1


def test_a_damaged_array_in_the_cache_is_made_again(frame, tmp_path, reads):
    source = DataSource(write(frame, tmp_path, "csv"), columns=POINTS, folder=tmp_path / "cache")
    source.open()
    [place] = (tmp_path / "cache").iterdir()
    place.write_bytes(place.read_bytes()[:-8])
    np.testing.assert_array_equal(source.open().points, numbers(frame))
    assert len(reads) == 2


def test_few_tables_stay_in_the_folder_of_the_process(frame, tmp_path):
    for number in range(7):
        frame.head(number + 2).write_parquet(tmp_path / f"{number}.parquet")
        DataSource(tmp_path / f"{number}.parquet", columns=["a"]).open()
    names = {place.name.partition("-")[0] for place in caches.process_folder().glob("*.npy")}
    assert len(names) <= caches._TABLES_KEPT


def test_the_folder_of_a_process_goes_with_it(frame, tmp_path):
    path = write(frame.select(POINTS), tmp_path, "parquet")
    script = f"""
        import os, sys
        from pathlib import Path
        from mercer import DataSource
        from mercer.data.sources.cache import process_folder
        table = DataSource({str(path)!r}).open()
        print(process_folder(), len(list(process_folder().iterdir())), flush=True)
        if sys.argv[1] == "killed":
            os._exit(1)
    """
    environment = {**os.environ, "MERCER_CACHE_DIR": str(tmp_path / "own")}

    def run(how):
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(script), how],
            capture_output=True, text=True, check=False, env=environment,
        )  # fmt: skip
        folder, made = done.stdout.split()
        assert made == "1" and folder.startswith(str(tmp_path / "own" / "sources"))
        return Path(folder)

    left = run("killed")
    assert left.exists()
    assert not run("ended").exists() and not left.exists()  # the next one tidies up


# --- what ends early leaves nothing behind --------------------------------------------------------


@pytest.fixture
def source(frame, tmp_path):
    return DataSource(write(frame, tmp_path, "parquet"), columns=POINTS, folder=tmp_path / "cache")


def left_in(folder):
    return [place.name for place in folder.rglob("*")] if folder.exists() else []


def test_a_full_disk(source, monkeypatch):
    def full(self, rows):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(caches.ArrayFile, "write", full)
    with pytest.raises(InputError, match=r"cache has no room for the numbers of .*table\.parquet: free some"):
        source.open("y")
    assert left_in(source.folder) == []


def test_an_interruption(source, monkeypatch):
    write_rows = caches.ArrayFile.write
    monkeypatch.setattr(converting, "_BATCH_BYTES", 400)

    def interrupted(self, rows):
        write_rows(self, rows)
        if self.rows > 30:
            raise KeyboardInterrupt

    monkeypatch.setattr(caches.ArrayFile, "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        source.open("y")
    assert left_in(source.folder) == []


def test_a_file_that_changes_while_it_is_read(source, frame, monkeypatch):
    write_rows = caches.ArrayFile.write

    def meanwhile(self, rows):
        write_rows(self, rows)
        os.utime(source.path, ns=(5, 5))

    monkeypatch.setattr(caches.ArrayFile, "write", meanwhile)
    with pytest.raises(InputError, match=r"table\.parquet was changed while it was read: read it again when"):
        source.open()
    assert left_in(source.folder) == []


def test_a_folder_that_grows_while_it_is_read(frame, tmp_path, monkeypatch):
    path = write(frame, tmp_path, "csv folder")
    write_rows = caches.ArrayFile.write

    def meanwhile(self, rows):
        write_rows(self, rows)
        frame.write_csv(path / "9.csv")

    monkeypatch.setattr(caches.ArrayFile, "write", meanwhile)
    with pytest.raises(InputError, match="parts was changed while it was read"):
        DataSource(path, columns=["a"], folder=tmp_path / "cache").open()
    assert left_in(tmp_path / "cache") == []


def test_a_folder_that_cannot_be_written(frame, tmp_path):
    (tmp_path / "file").touch()
    source = DataSource(write(frame, tmp_path, "csv"), columns=["a"], folder=tmp_path / "file")
    with pytest.raises(InputError, match=r"table\.csv cannot be converted in .*file: Not a directory"):
        source.open()


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize("format_", ["npy", "parquet", "arrow"])
def test_files_that_end_early(frame, tmp_path, format_):
    path = write(frame, tmp_path, format_)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match=r"table\.\w+ is damaged"):
        DataSource(path).open()


def test_text_that_ends_early(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n3,4\n5", "utf-8")
    with pytest.raises(
        InputError, match=r"row 2 \(from 0\) of column 'b' of .* is missing, NaN or no number"
    ):
        DataSource(tmp_path / "t.csv").open()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("value", [2**53 + 1, -(2**53) - 1, 2**70])
def test_identifiers_in_text_are_refused(tmp_path, value, dtype):
    (tmp_path / "t.csv").write_text(f"a,b\n1,7\n2,{value}\n", "utf-8")
    with (
        config(dtype=dtype),
        pytest.raises(InputError, match=r"row 1 .* is about -?\d+, which float64 would"),
    ):
        DataSource(tmp_path / "t.csv").open()
    (tmp_path / "t.csv").write_text("a,b\n1,7\n2,1e20\n", "utf-8")
    assert DataSource(tmp_path / "t.csv").open().points[1, 1] == 1e20


def test_text_with_too_many_fields(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n3,4,5\n", "utf-8")
    with pytest.raises(InputError, match=r"t\.csv is damaged or cut off: it cannot be read as CSV"):
        DataSource(tmp_path / "t.csv").open()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            [1.0, None],
            r"row 1 \(from 0\) of column 'v' of .* is missing, NaN or no number: leave such rows out",
        ),
        ([1, None], r"row 1 \(from 0\) of column 'v' of .* is missing"),
        ([True, None], r"row 1 \(from 0\) of column 'v' of .* is missing"),
        ([np.nan, 1.0], r"row 0 \(from 0\) of column 'v' of .* is missing, NaN"),
        ([1.0, -np.inf], r"row 1 \(from 0\) of column 'v' of .* is infinite or too large for float64"),
        ([1, 2**53 + 1], r"row 1 .* is 9007199254740993, which float64 would round: leave the column out"),
        (
            ["1", "2"],
            r"column 'v' of .* must hold numbers, got text: choose other columns, mercer.DataSource",
        ),
        ([pd.Timestamp("2026-01-01")], r"column 'v' of .* must hold numbers, got Date.*mercer train"),
        ([[1, 2]], r"column 'v' of .* must hold numbers, got List"),
    ],
)
def test_what_is_no_number(tmp_path, values, message):
    pl.DataFrame({"u": [0.5] * len(values), "v": pl.Series(values)}).write_parquet(tmp_path / "t.parquet")
    with pytest.raises(InputError, match=message):
        DataSource(tmp_path / "t.parquet", folder=tmp_path / "cache").open()
    assert left_in(tmp_path / "cache") == []


@pytest.mark.parametrize("values", [[1, None], [1.5, None], ["a", None], [False, None]])
def test_targets_that_are_missing(tmp_path, values):
    pl.DataFrame({"u": [0.5, 1.5], "v": values}).write_parquet(tmp_path / "t.parquet")
    with pytest.raises(InputError, match=r"row 1 \(from 0\) of column 'v' of .* is missing"):
        DataSource(tmp_path / "t.parquet").open("v")


def test_numbers_that_float32_cannot_hold(tmp_path):
    pl.DataFrame({"v": [1.0, 1e39]}).write_parquet(tmp_path / "t.parquet")
    with mercer.config(dtype="float32"), pytest.raises(InputError, match=r"row 1 .* too large for float32"):
        DataSource(tmp_path / "t.parquet").open()


def test_arrays_that_are_no_tables_of_numbers(tmp_path):
    cases = {
        "flat": (np.ones(3), r"must hold a 2-D array, one row per point, got shape \(3,\)"),
        "words": (np.array([["a"]]), r"column 0 of .* must hold numbers, got <U1"),
        "complex": (np.ones((2, 2)) * 1j, "must hold numbers, got complex128"),
        "nan": (np.array([[1.0, 2.0], [3.0, np.nan]]), r"row 1 \(from 0\) of column 1 of .* is missing"),
        "objects": (np.array([[None]]), "holds Python objects"),
        "none": (np.ones((0, 2)), "has no rows: pass a table with at least one"),
        "narrow": (np.ones((2, 0)), "has no columns"),
    }
    for name, (array, message) in cases.items():
        np.save(tmp_path / f"{name}.npy", array)
        with pytest.raises(InputError, match=message):
            DataSource(tmp_path / f"{name}.npy").open()


def test_paths_that_are_no_tables(frame, tmp_path):
    (tmp_path / "empty.csv").touch()
    (tmp_path / "header.csv").write_text("a,b", "utf-8")
    (tmp_path / "line.csv").write_text("a,b\n\n", "utf-8")
    (tmp_path / "header2.csv").write_text("a,b\n", "utf-8")
    (tmp_path / "packed.csv.gz").write_bytes(b"\x1f\x8b\x08rest")
    (tmp_path / "noise").write_bytes(b"\1\0\2\0")
    (tmp_path / "twice.csv").write_text("a,a\n1,2\n", "utf-8")
    (tmp_path / "folder").mkdir()
    frame.clear().write_parquet(tmp_path / "none.parquet")
    cases = {
        "nothing.parquet": "there is no file '.*nothing.parquet': check the name",
        "*.xyz": "no file is called like",
        "folder": "has no files: pass a folder whose files are the parts of one table",
        "empty.csv": "is empty: pass a file with at least one row",
        "header.csv": "has a header and no rows",
        "line.csv": "has a header and no rows",
        "header2.csv": "header2.csv .*no rows|header2.csv",
        "packed.csv.gz": "is packed by gzip: unpack it first",
        "noise": "is no .npy, Parquet, Arrow or CSV file",
        "twice.csv": "has two columns of the name 'a': rename one",
        "none.parquet": "has no rows: pass a table with at least one",
    }
    for name, message in cases.items():
        with pytest.raises(InputError, match=message):
            DataSource(tmp_path / name, columns=["a"] if name == "none.parquet" else None).open()


def test_parts_that_do_not_fit_together(frame, tmp_path):
    for name, table in {"a": frame.select("a", "b"), "b": frame.select("a", "c")}.items():
        table.write_parquet(tmp_path / f"{name}.parquet")
        table.write_csv(tmp_path / f"{name}.csv")
        np.save(tmp_path / f"{name}.npy", numbers(table, table.columns[: 1 + (name == "b")]))
    for ending in ("parquet", "csv"):
        with pytest.raises(
            InputError, match=rf"b.{ending} has no column 'b', unlike .*a.{ending}: pass files"
        ):
            DataSource(f"{tmp_path}/*.{ending}").open()
    with pytest.raises(InputError, match=r"has 1 columns and .* has 2: pass files with the same columns"):
        DataSource(f"{tmp_path}/*.npy").open()
    with pytest.raises(InputError, match=r"is npy and .* is parquet: pass files of one format"):
        DataSource(f"{tmp_path}/a.*p*").open()


def test_a_column_of_several_kinds_takes_the_widest(tmp_path):
    pl.DataFrame({"v": [1, 2]}).write_parquet(tmp_path / "1.parquet")
    pl.DataFrame({"v": [0.5]}).write_parquet(tmp_path / "2.parquet")
    assert DataSource(tmp_path).open().points.tolist() == [[1.0], [2.0], [0.5]]


def test_what_a_source_takes(tmp_path):
    with pytest.raises(InputTypeError, match=r"path must be a text or a pathlib.Path, got 3"):
        DataSource(3)
    with pytest.raises(
        InputTypeError, match=r"columns must be a list of names, got the text 'a': pass \['a'\]"
    ):
        DataSource("t.csv", columns="a")
    assert repr(DataSource("t.csv", columns=["a"])) == "DataSource('t.csv', columns=['a'])"


# --- memory ---------------------------------------------------------------------------------------


def test_a_conversion_holds_a_batch_and_no_more(tmp_path):
    """12 MB of whole numbers become 24 MB; with a budget of 16 MiB a batch has 1 MiB."""
    np.save(tmp_path / "x.npy", np.zeros((10**6, 3), np.int32))
    with mercer.config(memory="16MiB"):
        tracemalloc.start()
        table = DataSource(tmp_path / "x.npy").open()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert table.points.shape == (10**6, 3) and peak < 4e6


@pytest.mark.sample(3)
@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the peak from /proc")
@pytest.mark.parametrize("format_", ["parquet", "arrow", "csv"])
def test_the_process_does_not_grow_with_the_file(tmp_path, format_, fork):
    """Of 1,200,000 rows of 16 numbers, 146 MiB; a record batch of Arrow, which is read whole, has 100,000.

    Threads of the reader hold a batch or two each: about 60 MiB, whatever the size of the file.
    """
    columns = np.random.default_rng(0).integers(0, 99, (16, 100_000)) / 8
    part = pl.DataFrame({f"c{j}": values for j, values in enumerate(columns)})
    write_as = WRITERS[format_]
    getattr(part[:1000], write_as)(tmp_path / "small")
    if format_ == "arrow":
        (tmp_path / "large").mkdir()
        for number in range(12):
            getattr(part, write_as)(tmp_path / "large" / f"part{number}")
    else:
        getattr(pl.concat([part] * 12, rechunk=True), write_as)(tmp_path / "large")
    script = f"""
        import threading
        from mercer import DataSource, config

        def memory():
            words = open("/proc/self/status").read().split()
            return int(words[words.index("RssAnon:") + 1]) / 1024

        with config(memory="64MiB"):
            DataSource({str(tmp_path / "small")!r}).open()
            before, peaks, done = memory(), [0.0], threading.Event()

            def watch():
                while not done.wait(0.002):
                    peaks.append(memory())

            watcher = threading.Thread(target=watch)
            watcher.start()
            table = DataSource({str(tmp_path / "large")!r}).open()
            done.set()
            watcher.join()
        assert table.points.shape == (1_200_000, 16)
        print(max(peaks) - before)
    """
    assert float(fork(textwrap.dedent(script)).said()) < 90


# --- estimators -----------------------------------------------------------------------------------


@pytest.mark.parametrize("format_", ["parquet", "arrow", "csv"])
def test_a_model_from_a_file_is_the_model_of_its_numbers(frame, tmp_path, format_):
    path = write(frame.drop("label"), tmp_path, format_)
    model = KernelRidge(kernel=Gaussian(sigma=2.0), alpha=0.1).fit(str(path), "y", sample_weight="w")
    X, y, w = numbers(frame), frame["y"].to_numpy(), frame["w"].to_numpy()
    expected = KernelRidge(kernel=Gaussian(sigma=2.0), alpha=0.1).fit(X, y, w)
    assert model.n_features_in_ == 4 and model.feature_names_in_.tolist() == POINTS
    np.testing.assert_array_equal(model.predict(path), expected.predict(X))
    assert model.score(path, "y", sample_weight="w") == expected.score(X, y, w)
    assert model.plan(path, "y").method == expected.plan(X, y).method
    np.testing.assert_array_equal(model.predict(frame.select(POINTS)), expected.predict(X))


def test_columns_go_by_their_names(frame, tmp_path):
    path = write(frame, tmp_path, "parquet")
    model = KernelRidge(kernel=Gaussian(sigma=2.0)).fit(DataSource(path, columns=["a", "b"]), "y")
    frame.select("b", "flag", "a").write_csv(tmp_path / "other.csv")
    np.testing.assert_allclose(model.predict(tmp_path / "other.csv"), model.predict(str(path)), rtol=1e-12)
    frame.select("b", "c").write_csv(tmp_path / "less.csv")
    with pytest.raises(InputError, match=r"less.csv has no column 'a': it has 'b', 'c'"):
        model.predict(tmp_path / "less.csv")


def test_streams_take_columns_by_name(frame, tmp_path):
    path = write(frame.select("a", "b", "flag"), tmp_path, "parquet")
    frame.select("flag", "b", "a").write_csv(tmp_path / "other.csv")
    twice = KernelPerceptron(kernel=Gaussian(sigma=1.0)).partial_fit(path, "flag", classes=[False, True])
    again = clone(twice).partial_fit(path, "flag", classes=[False, True]).partial_fit(path, "flag")
    np.testing.assert_array_equal(
        twice.partial_fit(tmp_path / "other.csv", "flag").decision_function(path),
        again.decision_function(path),
    )


def test_labels_may_be_texts(frame, tmp_path):
    path = write(frame, tmp_path, "csv")
    source = DataSource(path, columns=["a", "b", "flag"])
    model = SVC(probability=True, random_state=0).fit(source, "label", sample_weight="w")
    expected = SVC(probability=True, random_state=0).fit(
        numbers(frame, source.columns), frame["label"].to_numpy(), frame["w"].to_numpy()
    )
    assert model.classes_.tolist() == ["no", "yes"]
    np.testing.assert_array_equal(model.predict(path), expected.predict(numbers(frame, source.columns)))
    np.testing.assert_array_equal(
        model.predict_proba(path), expected.predict_proba(numbers(frame, source.columns))
    )
    assert model.score(path, "label") > 0.9


def test_arrays_in_files_have_no_names(frame, tmp_path):
    path, y = write(frame, tmp_path, "npy"), frame["y"].to_numpy()
    model = KernelRidge().fit(path, y)
    assert not hasattr(model, "feature_names_in_") and model.n_features_in_ == 4
    np.testing.assert_array_equal(model.predict(path), KernelRidge().fit(numbers(frame), y).predict(path))
    with pytest.raises(InputError, match="have no names, got 'y': pass targets and weights as arrays"):
        model.fit(path, "y")
    other = write(frame.select(POINTS), tmp_path, "csv")
    with pytest.warns(UserWarning, match="X has feature names, but KernelRidge was fitted without"):
        np.testing.assert_array_equal(model.predict(other), model.predict(path))
    with pytest.raises(ValueError, match="X has 7 features, but KernelRidge is expecting 4"):
        model.predict(write(frame.with_columns(label=1), tmp_path, "csv"))


def test_other_learners(frame, tmp_path):
    path = write(frame.drop("label"), tmp_path, "parquet")
    X = numbers(frame, [*POINTS, "y", "w"])
    np.testing.assert_array_equal(
        KernelPCA(2, kernel="rbf").fit_transform(path), KernelPCA(2, kernel="rbf").fit_transform(X)
    )
    found = AutoKernelRegressor("rbf", max_time=1.0).fit(path, "y")
    assert found.predict(path).shape == (N,) and found.n_features_in_ == 5


def test_targets_of_other_lengths_and_none(frame, tmp_path):
    path = write(frame.drop("label"), tmp_path, "parquet")
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        KernelRidge().fit(path, np.ones(3))
    with pytest.raises(
        InputError, match="KernelRidge needs targets: pass y, an array or the name of a column"
    ):
        KernelRidge().fit(path, None)
    with pytest.raises(InputError, match=r"table.parquet has no column 'z': it has 'a'"):
        KernelRidge().fit(path, "z")


def test_what_is_no_file_is_refused_as_before(frame, tmp_path):
    with pytest.raises(
        InputTypeError, match="got the single text 'abc', and there is no such file: pass one"
    ):
        KernelRidge().fit("abc", [1.0])
    with pytest.raises(InputError, match=r"there is no file 'abc\.csv'"):
        KernelRidge().fit("abc.csv", [1.0])
    with pytest.raises(InputTypeError, match=r"got the single text 'abc': pass \[text\]"):
        KernelRidge(kernel=Spectrum(2)).fit("abc", [1.0])
    with pytest.raises(
        InputTypeError, match="holds columns of numbers, and this kernel compares other things"
    ):
        KernelRidge(kernel=Spectrum(2)).fit(DataSource(tmp_path), [1.0])


@pytest.mark.parametrize("library", ["polars", "pandas", "arrow"])
def test_columns_of_frames_by_name(frame, library):
    class Arrow:
        """A table of Arrow, of which the library need not be here."""

        schema = None

        def __arrow_c_stream__(self, requested_schema=None):
            return frame.drop("label").__arrow_c_stream__(requested_schema)

    whole = frame.drop("label")
    table = {"polars": whole, "pandas": pd.DataFrame(whole.to_dict(as_series=False)), "arrow": Arrow()}[
        library
    ]
    model = KernelRidge().fit(table, "y", sample_weight="w")
    expected = KernelRidge().fit(numbers(frame), frame["y"].to_numpy(), frame["w"].to_numpy())
    assert model.feature_names_in_.tolist() == POINTS
    np.testing.assert_allclose(model.expansion_.coef, expected.expansion_.coef, rtol=1e-10)
    with pytest.raises(InputError, match="X has no column 'z': it has 'a', 'b'"):
        KernelRidge().fit(table, "z")


def test_a_model_outlives_the_files(frame, tmp_path, collect):
    import pickle

    path = write(frame.drop("label"), tmp_path, "parquet")
    model = KernelRidge().fit(DataSource(path, folder=tmp_path / "cache"), "y")
    expected = model.predict(path)
    for place in (tmp_path / "cache").iterdir():
        place.unlink()
    collect()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(path), expected)
    mercer.save(model, tmp_path / "m.mercer")
    np.testing.assert_array_equal(mercer.load(tmp_path / "m.mercer").predict(path), expected)


@pytest.mark.parametrize("learner", [mercer.KernelRidge(), mercer.SVC(), mercer.KernelPCA()])
def test_the_name_of_a_column_needs_columns_with_names(learner):
    with pytest.raises(InputTypeError, match="y is the text 'fare': a column can be named where X is a file"):
        learner.fit(np.eye(3), "fare")


def test_a_lazy_frame_is_refused_in_a_sentence():
    query = pl.DataFrame({"a": [1.0, 2.0, 3.0]}).lazy()
    model = KernelRidge(kernel=Gaussian(1.0)).fit([[1.0], [2.0]], [0.0, 1.0])
    for refused in (lambda: clone(model).fit(query, [1.0, 2.0, 3.0]), lambda: model.predict(query)):
        with pytest.raises(InputTypeError, match=r"LazyFrame of Polars.*X\.collect\(\)"):
            refused()
