"""Kernels in LaTeX: what is printed is the formula, by its text and by its value."""

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

import mercer as m
from mercer.kernels import positive, whole
from mercer.kernels.compose import Negative
from mercer.kernels.notation import latex
from mercer.testing import example_kernels, example_points

_spec = importlib.util.spec_from_file_location("reading", Path(__file__).parent / "formula" / "reading.py")
reading = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(reading)

GAUSS = r"\exp\left(-\frac{\lVert x - x' \rVert^{2}}{2 \sigma^{2}}\right)"
POWER = r"\left(\gamma \langle x, x' \rangle + c\right)^{d}"


def of(text):
    return f"k(x, x') = {text}"


@pytest.mark.parametrize(
    ("kernel", "text"),
    [
        (m.Linear(), r"\langle x, x' \rangle"),
        (m.Gaussian(), r"\exp\left(-\frac{\lVert x - x' \rVert^{2}}{2}\right)"),
        (m.Gaussian(sigma=1.5), GAUSS + r", \quad \sigma = 1.5"),
        (m.Gaussian(sigma="median"), GAUSS + r", \quad \sigma = \mathrm{median}"),
        (
            m.Gaussian(gamma=1e-9),
            r"\exp\left(-\gamma \lVert x - x' \rVert^{2}\right), \quad \gamma = 1 \cdot 10^{-9}",
        ),
        (m.Polynomial(2), POWER + r", \quad \gamma = 1,\; c = 1,\; d = 2"),
        (m.Cosine(), r"\frac{\langle x, x' \rangle}{\lVert x \rVert \lVert x' \rVert}"),
        (m.Laplacian(2.0), r"\exp\left(-\gamma \lVert x - x' \rVert_{1}\right), \quad \gamma = 2"),
        (m.Constant(2.0), "2"),
        (m.Delta(), r"\left[x = x'\right]"),
        (m.Min(), r"\sum_{j} \min\left(x_{j}, x'_{j}\right)"),
        (
            m.RationalQuadratic(0.5, 2.0),
            r"\left(1 + \frac{\lVert x - x' \rVert^{2}}{2 \alpha \ell^{2}}\right)^{-\alpha}, "
            r"\quad \alpha = 0.5,\; \ell = 2",
        ),
        # sums, products, powers and multiples of kernels
        (m.Linear() + m.Gaussian(2.0), rf"\langle x, x' \rangle + {GAUSS}, \quad \sigma = 2"),
        (m.Linear() * m.Gaussian(2.0), rf"\langle x, x' \rangle {GAUSS}, \quad \sigma = 2"),
        (0.3 * (m.Linear() + 1.0), r"0.3 \left(\langle x, x' \rangle + 1\right)"),
        (m.Linear() ** 3, r"\langle x, x' \rangle^{3}"),
        (Negative(m.Linear()), r"-\langle x, x' \rangle"),
        (m.Linear().exp(), r"\exp\left(\langle x, x' \rangle\right)"),
        (
            m.Linear().polynomial([1.0, 0.0, 0.25]),
            r"\frac{\langle x, x' \rangle^{2}}{4} + 1",
        ),
        # two of one name have an index
        (
            m.Gaussian(gamma=1.0) * m.Laplacian(3.0),
            r"\exp\left(-\gamma_{1} \lVert x - x' \rVert^{2}\right) "
            r"\exp\left(-\gamma_{2} \lVert x - x' \rVert_{1}\right), \quad \gamma_{1} = 1,\; \gamma_{2} = 3",
        ),
        (
            m.Polynomial(2).normalized(),
            rf"\frac{{{POWER}}}{{\sqrt{{\left(\gamma \lVert x \rVert^{{2}} + c\right)^{{d}} "
            r"\left(\gamma \lVert x' \rVert^{2} + c\right)^{d}}}, \quad \gamma = 1,\; c = 1,\; d = 2",
        ),
        # maps, columns, one scale for each column
        (
            m.Linear() @ np.log,
            r"\langle \operatorname{log}\left(x\right), \operatorname{log}\left(x'\right) \rangle",
        ),
        (m.Linear() @ (lambda X: X), r"\langle \varphi\left(x\right), \varphi\left(x'\right) \rangle"),
        (m.Linear().on("age", 2), r"\langle x_{\mathrm{age},2}, x'_{\mathrm{age},2} \rangle"),
        (m.Min().on(0, 2), r"\sum_{j \in \{0,2\}} \min\left(x_{j}, x'_{j}\right)"),
        (
            m.Laplacian(gamma=[0.5, 2.0]),
            r"\exp\left(-\lVert \gamma \odot \left(x - x'\right) \rVert_{1}\right), "
            r"\quad \gamma = \left(0.5, 2\right)",
        ),
        (
            m.Gaussian(sigma=np.arange(1.0, 31.0)),
            r"\exp\left(-\frac{1}{2} \, \lVert \sigma^{-1} \odot \left(x - x'\right) \rVert^{2}\right), "
            r"\quad \sigma = \left(1, 2, \dots, 30\right)",
        ),
        # objects have names
        (m.Spectrum(3), r"\operatorname{Spectrum}_{k=3}\left(x, x'\right)"),
        (m.FromFunction(max), r"\operatorname{FromFunction}\left(x, x'\right)"),
        (
            m.Subsequence(2).normalized(),
            r"\frac{S\left(x, x'\right)}{\sqrt{S\left(x, x\right) S\left(x', x'\right)}}".replace(
                "S", r"\operatorname{Subsequence}_{\mathrm{length}=2,\,\mathrm{decay}=0.5}"
            ),
        ),
    ],
    ids=lambda value: None if isinstance(value, str) else repr(value)[:40],
)
def test_known_formulas(kernel, text):
    assert latex(kernel) == of(text)


def test_what_occurs_twice_has_a_line_of_its_own():
    assert latex(m.Matern(1.5, 2.0)) == (
        r"\begin{aligned} k(x, x') &= \left(1 + r\right) \exp\left(-r\right) \\ "
        r"r &= \frac{\sqrt{3} \lVert x - x' \rVert}{\ell} \\ \ell &= 2 \end{aligned}"
    )


def test_a_centred_kernel_names_the_one_it_is_made_of():
    assert latex(m.Linear().centered(np.zeros((4, 1)))) == (
        r"\begin{aligned} k(x, x') &= k_{0}(x, x') - \frac{1}{4} \sum_{i} k_{0}(x, x_{i}) "
        r"- \frac{1}{4} \sum_{i} k_{0}(x', x_{i}) + \frac{1}{16} \sum_{i, l} k_{0}(x_{i}, x_{l}) \\ "
        r"k_{0}(x, x') &= \langle x, x' \rangle \end{aligned}"
    )


def test_a_kernel_of_ones_own_prints():
    class Cauchy(m.Kernel):
        my_scale: float = positive(1.0)

        def formula(self, pair):
            return 1 / (1 + pair.sqdist / self.my_scale**2)

    text = r"\frac{1}{1 + \frac{\lVert x - x' \rVert^{2}}{s^{2}}}, \quad s = 3"
    assert latex(Cauchy(3)) == of(
        text.replace("s^", r"\mathrm{my\_scale}^").replace("s =", r"\mathrm{my\_scale} =")
    )


@pytest.mark.parametrize("name", ["_{}$%&#\\^~ '", "<script>alert(1)</script>", "Ärger-1"])
def test_names_are_escaped(name):
    kind = type(name, (m.FromFunction,), {})
    inside = latex(kind(max)).removeprefix("k(x, x') = ").removesuffix(r"\left(x, x'\right)")
    assert inside.startswith(r"\operatorname{") and inside.endswith("}")
    plain = re.sub(
        r"\\(backslash |hat\{\}|sim |text\{.\}|[ _{}$%&#])", "", inside[len(r"\operatorname{") : -1]
    )
    assert not set(plain) & set(r"\_{}$%&#^~ '")


@pytest.mark.parametrize(
    "kernel",
    [
        sum((m.Gaussian(float(i + 1)) for i in range(60)), m.Linear()),  # pages of terms
        m.ColumnKernel("auto"),  # waits for data
        m.ColumnKernel({0: m.Gaussian(), 1: m.Delta()}),  # cells that may be missing
    ],
    ids=["long", "waits", "cells"],
)
def test_what_nobody_would_read_has_a_name_alone(kernel):
    assert re.fullmatch(r"k\(x, x'\) = \\operatorname\{\w+\}(_\{.*\})?\\left\(x, x'\\right\)", latex(kernel))


class Folded(m.Kernel):
    """t ↦ t (t + 1), so many times: written out, it would have 2ⁿ copies of ⟨x, x'⟩."""

    times: int = whole(1, symbolic=False)

    def formula(self, pair):
        t = pair.dot
        for _ in range(self.times):
            t = (t + 1) * (t + 2)
        return t


def test_shared_parts_do_not_make_the_text_long():
    text = latex(Folded(10))
    assert r"\begin{aligned}" in text and len(text) < 1000
    assert reading.value(latex(Folded(3)), [0.5], [1.0]) == pytest.approx(Folded(3)([[0.5]], [[1.0]])[0, 0])
    assert latex(Folded(60)) == of(r"\operatorname{Folded}_{\mathrm{times}=60}\left(x, x'\right)")
    assert "<svg" not in Folded(60)._repr_html_()


def test_a_kernel_stays_as_it_is():
    kernel = m.Gaussian(sigma="median") + m.SetKernel(m.Gaussian(sigma="median"))
    before = repr(kernel)
    latex(kernel)
    assert repr(kernel) == before and not kernel.is_resolved()


PRINTED = [
    kernel
    for kernel in example_kernels()
    if kernel.is_resolved() and not re.search(r"operatorname|k_\{0\}|Phi|varphi", latex(kernel))
]


def test_most_formulas_can_be_read_back():
    assert len(PRINTED) > 50


@pytest.mark.parametrize("kernel", PRINTED, ids=lambda kernel: repr(kernel)[:50])
def test_the_text_has_the_value_of_the_kernel(kernel, rng):
    """Parameters are printed with six digits, which is all that may be lost, magnified by a power of 70."""
    X = example_points(kernel, 12, rng)
    X = np.asarray(X)[[0, 2, 5, 8]]  # without the origin, at which 0/0 counts as 0
    with m.config(backend="numpy"):
        K = kernel(X)
    text = latex(kernel)
    pairs = np.nonzero(~np.eye(len(X), dtype=bool))  # Matérn's formula is 0 · ∞ at x = x'
    read = [reading.value(text, X[i], X[j]) for i, j in zip(*pairs, strict=True)]
    np.testing.assert_allclose(read, K[pairs], rtol=1e-4, atol=1e-9 * np.abs(K).max())
