"""Tables whose rows belong together: training, by groups and by time, and what is said of it."""

import json

import numpy as np
import polars as pl
import pytest

from mercer.errors import InputError
from mercer.tables import read_table, train

QUICK = {"kernel": "gaussian(sigma=1.0)"}


@pytest.fixture
def visits(rng):
    """Twelve patients, each with a level of its own that the age stands for, and an effect of the dose."""
    patient = np.repeat(np.arange(12), 6)
    dose = rng.uniform(0, 5, 72)
    return pl.DataFrame(
        {
            "patient": [f"p{g}" for g in patient],
            "day": [f"2026-{1 + i % 6:02}-{1 + i // 6:02}" for i in range(72)],
            "age": 20.0 + 5 * patient,
            "dose": dose,
            "pressure": 3 * rng.normal(size=12)[patient] + np.sin(dose) + 0.1 * rng.normal(size=72),
        }
    )


def test_groups_are_no_feature_and_never_cut(visits):
    training = train(visits, "pressure", groups="patient", folds=3, drop=["day"], **QUICK)
    assert training.model.features_.columns_ == ["age", "dose"]
    honest = training.honest
    assert honest.how == "3 folds of whole groups, 12 in all, with the search done again in each"
    assert honest.rows.tolist() == list(range(72)) and honest.apart == "groups"
    plain = train(visits, "pressure", folds=3, drop=["day", "patient"], **QUICK)
    assert honest.error > 1.3 * plain.honest.error
    # The interval counts 12 patients, and not 72 rows.
    assert np.diff(honest.interval) / honest.error > np.diff(plain.honest.interval) / plain.honest.error
    assert training.model.about_["apart"] == {"by": "groups", "column": "patient", "count": 12}
    assert "where the groups are exchangeable" in training.model.interval_guarantee(0.9)
    held = train(visits, "pressure", groups=1, folds=0, drop=["day"], **QUICK).honest
    tested = set(visits["patient"].gather(held.rows))
    assert len(held.rows) == 6 * len(tested) and "whose groups the search did not see" in held.how


def test_times_are_predicted_from_before(visits):
    training = train(visits, "pressure", times="day", folds=2, **QUICK)
    honest, days = training.honest, visits["day"].to_numpy()
    assert "day" not in training.model.features_.columns_
    assert set(days[honest.rows]) == {d for d in days if d >= "2026-04"}
    assert honest.how.startswith(
        "2 folds of the later half of the rows, each predicted from all rows before it"
    )
    assert "nothing guarantees that" in training.model.interval_guarantee(0.9)
    training = train(visits, "pressure", times="day", keep=["day"], folds=0, **QUICK)
    assert "day" in training.model.features_.columns_
    held = training.honest
    assert set(days[held.rows]) == {d for d in days if d >= "2026-06-07"} or len(held.rows) <= 8
    assert "the latest, of which the search saw none" in held.how


@pytest.mark.full
def test_days_of_a_text_file_are_in_their_own_order(tmp_path):
    """3/2/2026 is before 14/1/2027, which as texts it is not."""
    lines = [f"{1 + i % 28}/{1 + i % 12}/{2026 - i // 30},{i % 7},{0.1 * i + i % 7}" for i in range(60)]
    (tmp_path / "days.csv").write_text("day,x,y\n" + "\n".join(lines) + "\n")
    honest = train(read_table(tmp_path / "days.csv"), "y", times="day", folds=2, **QUICK).honest
    assert max(honest.rows) < 30  # the rows of 2026


@pytest.mark.full
def test_probabilities_of_classes_and_a_report(visits, tmp_path):
    frame = visits.with_columns(
        pl.when(pl.col("pressure") > 0).then(pl.lit("high")).otherwise(pl.lit("low")).alias("level")
    )
    training = train(frame, "level", groups="patient", folds=2, drop=["pressure", "day"], **QUICK)
    plain = train(frame, "level", folds=2, drop=["pressure", "day", "patient"], **QUICK)
    surest = [one.model.predict_proba(one.X).max(axis=1).mean() for one in (training, plain)]
    assert surest[0] < surest[1]
    assert "from groups left out" in training.model.interval_guarantee(0.9)
    pytest.importorskip("matplotlib")
    page = training.write_report(tmp_path / "r.html", limit=0.5).read_text("utf-8")
    assert "folds of whole groups" in page


@pytest.mark.full
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"groups": "patient", "drop": ["day"]},
            "left out with their groups; new ones of new groups are in it",
        ),
        ({"times": "day", "drop": ["patient"]}, "later than what was learned from; nothing guarantees that"),
    ],
)
def test_a_report_says_what_its_interval_is_of(visits, tmp_path, options, said):
    pytest.importorskip("matplotlib")
    training = train(visits, "pressure", folds=2, **options, **QUICK)
    page = training.write_report(tmp_path / "r.html", limit=30.0).read_text("utf-8")
    assert said in page and "are to be kept apart" in page


def test_thinned_rows_keep_their_groups(visits):
    training = train(visits, "pressure", groups="patient", folds=3, drop=["day"], rows=36, **QUICK)
    assert len(training.target.y) == 36 and training.model.about_["apart"]["count"] == 12


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"groups": "nurse"}, "has no column 'nurse'"),
        ({"groups": "pressure"}, "'pressure' is the target: name another column for groups or times"),
        (
            {"groups": "patient", "times": "day"},
            "groups=… and times=… are both given, and folds are by one of",
        ),
        (
            {"groups": "patient", "keep": ["patient"]},
            "'patient' is to be kept, and is the column of the groups",
        ),
        (
            {"groups": "patient", "folds": 13},
            "13 folds of 12 groups cannot be made: pass a smaller number of folds",
        ),
        (
            {"groups": "one"},
            "there is 1 group, and a search in folds takes 5 or more: pass rows of others too",
        ),
        (
            {"groups": "gap"},
            "column 'gap' is missing in 71 rows, the first is row 2: fill it in, or leave th",
        ),
        (
            {"times": "patient"},
            "column 'patient' holds 'p0' in row 1, which is no time: write numbers, or dates",
        ),
        ({"times": "gap"}, "column 'gap' is missing in 71 rows"),
    ],
)
def test_refusals(visits, options, said):
    frame = visits.with_columns(one=pl.lit("a"), gap=pl.Series(["a", *[None] * 71]))
    with pytest.raises(InputError, match=said):
        train(frame, "pressure", **QUICK, **options)


def test_the_command(visits, tmp_path, monkeypatch, capsys):
    pytest.importorskip("typer")
    from mercer.cli import main

    monkeypatch.chdir(tmp_path)
    visits.write_csv("visits.csv")
    command = [
        "train",
        "visits.csv",
        "-t",
        "pressure",
        "--kernel",
        "gaussian(sigma=1.0)",
        "--no-report",
        "--folds",
    ]
    assert main([*command, "2", "--group", "patient", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["error_from"] == "2 folds of whole groups, 12 in all, with the search done again in each"
    assert main(["predict", "visits.mercer", "visits.csv", "--interval", "0.9"]) == 0
    assert "of the rows of new groups are inside" in capsys.readouterr().err
    assert main([*command, "2", "--group", "patient", "--time-column", "day"]) == 2
    assert "--group and --time-column are both given" in capsys.readouterr().err
    assert main([*command, "0", "--time-column", "day"]) == 0
