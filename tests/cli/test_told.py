"""What is told before a search, of its result, and in which words."""

import json
import sys
from types import SimpleNamespace

from mercer.cli.exits import as_options


def test_the_result_says_it(mercer, sine, monkeypatch):
    monkeypatch.setattr("mercer.tables.fitting.difference", lambda model, folds: "it differs so")
    status, out, _ = mercer(
        "train", sine, "-t", "y", "--kernel", "rbf", "--no-report", "--folds", "2", "--json"
    )
    assert status == 0
    assert json.loads(out)["error_from"] == "2 folds, with the search done again in each; it differs so"


# --- before the search -----------------------------------------------------------------------------------


def without(monkeypatch, *modules):
    """As if these libraries were not installed."""
    from importlib.util import find_spec

    for module in modules:
        monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setattr(
        "mercer.errors.importlib.util.find_spec",
        lambda name, *rest: None if name in modules else find_spec(name, *rest),
    )


def test_what_saving_needs_is_told_before_the_search(mercer, sine, monkeypatch):
    without(monkeypatch, "skops")
    status, out, err = mercer("train", sine, "-t", "y")
    assert (status, out) == (2, "")
    assert err == 'mercer: skops is not installed: run pip install "mercer[models]"\n'


def test_what_a_report_needs_is_told_before_the_search(mercer, sine, monkeypatch):
    without(monkeypatch, "matplotlib")
    status, _, err = mercer("train", sine, "-t", "y", "--kernel", "rbf", "--folds", "2")
    assert status == 0
    assert err.startswith(
        'note: no report will be written: matplotlib is not installed: run  pip install "mercer[plot]"\n'
    )
    status, _, err = mercer("train", sine, "-t", "y", "--report", "r.html")
    assert status == 2 and "matplotlib is not installed" in err and "searching" not in err


# --- the words of the command line -----------------------------------------------------------------------


def test_notes_are_in_the_words_of_the_command():
    from mercer.selection.auto import AutoMixin

    said = []
    AutoMixin._tell_of_fewer(2000, 9000, SimpleNamespace(warn=said.append))
    assert as_options(said[0]) == (
        "the last fit takes 2,000 of 9,000 points, as many as memory and time allow: raise --time or --memory"
    )
    assert as_options(
        "pass rows=N, keep=['a'] keeps it; probabilities=True; use target=… and a longer max_time"
    ) == ("pass --rows N, --keep 'a' keeps it; --proba; use --target and a longer --time")
    assert "max_time" not in as_options(
        "SVC ran out of max_time=0.5 seconds after 3 iterations; raise max_time"
    )
