"""What the suite promises of itself: what is left out, what no test may ask, and where a file's tests are."""

import ast
import importlib.util
import re
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import SVC, SVR

ROOT = Path(__file__).resolve().parent.parent
CLOCKS = {"perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "time_ns"}


@pytest.fixture(scope="module")
def plugin():
    """The conftest.py of the root, as a module."""
    spec = importlib.util.spec_from_file_location("root_conftest", ROOT / "conftest.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Item:
    def __init__(self, sample=None, **parameters):
        self.callspec = SimpleNamespace(params=parameters)
        self.nodeid = f"a test[{len(parameters)}]"
        self.marks = []
        self.sample = sample

    def get_closest_marker(self, name):
        return SimpleNamespace(args=(self.sample,)) if name == "sample" and self.sample else None

    def add_marker(self, name):
        self.marks.append(name)


def test_one_configuration_of_each_class_is_checked_always(plugin):
    mark = parametrize_with_checks([SVC(), SVC(kernel="linear"), SVR(C=2.0)])
    pairs = [getattr(case, "values", case) for case in mark.args[1]]
    items = [Item(estimator=estimator, check=check) for estimator, check in pairs]
    others = [Item(estimator=SVC(C=3.0)), Item()]
    plugin.mark_full([*items, *others])
    always = {repr(item.callspec.params["estimator"]) for item in items if not item.marks}
    assert always == {"SVC()", "SVR(C=2.0)"}
    assert {repr(item.callspec.params["estimator"]) for item in items if item.marks} == {
        "SVC(kernel='linear')"
    }
    assert not any(item.marks for item in others)


def test_of_a_sample_every_nth_item_always_runs(plugin):
    items, others = [Item(sample=3, case=case) for case in range(8)], [Item(case=case) for case in range(5)]
    plugin.mark_full(items)
    plugin.mark_full(others)
    assert [bool(item.marks) for item in items] == [False, True, True] * 2 + [False, True]
    assert not any(item.marks for item in others)


def test_of_many_cases_some_always_run_and_each_value_is_among_them(plugin):
    values = product(["a", "b"], [None, 0.5, 1.5], range(10))
    items = [Item(letter=letter, number=number, k=k) for letter, number, k in values]
    plugin.mark_full(items)
    always = [item.callspec.params for item in items if not item.marks]
    assert len(always) in (8, 9)  # of 60: 6 has a factor in common with 2 and 3, and 7 has none
    assert {(case["letter"], case["number"]) for case in always} == set(product(["a", "b"], [None, 0.5, 1.5]))
    few = [Item(k=k) for k in range(15)]
    plugin.mark_full(few)
    assert not any(item.marks for item in few)


@pytest.mark.parametrize(
    ("full", "arguments", "is_all"),
    [
        (True, ["tests"], True),
        (False, ["tests", "tests/a.py::test_b"], False),
        (False, ["tests/a.py::test_b[1]"], True),
    ],
)
def test_a_test_that_is_named_runs_whole(plugin, full, arguments, is_all):
    config = SimpleNamespace(option=SimpleNamespace(full=full), args=arguments)
    assert plugin.is_all_asked_for(config) is is_all


@pytest.fixture(scope="module")
def tried(request):
    """The examples of the next test: counted when it is over."""
    numbers = []
    yield numbers
    assert len(numbers) == (40 if request.config.option.full else 10)


@settings(max_examples=40, database=None)
@given(number=st.integers())
def test_random_examples_are_fewer_unless_all_is_asked_for(tried, number):
    tried.append(number)


def test_every_kind_of_hypothesis_test_has_its_settings_found():
    class Machine(RuleBasedStateMachine):
        @rule()
        def step(self): ...

    spec = importlib.util.spec_from_file_location("tests_conftest", ROOT / "tests" / "conftest.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function, case = given(st.integers())(lambda number: None), Machine.TestCase
    items = [
        SimpleNamespace(obj=function, cls=None),
        SimpleNamespace(obj=case().runTest, cls=case),
        SimpleNamespace(obj=len),
        SimpleNamespace(),  # as of a doctest
    ]
    homes = [module.home_of_settings(item) for item in items]
    assert homes == [(function, "_hypothesis_internal_use_settings"), (case, "settings"), None, None]


def clocks_read(source):
    """The clocks on the wall that a piece of code names."""
    found = set()
    if not re.search(rf"\btime\b|{'|'.join(CLOCKS)}", source):
        return found
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute):
            is_time = node.attr == "time" and isinstance(node.value, ast.Name) and node.value.id == "time"
            found |= {node.attr} & CLOCKS | ({"time.time"} if is_time else set())
        elif isinstance(node, ast.ImportFrom) and node.module == "time":
            found |= {alias.name for alias in node.names} & (CLOCKS | {"time"})
    return found


def test_no_test_reads_a_clock_on_the_wall():
    """A busy machine must not fail a test: `within_cpu`, `cpu_clock` and `hand_clock` are for that."""
    paths = [ROOT / "conftest.py", *sorted((ROOT / "tests").rglob("*.py"))]
    found = {path.name: clocks_read(path.read_text("utf-8")) for path in paths}
    assert {name: clocks for name, clocks in found.items() if clocks} == {}
    assert clocks_read("import time\nfrom time import monotonic\ntime.time() - time.perf_counter()") == {
        "monotonic",
        "perf_counter",
        "time.time",
    }


def test_what_contributing_names_exists():
    """Paths, targets of make and fixtures: a newcomer tries each of them."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    named = re.findall(r"`((?:src|tests|docs|benchmarks|kernels|gram|mercer)/[\w./]+)`", text)
    homes = (ROOT, ROOT / "src", ROOT / "src" / "mercer")
    templates = {"src/mercer/A/b.py", "tests/A/"}
    assert len(named) > 8 and {n for n in named if not any((h / n).exists() for h in homes)} == templates
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    asked = [word for words in re.findall(r"make ((?:[a-z]+ ?)+)", text) for word in words.split()]
    assert {"test", "lint", "types", "coverage"} <= set(asked) <= targets
    fixtures = (ROOT / "tests" / "conftest.py").read_text("utf-8")
    assert all(f"def {name}(" in fixtures for name in ("rng", "within_cpu", "hand_clock", "cpu_clock"))


def test_every_folder_of_the_package_has_its_folder_of_tests():
    """The tests of src/mercer/A/b.py are in tests/A."""
    package = ROOT / "src" / "mercer"
    homes = {path.parent.relative_to(package) for path in package.rglob("*.py") if path.name != "__init__.py"}
    without = {str(home) for home in homes if not list((ROOT / "tests" / home).glob("test_*.py"))}
    assert without == set()
