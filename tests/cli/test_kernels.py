"""``mercer kernels``, the completion of kernels, and expressions that begin with a minus."""

import json

import pytest

from mercer.cli.kernels import complete
from mercer.kernels.parse import parse_kernel


def test_the_list_has_formulas_and_defaults(mercer):
    status, out, err = mercer("kernels")
    assert (status, err) == (0, "")
    assert "matern(nu=1.5, length_scale=1.0)" in out and "exp(-‖x - x'‖² / 2σ²)" in out
    assert "On numbers" in out and "On objects" in out


def test_whatever_is_listed_can_be_asked_for(mercer):
    listed = json.loads(mercer("kernels", "--json")[1])["kernels"]
    assert len(listed) > 25
    for entry in listed:
        assert "\n" not in entry["formula"]
        if None not in entry["parameters"].values():
            assert parse_kernel(entry["name"])


def test_names_complete():
    assert [text for text, _ in complete("gau")] == ["gaussian"]
    assert [text for text, _ in complete("2*linear + Rat")] == ["2*linear + rationalquadratic"]
    assert complete("gaussian(sig") == [] and complete("gaussian(1).norm") == []
    assert "auto" in [text for text, _ in complete("")]
    assert all(formula for _, formula in complete("m"))


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["-gaussian(1)"], 1),
        (["-gaussian(1)", "--dim", "2"], 1),
        (["--json", "-2*gaussian(1)"], 1),
        (["--", "-gaussian(1)"], 1),
        (["gaussian(1) - gaussian(2)"], 1),
        (["gaussian(1) - 3"], 1),
        (["-1 * -gaussian(1)"], 0),
        (["gaussian(1) - 0.1*gaussian(2)", "--dim", "2"], 0),  # densities 1 - 0.1·2² > 0 at 0
    ],
)
def test_a_minus_is_no_option(mercer, arguments, status):
    found, out, err = mercer("certify", *arguments)
    assert (found, err) == (status, "")
    assert ("refuted" if status else "proved") in out


def test_help_is_still_an_option(mercer):
    status, out, _ = mercer("certify", "-h")
    assert status == 0 and "Usage" in out


def test_a_search_does_not_take_what_is_no_kernel(mercer, sine):
    status, _, err = mercer("train", sine, "-t", "y", "--kernel", "-gaussian(1)")
    assert status == 2 and "the negative of one is none" in err
