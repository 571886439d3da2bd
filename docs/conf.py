"""Sphinx settings for the guide and the API pages; `make docs` builds them to docs/_build/html."""

import sys
from importlib.metadata import version as installed_version
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "mercer"
author = "the mercer developers"
copyright = "2026, the mercer developers"
release = version = installed_version("mercer")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "myst_parser",
    "sphinx_copybutton",
    "docstrings",
    "picture",
    "notes",
    "benchmarks",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "_ext"]
templates_path = ["_templates"]

# The lessons of examples/ are run when the pages are built, and shown with what they print and draw.
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": "/plot_",
    "within_subsection_order": "FileNameSortKey",
    "capture_repr": (),  # What a lesson wants to tell it prints.
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,  # Its table would come with scripts from elsewhere.
    "thumbnail_size": (480, 220),
}

myst_enable_extensions = ["dollarmath", "amsmath", "deflist", "colon_fence", "attrs_block"]
myst_heading_anchors = 3

autosummary_generate = True
autosummary_imported_members = True
autodoc_member_order = "groupwise"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
autodoc_typehints_format = "short"
napoleon_google_docstring = False

# docstrings that scikit-learn adds to estimators refer to its own guide
# "objects" is a property of many kernels, and a word in many annotations
suppress_warnings = ["ref.term", "ref.ref", "ref.python"]

# A page needs nothing from the net: formulas are drawn by a MathJax that lies beside it, in one file.
_mathjax = Path(next(iter(find_spec("sphinx-mathjax-offline").submodule_search_locations))) / "static/mathjax"
mathjax_path = "tex-svg.js"
html_static_path = ["_static", str(_mathjax / "tex-svg.js")]

# What is copied from a code block can be run: without prompts, and without what was printed.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True

# A doctest ends with an empty line, which is not shown.
highlight_options = {"python": {"stripnl": True}}

html_theme = "furo"
html_title = "mercer"
html_css_files = ["mercer.css"]
