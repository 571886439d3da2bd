"""Cells of delimited files: codes, numbers with commas, quotes that are letters; and as they stand there."""

import io

import numpy as np
import pytest

from mercer import Gaussian, KernelRidge, save
from mercer.tables import TableFeatures, TableModel, read_table
from mercer.tables.frames import write_csv

pytest.importorskip("polars")


def written(folder, text):
    path = folder / "t.csv"
    path.write_text(text)
    return path


def test_leading_zeros_make_a_code(tmp_path):
    table = read_table(written(tmp_path, 'zip,"n",x\n01001,0,0.50\n10115,10,00.5\n,"3",1\n'))
    assert table.frame.to_dict(as_series=False) == {
        "zip": ["01001", "10115", None], "n": [0, 10, 3], "x": [0.5, 0.5, 1.0],
    }  # fmt: skip
    assert table.notes == (f"column 'zip' of {tmp_path / 't.csv'} has leading zeros: it was taken for codes",)
    many = read_table(written(tmp_path, "zip,x\n" + "".join(f"00{i % 3},{i * i}\n" for i in range(30))))
    assert TableFeatures().fit(many.frame).kinds_["zip"] == "category"


def test_cells_as_they_stand(tmp_path):
    text = 'zip,x,when,city,flag\n01001,0.50,3/4/2024,"Rome, ""IT""",TRUE\n10115,1e3,2024-01-05 10:00,NA,\n'
    path = written(tmp_path, text)
    stream = io.BytesIO()
    write_csv(read_table(path, texts=True).as_written(), {"p": np.array([1, 2])}, stream)
    head, first, second = text.splitlines()
    assert stream.getvalue().decode().splitlines() == [f"{head},p", f"{first},1", f"{second},2"]
    table = read_table(path)
    assert table.as_written() is table.frame
    assert read_table(path, texts=True).at(slice(0, 1)).as_written().height == 1


def test_decimal_commas_are_written_as_points(tmp_path):
    table = read_table(written(tmp_path, "x;zip;n\n1,50;01001;2\n2,25;10115;03\n"), texts=True)
    assert table.as_written().rows() == [(1.5, "01001", "2"), (2.25, "10115", "03")]


@pytest.mark.parametrize(
    ("cells", "values", "note"),
    [
        (["3,4", "5", "-0,125"], [3.4, 5.0, -0.125], "writes decimals with a comma"),
        (["1,200,000", "950", "1,200"], [1.2e6, 950.0, 1200.0], "writes thousands with a comma"),
        (["1,200.50", "950", ""], [1200.5, 950.0, None], "writes thousands with a comma"),
        (
            ["1,200", "950", "2,300"],
            ["1,200", "950", "2,300"],
            "looks like numbers with commas, '1,200', which",
        ),
        (["3,4", "1,200.5", "x"], ["3,4", "1,200.5", "x"], None),
        (["Rome, IT", "1,5", "2"], ["Rome, IT", "1,5", "2"], None),
    ],
)
def test_numbers_with_commas_in_quotes(tmp_path, cells, values, note):
    table = read_table(written(tmp_path, "x,y\n" + "".join(f'"{cell}",3.4\n' for cell in cells)))
    assert table.frame["x"].to_list() == values
    assert [n.partition(note)[1] for n in table.notes] == [note] if note else not table.notes


@pytest.mark.parametrize("separator", [",", "\t", ";"])
def test_quotes_inside_of_fields_are_letters(tmp_path, separator):
    rows = [['Ro"me', "1"], ['Ro"me', "2"], ['Ro"me', "3"], ['5"', "4"], [f'"a{separator} ""b"""', "5"]]
    text = "\n".join(separator.join(row) for row in [["city", "x"], *rows])
    frame = read_table(written(tmp_path, text)).frame
    assert frame["city"].to_list() == ['Ro"me'] * 3 + ['5"', f'a{separator} "b"']
    assert frame["x"].to_list() == [1, 2, 3, 4, 5]


def test_predict_prints_cells_as_they_stand(tmp_path, capsysbinary):
    pytest.importorskip("skops")
    pytest.importorskip("typer")
    from mercer.cli import main

    text = "zip,x\n" + "".join(f"0{i % 3},{i}.50\n" for i in range(30))
    model = TableModel(KernelRidge(0.1, kernel=Gaussian(sigma=1.0)))
    save(model.fit(read_table(written(tmp_path, text)).frame, np.arange(30.0)), tmp_path / "m.mercer")
    assert main(["predict", str(tmp_path / "m.mercer"), str(tmp_path / "t.csv")]) == 0
    lines = capsysbinary.readouterr().out.decode().splitlines()
    assert [line.rpartition(",")[0] for line in lines] == text.splitlines()


def test_numbers_filled_up_with_zeros(tmp_path):
    """Codes have one length; 08 among other numbers, and 07 to 99, are numbers."""
    table = read_table(written(tmp_path, "age,n,code\n07,1,007\n99,08,120\n"))
    assert table.frame.rows() == [(7, 1, "007"), (99, 8, "120")]


def test_a_row_without_a_value_is_no_header(tmp_path):
    """Names are left out only before the others, as those of row indices are."""
    assert read_table(written(tmp_path, "a,,c\nu,v,w\nk,l,m\n")).rows == 3
    table = read_table(written(tmp_path, ",,city,y\na,b,Rome,yes\nc,,Oslo,no\n"))
    assert table.rows == 2 and table.columns == ["column_1", "column_2", "city", "y"]
