"""What is told of a fit: nothing that does not hold of the model as it is."""

from dataclasses import replace

import numpy as np
import pytest

from mercer import SVC
from mercer.report import fit_notes

TIME = (
    "SVC ran out of max_time=0.3 seconds after 271 iterations: the model is the best so far; raise max_time"
)


@pytest.fixture
def machine(rng):
    X = rng.normal(size=(40, 2))
    return SVC().fit(X, X[:, 0] > 0)


def test_time_that_was_up_is_no_news_within_the_tolerance(machine):
    machine.report_ = replace(machine.report_, stopped="max_time", warnings=(TIME, "other"))
    machine.kkt_violation_ = np.array([0.00087])
    assert machine.tol == 1e-3
    assert fit_notes(machine) == ["other"]
    machine.kkt_violation_ = np.array([3.1])
    assert fit_notes(machine) == [TIME, "other"]


def test_a_machine_that_was_fitted_again_has_its_own(machine, rng):
    """The search's last fit ran out of time, the fit that is kept did not."""

    class Search:
        report_ = replace(machine.report_, warnings=("the last fit takes 10 of 40 points",))
        model_ = machine

    assert fit_notes(Search()) == ["the last fit takes 10 of 40 points"]
    machine.report_ = replace(machine.report_, warnings=("the last fit takes 10 of 40 points",))
    assert fit_notes(Search()) == ["the last fit takes 10 of 40 points"]
