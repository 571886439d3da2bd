"""Dates in text: typed where their order is plain, else texts that a model reads in the order it learned."""

from datetime import datetime, timedelta

import numpy as np
import pytest

from mercer import Gaussian, KernelRidge, load, save
from mercer.errors import InputError, InputTypeError
from mercer.tables import TableFeatures, TableModel, find_target, read_table
from mercer.tables.dates import moment, orders_of

pl = pytest.importorskip("polars")


def written(folder, text):
    path = folder / "t.csv"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("pattern", "dtype"),
    [
        ("%Y-%m-%d", "Date"),
        ("%Y-%m-%dT%H:%M:%SZ", "Datetime(time_unit='us', time_zone='UTC')"),
        ("%Y-%m-%d %H:%M", "Datetime(time_unit='us', time_zone=None)"),
        ("%Y%m%dT%H%M%S", "Datetime(time_unit='us', time_zone=None)"),
        ("%Y/%m/%d %H:%M:%S", "Datetime(time_unit='us', time_zone=None)"),
        ("%d.%m.%Y", "Date"),
        ("%m/%d/%Y", "String"),
        ("%H:%M", "Time"),
        ("%d %b %Y", "String"),
    ],
)
def test_dates(tmp_path, pattern, dtype):
    moments = [datetime(2023, 1, 1, 5, 6, 7) + timedelta(days=17 * i, minutes=i) for i in range(40)]
    text = "when,x\n" + "".join(f"{moment.strftime(pattern)},{i}\n" for i, moment in enumerate(moments))
    column = read_table(written(tmp_path, text)).frame["when"]
    assert str(column.dtype) == dtype
    if dtype.startswith("Date"):
        assert column[1].day == 18
    with_another = read_table(written(tmp_path, text + "tomorrow,3\n")).frame["when"]
    assert str(with_another.dtype) == "String"


@pytest.mark.parametrize("pattern", ["%d/%m/%Y", "%m/%d/%Y", "%m-%d-%Y", "%m/%d/%y", "%d-%m-%Y %H:%M:%S"])
def test_a_model_keeps_the_order_of_its_training_rows(tmp_path, pattern):
    pytest.importorskip("skops")
    moments = [datetime(2023, 1, 1) + timedelta(days=17 * i) for i in range(40)]
    table = read_table(written(tmp_path, "when,x\n" + "".join(f"{m.strftime(pattern)},1\n" for m in moments)))
    assert not table.notes
    y = np.array([m.month for m in moments], dtype=float)
    model = TableModel(KernelRidge(0.01, kernel=Gaussian(sigma=1.0))).fit(table.frame, y)
    typed = TableModel(KernelRidge(0.01, kernel=Gaussian(sigma=1.0))).fit(pl.DataFrame({"when": moments}), y)
    save(model, tmp_path / "m.mercer")
    new = [datetime(2024, 3, 4), datetime(2024, 12, 1)]  # no day after the twelfth
    rows = read_table(written(tmp_path, "when,x\n" + "".join(f"{m.strftime(pattern)},1\n" for m in new)))
    assert "fits day/month and month/day" in rows.notes[0]
    expected = typed.predict(pl.DataFrame({"when": new}))
    assert np.allclose(load(tmp_path / "m.mercer").predict(rows), expected)
    assert np.allclose(model.predict(pl.DataFrame({"when": new})), expected)  # dates are dates


def test_an_order_can_be_given(tmp_path):
    table = read_table(
        written(tmp_path, "when\n" + "".join(f"{1 + i % 9}/{1 + i % 7}/2024\n" for i in range(60)))
    )
    assert table.dates == {"when": "day/month"}
    first, other = (TableFeatures(dates=given).fit(table.frame) for given in (None, {"when": "month/day"}))
    assert first.encoders_[0].order == "day/month"
    new = pl.DataFrame({"when": ["3/4/2024"]})
    assert other.transform(new)[0, 0] == pytest.approx(
        other.transform(pl.DataFrame({"when": [datetime(2024, 3, 4)]}))[0, 0]
    )
    assert np.allclose(first.transform(new), first.transform(pl.DataFrame({"when": [datetime(2024, 4, 3)]})))
    with pytest.raises(InputError, match="dates are written day/month or month/day, got 'us'"):
        TableFeatures(dates={"when": "us"}).fit(table.frame)


def test_the_cell_that_is_no_date_is_named():
    texts = pl.DataFrame({"when": [f"{1 + i % 12}/{1 + i % 28}/2024" for i in range(60)]})
    dates = pl.DataFrame({"when": [datetime(2020, 1, 1) + timedelta(days=i * i) for i in range(30)]})
    by_month, typed = TableFeatures().fit(texts), TableFeatures().fit(dates)
    for features, cells, match in (
        (by_month, ["1/2/2024", None, "13/1/2024"], "written month/day, .* has '13/1/2024' in row 3"),
        (by_month, ["2024-01-05", "2024-01-06", "soon"], "has 'soon' in row 3"),
        (typed, [None, "2024-01-05", "2024-02-30", "2024-01-05"], "has '2024-02-30' in row 3"),
        (typed, ["05.01.2024", "soon"], "has 'soon' in row 2"),
        (typed, ["05.01.2024", "2024-01-05"], "has '2024-01-05' in row 2"),
        (typed, ["3/4/2024", "5/6/2024"], "fit day/month and month/day, .* write them as 2026-01-31"),
    ):
        with pytest.raises(InputTypeError, match=match):
            features.transform(pl.DataFrame({"when": cells}))
    expected = typed.transform(pl.DataFrame({"when": [datetime(2024, 1, 25)]}))
    assert np.array_equal(typed.transform(pl.DataFrame({"when": ["1/25/2024"]})), expected)  # no doubt


def test_what_is_no_date():
    for cells in (["1/2"], ["30/30/2024"], ["24-01-05"], ["1/2/2024", 3], ["1/2/2024 soon"], [None]):
        assert orders_of(np.array(cells, dtype=object)) == []
    with pytest.raises(InputError, match="the target 'when' holds dates"):
        find_target(np.array(["3/4/2024", "5/6/2024"], dtype=object), "when")


def test_parts_of_seconds():
    found = moment("01/02/2025 10:05:00.123", "day/month")
    assert found == datetime(2025, 2, 1, 10, 5, 0, 123_000)
    assert moment("1/2/2025 10:05:00.123456789", "day/month").microsecond == 123_456
