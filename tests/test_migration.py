"""What the page on migration says is equal is equal. A peer that is not installed is skipped as a whole."""

import re
from pathlib import Path

import numpy as np
import pytest

from benchmarks.migration import CASES, PEERS, Case, installed

RESULTS = Path(__file__).resolve().parent.parent / "benchmarks" / "results" / "migration.md"


@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.filterwarnings("ignore")  # What peers say of their own dependencies is not ours.
def test_both_sides_are_equal(peer):
    if not installed(peer):
        pytest.skip(f"needs {peer}: benchmarks/migration.py says how to install it")
    differences = {
        (one.theirs, one.compared): (one.difference(), one.tolerance) for one in CASES if one.peer == peer
    }
    assert differences
    assert {k: v for k, v in differences.items() if not v[0] <= v[1]} == {}


def test_scikit_learn_is_always_compared():
    assert installed("scikit-learn") and sum(one.peer == "scikit-learn" for one in CASES) > 20
    assert {one.peer for one in CASES} == set(PEERS)


def test_every_case_has_its_row_and_the_versions_are_stated():
    """A line that was added and never run has no row."""
    text = RESULTS.read_text("utf-8")
    for one in CASES:
        row = re.search(
            rf"^{re.escape(f'| {one.theirs} | {one.ours} | {one.compared} | ')}(\S+) \|$", text, re.M
        )
        assert row and float(row[1]) <= one.tolerance, one.theirs
    for _, distributions in PEERS.values():
        for name in distributions:
            assert re.search(rf"^\|.*\b{name} \d+\.", text, re.M), name


def test_the_check_can_fail():
    wrong = Case("scikit-learn", "", "", "", 1e-12, lambda: (np.ones(3), [1.0, 1.0, 1.0 + 1e-9]))
    assert wrong.difference() > wrong.tolerance
    with pytest.raises(ValueError, match=r"shapes \(3,\) and \(2,\)"):
        Case("scikit-learn", "", "", "", 1e-12, lambda: (np.ones(3), np.ones(2))).difference()
