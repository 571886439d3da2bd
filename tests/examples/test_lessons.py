"""Every lesson runs by itself, from its file alone, and draws."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

LESSONS = sorted((Path(__file__).parents[2] / "examples").glob("plot_*.py"))
#: what `make test` runs; all of them run with --full
QUICK = ("plot_17_structures",)
#: A lesson as `python FILE` runs it, and then: how many figures, and is anything in them?
RUN = """
import runpy, sys
import matplotlib.pyplot as plt
runpy.run_path(sys.argv[1], run_name="__main__")
figures = [plt.figure(number) for number in plt.get_fignums()]
for figure in figures:
    figure.canvas.draw()
print("figures:", len(figures), "empty:", sum(not ax.has_data() for figure in figures for ax in figure.axes))
"""


def marked(path):
    marks = [] if path.stem in QUICK else [pytest.mark.full]
    return pytest.param(path, id=path.stem, marks=[pytest.mark.slow, *marks])


@pytest.mark.parametrize("path", [marked(path) for path in LESSONS])
def test_a_lesson_runs_and_draws(path, tmp_path):
    """In another folder, without a window, and without the real data sets, as anybody would first run it."""
    environment = {**os.environ, "MPLBACKEND": "Agg", "MERCER_DATA": str(tmp_path)}
    run = subprocess.run(
        [sys.executable, "-c", RUN, str(path)],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    assert "Warning" not in run.stderr, run.stderr[-3000:]
    found = re.search(r"figures: (\d+) empty: (\d+)", run.stdout)
    assert found and int(found[1]) >= 1 and int(found[2]) == 0, run.stdout[-500:]


def test_there_are_nineteen_and_each_has_a_question_and_what_to_see():
    numbers = [int(path.stem.split("_")[1]) for path in LESSONS]
    assert numbers == list(range(1, 20))
    for path in LESSONS:
        text = path.read_text("utf-8")
        docstring = text.split('"""')[1].strip().splitlines()
        assert docstring[1] == "=" * len(docstring[0]), path.name
        asked = "?" in text.split('"""')[1]
        assert asked and "**What to see.**" in text and text.count("# %%") >= 2, path.name


def test_quick_lessons_exist():
    assert set(QUICK) <= {path.stem for path in LESSONS}
