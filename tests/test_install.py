"""Where it is installed: without a folder to write to, without a compiler, with what is declared."""

import ast
import os
import re
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import numpy as np
import pytest
from packaging.requirements import Requirement
from packaging.version import Version

import mercer

SOURCE = Path(mercer.__file__).parent
NOBODY = 65534


ROOT = Path(__file__).parents[1]
LIBRARIES = Path(np.__file__).parents[1]


def process(script, python=sys.executable, **options):
    """A script in a process of its own."""
    command = [python, "-c", textwrap.dedent(script)]
    return subprocess.run(command, capture_output=True, text=True, cwd="/", check=False, **options)


def environment(**variables):
    """The variables of a process that knows no cache folder unless one is given."""
    kept = {name: value for name, value in os.environ.items() if "CACHE" not in name}
    paths = {"PYTHONPATH": f"{SOURCE.parent}{os.pathsep}{LIBRARIES}", "PYTHONDONTWRITEBYTECODE": "1"}
    return {**kept, **paths, "HOME": "/nonexistent", **variables}


def run(script, **variables):
    """What a script prints."""
    done = process(script, env=environment(**variables))
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# --- compiled code finds its place -------------------------------------------------------------------


def test_every_compiled_function_goes_through_our_njit():
    for path in SOURCE.rglob("*.py"):
        if path == SOURCE / "runtime" / "native.py" or "numba" not in path.read_text("utf-8"):
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module == "numba":
                assert not {"jit", "njit", "vectorize"} & {alias.name for alias in node.names}, path
            if isinstance(node, ast.Attribute) and ast.unparse(node).startswith("numba."):
                assert node.attr not in ("jit", "njit", "vectorize"), path


COUNT = """
    import numpy as np
    from mercer.kernels import counting
    counting.count(np.array([0, 0, 1]), np.array([1, 1, 0]), 2, 3)
    stats = counting._tally.stats
    print(stats.cache_path, sum(stats.cache_hits.values()))
"""


def test_a_second_process_finds_what_the_first_compiled(tmp_path):
    """Both are children of one that only imported it."""
    lines = textwrap.dedent(COUNT).strip().splitlines()
    child = "\n".join(f"    {line}" for line in [*lines[2:], "sys.stdout.flush()", "os._exit(0)"])
    script = (
        f"import os, sys\n{lines[0]}\n{lines[1]}\nif os.fork() == 0:\n{child}\nos.wait()\nif True:\n{child}\n"
    )
    first, second = run(script, MERCER_CACHE_DIR=str(tmp_path)).splitlines()
    folder, hits = first.split()
    assert Path(folder).parent == tmp_path
    assert hits == "0"
    assert second.split() == [folder, "1"]


@pytest.mark.full
def test_the_folder_of_numba_is_used_where_it_is_named(tmp_path):
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    folder = run(COUNT, MERCER_CACHE_DIR=str(ours), NUMBA_CACHE_DIR=str(theirs)).split()[0]
    assert Path(folder).parent == theirs


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", ["MERCER_CACHE_DIR", "NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "HOME"])
def test_without_a_folder_that_can_be_written_code_stays_in_memory(tmp_path, name):
    blocker = tmp_path / "file"
    blocker.write_text("not a folder")
    unusable = {"HOME": str(blocker), "XDG_CACHE_HOME": str(blocker), name: str(blocker / "below")}
    assert run(COUNT, **unusable) == "None 0"


@pytest.mark.full
def test_a_folder_that_others_may_write_is_not_read_either(tmp_path):
    tmp_path.chmod(0o777)
    assert run(COUNT, MERCER_CACHE_DIR=str(tmp_path)) == "None 0"
    assert not list(tmp_path.iterdir())


@pytest.mark.full
def test_a_disk_that_fills_up_costs_only_time(tmp_path):
    script = """
        import os
        from numba.core import caching

        def full(*args):
            raise OSError(28, "No space left on device")

        caching.IndexDataCacheFile.save = full
    """
    assert run(textwrap.dedent(script) + textwrap.dedent(COUNT), MERCER_CACHE_DIR=str(tmp_path))


FIT = """
    import os, sys
    import numpy as np
    import mercer
    from mercer.runtime.cache_folder import cache_folder

    assert cache_folder() is None
    assert not os.access(os.path.dirname(mercer.__file__), os.W_OK)
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = (X[:, 0] > 0).astype(int)
    for name in ("SVC", "KernelRidge", "KernelPCA", "KernelLogisticRegression", "KernelPerceptron", "SVR"):
        getattr(mercer, name)().fit(X, y)
    for name in mercer.__all__:
        getattr(mercer, name)  # every compiled function of a public name is declared on import
    print("fitted")
"""


@pytest.mark.slow
@pytest.mark.full  # it compiles everything anew, as no other test does
def test_nobody_can_fit_with_the_package_read_only():
    if not hasattr(os, "getuid") or os.getuid() != 0:
        pytest.skip("only root can become the user nobody")
    options = {"env": environment(), "user": NOBODY, "group": NOBODY, "extra_groups": []}
    for python in (sys.executable, "/usr/bin/python{}.{}".format(*sys.version_info)):
        try:
            if process("import numpy, mercer", python, **options).returncode == 0:
                break
        except OSError:  # it lies in a folder of root alone
            continue
    else:
        pytest.skip("the user nobody can read no Python here")
    done = process(FIT, python, **options)
    assert (done.returncode, done.stdout.strip()) == (0, "fitted"), done.stderr


# --- without compiling -------------------------------------------------------------------------------

FAMILIES = """
    import sys
    import warnings
    import numpy as np
    from sklearn.base import is_classifier
    import mercer
    from mercer.errors import InputError

    warnings.filterwarnings("error", category=RuntimeWarning)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(14, 2))
    for name in mercer.__all__:
        kind = getattr(mercer, name)
        if not (isinstance(kind, type) and hasattr(kind, "fit")) or name == "MailClassifier":
            continue
        if name.startswith("Auto") and not "{searches}":
            continue
        y = np.arange(14) % 3 if is_classifier(kind()) else X[:, 0] + X[:, 1] ** 2
        model = kind().fit(X, y)
        if name != "RandomFeatures":  # which has nothing that is compiled
            assert "NUMBA_DISABLE_JIT=1 forbids compiled code" in str(model.report_.plan), name
        values = model.transform(X) if hasattr(model, "transform") else model.predict(X)
        assert np.isfinite(values).all()
    try:
        with mercer.config(backend="numba"):
            mercer.Gaussian(1.0)(X)
    except InputError as error:
        print(error)
    texts = ["kernel methods", "kernel machine", "the matrix"]
    for kernel in (mercer.Subsequence(3), mercer.Mismatch(3, 1), mercer.LocalAlignment(), mercer.Spectrum(2)):
        print(*np.round(kernel(texts), 6).ravel())
"""


@pytest.mark.full
@pytest.mark.parametrize("searches", ["", pytest.param("too", marks=pytest.mark.full)])
def test_it_works_without_compiling(searches):
    told, *lines = run(FAMILIES.replace("{searches}", searches), NUMBA_DISABLE_JIT="1").splitlines()
    assert told == (
        "backend='numba' compiles its code, got NUMBA_DISABLE_JIT=1, which forbids it: unset that variable, "
        "or let mercer choose (backend=None), which takes 'numpy' then"
    )
    texts = ["kernel methods", "kernel machine", "the matrix"]
    kernels = (mercer.Subsequence(3), mercer.Mismatch(3, 1), mercer.LocalAlignment(), mercer.Spectrum(2))
    for line, kernel in zip(lines, kernels, strict=True):
        assert np.array(line.split(), dtype=float) == pytest.approx(kernel(texts).ravel(), abs=1e-6)


# --- what is declared --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def test_the_lowest_versions_are_those_that_are_tested(project):
    """Every minimum of what the tests install is a line of constraints-lowest.txt, and the reverse."""
    extras = project["project"]["optional-dependencies"]
    wanted = [*project["project"]["dependencies"], *extras["test"], *extras["cli"], *extras["models"]]
    wanted = [Requirement(text) for text in [*wanted, *extras["plot"], *extras["mail"], *extras["dask"]]]
    declared = {
        (requirement.name, Version(lowest.version))
        for requirement in wanted
        if requirement.name != "mercer"
        for lowest in requirement.specifier
        if lowest.operator == ">="
    }
    lines = (ROOT / "constraints-lowest.txt").read_text("utf-8").splitlines()
    pins = (Requirement(line) for line in lines if not line.startswith("#"))
    assert {(pin.name, Version(next(iter(pin.specifier)).version)) for pin in pins} == declared


def test_the_source_distribution_has_what_the_readme_names(project):
    included = project["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    text = (ROOT / "README.md").read_text("utf-8")
    named = {word.strip("`.,;:()[]/").partition("/")[0] for word in re.split(r"[\s`()\[\]]+", text)}
    named &= {path.name for path in ROOT.iterdir() if not path.name.startswith(".")}
    assert {"DESIGN.md", "CONTRIBUTING.md", "docs", "benchmarks"} <= named
    assert {f"/{name}" for name in named} <= set(included)
    needed = {"/pyproject.toml"} | {f"/{path.name}" for path in ROOT.glob("constraints*.txt")}
    assert needed | {"/conftest.py", "/Makefile", "/src", "/tests"} <= set(included)
    for name in included:
        assert (ROOT / name[1:]).exists(), name


def test_the_changelog_begins_with_the_version():
    """One place for the version; what is in preparation comes after all that was released."""
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    released = [re.fullmatch(r"(\d+\.\d+\.\d+), \d{4}-\d\d-\d\d \([0-9a-f]{7}\)", h) for h in headings[1:]]
    versions = [Version(headings[0].split(",")[0]), *(Version(match[1]) for match in released)]
    assert versions == sorted(versions, reverse=True)
    assert Version(mercer.__version__).base_version == str(versions[0])


def test_what_is_experimental_says_so():
    text = (ROOT / "README.md").read_text("utf-8")
    stable, experimental = re.search(
        r"- \*\*Stable\*\*(.*?)- \*\*Experimental\*\*(.*?)\n- ", text, re.DOTALL
    ).groups()
    named = set(re.findall(r"`(mercer\.[\w.]+)`", experimental))
    rooms = [path.parent for path in (ROOT / "src" / "mercer").rglob("__init__.py")]
    says = {
        ".".join(room.relative_to(ROOT / "src").parts)
        for room in rooms
        if "\nExperimental: " in (room / "__init__.py").read_text("utf-8")
    }
    assert says == named and not named & set(re.findall(r"`(mercer\.[\w.]+)`", stable))


# --- what a report of a problem begins with ----------------------------------------------------------


def test_show_versions(capsys, project):
    mercer.show_versions()
    out = capsys.readouterr().out
    lines = dict(line.strip().partition(": ")[::2] for line in out.splitlines())
    assert lines["mercer"] == mercer.__version__
    assert lines["numpy"] == np.__version__
    assert re.fullmatch(r"\d+ of \d+ may be used, \d+ threads are", lines["cores"])
    assert re.search(r"^  blas, \w+: \d+ threads", out, re.M)
    extras = project["project"]["optional-dependencies"]
    users = [text for name in ("torch", "plot", "models", "cli") for text in extras[name]]
    for text in [*project["project"]["dependencies"], *users, "pandas", "networkx"]:
        name = Requirement(text).name
        assert name == "mercer" or name in lines


@pytest.mark.full
def test_show_versions_tells_where_code_is_kept(tmp_path):
    script = "import mercer; mercer.show_versions()"
    assert f"compiled code: kept in {tmp_path}, which can be written" in run(
        script, MERCER_CACHE_DIR=str(tmp_path)
    )
    blocker = tmp_path / "file"
    blocker.write_text("not a folder")
    told = run(script, MERCER_CACHE_DIR=str(blocker))
    assert f"compiled code: stays in memory: {blocker} cannot be written, or others may write there" in told
    assert "compiled code: none: NUMBA_DISABLE_JIT=1 forbids it" in run(script, NUMBA_DISABLE_JIT="1")
