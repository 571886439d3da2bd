"""Whole fits as tasks: folds of a nested error, and those of the command."""

import json

import numpy as np
import pytest

from mercer import KernelRidgeCV, config
from mercer.cluster.trials import each
from mercer.errors import ClusterError
from mercer.selection import nested_error


def test_folds_of_a_nested_error(client, rng):
    x = rng.uniform(-3, 3, (90, 1))
    y = np.sin(x[:, 0]) + 0.1 * rng.normal(size=90)
    alone = nested_error(KernelRidgeCV(), x, y, cv=4)
    with config(cluster=client):
        found = nested_error(KernelRidgeCV(), x, y, cv=4)
    assert np.array_equal(alone.predictions, found.predictions) and alone.error == found.error


def test_a_trial_that_fails_is_named(client):
    def divide(a, b):
        return a / b

    with config(cluster=client), pytest.raises(ClusterError, match=r"block 1 of halves .*ZeroDivisionError"):
        each("halves", divide, (1,), [2, 0])


def test_the_command_goes_to_a_scheduler_by_its_address(client, three, tmp_path, rng, capsys, monkeypatch):
    from mercer.cli import main

    monkeypatch.chdir(tmp_path)
    X = rng.normal(size=(80, 2)).round(3)
    rows = [f"{a},{b},{round(2 * a - b, 3)}" for a, b in X]
    (tmp_path / "sums.csv").write_text("\n".join(["a,b,sum", *rows]))
    words = ["train", "sums.csv", "-t", "sum", "--kernel", "linear", "--folds", "3", "--no-report", "--json"]
    found = []
    for more in ([], ["--cluster", three.scheduler_address]):
        assert main([*words, *more]) == 0
        found.append(json.loads(capsys.readouterr().out)["error"])
    assert found[0] == found[1]
