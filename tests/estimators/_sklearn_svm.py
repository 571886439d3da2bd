"""scikit-learn's own tests of its support vector machines, loaded with other classes in place of its."""

from __future__ import annotations

import ast
import builtins
import importlib
import importlib.util
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

MODULE = "sklearn.svm.tests.test_svm"


def find_source() -> Path | None:
    """The file in the installed package; some distributions leave tests out."""
    try:
        spec = importlib.util.find_spec(MODULE)
    except ModuleNotFoundError:
        return None
    return None if spec is None or spec.origin is None else Path(spec.origin)


def load(source: Path, classes: dict[str, Any]) -> ModuleType:
    """The module of tests, for which ``sklearn.svm`` has these classes; all else is as it is."""
    real = importlib.import_module("sklearn.svm")
    ours = SimpleNamespace(**{**vars(real), **classes})

    def import_instead(
        name: str, globals_: Any = None, locals_: Any = None, names: Any = (), level: int = 0
    ) -> Any:
        found = builtins.__import__(name, globals_, locals_, names, level)
        if name == "sklearn.svm" and names:
            return ours
        if name == "sklearn" and names and "svm" in names:
            return SimpleNamespace(**{**vars(found), "svm": ours})
        return found

    module = ModuleType("mercer_tests_of_sklearn_svm")
    module.__file__ = str(source)
    vars(module)["__builtins__"] = {**vars(builtins), "__import__": import_instead}
    # a marker for runs in parallel, which only scikit-learn's configuration knows
    text = source.read_text(encoding="utf-8").replace("@pytest.mark.thread_unsafe\n", "\n")
    exec(compile(text, str(source), "exec"), vars(module))
    return module


def tests_of(module: ModuleType) -> dict[str, Any]:
    """Its test functions, by name, in their order."""
    return {
        name: value for name, value in vars(module).items() if name.startswith("test_") and callable(value)
    }


def names_used(source: Path) -> dict[str, set[str]]:
    """For each test the names that its text mentions, with those of its decorators."""
    tree = ast.parse(source.read_text(encoding="utf-8"))
    return {
        node.name: {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
        | {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
    }
