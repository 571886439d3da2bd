"""What tests, doctests and pages import is declared: as a dependency, or in the extra that make installs."""

import ast
import doctest
import re
import sys
import tomllib
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

from mercer.runtime import versions

ROOT = Path(__file__).resolve().parent.parent
TEXTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("[!_]*.md"))]
CODE = [ROOT / "conftest.py", *sorted((ROOT / "tests").rglob("*.py")), *sorted((ROOT / "src").rglob("*.py"))]
#: Libraries with an extra, an environment and a make target of their own; tests use them where they are.
#: Each has the mark that its tests carry, its extra, and its target.
APART = {
    "torch": ("torch", "torch", "test-torch"),
    "triton": ("torch", "gpu", "test-torch"),
    "dask": ("cluster", "dask", "test-cluster"),
    "playwright": ("browser", "browser", "test-lab"),
}
#: What a test takes where a user has installed it, and skips without it: no extra of ours brings it.
OF_USERS = {"duckdb"}


@cache
def declared(*extras):
    """Names of the distributions that `pip install mercer[extras]` asks for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    found, waiting = set(), list(project["dependencies"])
    for extra in extras:
        waiting += project["optional-dependencies"][extra]
    while waiting:
        name, more = re.match(r"([\w.-]+)(?:\[([\w,]+)\])?", waiting.pop()).groups()
        if name == "mercer":
            waiting += [line for extra in more.split(",") for line in project["optional-dependencies"][extra]]
        found.add(name.lower().replace("_", "-"))
    return found


@cache
def distributions():
    return packages_distributions()


def is_declared(module, names):
    """Whether one of the distributions that bring a module is among the names."""
    return bool(names & {name.lower().replace("_", "-") for name in distributions().get(module, [module])})


def statements(node):
    """The statements below a node, which are fewer than the nodes."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
            yield child
            yield from statements(child)


def imported(source):
    """Top-level names of the modules that Python code imports at any depth; ``importorskip`` imports, too."""
    found, tree = set(), ast.parse(source)
    for node in ast.walk(tree) if "importorskip" in source else statements(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module)
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "importorskip":
            found |= {argument.value for argument in node.args if isinstance(argument, ast.Constant)}
    own = {"mercer", "conftest", "tests", "benchmarks"} | set(sys.stdlib_module_names)
    return {name.split(".")[0] for name in found} - own


def examples(path):
    """The code of the doctests in a page, or in the docstrings of a module."""
    text = path.read_text("utf-8")
    found = doctest.DocTestParser().get_examples(text) if ">>> " in text else ()
    return "\n".join(example.source for example in found if "import" in example.source)


def is_apart(path, module):
    module = "dask" if module == "distributed" else module  # dask.distributed is another name of it
    return module in APART and (
        path.is_relative_to(ROOT / "tests")
        or module == path.stem
        or path.is_relative_to(ROOT / "src/mercer/cluster")
    )


def undeclared(path, source, extra):
    names = declared(extra)
    found = {m for m in imported(source) if not is_declared(m, names) and not is_apart(path, m)}
    return found - OF_USERS if path.is_relative_to(ROOT / "tests") else found


def all_undeclared(paths, text, extra):
    """The undeclared modules of each of these files that has any."""
    found = {str(path.relative_to(ROOT)): undeclared(path, text(path), extra) for path in paths}
    return {name: modules for name, modules in found.items() if modules}


def code(path):
    return path.read_text("utf-8")


def test_imports_of_tests_are_declared():
    paths = [path for path in CODE if not path.is_relative_to(ROOT / "src")]
    assert len(paths) > 100 and all_undeclared(paths, code, "test") == {}


def test_imports_of_doctests_are_declared():
    assert all_undeclared(CODE + TEXTS, examples, "test") == {}


def test_imports_of_the_package_are_declared():
    """Every library that mercer itself imports is a dependency, or in one of the extras for users."""
    paths = sorted((ROOT / "src").rglob("*.py"))
    assert len(paths) > 200 and all_undeclared(paths, code, "all") == {}


def test_versions_are_shown_of_all_libraries():
    shown = {*versions._NEEDED, *versions._OPTIONAL}
    assert declared("all") - {"mercer"} <= shown and set(versions._NEEDED) == declared()


def test_what_is_apart_has_a_target_that_ci_runs():
    for library, (_, extra, target) in APART.items():
        assert f"\n{target}:" in (ROOT / "Makefile").read_text("utf-8")
        assert f"\nmake {target}\n" in (ROOT / ".ci/run").read_text("utf-8")
        assert library in declared(extra) and library not in declared("test")


def test_ci_runs_what_is_left_out_once_and_tells_where_time_goes():
    script = (ROOT / ".ci/run").read_text("utf-8")
    assert script.count("--full") == 1 and "\nexport PYTEST_ADDOPTS=--durations=25 " in script
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for mark, _, _ in APART.values():
        assert f'"-m {mark} --full ' in makefile  # which that one run leaves out


def test_ci_begins_with_the_commands_of_the_readme():
    """Before these two commands, CI installs nothing in the environment that they make."""
    script = (ROOT / ".ci/run").read_text("utf-8")
    lines = [line for line in script.splitlines() if re.match(r"(\w+=\S+ )*make ", line)]
    assert [line for line in lines if "VENV=" not in line][:2] == ["make demo", "make test"]
    assert "pip install" not in script


def test_the_check_can_fail(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(">>> import nobody_has_this\n>>> from sklearn import svm\n", "utf-8")
    assert undeclared(page, examples(page), "test") == {"nobody_has_this"}
