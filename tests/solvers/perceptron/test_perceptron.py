"""The perceptron against the lecture's trace, a double loop, the primal algorithm and its bound."""

import ast
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mercer.solvers
from mercer import Constant, Gaussian, Gram, Linear, Polynomial, config
from mercer.errors import InputError
from mercer.solvers.control import Control
from mercer.solvers.perceptron import kernel as module
from mercer.solvers.perceptron.kernel import perceptron
from mercer.solvers.perceptron.mistakes import BOUNDARIES
from mercer.solvers.perceptron.primal import primal_perceptron

XOR = np.array([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]])
XOR_LABELS = np.array([1, -1, 1, -1])


class Matrix:
    """A dense K with the verbs a solver may use and no others; counts what is asked of it."""

    def __init__(self, K):
        self.K = np.asarray(K, dtype=float)
        self.shape = self.K.shape
        self.dtype = self.K.dtype
        self.asked = []

    def rows(self, index):
        self.asked.extend(index)
        return self.K[index]

    def diag(self):
        return self.K.diagonal()

    def dense(self, out=None):
        self.asked.append("all")
        return self.K


def naive(K, y, fit_intercept, max_epochs, orders=None, boundary="mistake"):
    """The algorithm as the lecture writes it: f(xᵢ) summed afresh at every visit."""
    n = len(y)
    a, b, visits = [0] * n, 0, []
    for epoch in range(1, max_epochs + 1):
        mistakes = 0
        for i in range(n) if orders is None else orders[epoch - 1]:
            value = sum(a[j] * K[j][i] for j in range(n)) + b
            mistake = y[i] * value <= 0 if boundary == "mistake" else (1 if value > 0 else -1) != y[i]
            visits.append((epoch, i, value, mistake))
            if mistake:
                a[i] += y[i]
                b += y[i] if fit_intercept else 0
                mistakes += 1
        if mistakes == 0:
            return a, b, visits, True
    return a, b, visits, False


# --- the golden trace --------------------------------------------------------------------------------


def test_xor_trace_step_by_step():
    K = Gram(Polynomial(2, c=0), XOR)
    assert K.dense().tolist() == [[4, 0, 4, 0], [0, 4, 0, 4], [4, 0, 4, 0], [0, 4, 0, 4]]
    result = perceptron(K, XOR_LABELS, fit_intercept=False, boundary="negative", record=True)
    assert result.history.tolist() == [
        (1, 0, 0.0, True),  # sign(0) = -1, but y = +1
        (1, 1, 0.0, False),
        (1, 2, 4.0, False),
        (1, 3, 0.0, False),
        (2, 0, 4.0, False),
        (2, 1, 0.0, False),
        (2, 2, 4.0, False),
        (2, 3, 0.0, False),
    ]
    assert result.coef.tolist() == [1, 0, 0, 0]
    assert (result.intercept, result.mistakes, result.epochs, result.converged) == (0.0, 1, 2, True)
    assert result.mistakes_per_epoch.tolist() == [1, 0]
    assert result.values.tolist() == [4, 0, 4, 0]
    assert result.bound == math.inf  # f is 0 at the negative points


def test_xor_where_the_boundary_is_a_mistake():
    K = Gram(Polynomial(2, c=0), XOR)
    for labels in (XOR_LABELS, -XOR_LABELS):
        result = perceptron(K, labels, fit_intercept=False, record=True)
        assert result.history["value"].tolist() == [0, 0, *labels[2:] * 4, *labels * 4]
        assert result.history["mistake"].tolist() == 2 * [True] + 6 * [False]
        assert result.coef.tolist() == [labels[0], labels[1], 0, 0]
        assert (result.epochs, result.converged) == (2, True)
        assert result.bound == pytest.approx(2.0)  # ±4x₁x₂: no more mistakes were possible


def of_the_notes(X, y):
    """The perceptron as the notes write it."""
    w, b, mistakes = np.zeros(X.shape[1]), 0.0, []
    while True:
        before = len(mistakes)
        for i in range(len(y)):
            if y[i] * (X[i] @ w + b) <= 0:
                w, b = w + y[i] * X[i], b + y[i]
                mistakes.append(i)
        if len(mistakes) == before:
            return mistakes


def test_the_mistakes_are_those_of_the_notes_for_either_labels(rng):
    for _ in range(200):
        X = rng.integers(-4, 5, size=(20, 2)).astype(float)  # whole numbers: all sums are exact
        y = np.where(X @ (rng.integers(-2, 3, size=2) + 0.5) > 0.25, 1, -1)
        expected = of_the_notes(X, y)
        for labels in (y, -y):
            kernel = perceptron(Matrix(X @ X.T), labels, max_epochs=100_000).made
            primal = primal_perceptron(X, labels[:, None].astype(float), max_epochs=100_000).made
            for made in (kernel, primal):
                assert made.index.tolist() == expected
                assert (made.sign == labels[expected]).all()


# --- equality with simpler algorithms ----------------------------------------------------------------


@st.composite
def problems(draw):
    """Points with small whole coordinates, so that both ways of summing are exact, and labels."""
    n, d = draw(st.integers(1, 12)), draw(st.integers(1, 3))
    whole = st.integers(-3, 3)
    X = draw(st.lists(st.lists(whole, min_size=d, max_size=d), min_size=n, max_size=n))
    y = draw(st.lists(st.sampled_from([-1, 1]), min_size=n, max_size=n))
    return np.array(X, dtype=float), y


@given(
    problems(),
    st.booleans(),
    st.sampled_from(BOUNDARIES),
    st.integers(1, 3),
    st.integers(1, 8),
    st.integers(0, 2**32 - 1),
)
def test_equals_the_double_loop(problem, fit_intercept, boundary, degree, max_epochs, seed):
    X, y = problem
    K = (X @ X.T) ** degree
    rng = np.random.default_rng(seed)
    orders = [rng.permutation(len(y)) for _ in range(max_epochs)] if seed % 2 else None
    a, b, visits, converged = naive(K.tolist(), y, fit_intercept, max_epochs, orders, boundary)
    matrix = Matrix(K)
    options = {"fit_intercept": fit_intercept, "boundary": boundary, "max_epochs": max_epochs}
    result = perceptron(matrix, y, **options, orders=orders, record=True, prefetch=1)
    assert result.coef.tolist() == a
    assert result.intercept == b
    assert result.converged == converged
    assert result.history.tolist() == visits
    made = [i for _, i, _, mistake in visits if mistake]
    assert result.made.index.tolist() == made
    assert result.made.time.tolist() == [t for t, visit in enumerate(visits, 1) if visit[3]]
    assert matrix.asked == list(dict.fromkeys(made))  # one row per point that was a mistake, no other
    assert result.mistakes == len(made)
    assert np.array_equal(result.values, K @ a + b)


@given(problems(), st.integers(1, 6))
def test_windows_change_nothing(problem, window):
    X, y = problem
    K = Matrix(X @ X.T)
    with pytest.MonkeyPatch.context() as patch:
        whole = perceptron(K, y, max_epochs=5, record=True)
        patch.setattr(module, "_LARGEST_WINDOW", window)
        cut = perceptron(K, y, max_epochs=5, record=True)
    assert cut.history.tolist() == whole.history.tolist()
    assert cut.coef.tolist() == whole.coef.tolist()


def same(a, b):
    assert a.made.index.tolist() == b.made.index.tolist()
    assert a.made.time.tolist() == b.made.time.tolist()
    assert a.made.function.tolist() == b.made.function.tolist()
    assert np.array_equal(a.values, b.values)
    assert a.margin == pytest.approx(b.margin, nan_ok=True)
    assert a.bound == pytest.approx(b.bound, nan_ok=True)


@given(problems(), st.integers(1, 7), st.integers(0, 5), st.integers(0, 2**31))
def test_prefetching_changes_nothing(problem, prefetch, slots, seed):
    """However many rows are fetched together, and however few are kept."""
    X, y = problem
    K, bytes_per_row = Matrix(X @ X.T), 8 * len(X)
    plain = perceptron(K, y, max_epochs=6, orders=seed, prefetch=1)
    same(plain, perceptron(K, y, max_epochs=6, orders=seed, prefetch=prefetch, cache=slots * bytes_per_row))


def test_prefetching_fetches_each_row_once_and_fewer_times(rng):
    X = rng.normal(size=(500, 2))
    y = np.where(rng.uniform(size=500) < 0.1, -1, 1) * np.where(X[:, 0] > 0, 1, -1)
    K = Gaussian(0.5)(X)
    alone, together = Matrix(K), Matrix(K)
    calls = []
    original = together.rows
    together.rows = lambda index: calls.append(len(index)) or original(index)
    same(
        perceptron(alone, y, max_epochs=5, prefetch=1),
        perceptron(together, y, max_epochs=5, prefetch=32),
    )
    assert len(together.asked) == len(set(together.asked)) <= 500
    assert len(calls) < len(alone.asked) / 4


@given(problems(), st.integers(0, 2**32 - 1))
def test_functions_learned_together_are_learned_alone(problem, seed):
    X, _ = problem
    rng = np.random.default_rng(seed)
    Y = rng.choice([-1, 1], size=(len(X), 4))
    K = Matrix(X @ X.T)
    together = perceptron(K, Y, max_epochs=6, record=True)
    for c in range(4):
        alone = perceptron(K, Y[:, c], max_epochs=6, record=True)
        assert together.coef[:, c].tolist() == alone.coef.tolist()
        assert together.intercept[c] == alone.intercept
        assert together.made.of(c).time.tolist() == alone.made.time.tolist()
        assert together.made.visits[c] == alone.made.visits[0]
        assert together.history[c].tolist() == alone.history.tolist()
        assert (together.epochs[c], together.converged[c]) == (alone.epochs, alone.converged)
        assert together.mistakes[c] == alone.mistakes
        expected = (alone.margin, alone.bound)
        assert (together.margin[c], together.bound[c]) == pytest.approx(expected, nan_ok=True)


def test_many_functions_take_the_whole_matrix_in_the_end(rng):
    X = rng.normal(size=(200, 2))
    Y = rng.choice([-1, 1], size=(200, 5))
    matrix = Matrix(Gaussian(0.3)(X))
    result = perceptron(matrix, Y, max_epochs=3)
    assert matrix.asked.count("all") == 1
    same(result, perceptron(Matrix(matrix.K), Y, max_epochs=3, prefetch=1))
    small = Matrix(matrix.K)
    same(result, perceptron(small, Y, max_epochs=3, cache=100 * 200 * 8))
    assert "all" not in small.asked


@given(problems())
def test_going_on_from_values_is_going_on(problem):
    """Two halves of a pass, the second from the values of what the first found."""
    X, y = problem
    n, half = len(X), len(X) // 2
    if half == 0:
        return
    K = X @ X.T
    whole = perceptron(Matrix(K), y, max_epochs=1)
    first = perceptron(Matrix(K[:half, :half]), y[:half], max_epochs=1)
    values = K[half:, :half] @ first.coef + first.intercept
    second = perceptron(Matrix(K[half:, half:]), y[half:], max_epochs=1, start=values)
    assert [*first.coef, *second.coef] == whole.coef.tolist()
    made = first.made.then(second.made, half)
    assert made.time.tolist() == whole.made.time.tolist()
    assert made.index.tolist() == whole.made.index.tolist()
    assert made.visits.tolist() == [n]


# --- averages and votes ------------------------------------------------------------------------------


@given(problems(), st.booleans(), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_averages_and_votes_are_those_of_every_visit(problem, fit_intercept, max_epochs, seed):
    X, y = problem
    Z = np.random.default_rng(seed).integers(-3, 4, size=(5, X.shape[1])).astype(float)
    result = perceptron(Matrix(X @ X.T), y, fit_intercept=fit_intercept, max_epochs=max_epochs)
    a, b, values = np.zeros(len(y)), 0.0, []
    for t in range(1, result.made.visits[0] + 1):  # f after each visit
        for i in result.made.index[result.made.time == t]:
            a[i] += y[i]
            b += y[i] * fit_intercept
        values.append(Z @ X.T @ a + b)
    average = Z @ X.T @ result.made.coef(len(y), averaged=True)[:, 0] + result.made.intercept(averaged=True)
    assert average == pytest.approx(np.mean(values, axis=0), abs=1e-9)
    votes = np.where(np.array(values) > 0, 1, -1).mean(axis=0)
    assert result.made.votes(Z @ X.T)[:, 0] == pytest.approx(votes)


# --- stops and checkpoints ---------------------------------------------------------------------------


@pytest.mark.parametrize("record", [True, False])
@pytest.mark.parametrize("after", [1, 7, 40, 400])
def test_an_interrupted_run_goes_on(rng, tmp_path, after, record):
    X = rng.normal(size=(60, 2))
    Y = np.where(X[:, :1] * [1, -1, 1] + rng.normal(size=(60, 3)) / 5 > 0, 1, -1)
    K = Matrix(Gaussian(0.5)(X))
    options = {"max_epochs": 12, "orders": 5, "record": record}
    whole = perceptron(K, Y, **options)
    path = tmp_path / "state"

    def stop(event):
        if event["done"] >= after:
            raise KeyboardInterrupt

    with Control(checkpoint=path, progress=stop) as control:
        part = perceptron(K, Y, **options, control=control)
    assert part.stopped == "interrupted"
    assert part.made.visits.max() < whole.made.visits.max()
    assert not part.converged.all()
    # another seed: that of the run that is resumed counts
    with Control(checkpoint=path, resume=True) as control:
        rest = perceptron(K, Y, **{**options, "orders": 99}, control=control)
    same(rest, whole)
    assert rest.mistakes_per_epoch.tolist() == whole.mistakes_per_epoch.tolist()
    if record:
        assert [h.tolist() for h in rest.history] == [h.tolist() for h in whole.history]
    with Control(checkpoint=path, resume=True) as control:  # nothing is left to do
        same(perceptron(K, Y, **options, control=control), whole)


def test_linear_kernel_is_the_primal_perceptron(rng):
    X = rng.integers(-9, 10, size=(200, 5)).astype(float)
    y = np.where(X @ [1.0, -2.0, 0.5, 1.0, 3.0] > 2.25, 1, -1)
    w, b, clean = np.zeros(5), 0.0, False
    while not clean:
        clean = True
        for x, label in zip(X, y, strict=True):
            if label * (w @ x + b) <= 0:
                w, b, clean = w + label * x, b + label, False
    result = perceptron(Gram(Linear(), X), y, max_epochs=10_000)
    assert result.converged
    assert np.array_equal(X.T @ result.coef, w)
    assert result.intercept == b
    assert (np.sign(result.coef) * y >= 0).all()  # coef = counts times labels
    assert np.abs(result.coef).sum() == result.mistakes


# --- the bound ---------------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1), st.booleans(), st.sampled_from([Linear(), Polynomial(2), Gaussian(0.7)]))
def test_mistakes_stay_under_the_bound(seed, fit_intercept, kernel):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 2))
    X = X[np.abs(X[:, 0]) > 0.2]
    y = np.where(X[:, 0] > 0, 1, -1)
    result = perceptron(Gram(kernel, X), y, fit_intercept=fit_intercept, max_epochs=100_000)
    assert result.converged
    assert result.mistakes <= result.bound * (1 + 1e-9)


def test_bound_is_the_formula(rng):
    X = rng.normal(size=(40, 2))
    X = X[np.abs(X[:, 0]) > 0.2]
    y = np.where(X[:, 0] > 0, 1, -1)
    k = Gaussian(sigma=1.0)
    for fit_intercept, space in ((False, k), (True, k + Constant(1.0))):
        result = perceptron(Gram(k, X), y, fit_intercept=fit_intercept)
        K = space(X)
        g = result.coef / (y * (K @ result.coef)).min()
        assert (y * (K @ g)).min() == pytest.approx(1.0)
        assert result.bound == pytest.approx(g @ K @ g * K.diagonal().max())


def test_an_intercept_is_the_kernel_plus_one(rng):
    X = rng.integers(-5, 6, size=(50, 3)).astype(float)
    y = np.where(X.sum(axis=1) > 1.5, 1, -1)
    with_b = perceptron(Gram(Linear(), X), y, fit_intercept=True)
    without = perceptron(Gram(Linear() + Constant(1.0), X), y, fit_intercept=False)
    assert with_b.coef.tolist() == without.coef.tolist()
    assert with_b.bound == pytest.approx(without.bound)


def test_contradictory_labels_never_converge():
    result = perceptron(Matrix(np.ones((2, 2))), [1, -1], max_epochs=7)
    assert not result.converged
    assert (result.epochs, math.isnan(result.bound)) == (7, True)
    assert (result.mistakes_per_epoch > 0).all()


# --- options -----------------------------------------------------------------------------------------


def test_history_is_kept_only_when_asked():
    assert perceptron(Matrix(np.eye(3)), [1, -1, 1]).history is None


def test_no_mistake_at_all():
    result = perceptron(Matrix(np.eye(3)), [-1, -1, -1], boundary="negative")
    assert (result.mistakes, result.epochs, result.converged) == (0, 1, True)
    assert not result.coef.any()


def test_orders_may_be_a_generator_and_may_run_out():
    orders = (np.roll(np.arange(3), shift) for shift in (1, 2))
    result = perceptron(Matrix(np.ones((3, 3))), [1, -1, 1], orders=orders, record=True)
    assert result.epochs == 2
    assert result.history["index"].tolist() == [2, 0, 1, 1, 2, 0]


def test_control_counts_every_visit():
    events = []
    with Control("perceptron", 20, progress=events.append) as control:
        result = perceptron(Matrix(np.ones((4, 4))), [1, -1, 1, -1], max_epochs=5, control=control)
    assert control.iterations == events[-1]["done"] == 4 * result.epochs
    assert events[-1]["facts"] == {"epoch": 5, "mistakes": result.mistakes}
    epochs = [event["facts"].get("epoch", 0) for event in events]
    assert epochs == sorted(epochs)


def test_single_precision_rows_are_summed_in_double(rng):
    X = rng.normal(size=(50, 3))
    y = np.where(X[:, 0] > 0, 1, -1)
    with config(dtype="float32"):
        result = perceptron(Gram(Gaussian(1.0), X), y)
    assert result.values.dtype == np.float64
    assert ((result.values > 0) == (y > 0)).all()


# --- refusals ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("K", "y", "options", "text"),
    [
        (np.ones((2, 3)), [1, -1], {}, "K must be square, one set of points with itself, got 2 × 3"),
        (np.eye(2), [1, -1, 1], {}, r"y must have one entry per row of K, \(2,\), got shape \(3,\)"),
        (np.eye(2), [0, 1], {}, r"y must be -1 or 1, got \[0 1\]: code the two classes so"),
        (np.eye(2), [1, -1], {"max_epochs": 0}, "max_epochs must be a whole number of at least 1, got 0"),
        (np.eye(2), [1, -1], {"orders": []}, "orders is empty: give one order of visit per pass, or None"),
        (np.eye(2), [1, -1], {"orders": [[0, 0]]}, "must hold each of 0 … 1 once, got"),
        (
            [[1.0, np.inf], [np.inf, 1.0]],
            [1, -1],
            {},
            "not finite for x = point 0 and x' = point 1: rescale the data",
        ),
    ],
)
def test_refusals(K, y, options, text):
    with pytest.raises(InputError, match=text):
        perceptron(Matrix(K), y, **options)


def test_solvers_import_neither_kernels_nor_gram():
    for path in Path(mercer.solvers.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [str(node.module)] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                assert not name.startswith(("mercer.kernels", "mercer.gram", "mercer.estimators")), path
                assert name != "mercer", path
