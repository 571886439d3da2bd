"""How pictures come about: axes, SVG, models that are looked through, the missing library."""

import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import SVC, Gaussian, KernelRidgeCV
from mercer.errors import InputError
from mercer.plots import KernelShapeDisplay, style
from mercer.plots.learned import learned, sample, unfitted


def test_a_figure_is_made_where_none_is_given():
    import matplotlib.pyplot as plt

    before = plt.get_fignums()
    display = KernelShapeDisplay.from_kernels(Gaussian(sigma=1.0))
    assert display.figure_.number not in before
    plt.close(display.figure_)
    with pytest.raises(InputError, match="ax must be matplotlib axes or None, got 3"):
        display.plot(3)


def test_a_given_axes_opens_no_window():
    import matplotlib.pyplot as plt

    before = plt.get_fignums()
    KernelShapeDisplay.from_kernels(Gaussian(sigma=1.0), ax=style.new_figure()[1])
    assert plt.get_fignums() == before


def test_an_svg_takes_the_colours_of_the_page_and_keeps_its_ids_apart():
    pages = []
    for name in ("p1", "p2"):
        with style.report_style():
            figure, ax = style.new_figure()
            KernelShapeDisplay.from_kernels(Gaussian(sigma=1.0), ax=ax)
            pages.append(style.as_svg(figure, name))
    trees = [ElementTree.fromstring(page) for page in pages]
    ids = [{e.get("id") for e in tree.iter() if e.get("id")} for tree in trees]
    assert ids[0] and not ids[0] & ids[1]
    assert "currentColor" in pages[0] and "var(--faint)" in pages[0] and "#010203" not in pages[0]
    references = {
        value.removeprefix("#")
        for e in trees[0].iter()
        for key, value in e.attrib.items()
        if key.endswith("href") and value.startswith("#")
    }
    assert references and references <= ids[0]
    assert trees[0].get("viewBox") and trees[0].get("width") is None
    assert pages[0].replace("p1-", "p2-") == pages[1]  # nothing random, no date


def test_text_of_the_data_is_never_a_formula():
    label = r"$\frac{$"
    for text in (style.short(label), label):
        figure, ax = style.new_figure()
        ax.set_title(text)
        if text is label:  # what would happen
            with pytest.raises(ValueError, match="frac"):
                figure.canvas.draw()
        else:
            figure.canvas.draw()


def test_images_are_png_files():
    for pixels in (np.eye(8), np.zeros((3, 3)), np.random.default_rng(0).uniform(size=(4, 4, 3))):
        assert style.as_png(pixels).startswith(b"\x89PNG")


def test_samples_are_of_all_classes_and_of_a_seed():
    y = np.repeat(["a", "b", "c"], [950, 49, 1])
    chosen = sample(1000, 100, seed=3, labels=y)
    assert sorted(set(y[chosen])) == ["a", "b", "c"] and len(chosen) <= 101
    np.testing.assert_array_equal(chosen, sample(1000, 100, seed=3, labels=y))
    assert not np.array_equal(chosen, sample(1000, 100, seed=4, labels=y))
    assert len(np.unique(sample(1000, 100))) == 100
    for wrong in (0, -1, 2.5, None):
        with pytest.raises(InputError, match="at least 1"):
            sample(10, wrong)


def test_models_are_looked_through():
    X, y = np.array([[0.0], [1.0], [5.0], [6.0]] * 3), np.array([0, 0, 1, 1] * 3)
    search = GridSearchCV(make_pipeline(StandardScaler(), SVC()), {"svc__C": [1.0, 2.0]}, cv=2).fit(X, y)
    found = learned(search)
    assert type(found.learner) is SVC and found.penalty == 1 / found.learner.C
    np.testing.assert_allclose(found.points(X), (X - X.mean()) / X.std())
    fresh = unfitted(search)
    assert not hasattr(fresh[-1], "expansion_") and fresh[-1].C == found.learner.C
    np.testing.assert_array_equal(fresh.fit(X, y).predict(X), search.predict(X))
    chosen = KernelRidgeCV([0.1, 1.0], kernel=[Gaussian(sigma=1.0), Gaussian(sigma=2.0)]).fit(X, y)
    again = unfitted(chosen)
    assert (again.alpha, again.kernel) == (chosen.alpha_, chosen.kernel_)
    np.testing.assert_allclose(again.fit(X, y).predict(X), chosen.predict(X), rtol=1e-9)


@pytest.mark.parametrize("wrong", [None, 3, "model", SVC(), make_pipeline(StandardScaler())])
def test_what_is_no_fitted_model_is_refused(wrong):
    with pytest.raises(InputError, match="must be fitted and have a kernel"):
        learned(wrong)


def test_matplotlib_is_loaded_with_the_first_picture_only():
    code = "import sys, mercer.plots, mercer.reporting; print('matplotlib' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"


def test_the_missing_library_is_named(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r'run  pip install "mercer\[plot\]"'):
        KernelShapeDisplay.from_kernels(Gaussian(sigma=1.0))
