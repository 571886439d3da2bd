"""Plans and reports: what they say."""

from dataclasses import replace

import pytest

from mercer.errors import MemoryBudgetError
from mercer.report import Journal, Plan
from mercer.runtime.config import config


def test_a_plan_reads_as_text():
    with config(dtype="float64", threads=2):
        plan = Plan("Newton", points=5000, memory=200_000_000, flops=1.6e12, why=("K fits", "n is small"))
    assert plan.seconds == pytest.approx(20)
    assert str(plan) == "Newton on 5,000 points: 191MiB, about 20 s\n  because K fits\n  because n is small"


def test_a_plan_beyond_the_budget_is_refused():
    plan = Plan("Newton", points=5000, memory=200_000_000, flops=1.0)
    with (
        config(memory="100MiB"),
        pytest.raises(MemoryBudgetError, match="Newton on 5,000 points needs 191MiB"),
    ):
        plan.require_memory("use fewer points")
    with (
        config(memory="100MiB"),
        pytest.raises(MemoryBudgetError, match=r"191MiB.*: take fewer landmarks, or"),
    ):
        replace(plan, landmarks=3000).require_memory("use fewer points")
    with config(memory="1GiB"):
        plan.require_memory("use fewer points")


def test_a_journal_becomes_a_report():
    journal = Journal()
    with pytest.warns(UserWarning, match="scale them") as caught:
        journal.warn("the data are large: scale them")
    assert caught[0].filename == __file__  # the user's line, not mercer's
    report = journal.report(Plan("Newton", 10, 1024, 1.0), "max_iter", iterations=7, objective=1.5, gap=1e-3)
    assert report.warnings == ("the data are large: scale them",)
    assert not report.converged and report.memory == 1024 and report.time >= 0
    text = str(report)
    assert text.startswith("Newton: max_iter after ") and "and 7 iterations" in text
    assert "objective 1.5" in text and "at most 0.001 above the minimum" in text
    assert text.endswith("1KiB\n  warning: the data are large: scale them")


FASTEST = "products of points in the fastest of tf32, tf32x3 and float32 that"


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"backend": "triton", "dtype": "float32"}, f"'triton' on 'cuda', {FASTEST} is within 1e-06 of K"),
        (
            {"backend": "triton", "dtype": "float32", "kernel_error": 1e-3},
            f"'triton' on 'cuda', {FASTEST} is within 0.001 of K",
        ),
        ({"backend": "triton"}, "'triton' on 'cuda' in float64"),
        ({"backend": "torch"}, "'torch' on 'cuda' in float64"),
    ],
)
def test_a_plan_says_who_computes_elsewhere(settings, reason):
    with config(device="cuda", **settings):
        plan = Plan("words", points=10, memory=1, flops=1.0)
        assert f"K is computed by the backend {reason}" in plan.why
        assert replace(plan, points=20).why == plan.why
