"""The shape of the package: who imports whom, what is public, how large things are."""

import ast
from functools import cache
from pathlib import Path

import pytest

import mercer

SOURCE = Path(mercer.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))


@cache
def imports(path, top_level_only):
    """The modules a file imports: at its top, or anywhere."""
    tree = ast.parse(path.read_text("utf-8"))
    skipped = set()
    if top_level_only:
        for node in ast.walk(tree):
            inside_function = isinstance(node, ast.FunctionDef)
            for_types = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
            if inside_function or for_types:
                skipped.update(id(child) for child in ast.walk(node))
    found = set()
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def files_of(folder):
    return [path for path in FILES if path.is_relative_to(SOURCE / folder)]


@pytest.mark.parametrize(
    ("folder", "forbidden", "top_level_only"),
    [
        ("kernels", ("mercer.gram", "mercer.solvers", "mercer.estimators", "mercer.expansion"), True),
        ("gram", ("mercer.solvers", "mercer.estimators", "mercer.expansion"), False),
        ("solvers", ("mercer.kernels", "mercer.gram", "mercer.estimators", "mercer.expansion"), False),
        ("features", ("mercer.gram", "mercer.solvers", "mercer.estimators"), False),
    ],
)
def test_dependencies_point_one_way(folder, forbidden, top_level_only):
    assert files_of(folder)
    for path in files_of(folder):
        for module in imports(path, top_level_only):
            assert not module.startswith(forbidden), f"{path.name} imports {module}"


@pytest.mark.parametrize(
    ("library", "home"),
    [
        ("torch", "gram/backends/torch.py"),
        ("dask", None),
        ("skops", "persist/archive.py"),
        ("matplotlib", "plots/style.py"),
        ("typer", "cli/commands.py"),
        ("rich", "cli/screen.py"),
        ("pandas", None),
        ("polars", "tables/frames.py"),
        ("zstandard", "tables/source.py"),
        ("publicsuffixlist", None),  # by name, through errors.require
    ],
)
def test_optional_libraries_have_one_home(library, home):
    for path in FILES:
        if path != (SOURCE / home if home else None):
            assert not any(m == library or m.startswith(f"{library}.") for m in imports(path, False)), path


def test_the_public_names_exist_and_are_listed():
    for name in mercer.__all__:
        assert getattr(mercer, name) is not None
    assert sorted(mercer.__all__, key=lambda n: (n.lower() == n, n)) == mercer.__all__
    assert set(dir(mercer)) == {*mercer.__all__, *mercer._MODULES}
    with pytest.raises(AttributeError, match="module 'mercer' has no attribute 'Gausian'"):
        mercer.Gausian  # noqa: B018


def test_files_stay_small():
    """A soft limit, for the reader: a file that grows past it has become two concepts."""
    large = {path.name: lines for path in FILES if (lines := len(path.read_text("utf-8").splitlines())) > 480}
    assert not large


def test_a_gram_has_few_methods():
    public = {name for name in vars(mercer.Gram) if not name.startswith("_")}
    for_users = {"T", "block", "dense", "diag", "is_symmetric", "rows"}
    for_solvers = {"combine", "restrict", "write_block", "write_rows"}
    assert public == for_users | for_solvers
