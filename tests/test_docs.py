"""What the pages say is so: the API lists every public name."""

import importlib
import importlib.util
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

import mercer

DOCS = Path(__file__).resolve().parent.parent / "docs"
MODULES = [
    "mercer",
    *(f"mercer.{name}" for name in mercer._MODULES),
    "mercer.certify",
    "mercer.features.email",
]


def listed():
    """The names that have a page of the API."""
    return re.findall(r"^   (mercer\.[\w.]+)$", (DOCS / "api.md").read_text("utf-8"), re.MULTILINE)


def is_listed(module, name, names):
    """Under its module, or as a name of mercer itself that is the same thing."""
    return f"{module}.{name}" in names or (
        f"mercer.{name}" in names and getattr(mercer, name) is getattr(importlib.import_module(module), name)
    )


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_has_a_page(module):
    names = set(listed())
    public = set(importlib.import_module(module).__all__)
    if module == "mercer":
        public.remove("certify")  # a module, that is called like its function
        assert "mercer.certify.certify" in names
    assert public and {name for name in public if not is_listed(module, name, names)} == set()


def test_every_page_is_of_a_name_once():
    names = listed()
    assert len(names) == len(set(names)) > 150
    for name in names:
        module, _, own = name.rpartition(".")
        assert getattr(importlib.import_module(module), own) is not None


def extension(name):
    """A module of docs/_ext, which Sphinx loads by its name."""
    spec = importlib.util.spec_from_file_location(name, DOCS / "_ext" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_parameter_keeps_all_of_its_lines():
    """The first line is text, where numpydoc would look for a type; examples are no parameter."""
    given = ["Parameters", "----------", "C : weight of", "    the errors", "", ">>> 1", "1"]
    found = extension("docstrings").whole_entries(given)
    assert found[:4] == ["Parameters", "----------", "C", "    weight of"] and found[4] == "    the errors"
    assert found[6:] == ["Examples", "--------", ">>> 1", "1"]


def test_attributes_and_formulas_are_kept():
    docstrings = extension("docstrings")
    given = ["Attributes", "----------", "coef_, intercept_ : w and", "    b"]
    assert docstrings.whole_entries(given)[4:] == ["* ``coef_``, ``intercept_`` – w and", "  b"]
    assert docstrings.literal_formulas(["f is", "", "    f = |x|", "", "and"])[2:4] == ["::", ""]
    assert docstrings.plain_signs(["|x|, coef_ and ``|coef_|``", "::", "", "    |x|"]) == [
        r"\|x\|, coef\_ and ``|coef_|``",
        *("::", "", "    |x|"),
    ]


NOTES = tomllib.loads((DOCS / "notes.toml").read_text("utf-8"))
LINES = [(note["title"], *entry) for note in NOTES["notes"] for entry in note["entries"]]
KINDS = {"definition", "theorem", "proof", "statement", "algorithm"}
KINDS |= {"example", "figure", "experiment", "caveat"}


@pytest.fixture(scope="module")
def said():
    """The names that the lines of the notes begin with."""
    names = {}
    exec(NOTES["setup"], names)
    return names


@pytest.mark.filterwarnings("ignore")  # what does not converge says so, and is asked for here
@pytest.mark.parametrize("note", dict.fromkeys(line[0] for line in LINES))
def test_every_line_of_a_note_is_true(said, note):
    for kind, name, line, lesson in (entry for title, *entry in LINES if title == note):
        assert bool(np.all(eval(line, dict(said)))), f"{note}: {name}"
        assert kind in KINDS and 0 <= lesson <= 19, f"{note}: {name}"


def test_the_notes_are_five_and_whole():
    """A line that went missing is missed: what was there, by kind."""
    assert len(NOTES["notes"]) == 5 and len(LINES) >= 160
    assert {kind for _, kind, *_ in LINES} >= {"theorem", "algorithm", "figure", "experiment"}


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_numbers_in_front_were_measured(page):
    """Each is in benchmarks/results, and is not rounded up."""
    text = (DOCS.parent / page).read_text("utf-8")
    measured = {
        "svm": {"28.13": "28 ×", "5.62": "5.6 s", "158": "158 s", "9.53": "9.5 s"},
        "graphs": {"18.4": "18 ×", "0.24": "0.24 s", "4.42": "4.42 s"},
        "mail": {"| mean | 0.53 |": "0.53 %", "6,046": "6,046"},
    }
    for name, numbers in measured.items():
        results = (DOCS.parent / f"benchmarks/results/{name}.md").read_text("utf-8")
        for there, here in numbers.items():
            assert there in results and here in text


def test_pictures_are_drawn_by_the_script_and_small():
    script = (DOCS / "_ext/draw.py").read_text("utf-8")
    for path in (DOCS / "pictures").glob("*.svg"):
        name = path.stem.replace("-", "_")
        assert f"def {name}(" in script or path.name == "README.svg", path
        assert path.stat().st_size < 100_000
    shown = [
        m for page in DOCS.rglob("*.md") for m in re.findall(r"{picture} (\S+)", page.read_text("utf-8"))
    ]
    drawn = {path.stem for path in (DOCS / "pictures").glob("*.svg")}
    assert shown and set(shown) | {"README"} == drawn
