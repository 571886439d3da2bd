"""`make demo`: a table that parses and a picture, a clear word when there can be none."""

import re
import subprocess
import sys

import pytest

from mercer import demo
from mercer.progress import Progress

ROW = re.compile(
    r"^(?P<kernel>\S.*?)(?P<star> \*)? +(?P<error>[\d.]+)% +(?P<mistakes>[\d,]+) +(?P<stored>[\d,]+)"
    r" +[\d.]+ s$"
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """One run, as a user starts it: its output and its folder."""
    folder = tmp_path_factory.mktemp("demo")
    done = subprocess.run(
        [sys.executable, "-m", "mercer.demo"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done, folder


def test_the_table_parses(run):
    rows = {row["kernel"]: row for row in map(ROW.match, run[0].stdout.splitlines()) if row}
    assert list(rows) == [repr(kernel) for kernel in demo.KERNELS]
    for row in rows.values():
        mistakes, stored = (int(row[name].replace(",", "")) for name in ("mistakes", "stored"))
        assert 0 < stored <= min(mistakes, 1257)
        assert float(row["error"]) < 10
    assert rows["Linear()"]["star"]
    assert "* did not separate every digit" in run[0].stdout
    assert float(rows["Polynomial(degree=3, c=1.0)"]["error"]) < float(rows["Linear()"]["error"])


def test_every_learner_has_a_line(run):
    lines = run[0].stdout.splitlines()
    for name, _ in demo.LEARNERS:
        (line,) = (line for line in lines if re.match(rf"{re.escape(name)}  +[\d.]+%", line))
        assert float(re.search(r"([\d.]+)%", line)[1]) < (15 if name == "ParzenClassifier" else 4)


def test_nothing_but_the_table_off_a_terminal(run):
    assert run[0].stderr == ""


def test_the_picture_is_where_the_last_line_says(run):
    done, folder = run
    assert done.stdout.splitlines()[-1] == f"Picture: {(folder / 'mercer-demo.png').resolve()}"
    image = pytest.importorskip("matplotlib.image").imread(folder / "mercer-demo.png")
    assert image.shape[:2] == (990, 1950)
    assert image.std() > 0.1  # not blank


def test_the_picture_may_go_elsewhere(tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    kernel = demo.KERNELS[1]
    monkeypatch.setattr(demo, "compare", lambda digits: [demo.train(kernel, digits, lambda event: None)])
    assert demo.main([str(tmp_path / "a.pdf")]) == 0
    assert (tmp_path / "a.pdf").read_bytes().startswith(b"%PDF")
    assert "*" not in capsys.readouterr().out


def test_one_bar_over_all_fits():
    told = []
    bar = Progress(20, "digits learned", told.append)
    with bar:
        for i in range(2):
            listen = demo._follow(bar, 10 * i)
            for done in (0, 40, 100):
                listen({"done": done, "total": 100})
    assert [event["done"] for event in told] == [0, 0, 4, 10, 10, 14, 20]


def test_without_matplotlib(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert demo.main([]) == 1
    said = capsys.readouterr()
    assert said.err == (
        'The picture needs matplotlib. matplotlib is not installed: run  pip install "mercer[plot]"\n'
    )
    assert said.out == ""


def test_a_folder_that_is_not_there(tmp_path, capsys):
    with pytest.raises(SystemExit):
        demo.main([str(tmp_path / "no" / "a.png")])
    assert "the folder of the picture does not exist, got" in capsys.readouterr().err
