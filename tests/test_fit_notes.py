"""What is told of a fit: nothing that does not hold of the model as it is."""

from dataclasses import replace

import pytest
from sklearn.exceptions import ConvergenceWarning

from mercer import SVC, Gaussian
from mercer.report import fit_notes
from mercer.solvers.result import Stop


@pytest.fixture
def machine(rng):
    X = rng.normal(size=(40, 2))
    return SVC().fit(X, X[:, 0] > 0)


@pytest.fixture
def unfinished(rng, hand_clock):
    X = rng.normal(size=(400, 2))
    model = SVC(C=1e4, kernel=Gaussian(0.2), max_time=1.0, progress=lambda event: hand_clock.wait(2.0))
    with pytest.warns(ConvergenceWarning, match="ran out of max_time"):
        return model.fit(X, rng.normal(size=400) > 0)


def test_time_that_was_up_is_no_news_within_the_tolerance(unfinished):
    report = unfinished.report_
    assert report.stopped is Stop.MAX_TIME and report.warnings == (report.early,)
    unfinished.report_ = replace(report, warnings=(report.early, "other"))
    assert unfinished.kkt_violation_ > unfinished.tol
    assert fit_notes(unfinished) == [report.early, "other"]
    unfinished.kkt_violation_ = 0.87 * unfinished.tol
    assert fit_notes(unfinished) == ["other"]


def test_another_end_is_news_within_the_tolerance(unfinished):
    unfinished.report_ = replace(unfinished.report_, stopped=Stop.INTERRUPTED)
    unfinished.kkt_violation_ = 0.0
    assert fit_notes(unfinished) == [unfinished.report_.early]


def test_nothing_is_told_early_of_a_run_that_went_to_its_end(machine):
    assert machine.report_.early is None


def test_a_machine_that_was_fitted_again_has_its_own(machine, rng):
    """The search's last fit ran out of time, the fit that is kept did not."""

    class Search:
        report_ = replace(machine.report_, warnings=("the last fit takes 10 of 40 points",))
        model_ = machine

    assert fit_notes(Search()) == ["the last fit takes 10 of 40 points"]
    machine.report_ = replace(machine.report_, warnings=("the last fit takes 10 of 40 points",))
    assert fit_notes(Search()) == ["the last fit takes 10 of 40 points"]
