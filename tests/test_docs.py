"""What the pages say is so: the API lists every public name."""

import importlib
import importlib.util
import re
from pathlib import Path

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
    assert docstrings.plain_signs(["|x|, coef_ and ``coef_``", "::", "", "    |x|"]) == [
        r"\|x\|, coef\_ and ``coef_``",
        *("::", "", "    |x|"),
    ]
