"""Sphinx settings for the guide and the API pages; `make docs` builds them to docs/_build/html."""

from importlib.metadata import version as installed_version

project = "mercer"
author = "the mercer developers"
copyright = "2026, the mercer developers"
release = version = installed_version("mercer")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "myst_parser",
]
exclude_patterns = ["_build"]

myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "description"
napoleon_google_docstring = False
napoleon_use_ivar = True  # attributes that are properties too would be described twice

# docstrings that scikit-learn adds to estimators refer to its own guide
# "objects" is a property of many kernels, and a word in many annotations
suppress_warnings = ["ref.term", "ref.ref", "ref.python"]

html_theme = "furo"
html_title = "mercer"


def keep_bars(app, what, name, obj, options, lines):
    """|x| in a docstring is an absolute value, not a substitution; examples are left as they are."""
    in_example = False
    for number, line in enumerate(lines):
        in_example = line.lstrip().startswith(">>>") or (in_example and bool(line.strip()))
        if not in_example:
            lines[number] = line.replace("|", r"\|")


def setup(app):
    app.connect("autodoc-process-docstring", keep_bars, priority=900)
