r"""The pictures of the pages: ``python docs/_ext/draw.py [names]`` writes docs/pictures/NAME.svg.

A function for each picture, called as its file. Ink is that of the page (`picture`); README.svg, which is a file of its own on
somebody else's page, brings its paper along. The same numbers and the same file every time.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits, make_moons

import mercer
from mercer import SVC, Gaussian, KernelRidge, Polynomial
from mercer.plots import style

PICTURES = Path(__file__).resolve().parent.parent / "pictures"
DRAWN = {}


def drawn(width, height, **grid):
    """A function of the axes that draws one picture, known by its name."""

    def known(draw):
        DRAWN[draw.__name__.replace("_", "-")] = (draw, width, height, grid)
        return draw

    return known


def bare(ax, title=None):
    """Axes of which only the content matters."""
    ax.set_xticks([])
    ax.set_yticks([])
    for side in ax.spines.values():
        side.set_visible(False)
    if title:
        ax.set_title(title)


def line(ax, *given, **options):
    """A curve with axes that do not shout."""
    ax.plot(*given, **options)
    style.tidy(ax)


def boundary(ax, model, X, y, size=14, limits=None):
    """Regions of two classes, f = 0 and the margin, and the points."""
    low, high = limits or (X.min(axis=0) - 0.4, X.max(axis=0) + 0.4)
    a, b = np.meshgrid(np.linspace(low[0], high[0], 80), np.linspace(low[1], high[1], 80))
    f = model.decision_function(np.column_stack([a.ravel(), b.ravel()])).reshape(a.shape)
    ax.contourf(a, b, f, levels=[-1e9, 0, 1e9], colors=[style.colour(0), style.colour(1)], alpha=0.14)
    ax.contour(
        a,
        b,
        f,
        levels=[-1, 0, 1],
        colors=style.ink(),
        linestyles=["--", "-", "--"],
        linewidths=[0.8, 1.4, 0.8],
    )
    style.scatter_classes(ax, X, (np.asarray(y) == model.classes_[1]).astype(int), model.classes_, size)
    bare(ax)


# --- the front page ----------------------------------------------------------------------------------------


@drawn(9.6, 2.7, ncols=4)
def sentence(axes):
    """Data → kernel → Gram → f."""
    X, y = make_moons(80, noise=0.12, random_state=3)
    order = np.lexsort((X[:, 0], y))
    X, y = X[order], y[order]
    kernel = Gaussian(sigma=0.45)
    model = SVC(kernel=kernel, C=5.0).fit(X, y)
    style.scatter_classes(axes[0], X, y, model.classes_, 14)
    bare(axes[0], "data")
    r = np.linspace(-1.8, 1.8, 200)
    axes[1].plot(r, kernel(r[:, None], [[0.0]])[:, 0], color=style.colour(2), lw=2)
    axes[1].fill_between(r, kernel(r[:, None], [[0.0]])[:, 0], color=style.colour(2), alpha=0.15)
    bare(axes[1], "kernel  k(x, x′)")
    axes[2].imshow(kernel(X), cmap=style.SEQUENTIAL, interpolation="nearest")
    bare(axes[2], "Gram matrix  K")
    boundary(axes[3], model, X, y)
    axes[3].set_title("f(x) = Σ αᵢ k(xᵢ, x) + b")


# --- from zero ---------------------------------------------------------------------------------------------


@drawn(8.4, 3.2, ncols=2)
def lifted(axes):
    """XOR in the plane, and along the feature that tells it apart."""
    rng = np.random.default_rng(0)
    corners = np.array([[1, 1], [-1, 1], [-1, -1], [1, -1.0]])
    X, y = np.repeat(corners, 15, axis=0) + 0.2 * rng.normal(size=(60, 2)), np.repeat([1, 0, 1, 0], 15)
    model = SVC(kernel=Polynomial(2, c=0), C=10.0).fit(X, y)
    boundary(axes[0], model, X, y, 20, ((-1.9, -1.9), (1.9, 1.9)))
    axes[0].set_title("in the plane: two curves")
    lifted_points = np.column_stack([np.sqrt(2) * X[:, 0] * X[:, 1], X[:, 0] ** 2])
    style.scatter_classes(axes[1], lifted_points, y, model.classes_, 20)
    axes[1].axvline(0, color=style.ink(), lw=1.4)
    axes[1].set_xlabel("√2 x₁x₂")
    axes[1].set_ylabel("x₁²")
    axes[1].set_title("among the features: one plane")
    style.tidy(axes[1])


@drawn(8.4, 3.2, ncols=2)
def first_model(axes):
    """Moons, by a line and by a Gaussian kernel."""
    X, y = make_moons(120, noise=0.2, random_state=0)
    for ax, kernel, name in zip(axes, ("linear", "rbf"), ("linear kernel", "Gaussian kernel"), strict=True):
        model = SVC(kernel=kernel, C=5.0).fit(X, y)
        boundary(ax, model, X, y)
        ax.set_title(f"{name}: {100 * model.score(X, y):.0f} % right")


@drawn(9.2, 2.9, ncols=3, sharey=True)
def widths(axes):
    """Too narrow, right, too wide."""
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(-3, 3, 40))
    y = np.sin(2 * x) + 0.25 * rng.normal(size=40)
    t = np.linspace(-3, 3, 400)
    for ax, sigma, name in zip(axes, (0.08, 0.6, 6.0), ("too narrow", "right", "too wide"), strict=True):
        model = KernelRidge(alpha=0.05, kernel=Gaussian(sigma=sigma)).fit(x[:, None], y)
        ax.plot(t, np.sin(2 * t), color=style.ink(), lw=1, ls=":")
        line(ax, t, model.predict(t[:, None]), color=style.colour(1), lw=1.8)
        ax.scatter(x, y, s=12, color=style.colour(0))
        left_out = np.sqrt(np.mean(model.loo_residuals_**2))
        ax.set_title(f"σ = {sigma:g}: {name}\nerror left out {left_out:.2f}")
        ax.set_ylim(-2, 2)


@drawn(8.4, 3.2, ncols=2)
def trust(axes):
    """Whether probabilities are right, and whether more points would help."""
    X, y = make_moons(900, noise=0.35, random_state=1)
    model = SVC(C=1.0, probability=True).fit(X[:500], y[:500])
    mercer.plots.CalibrationDisplay.from_estimator(model, X[500:], y[500:], bins=8, ax=axes[0])
    mercer.plots.LearningCurveDisplay.from_estimator(
        SVC(C=1.0).fit(X[:500], y[:500]), X[:500], y[:500], ax=axes[1]
    )


# --- kinds of data -----------------------------------------------------------------------------------------


@drawn(8.4, 3.2, ncols=2)
def tables(axes):
    """Which columns matter, and how far off the model is."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (200, 4))
    y = np.sin(3 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=200)
    model = mercer.AutoKernelRegressor().fit(X[:150], y[:150])
    mercer.plots.RelevanceDisplay.from_estimator(model, X, ax=axes[0])
    mercer.plots.ResidualDisplay.from_estimator(model, X[150:], y[150:], ax=axes[1])


PHRASES = {
    "English": "we have no time today because the train leaves soon|the house with the green door is near the river|"
    "she reads a long book while the others are sleeping|where is the station and when does it open|"
    "thank you very much for what you have done|the weather will be fine at the end of the week|"
    "I would like some bread and a glass of water|they wrote that nothing has changed since then",
    "German": "wir haben heute keine Zeit weil der Zug bald fährt|das Haus mit der grünen Tür steht am Fluss|"
    "sie liest ein langes Buch während die anderen schlafen|wo ist der Bahnhof und wann wird er geöffnet|"
    "vielen Dank für das was ihr getan habt|am Ende der Woche wird das Wetter schön sein|"
    "ich hätte gerne etwas Brot und ein Glas Wasser|sie schrieben dass sich seither nichts geändert hat",
    "Italian": "oggi non abbiamo tempo perché il treno parte presto|la casa con la porta verde è vicino al fiume|"
    "lei legge un lungo libro mentre gli altri dormono|dove si trova la stazione e quando apre|"
    "grazie mille per quello che avete fatto|alla fine della settimana il tempo sarà bello|"
    "vorrei un po' di pane e un bicchiere d'acqua|hanno scritto che da allora non è cambiato niente",
}


@drawn(8.4, 3.4, ncols=2)
def languages(axes):
    """Phrases of three languages: which are alike, and where they lie."""
    texts = [text for phrases in PHRASES.values() for text in phrases.split("|")]
    y = np.repeat(list(PHRASES), 8)
    kernel = mercer.BlendedSpectrum(3).normalized()
    mercer.plots.GramDisplay.from_kernel(kernel, texts, y, ax=axes[0])
    mercer.plots.KernelPCADisplay.from_kernel(kernel, texts, y, ax=axes[1])


@drawn(8.4, 2.9, ncols=2)
def samples(axes):
    """Samples of two distributions with one mean, and what the mean kernel makes of them."""
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    sets = [rng.normal(scale=1 + label, size=(rng.integers(20, 60), 1)) for label in y]
    for row, (sample, label) in enumerate(zip(sets[:10], y[:10], strict=True)):
        axes[0].scatter(
            sample[:, 0],
            np.full(len(sample), row),
            s=8,
            color=style.colour(label),
            marker=style.marker(label),
        )
    bare(axes[0], "ten samples, one in a row")
    named = np.where(y == 0, "narrow", "wide")
    mercer.plots.KernelPCADisplay.from_kernel(
        mercer.SetKernel(Gaussian(sigma=1.0), "mean"), sets, named, ax=axes[1]
    )


@drawn(8.4, 1.5, ncols=8)
def variants(axes):
    """A digit, and some of the set that stands for it."""
    X, _ = load_digits(return_X_y=True)
    moves = mercer.compositions(mercer.shifts((8, 8), 1.0), mercer.rotations((8, 8), 15.0))
    for ax, move in zip(axes, [None, *moves[:7]], strict=True):
        image = X[:1] if move is None else move(X[:1])
        ax.imshow(image.reshape(8, 8), cmap="gray_r", interpolation="nearest")
        bare(ax, "x" if move is None else None)


def tree_picture(ax, tree, shared, at=(0.0, 0.0), width=1.0):
    """A tree of tuples; fragments that another one has, too, are coloured."""
    label, children = (tree[0], tree[1:]) if isinstance(tree, tuple) else (tree, ())
    for i, child in enumerate(children):
        place = (at[0] + width * ((i + 0.5) / len(children) - 0.5), at[1] - 1)
        ax.plot(*zip(at, place, strict=True), color=style.faint(), lw=1, zorder=1)
        tree_picture(ax, child, shared, place, width / len(children))
    ax.text(*at, label, ha="center", va="center", zorder=2, fontsize=9,
            color=style.colour(1) if label in shared else style.ink(),
            bbox={"facecolor": style._PAPER, "edgecolor": "none", "pad": 1.2})  # fmt: skip


@drawn(8.4, 2.7, ncols=2)
def sentences(axes):
    """Two trees, and what they have in common."""
    first = ("S", ("NP", "dog"), ("VP", ("V", "bites"), ("NP", "man")))
    second = ("S", ("NP", "cat"), ("VP", ("V", "bites"), ("NP", "mouse")))
    for ax, tree in zip(axes, (first, second), strict=True):
        tree_picture(ax, tree, {"S", "NP", "VP", "V", "bites"})
        bare(ax)
        ax.set_xlim(-0.55, 0.55)
        ax.set_ylim(-3.4, 0.4)


def molecules(count=60, seed=0):
    """Rings and chains of atoms, with labels that say nothing of it."""
    rng = np.random.default_rng(seed)
    found, y = [], []
    for number in range(count):
        n, is_ring = int(rng.integers(4, 9)), number % 2 == 1
        A = np.eye(n, k=1) + np.eye(n, k=-1)
        if is_ring:
            A[0, -1] = A[-1, 0] = 1
        found.append((A, rng.choice(list("CNO"), n, p=[0.7, 0.15, 0.15]).tolist()))
        y.append("ring" if is_ring else "chain")
    return found, np.array(y)


@drawn(8.4, 3.2, ncols=2)
def graphs(axes):
    """Some of the graphs, and all of them where the kernel sees them."""
    found, y = molecules()
    for number in range(6):
        A, labels = found[number]
        n, row, column = len(labels), number % 2, number // 2
        angle = np.linspace(0, 2 * np.pi, n, endpoint=False)
        ring = y[number] == "ring"
        place = 0.38 * np.column_stack([np.cos(angle), np.sin(angle)]) if ring else np.column_stack(
            [np.linspace(-0.42, 0.42, n), 0.12 * (-1.0) ** np.arange(n)])  # fmt: skip
        place = place + np.array([column, -row])
        for i, j in zip(*np.nonzero(np.triu(A)), strict=True):
            axes[0].plot(*place[[i, j]].T, color=style.ink(), lw=1, zorder=1)
        shades = [style.colour("CNO".index(label)) for label in labels]
        axes[0].scatter(*place.T, c=shades, s=34, zorder=2)
    axes[0].set_aspect("equal")
    bare(axes[0], "six of sixty graphs, labels as colours")
    kernel = mercer.WeisfeilerLehman(3).normalized() + mercer.ShortestPath().normalized()
    model = SVC(kernel=kernel, C=10.0).fit(found, y)
    mercer.plots.DecisionBoundaryDisplay.from_estimator(model, found, y, plane="normal", ax=axes[1])


# --- the theory --------------------------------------------------------------------------------------------


@drawn(8.4, 2.9, ncols=2)
def shapes(axes):
    """The kernels of the notes, along a line."""
    x = np.linspace(-3, 3, 301)
    kernels = {
        "Gaussian": Gaussian(sigma=1.0), "Laplacian": mercer.Laplacian(1.0), "B₃ spline": mercer.BSpline(3),
    }  # fmt: skip
    for i, (name, kernel) in enumerate(kernels.items()):
        axes[0].plot(x, kernel(x[:, None], [[0.0]])[:, 0], label=name, color=style.colour(i))
    for i, (name, kernel) in enumerate({"linear": mercer.Linear(), "cubic": Polynomial(3, c=1.0)}.items()):
        axes[1].plot(x, kernel(x[:, None], [[1.0]])[:, 0], label=name, color=style.colour(i + 3))
    for ax, title in zip(axes, ("k(x, 0): how near", "k(x, 1): which way"), strict=True):
        ax.set_title(title)
        style.tidy(ax)
        style.legend(ax)


@drawn(8.4, 2.9, ncols=3)
def gram(axes):
    """Two matrices that are Grams, and one that is none."""
    x = np.linspace(0, 3, 31)[:, None]
    for ax, kernel, name in zip(
        axes,
        (Gaussian(sigma=0.5), Polynomial(2, c=1.0), mercer.BallIndicator(radius=1.0)),
        ("Gaussian", "quadratic", "ball indicator"),
        strict=True,
    ):
        K = kernel(x)
        ax.imshow(K, cmap=style.SEQUENTIAL)
        lowest = np.linalg.eigvalsh(K)[0]
        bare(ax, f"{name}: smallest\neigenvalue {0.0 if abs(lowest) < 1e-9 else lowest:.2g}")


@drawn(8.4, 3.0, ncols=2)
def rkhs(axes):
    """A function is a sum of kernels; its value at x is an inner product with k(x, ·)."""
    k = Gaussian(sigma=0.6)
    anchors, weights = np.array([[-1.5], [0.2], [1.4]]), np.array([1.0, -0.8, 1.2])
    t = np.linspace(-4, 4, 300)[:, None]
    f = mercer.Expansion(k, anchors, weights, 0.0)
    for i in range(3):
        axes[0].plot(t, weights[i] * k(t, anchors[i : i + 1])[:, 0], color=style.colour(i + 2), lw=1)
    axes[0].plot(t, f(t), color=style.ink(), lw=1.8, label="f = Σ αᵢ k(xᵢ, ·)")
    axes[0].set_title("a function of the space")
    rng = np.random.default_rng(1)
    for i in range(4):
        at = rng.uniform(-4, 4, (30, 1))
        g = mercer.Expansion(k, at, rng.normal(size=30), 0.0)
        axes[1].plot(
            t,
            (g / g.norm())(t) if hasattr(g, "__truediv__") else (1 / g.norm() * g)(t),
            color=style.colour(i),
            lw=1,
        )
    for edge in (-1, 1):
        axes[1].axhline(edge, color=style.ink(), lw=0.8, ls="--")
    axes[1].set_title("‖f‖ = 1: |f(x)| ≤ √k(x, x)")
    for ax in axes:
        style.tidy(ax)
    style.legend(axes[0])


def eigenfunctions(kernel, n=400):
    """λᵢ and φᵢ of a kernel on [0, 1], from the Gram matrix of a grid: ∫ k(x, t) φ(t) dt = λ φ(x)."""
    x = (np.arange(n) + 0.5) / n
    values, vectors = np.linalg.eigh(kernel(x[:, None]) / n)
    return x, values[::-1], vectors[:, ::-1] * np.sqrt(n)


@drawn(9.2, 2.9, ncols=3)
def mercers_theorem(axes):
    """Eigenfunctions of min(x, x'), its eigenvalues, and its sum of few terms."""
    x, values, phi = eigenfunctions(mercer.Min())
    for i in range(3):
        axes[0].plot(x, phi[:, i] * np.sign(phi[-1, i]), color=style.colour(i), label=f"φ{'₁₂₃'[i]}")
    axes[0].set_title("eigenfunctions of min(x, x′)")
    style.legend(axes[0])
    i = np.arange(1, 16)
    axes[1].plot(i, values[:15], "o", ms=4, color=style.colour(0), label="of the Gram matrix")
    axes[1].plot(i, 1 / ((i - 0.5) * np.pi) ** 2, color=style.colour(1), lw=1, label="1/(i - ½)²π²")
    style.log_scale(axes[1], "y")
    axes[1].set_title("eigenvalues")
    style.legend(axes[1])
    for terms in (1, 3, 20):
        part = (phi[:, :terms] * values[:terms]) @ phi[200, :terms]
        axes[2].plot(x, part, lw=1.2, color=style.colour((1, 3, 20).index(terms)), label=f"{terms} terms")
    axes[2].plot(x, np.minimum(x, x[200]), color=style.ink(), lw=1, ls=":")
    axes[2].set_title("Σ λᵢ φᵢ(x) φᵢ(½)")
    style.legend(axes[2])
    for ax in axes:
        style.tidy(ax)


@drawn(8.4, 2.9, ncols=2)
def representer(axes):
    """More anchors than points: nothing is gained."""
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(-3, 3, 12))[:, None]
    y = np.sin(2 * x[:, 0]) + 0.2 * rng.normal(size=12)
    k, alpha = Gaussian(sigma=0.7), 0.1
    counts, reached = np.arange(0, 61, 5), []
    extra = rng.uniform(-3, 3, (60, 1))
    for count in counts:
        Z = np.vstack([x, extra[:count]])
        K, A = k(Z), k(x, Z)
        c = np.linalg.lstsq(np.vstack([A, np.sqrt(alpha) * np.linalg.cholesky(K + 1e-12 * np.eye(len(K))).T]),
                            np.concatenate([y, np.zeros(len(K))]), rcond=None)[0]  # fmt: skip
        reached.append(np.sum((y - A @ c) ** 2) + alpha * c @ K @ c)
    line(axes[0], counts, reached, marker="o", ms=4, color=style.colour(0))
    axes[0].set_ylim(0, 1.15 * max(reached))
    axes[0].set_xlabel("further functions k(z, ·) allowed")
    axes[0].set_title("the least objective")
    model = KernelRidge(alpha=alpha, kernel=k, fit_intercept=False).fit(x, y)
    t = np.linspace(-3, 3, 300)[:, None]
    line(axes[1], t, model.predict(t), color=style.colour(1))
    axes[1].scatter(x, y, s=14, color=style.colour(0))
    axes[1].set_title("f = Σ αᵢ k(xᵢ, ·), on the points alone")


@drawn(8.4, 2.9, ncols=2)
def bochner(axes):
    """Spectra that are nowhere negative, and one that is."""
    omega = np.linspace(0, 12, 400)
    for i, (name, kernel) in enumerate(
        {
            "Gaussian": Gaussian(sigma=1.0),
            "Laplacian": mercer.Laplacian(1.0),
            "B₃ spline": mercer.BSpline(3),
        }.items()
    ):
        axes[0].plot(omega, mercer.certify.density(kernel)(omega), color=style.colour(i), label=name)
    axes[0].set_title("kernels: v(ω) ≥ 0")
    v = np.sqrt(2 / np.pi) * np.sinc(omega / np.pi)
    axes[1].plot(omega, v, color=style.colour(3), label="ball indicator")
    axes[1].fill_between(omega, np.minimum(v, 0), color=style.colour(3), alpha=0.3)
    axes[1].set_title("none: v(ω) < 0 somewhere")
    for ax in axes:
        ax.axhline(0, color=style.ink(), lw=0.8)
        ax.set_xlabel("ω")
        style.tidy(ax)
        style.legend(ax)


@drawn(8.4, 2.9, ncols=2)
def schoenberg(axes):
    """The hat is a kernel on the line and none in the plane; waves on spheres."""
    from scipy.special import gamma, jv

    r = np.linspace(1e-6, 15, 400)
    for i, d in enumerate((1, 2, 3, 10)):
        wave = np.cos(r) if d == 1 else gamma(d / 2) * (2 / r) ** ((d - 2) / 2) * jv((d - 2) / 2, r)
        axes[0].plot(r, wave, color=style.colour(i), label=f"d = {d}")
    axes[0].set_title("Ω_d(r), waves of radial kernels")
    axes[0].set_xlabel("r")
    dims, lowest = np.arange(1, 7), []
    for d in dims:
        rng = np.random.default_rng(0)
        X = rng.uniform(0, 1.6, (600, d))
        distance = np.sqrt(np.maximum(((X[:, None] - X) ** 2).sum(axis=-1), 0))
        lowest.append(np.linalg.eigvalsh(np.maximum(1 - distance, 0))[0])
    axes[1].bar(dims, lowest, color=[style.colour(0) if v > -1e-9 else style.colour(1) for v in lowest])
    axes[1].axhline(0, color=style.ink(), lw=0.8)
    axes[1].set_title("max(1 - r, 0): least eigenvalue, 600 points")
    axes[1].set_xlabel("dimension")
    for ax in axes:
        style.tidy(ax)
    style.legend(axes[0], ncols=2)


@drawn(8.4, 2.9, ncols=2)
def bounds(axes):
    """Mistakes of a perceptron beside their bound, as the margin shrinks; ‖w‖ between its two bounds."""
    margins, mistakes, bound = (0.5, 0.35, 0.25, 0.15, 0.1, 0.05, 0.03), [], []
    for margin in margins:
        X, y = separated(margin)
        model = mercer.Perceptron(max_iter=2000, fit_intercept=False).fit(X, y)
        mistakes.append(model.mistakes_)
        bound.append((np.linalg.norm(X, axis=1).max() / margin) ** 2)
    axes[0].plot(margins, bound, color=style.colour(1), label="bound  r²/ρ²")
    axes[0].plot(margins, mistakes, "o-", ms=4, color=style.colour(0), label="mistakes made")
    style.log_scale(axes[0], "x")
    style.log_scale(axes[0], "y")
    axes[0].set_xlabel("margin ρ")
    X, y = separated(0.1)
    w, aligned, grown = np.zeros(2), [0.0], [0.0]
    for _ in range(50):
        for x, label in zip(X, y, strict=True):
            if label * (w @ x) <= 0:
                w = w + label * x
                aligned.append(w[0])
                grown.append(np.linalg.norm(w))
    j = np.arange(len(grown))
    axes[1].plot(j, np.sqrt(j) * np.linalg.norm(X, axis=1).max(), color=style.colour(1), lw=1, label="√j · r")
    axes[1].plot(j, grown, color=style.ink(), lw=1.6, label="‖w‖")
    axes[1].plot(j, j * 0.1, color=style.colour(2), lw=1, label="j · ρ")
    axes[1].set_xlabel("mistakes j")
    for ax in axes:
        style.tidy(ax)
        style.legend(ax)


def separated(margin, n=400):
    """Points in two strips beside the line x₁ = 0, none nearer to it than the margin."""
    rng = np.random.default_rng(0)
    y = rng.choice([-1, 1], n)
    return np.column_stack([y * margin * rng.uniform(1, 2, n), rng.uniform(-1, 1, n)]), y


# --- which learner, which kernel ---------------------------------------------------------------------------

LEARNERS = (
    ("What do you want?", None),
    ("classes", "SVC", "api/mercer.SVC.html"),
    ("… and how sure", "KernelLogisticRegression", "api/mercer.KernelLogisticRegression.html"),
    ("numbers", "KernelRidgeCV", "api/mercer.KernelRidgeCV.html"),
    ("… with outliers", "KernelMachineRegressor", "api/mercer.KernelMachineRegressor.html"),
    ("what is unusual", "OneClassSVM", "api/mercer.OneClassSVM.html"),
    ("coordinates", "KernelPCA", "api/mercer.KernelPCA.html"),
    ("no choosing", "AutoKernelClassifier, …", "selection.html"),
    ("over 30,000 points", "any, with landmarks=2000", "large.html"),
)
KERNELS = (
    ("What are the points?", None),
    ("vectors", "Gaussian, Matern", "tutorials/tables.html"),
    ("table rows", "ColumnKernel, mercer train", "tutorials/tables.html"),
    ("documents", "BagOfWords", "tutorials/texts.html"),
    ("strings", "Spectrum, Subsequence", "tutorials/texts.html"),
    ("sets, samples", "SetKernel, Intersection", "tutorials/sets.html"),
    ("trees", "SubsetTree, PartialTree", "tutorials/trees.html"),
    ("graphs", "WeisfeilerLehman, …", "tutorials/graphs.html"),
    ("none of these", "your own formula or function", "kernels.html#a-kernel-of-your-own"),
)


def flowchart():
    """Two questions with an arrow to each answer, as text that can be read, searched and followed."""
    parts, row = [], 40
    for left, (question, *answers) in ((10, LEARNERS), (430, KERNELS)):
        parts.append(box(left, 8, 150, 30, question[0], strong=True))
        for number, (answer, found, link) in enumerate(answers, 1):
            top = 8 + row * number
            parts.append(
                f'<path d="M {left + 12} {top - (row if number > 1 else row - 15) + 15} V {top + 15} H {left + 28}" {STROKE}/>'
            )
            parts.append(box(left + 28, top, 130, 28, answer))
            parts.append(
                f'<path d="M {left + 158} {top + 14} H {left + 180}" {STROKE} marker-end="url(#flow-tip)"/>'
            )
            parts.append(f'<a href="{link}">{box(left + 182, top, 205, 28, found, code=True)}</a>')
    parts.append(f'<path d="M 397 22 H 424" {STROKE} marker-end="url(#flow-tip)"/>')
    parts.append(f'<path d="M {160} 22 H 397" {STROKE}/>')
    tip = '<marker id="flow-tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M 0 0 L 8 4 L 0 8 z" fill="currentColor"/></marker>'
    return f'<svg viewBox="0 0 830 368" font-family="sans-serif" font-size="12.5"><defs>{tip}</defs>{"".join(parts)}</svg>\n'


STROKE = 'fill="none" stroke="currentColor" stroke-opacity="0.55"'


def box(left, top, width, height, text, strong=False, code=False):
    """A box with a line of text in it."""
    shape = f'<rect x="{left}" y="{top}" width="{width}" height="{height}" rx="6" fill="currentColor" fill-opacity="{0.12 if strong else 0.05}" stroke="currentColor" stroke-opacity="0.35"/>'
    look = ' font-weight="600"' if strong else ' font-family="monospace" font-size="11"' if code else ""
    return f'{shape}<text x="{left + 9}" y="{top + height / 2 + 4.5}" fill="currentColor"{look}>{text}</text>'


# --- files -------------------------------------------------------------------------------------------------


def svg_of(name):
    """A picture as text."""
    draw, width, height, grid = DRAWN[name]
    with style.report_style():
        figure, axes = style.new_figure(width, height, **grid)
        draw(axes)
        svg = style.as_svg(figure, name)
    # A hundredth of a point is not seen, but in the scale of letters.
    return re.sub(r"scale\([^)]*\)|(\d+\.\d\d)\d+", lambda found: found[1] or found[0], svg) + "\n"


def on_paper(svg):
    """With colours and a paper of its own."""
    for variable, value in {
        "currentColor": "#1d2430",
        "var(--faint)": "#c3c9d3",
        "var(--first)": "#0072b2",
        "var(--card)": "#ffffff",
    }.items():
        svg = svg.replace(variable, value)
    head, rest = svg.split(">", 1)
    width, height = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', head).groups()
    return f'{head} width="{width}" height="{height}"><rect width="{width}" height="{height}" rx="8" fill="#ffffff"/>{rest}'


def main(names):
    """Draw these, or all."""
    PICTURES.mkdir(exist_ok=True)
    (PICTURES / "flowchart.svg").write_text(flowchart(), "utf-8")
    for name in names or DRAWN:
        svg = svg_of(name)
        (PICTURES / f"{name}.svg").write_text(svg, "utf-8")
        if name == "sentence":
            (PICTURES / "README.svg").write_text(on_paper(svg), "utf-8")
        print(f"{name}: {len(svg) / 1000:.0f} kB")


if __name__ == "__main__":
    main(sys.argv[1:])
