"""Tables in databases: what they hold, what is refused, and that nothing is ever written."""

import json
import sqlite3
import tracemalloc

import numpy as np
import pytest

from mercer import DataSource, KernelRidge, config
from mercer.data.sources import database as databases
from mercer.errors import InputError, InputTypeError
from mercer.tables import read_table, train


@pytest.fixture
def rides(tmp_path, monkeypatch):
    """A database in the folder of the test, and its connection."""
    monkeypatch.chdir(tmp_path)
    connection = sqlite3.connect("rides.db")
    connection.execute("create table rides (id integer, day text, km real, city text, minutes real)")
    rows = [
        (i, f"2026-{1 + i % 12:02}-{1 + i % 28:02}", None if i == 5 else i / 2, "RO"[i % 2], 1.5 * i + i % 2)
        for i in range(60)
    ]
    connection.executemany("insert into rides values (?, ?, ?, ?, ?)", rows)
    connection.execute("create table mixed (x, y)")
    connection.executemany("insert into mixed values (?, ?)", [(1, 2.0), (2.5, 3), (None, 4), ("a", 5)])
    connection.execute("create table empty (x real)")
    connection.execute("create table blobs (x blob)")
    connection.execute("insert into blobs values (x'00')")
    connection.commit()
    yield connection
    connection.close()


def test_a_table_has_its_types_gaps_and_dates(rides):
    table = read_table("sqlite:///rides.db?table=rides")
    assert (table.format, table.rows, table.columns) == ("sqlite", 60, ["id", "day", "km", "city", "minutes"])
    assert [str(kind) for kind in table.frame.dtypes] == ["Int64", "Date", "Float64", "String", "Float64"]
    assert table.frame["km"].null_count() == 1
    assert read_table("sqlite:///rides.db?table=rides", missing=["O"]).frame["city"].null_count() == 30


def test_a_query_with_all_that_an_address_cannot_hold(rides):
    for query in (
        "select km from rides where city like '%R%'",
        "with a as (select 1 as km) select km from a;",
    ):
        from mercer.cli.files import with_query

        [address] = with_query(["sqlite:///rides.db"], query)
        assert read_table(address).columns == ["km"]
    assert read_table("sqlite:///rides.db?query=select count(*) + 1 as n from rides").frame[
        "n"
    ].to_list() == [61]


def test_batches_are_one_table(rides, monkeypatch):
    """Whole numbers first and others later, or nothing first, are one column."""
    rides.executemany("insert into mixed values (?, ?)", [(1, None)])
    monkeypatch.setattr("mercer.tables.databases._AT_ONCE", 2)
    query = (
        "select null as x union all select null union all select 1 union all select 2 union all select 0.5"
    )
    assert read_table(f"sqlite:///rides.db?query={query}").frame["x"].to_list() == [None, None, 1.0, 2.0, 0.5]
    table = read_table("sqlite:///rides.db?table=rides", rows=7)
    assert table.frame["id"].to_list() == [i * 60 // 7 for i in range(7)]
    assert table.notes[0].startswith("7 of the 60 rows of sqlite:///rides.db?table=rides were taken")
    assert read_table("sqlite:///rides.db?table=rides", most=500).rows < 60


def test_memory_is_within_the_budget(rides):
    """Of a long table some rows are held at a time, and a table too large for the budget is refused."""
    long = (
        "with recursive t(i) as (select 1 union all select i + 1 from t limit 99999) select i, i / 2.0 from t"
    )
    with config(memory="4MiB"):
        with pytest.raises(
            InputError, match=r"holds .* or more, which takes about .* and the budget is 4MiB"
        ):
            read_table(f"sqlite:///rides.db?query={long}")
        tracemalloc.start()
        assert read_table(f"sqlite:///rides.db?query={long}", rows=1000).rows == 1000
        assert tracemalloc.get_traced_memory()[1] < 2**22
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("address", "said"),
    [
        (
            "sqlite:///rides.db",
            r"names no table: write sqlite:///rides.db\?table=NAME, or pass one SELECT with --",
        ),
        (
            "sqlite:///rides.db?table=ride",
            "rides.db has no table 'ride', it has 'blobs', 'empty', 'mixed', 'rides': ",
        ),
        ("sqlite:///no.db?table=a", "the database 'no.db' does not exist: check the path"),
        ("sqlite:///text.db?table=a", "text.db is no file of sqlite, or it is encrypted"),
        (
            "sqlite:///rides.db?table=mixed",
            "column 'x' of .* holds numbers in row 1 and texts in row 4: make them",
        ),
        ("sqlite:///rides.db?table=empty", "has no rows: pass a table, or a query, with at least one"),
        (
            "sqlite:///rides.db?table=blobs",
            "column 'x' of .* holds bytes, which no kernel of a table takes",
        ),
        (
            "sqlite:///rides.db?query=drop table rides",
            "it is no SELECT, and nothing else is run: pass one SELECT",
        ),
        ("sqlite:///rides.db?query=pragma user_version = 3", "it is no SELECT, and nothing else is run"),
        ("sqlite:///rides.db?query=attach 'other.db' as other", "it is no SELECT, and nothing else is run"),
        (
            "sqlite:///rides.db?query=select 1; drop table rides",
            "it is more than one statement: pass one SELECT",
        ),
        (
            "sqlite:///rides.db?query=select kms from rides",
            "no such column: kms; check the query, or the file",
        ),
        (
            "sqlite:///rides.db?query=select km, km from rides",
            "has two columns 'km': give each a name of its own",
        ),
        (
            "postgresql://host/a",
            "'postgresql://host/a' is no address of a database that can be read: write sqlite:",
        ),
        ("rides.db", r"rides.db is a database: name one of its tables, sqlite:///PATH\?table=NAME"),
        (
            ["sqlite:///rides.db?table=rides", "rides.csv"],
            "a database is a table by itself: name files, or one",
        ),
    ],
)
def test_refusals(rides, tmp_path, address, said):
    (tmp_path / "text.db").write_text("no database\n" * 100)
    (tmp_path / "rides.csv").write_text("x\n1\n")
    before = (tmp_path / "rides.db").read_bytes()
    with pytest.raises(InputError, match=said):
        read_table(address)
    assert (tmp_path / "rides.db").read_bytes() == before
    assert not (tmp_path / "other.db").exists() and not (tmp_path / "no.db").exists()


def test_a_locked_database(rides, monkeypatch):
    monkeypatch.setattr(databases, "_SECONDS", 0.01)
    rides.execute("begin exclusive")
    with pytest.raises(
        InputError, match="another program writes to it: wait until that has ended, or read a copy"
    ):
        read_table("sqlite:///rides.db?table=rides")
    rides.rollback()
    assert read_table("sqlite:///rides.db?table=rides").rows == 60


def test_learners_take_an_address(rides, tmp_path):
    address = "sqlite:///rides.db?query=select km, id, minutes from rides where km is not null"
    model = KernelRidge(kernel="linear").fit(address, "minutes")
    X = np.array(rides.execute("select km, id from rides where km is not null").fetchall())
    y = np.array(rides.execute("select minutes from rides where km is not null").fetchall())[:, 0]
    np.testing.assert_array_equal(
        model.expansion_.values(X), KernelRidge(kernel="linear").fit(X, y).predict(X)
    )
    source = DataSource("sqlite:///rides.db?table=rides", columns=["id"], folder=tmp_path / "kept")
    assert source.open("city").targets.tolist() == ["R", "O"] * 30
    rides.execute("update rides set id = id + 1000")
    rides.commit()
    assert source.open("city").points[0, 0] == 1000
    with pytest.raises(InputError, match=r"row 5 \(from 0\) of column 'km' of .* is missing"):
        DataSource("sqlite:///rides.db?table=rides", columns=["km"]).open()
    with pytest.raises(InputTypeError, match=r"column 'city' of .* must hold numbers, got text"):
        DataSource("sqlite:///rides.db?table=rides", columns=["city"]).open()


def test_two_queries_of_one_database_are_two_tables(rides, tmp_path):
    """Names of cached arrays tell `//` from `/`, which in paths are the same."""
    found = [
        DataSource(
            f"sqlite:///rides.db?query=select id as x from rides where '{mark}' = '//'",
            folder=tmp_path / "kept",
        )
        for mark in ("//", "/")
    ]
    assert len(found[0].open().points) == 60
    with pytest.raises(InputError, match="has no rows"):
        found[1].open()


def test_without_duckdb(rides, monkeypatch):
    def absent(name):
        raise ModuleNotFoundError(name=name)

    monkeypatch.setattr(databases, "import_module", absent)
    with pytest.raises(ImportError, match="duckdb is not installed: run  pip install duckdb"):
        read_table("duckdb:///rides.db?table=rides")


def test_duckdb(tmp_path, monkeypatch):
    library = pytest.importorskip("duckdb")
    monkeypatch.chdir(tmp_path)
    with library.connect("r.duckdb") as connection:
        connection.execute(
            "create table rides as select i as id, date '2026-01-01' + cast(i as integer) as day, "
            "cast(i * 1.5 as decimal(10, 2)) as km, i % 3 = 0 as rain from range(60) t(i)"
        )
    table = read_table("duckdb:///r.duckdb?table=rides")
    assert [str(kind) for kind in table.frame.dtypes] == ["Int64", "Date", "Float64", "Boolean"]
    assert DataSource("duckdb:///r.duckdb?query=select km, rain from rides").open().points[2].tolist() == [
        3,
        0,
    ]
    for query in ("drop table rides", "select 1; select 2", "copy rides to 'x.csv'", "select * from 'x.csv'"):
        with pytest.raises(InputError, match=r"is not one SELECT|file system operations are disabled"):
            read_table(f"duckdb:///r.duckdb?query={query}")
    with pytest.raises(InputError, match=r"r.duckdb has no table 'ride', it has 'rides'"):
        read_table("duckdb:///r.duckdb?table=ride")


def test_the_command(rides, tmp_path, capsys):
    pytest.importorskip("typer")
    from mercer.cli import main

    command = [
        "train",
        "sqlite:///rides.db",
        "-t",
        "minutes",
        "--kernel",
        "linear",
        "--no-report",
        "--folds",
        "2",
    ]
    assert main([*command, "--query", "select km, minutes from rides", "-o", "a.mercer", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["rows"] == 60 and facts["source"] == "rides.db"
    assert main(["predict", "a.mercer", "sqlite:///rides.db?table=rides"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 61
    assert main([*command, "--query", "select 1", "-o", "rides.db"]) == 2
    assert "--output and the database are the same file" in capsys.readouterr().err
    assert main(["train", "a.csv", "-t", "y", "--query", "select 1"]) == 2
    assert "--query asks one database, got 'a.csv': name it as sqlite:///PATH" in capsys.readouterr().err
    assert (
        train("sqlite:///rides.db?table=rides", "minutes", kernel="linear", folds=2).target.name == "minutes"
    )
