"""What notebooks show: well-formed HTML, true numbers, little work, and nothing changed by it."""

import base64
import dataclasses
import re
import subprocess
import sys
import warnings
import xml.etree.ElementTree as ET
import zlib

import numpy as np
import pytest

import mercer as m
from mercer import Gram, certify
from mercer.certify import folding
from mercer.certify.proof import Step
from mercer.errors import SlowPathWarning
from mercer.expansion import Expansion
from mercer.kernels import positive
from mercer.notebook import expansion as shown_expansion
from mercer.notebook import gram as shown_gram
from mercer.notebook import kernel as shown_kernel
from mercer.notebook import report as shown_report
from mercer.notebook.thumbnail import png, thumbnail
from mercer.report import Method, Plan, Report, TraceError
from mercer.testing import example_kernels, example_points

LINE = np.linspace(0.0, 3.0, 7)[:, None]


def parsed(html):
    """The tree: XML refuses what is not closed or not escaped."""
    return ET.fromstring(html)


def text_of(html):
    return "".join(parsed(html).itertext())


def polylines(html):
    found = [e.attrib["points"] for e in parsed(html).iter() if e.tag.endswith("polyline")]
    return [np.array([pair.split(",") for pair in line.split()], dtype=float) for line in found]


def assert_drawn(points, x, values):
    """Places in the picture are an affine function of x and of the values, to the tenth they have."""
    for places, numbers in ((points[:, 0], x), (points[:, 1], values)):
        design = np.column_stack([numbers, np.ones(len(numbers))])
        fit = design @ np.linalg.lstsq(design, places, rcond=None)[0]
        assert np.abs(fit - places).max() < 0.11


# --- kernels ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", example_kernels(), ids=lambda kernel: repr(kernel)[:50])
def test_every_kernel_is_shown(kernel):
    before = repr(kernel)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        html = kernel._repr_html_()
        assert kernel._repr_latex_().startswith(r"$\displaystyle ")
    assert html == shown_kernel.html(kernel)  # which nobody catches errors of
    assert r"\(\displaystyle " in text_of(html)
    assert repr(kernel) == before and len(html) < 20_000
    for formula in re.findall(r"\\\(.*?\\\)", text_of(html)):
        assert formula.count("{") - formula.count(r"\{") == formula.count("}") - formula.count(r"\}")
        assert len(re.findall(r"\\left\b", formula)) == len(re.findall(r"\\right\b", formula))


CURVED = [m.Gaussian(2.0), m.Linear(), m.Laplacian(0.5) + 1.0, m.Wendland(3.0), m.Matern(1.2), m.ChiSquared()]


@pytest.mark.parametrize("kernel", CURVED, ids=repr)
def test_the_curve_has_the_values_of_the_kernel(kernel):
    x, centre, k = shown_kernel.shape(kernel)
    np.testing.assert_allclose(k, kernel(x[:, None], [[centre]])[:, 0], rtol=1e-9, atol=1e-12)
    html = kernel._repr_html_()
    (points,) = polylines(html)
    assert_drawn(points, x, k)
    assert f"k(x, {centre:g})" in text_of(html)


@pytest.mark.parametrize("sigma", [1e-3, 1.0, 500.0])
def test_the_curve_is_as_wide_as_the_kernel(sigma):
    x, _, k = shown_kernel.shape(m.Gaussian(sigma))
    assert 3 * sigma < x[-1] < 6 * sigma and k[0] < 0.02 < 0.9 < k.max()


@pytest.mark.parametrize(
    "kernel",
    [
        m.Gaussian(sigma=[1.0, 2.0]),  # of two columns
        m.Gaussian(1.0).on(1),
        m.Linear() @ np.log,
        m.Gaussian("median"),
        m.Gaussian(1.0).centered(np.zeros((300, 1))),  # a mean of many points for each value
        m.Spectral(lambda w: np.exp(-(w**2))),
        m.Spectrum(2),
        m.Precomputed(np.eye(2)),
    ],
    ids=lambda kernel: repr(kernel)[:40],
)
def test_there_is_no_curve_where_points_are_no_numbers_or_values_are_slow(kernel):
    assert shown_kernel.shape(kernel) is None and "<svg" not in kernel._repr_html_()


def test_functions_of_the_users_are_not_called():
    calls = []
    kernel = m.FromFunction(lambda a, b: calls.append(1) or 1.0) + m.Linear()
    mapped = m.Linear() @ (lambda X: calls.append(1) or X)
    assert kernel._repr_html_() and mapped._repr_html_() and not calls
    with pytest.warns(SlowPathWarning):
        K = Gram(kernel, LINE)
    assert "no picture" in K._repr_html_() and not calls


def test_pictures_take_the_ink_of_the_page():
    html = m.Gaussian(1.0)._repr_html_()
    svg = next(e for e in parsed(html).iter() if e.tag.endswith("svg"))
    assert (
        svg.attrib["fill"] == "currentColor" and "k(x, 0), for x from -4.4 to 4.4" in svg.attrib["aria-label"]
    )
    assert "background" not in html and "black" not in html and "white" not in html


def test_names_are_escaped():
    kind = type("A<b>&'\"", (m.FromFunction,), {})
    html = kind(max)._repr_html_()
    assert "A<b>&'\"(function=max)" in text_of(html) and "<b>" not in html
    cost = m.Linear().on("US$ & <i>", "5$")
    assert "US$ & <i>" in text_of(cost._repr_html_())
    # MathJax looks for dollars only where formulas are.
    outside = [
        e for e in parsed(cost._repr_html_()).iter() if "mathjax_process" not in e.attrib.get("class", "")
    ]
    assert outside[0].attrib["class"] == "mercer tex2jax_ignore mathjax_ignore"


def test_a_kernel_that_fails_has_its_repr():
    class Broken(m.Kernel):
        a: float = positive(1.0)

        def formula(self, pair):
            raise ZeroDivisionError

    assert Broken()._repr_html_() is None and Broken()._repr_latex_() is None
    assert repr(Broken()) == "Broken(a=1.0)"


def test_nothing_is_compiled_or_loaded_for_a_look():
    """Neither Numba nor matplotlib; and not the module of a page before somebody asks."""
    code = (
        "import sys, mercer as m\n"
        "assert not any(name.startswith('mercer.notebook.') for name in sys.modules)\n"
        "assert (m.Gaussian(1.0) * m.Matern(1.2))._repr_html_()\n"
        "assert {'numba', 'matplotlib', 'torch'}.isdisjoint(sys.modules), sorted(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# --- matrices --------------------------------------------------------------------------------------------


def pixels(html):
    """The codes of an indexed PNG, read by the format's own rules."""
    image = next(e for e in parsed(html).iter() if e.tag.endswith("img"))
    data = base64.b64decode(image.attrib["src"].removeprefix("data:image/png;base64,"))
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = {}, 8
    while at < len(data):
        size, name = int.from_bytes(data[at : at + 4], "big"), data[at + 4 : at + 8]
        body = data[at + 8 : at + 8 + size]
        assert int.from_bytes(data[at + 8 + size : at + 12 + size], "big") == zlib.crc32(name + body)
        chunks[name], at = body, at + 12 + size
    assert list(chunks) == [b"IHDR", b"PLTE", b"IDAT", b"IEND"] and chunks[b"IHDR"][8:] == bytes(
        [8, 3, 0, 0, 0]
    )
    w, h = (int.from_bytes(chunks[b"IHDR"][i : i + 4], "big") for i in (0, 4))
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(h, w + 1)
    assert not rows[:, 0].any()
    return rows[:, 1:]


def test_the_picture_of_a_matrix_has_its_values(rng):
    K = Gram(m.Gaussian(1.0), rng.normal(size=(9, 3)), rng.normal(size=(5, 3)))
    html = K._repr_html_()
    dense = K.dense()
    share = (dense - dense.min()) / np.ptp(dense)
    np.testing.assert_array_equal(pixels(html), np.rint(255 * share))
    assert "9 × 5, two sets of points" in text_of(html)
    assert f"9 × 5 entries, from {dense.min():.4g} to {dense.max():.4g}" in text_of(html)


def test_values_of_both_signs_have_zero_in_the_middle():
    codes = pixels(Gram(m.Linear(), [[-1.0], [0.0], [2.0]])._repr_html_())
    np.testing.assert_array_equal(codes[1], [128, 128, 128])  # 127.5 goes to the even one
    assert codes[2, 2] == 255 and codes[0, 2] == round(255 * 2 / 8)


def test_a_large_matrix_is_seen_in_places(rng, within_cpu):
    X = rng.normal(size=(20_000, 50))
    K = Gram(m.Gaussian(5.0), X)
    with within_cpu(1.0):
        html = K._repr_html_()
        some = shown_gram.sample(K)
    assert "64 × 64 entries, evenly taken" in text_of(html) and pixels(html).shape == (64, 64)
    at = np.linspace(0, 19_999, 64).round().astype(int)
    np.testing.assert_allclose(some, K.block(at, at), rtol=1e-9)


def test_what_is_wide_is_seen_in_fewer_places_or_not():
    assert shown_gram.sample(Gram(m.Linear(), np.ones((100, 40_000)))).shape == (14, 14)
    import scipy.sparse

    assert shown_gram.sample(Gram(m.Linear(), scipy.sparse.csr_array((100, 2_000_000)))) is None


@pytest.mark.parametrize("kernel", example_kernels(), ids=lambda kernel: repr(kernel)[:50])
def test_every_matrix_is_shown_and_stays_as_it_is(kernel, rng):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SlowPathWarning)
        with m.config(backend="numpy"):
            K = Gram(kernel, example_points(kernel, 6, rng))
    state = set(vars(K))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        html = K._repr_html_()
    assert html == shown_gram.html(K) and "6 × 6, symmetric" in text_of(html)
    assert set(vars(K)) == state


def test_a_matrix_without_numbers_has_no_picture():
    with m.config(backend="numpy"):
        infinite, some = (Gram(m.Polynomial(63), X) for X in ([[1e10]], [[0.0], [1.0], [1e10]]))
    assert "no picture" in infinite._repr_html_()
    np.testing.assert_array_equal(pixels(some._repr_html_())[:2, :2], [[0, 0], [0, 255]])
    assert "from 1 to inf" in text_of(some._repr_html_())


def test_a_picture_of_equal_values():
    codes = pixels(f"<div>{thumbnail(np.ones((2, 2)), 'a < b')}</div>")
    np.testing.assert_array_equal(codes, 128)
    assert len(png(codes, np.zeros((256, 3), np.uint8))) < 1000


# --- functions -------------------------------------------------------------------------------------------


def test_a_function_of_one_number_has_a_curve():
    f = Expansion(m.Gaussian(0.7), LINE, np.sin(LINE[:, 0]), intercept=0.25)
    html = f._repr_html_()
    x, lines, dots = shown_expansion.graph(f)
    np.testing.assert_allclose(lines[0], f(x[:, None]), rtol=1e-9)
    np.testing.assert_allclose(dots, np.column_stack([LINE, f(LINE)]), rtol=1e-9)
    assert_drawn(polylines(html)[0], x, lines[0])
    assert sum(e.tag.endswith("circle") for e in parsed(html).iter()) == 7
    assert r"f(x) = \sum_{i=1}^{7} \alpha_i\, k(x_i, x) + b, \quad b = 0.25" in text_of(html)


def test_several_functions_are_lines_of_one_picture():
    f = Expansion(m.Linear(), LINE, np.ones((7, 10)), np.arange(10.0))
    html = f._repr_html_()
    x, lines, _ = shown_expansion.graph(f)
    assert len(polylines(html)) == 8 and "8 of 10 functions" in text_of(html)
    np.testing.assert_allclose(lines, f(x[:, None])[:, :8].T, rtol=1e-9)


def test_to_look_at_a_function_prepares_nothing():
    f = Expansion(m.Gaussian(1.0), LINE, np.ones(7))
    f._repr_html_()
    assert f._kept is None


@pytest.mark.parametrize(
    "f",
    [
        Expansion(m.Gaussian(1.0), np.zeros((3, 2)), np.ones(3)),
        Expansion(m.Spectrum(2), ["ab", "ba"], [1.0, 2.0]),
        Expansion(m.Gaussian(1.0), np.arange(10_000.0)[:, None], np.ones(10_000)),
    ],
    ids=["two columns", "strings", "many anchors"],
)
def test_other_functions_have_formulas(f):
    html = f._repr_html_()
    assert "<svg" not in html and rf"\sum_{{i=1}}^{{{len(f)}}}" in text_of(html)


def test_functions_of_positive_numbers_are_not_asked_beyond_zero():
    x, _, _ = shown_expansion.graph(Expansion(m.Min(), [[0.0], [1.0]], [1.0, 1.0]))
    assert x[0] == 0.0


# --- certificates ----------------------------------------------------------------------------------------


def test_a_proof_folds():
    found = certify(m.Gaussian(1.0) * m.Linear() + m.Polynomial(2))
    html = found._repr_html_()
    said = text_of(html)
    assert all(step.subject in said and step.rule in said for step in found.steps.walk())
    folds = [e for e in parsed(html).iter() if e.tag == "details"]
    assert len(folds) == sum(bool(step.parts) for step in found.steps.walk()) == 2
    assert said.startswith(found.statements()[0])


def test_a_witness_is_listed():
    found = certify(m.BallIndicator())
    assert all(line in text_of(found._repr_html_()) for line in found.witness()) and len(found.witness()) == 4


def test_deep_steps_are_closed_and_long_proofs_are_not_written_out():
    step = Step("k0", "a <rule>", needs=("x > 0",))
    for i in range(5):
        step = Step(f"k{i + 1}", "a rule", (step,))
    found = dataclasses.replace(certify(m.Linear()), steps=step)
    html = folding.html(found)
    assert ["open" in e.attrib for e in parsed(html).iter("details")] == [
        True, True, False, False, False,
    ]  # fmt: skip
    assert "k0: a <rule> [x > 0]" in text_of(html)
    many = dataclasses.replace(found, steps=Step("k", "a sum", (step,) * 300))
    assert "more than 200 steps" in folding.html(many)


# --- plans and reports -----------------------------------------------------------------------------------

PLAN = Plan("Newton", points=5000, memory=200_000_000, flops=1.6e12, why=("K fits", "n < 10,000"))


def test_a_plan_is_a_table():
    rows = {row[0].text: "".join(row[1].itertext()) for row in parsed(PLAN._repr_html_()).iter("tr")}
    assert list(rows) == ["solver", "points", "memory", "time", "because"]
    assert rows["points"] == "5,000" and rows["because"] == "K fitsn < 10,000" and rows["memory"] == "191MiB"


def test_a_plan_on_landmarks_says_what_they_leave():
    plan = dataclasses.replace(PLAN, landmarks=600, trace_error=TraceError(0.03, 0.002, 500, 500))
    assert "unexplained, by 500 of the rows; 600 leave less" in text_of(shown_report.html(plan))


@pytest.mark.parametrize(
    ("facts", "line"),
    [
        ({"gap": 1e-3}, "at most 0.001 above the minimum"),
        ({"gap": float("nan")}, "unknown: the kernel is not known to be positive definite"),
        ({"bound": 2.0}, "at most 2 above the minimum without landmarks"),
        ({"objective": 1.5}, "1.5"),
        ({"warnings": ("scale <them>", "two")}, "scale <them>two"),
    ],
)
def test_a_report_is_a_table(facts, line):
    report = Report(PLAN, "converged", time=0.25, iterations=7, **facts)
    rows = {row[0].text: "".join(row[1].itertext()) for row in parsed(report._repr_html_()).iter("tr")}
    assert rows["ended"] == "converged after 0.25 s and 7 iterations"
    assert list(rows.values())[3].endswith(line) or rows["warnings"] == line
    assert line.removesuffix("two") in str(report)


def test_the_repr_of_a_report_is_one_line():
    report = Report(PLAN, "max_iter", time=1234.5, iterations=1000, gap=0.5, warnings=("a", "b"))
    expected = (
        "Report(Newton on 5,000 points: max_iter after 1.23e+03 s and 1,000 iterations, gap 0.5, 2 warnings)"
    )
    assert repr(report) == expected
    landmarks = dataclasses.replace(PLAN, method=Method.LANDMARKS)
    assert (
        repr(Report(landmarks, "converged", time=2.0))
        == "Report(Newton on 5,000 points: converged after 2 s)"
    )


def test_a_fit_shows_both():
    model = m.KernelRidge(0.1).fit(LINE, LINE[:, 0])
    assert text_of(model.report_._repr_html_()).startswith("solver" + model.report_.plan.solver)
    assert text_of(model.plan(LINE)._repr_html_()).startswith("solver")
    assert "<svg" in model.expansion_._repr_html_()
