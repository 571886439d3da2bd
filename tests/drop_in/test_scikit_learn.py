"""scikit-learn's own tests of what is patched, under the patch; docs/patched.md lists those that fail."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import sklearn

ROOT = Path(__file__).resolve().parents[2]
THEIRS = Path(sklearn.__file__).parent
PAGE = (ROOT / "docs" / "patched.md").read_text("utf-8")
FILES = (
    "svm/tests/test_svm.py",
    "svm/tests/test_sparse.py",
    "tests/test_kernel_ridge.py",
    "decomposition/tests/test_kernel_pca.py",
    "tests/test_kernel_approximation.py",
)
#: tests of classes that stay scikit-learn's
OTHERS = "not linear_svm and not linearsvc and not linearsvr and not liblinear and not chi2 and not sketch"


def listed():
    """By version, the tests that fail: those of the first table, and for the lowest one those besides."""
    _, highest, first, lowest, besides = re.split(r"test of scikit-learn ([\d.]+)", PAGE)
    first, besides = (set(re.findall(r"^\| `(\S+::\S+)`", table, re.M)) for table in (first, besides))
    return {highest: first, lowest: first | besides}


def test_the_lists_are_of_the_versions_that_are_tested():
    for version, name in zip(listed(), ("constraints.txt", "constraints-lowest.txt"), strict=True):
        assert f"scikit-learn=={version}\n" in (ROOT / name).read_text("utf-8")


@pytest.mark.full
def test_scikit_learns_tests_pass_but_for_those_listed(tmp_path):
    expected = listed().get(sklearn.__version__)
    if expected is None:
        pytest.skip(f"the lists are of scikit-learn {' and '.join(listed())}, not of {sklearn.__version__}")
    # Where the environment lies in our folder, our conftest.py would leave out most of them.
    options = f"-q -rf -p no:cacheprovider -W ignore -c {os.devnull}".split()
    options += [f"--rootdir={THEIRS}", f"--confcutdir={THEIRS}"]
    command = [sys.executable, "-m", "mercer", "patched", "-m", "pytest", *options, "-k", OTHERS]
    command += [str(THEIRS / name) for name in FILES]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "SKLEARN_RUN_FLOAT32_TESTS": "1"}
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    failed = {
        f"{path}::{name}" for path, name in re.findall(r"^FAILED \S*?sklearn/(\S+)::(\S+)", done.stdout, re.M)
    }
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None and int(passed[1]) > 300, done.stdout[-2000:] + done.stderr[-2000:]
    assert failed == expected, done.stdout[-4000:]
    assert "error" not in done.stdout.splitlines()[-1]
