"""The shape of the package: who imports whom, what is public, how large things are."""

import ast
from functools import cache
from pathlib import Path

import pytest

import mercer

SOURCE = Path(mercer.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))


def statements(node, top_level_only=False):
    """The statements below a node: all, or those that importing the module runs."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
            yield child
            for_types = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
            if not (top_level_only and (isinstance(child, ast.FunctionDef) or for_types)):
                yield from statements(child, top_level_only)


@cache
def outline(path):
    """What a file imports at its top, what it imports anywhere, and its public classes."""
    tree = ast.parse(path.read_text("utf-8"))
    classes = [node.name for node in tree.body if isinstance(node, ast.ClassDef) and node.name[0] != "_"]
    return imported(statements(tree, True)), imported(statements(tree)), classes


def imported(nodes):
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def imports(path, top_level_only):
    """The modules a file imports: at its top, or anywhere."""
    return outline(path)[0 if top_level_only else 1]


#: what the library stands on, what it is, and what is built with it; none imports from one further down
LAYERS = (
    ("errors", "runtime", "data", "cluster"),
    ("kernels", "gram", "losses", "solvers", "expansion", "geometry", "features", "report", "notebook"),
    ("estimators", "certify", "selection"),
    ("tables", "persist", "plots", "reporting", "verdict", "testing", "drop_in"),
    ("lab",),
    ("cli", "__main__"),
)
#: rules within a layer: who must not import whom
APART = {
    "kernels": {"gram", "solvers", "expansion"},
    "gram": {"solvers", "expansion"},
    "solvers": {"kernels", "gram", "expansion", "features"},
    "losses": {"kernels", "gram", "solvers", "expansion", "features"},
    "features": {"gram", "solvers", "expansion"},
}
#: imports against the direction, inside functions, each for a reason that its file states
KNOWN = {
    ("kernels/base.py", "gram"),  # kernel(X) is a convenience
    ("gram/landmark_map.py", "solvers"),  # a map is made by a factorisation
    ("gram/lowrank.py", "solvers"),  # so is a matrix of low rank
    ("selection/auto.py", "tables"),  # a frame with columns of several kinds
}


def room(module):
    """The folder, or the module of the package's root, that a dotted name is in."""
    return module.split(".")[1] if module.startswith("mercer.") else None


def test_dependencies_point_one_way():
    """At any depth, also inside functions."""
    for path in FILES:
        name = str(path.relative_to(SOURCE))
        own = name.split("/")[0].removesuffix(".py")
        if own == "__init__":
            continue
        level = next(number for number, layer in enumerate(LAYERS) if own in layer)
        below = {other for layer in LAYERS[level + 1 :] for other in layer}
        for module in imports(path, False):
            other = room(module)
            if (name, other) in KNOWN:
                assert module not in imports(path, True), f"{name} imports {module} outside of functions"
            else:
                assert other not in below | APART.get(own, set()), f"{name} imports {module}"


def test_every_room_has_a_layer():
    rooms = {p.relative_to(SOURCE).parts[0].removesuffix(".py") for p in FILES} - {"__init__"}
    assert rooms == {own for layer in LAYERS for own in layer}


def test_public_classes_have_one_name_each():
    found = {}
    for path in FILES:
        for name in outline(path)[2]:
            found.setdefault(name, []).append(str(path.relative_to(SOURCE)))
    assert {name: homes for name, homes in found.items() if len(homes) > 1} == {}


@pytest.mark.parametrize(
    ("library", "home"),
    [
        ("torch", "gram/backends/torch.py"),
        ("triton", "gram/backends/triton/elementary.py"),
        ("dask", None),  # by name, through errors.require, in cluster/ alone
        ("distributed", None),
        ("skops", "persist/archive.py"),
        ("matplotlib", "plots/style.py"),
        ("typer", ("cli/commands.py", "cli/options.py")),
        ("rich", "cli/screen.py"),
        ("pandas", None),
        ("polars", "tables/frames.py"),
        ("zstandard", "tables/source.py"),
        ("publicsuffixlist", None),  # by name, through errors.require
    ],
)
def test_optional_libraries_have_one_home(library, home):
    homes = {SOURCE / name for name in ((home,) if isinstance(home, str) else home or ())}
    for path in FILES:
        if path not in homes:
            assert not any(m == library or m.startswith(f"{library}.") for m in imports(path, False)), path


def test_rows_are_kept_in_one_way():
    """What was used least recently leaves first: that is written once (and a dict of that kind is loaded)."""
    users = {str(path.relative_to(SOURCE)) for path in FILES if "OrderedDict" in path.read_text("utf-8")}
    assert users == {"persist/rebuild.py", "runtime/row_store.py"}


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
    for_users = {"T", "block", "dense", "diag", "is_symmetric", "rows", "sparse"}
    for_solvers = {"combine", "restrict", "write_block", "write_rows"}
    for_passes = {"takes_whole_rows", "write_range"}
    for_expansions = {"beside", "is_of"}
    for_kernels = {"sums"}  # of sets: `block` is the other verb that they use
    assert public == for_users | for_solvers | for_passes | for_expansions | for_kernels
