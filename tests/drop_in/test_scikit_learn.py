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
    """The version of the list, and its tests."""
    return re.search(r"test of scikit-learn ([\d.]+)", PAGE)[1], set(
        re.findall(r"^\| `(\S+::\S+)`", PAGE, re.M)
    )


def test_the_list_is_of_the_version_that_is_tested():
    assert f"scikit-learn=={listed()[0]}\n" in (ROOT / "constraints.txt").read_text("utf-8")


@pytest.mark.full
def test_scikit_learns_tests_pass_but_for_those_listed(tmp_path):
    version, expected = listed()
    if sklearn.__version__ != version:
        pytest.skip(f"the list is of scikit-learn {version}, here is {sklearn.__version__}")
    command = ["mercer", "patched", "-m", "pytest", *(str(THEIRS / name) for name in FILES), "-k", OTHERS]
    command += [
        "-q",
        "-rf",
        "-p",
        "no:cacheprovider",
        "-W",
        "ignore",
        "-c",
        os.devnull,
        f"--rootdir={THEIRS}",
    ]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "SKLEARN_RUN_FLOAT32_TESTS": "1"}
    done = subprocess.run(
        [sys.executable, "-m", *command],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    failed = {
        f"{path}::{name}" for path, name in re.findall(r"^FAILED \S*?sklearn/(\S+)::(\S+)", done.stdout, re.M)
    }
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None and int(passed[1]) > 300, done.stdout[-2000:] + done.stderr[-2000:]
    assert failed == expected, done.stdout[-4000:]
    assert "error" not in done.stdout.splitlines()[-1]
