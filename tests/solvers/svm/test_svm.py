"""The five problems: duality in float64, LIBSVM, cases solved by hand, warm starts, hard margins."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import svm as libsvm

from mercer import Gaussian, Gram, Linear, Polynomial
from mercer.errors import InputError
from mercer.solvers.control import Control
from mercer.solvers.svm import hard_margin
from mercer.solvers.svm.hard_margin import separate
from mercer.solvers.svm.problems import c_svc, fit, nu_svc, nu_svr, one_class, outlying, svr
from mercer.solvers.svm.warm import warm

KINDS = ["c_svc", "nu_svc", "svr", "nu_svr", "one_class"]


def problem(seed, n=40, kind=None):
    """Points, labels, targets and weights; some points twice."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    X[: n // 8] = X[n // 8 : 2 * (n // 8)]
    y = np.where(X[:, 0] + 0.7 * rng.normal(size=n) > 0, 1.0, -1.0)
    y[: n // 8] = y[n // 8 : 2 * (n // 8)]
    y[-2:] = 1.0, -1.0
    return X, y, np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=n), rng.uniform(0.2, 3.0, n)


def task_of(kind, y, target, upper, nu, epsilon=0.1):
    nu = min(nu, 2 * min(upper[y > 0].sum(), upper[y < 0].sum()) / upper.sum()) if kind == "nu_svc" else nu
    return {
        "c_svc": lambda: c_svc(y, upper),
        "nu_svc": lambda: nu_svc(y, upper, nu),
        "svr": lambda: svr(target, upper, epsilon),
        "nu_svr": lambda: nu_svr(target, upper, nu),
        "one_class": lambda: one_class(upper, nu),
    }[kind](), nu


def primal(kind, machine, K, y, target, upper, nu, epsilon=0.1):
    """The primal value of what was found, from the definitions in the header, in float64.

    r, ρ and ε are the best for the function: minima of convex functions of one number with kinks at the data.
    """
    coef = np.bincount(np.arange(len(machine.coef)), machine.coef)
    if kind == "nu_svc":  # back in the problem's own scale
        coef = coef * (upper.max() / max(machine.hi.max(), -machine.lo.min()))
    g = K @ coef
    square = coef @ g / 2
    if kind == "c_svc":
        return square + min(
            (upper * np.maximum(0, 1 - y * (g + b))).sum()
            for b in np.concatenate([y - g, [machine.intercept]])
        )
    if kind == "svr":
        shifts = np.concatenate([target - g - epsilon, target - g + epsilon])
        return square + min((upper * np.maximum(0, np.abs(target - g - b) - epsilon)).sum() for b in shifts)
    if kind == "one_class":
        return square + min((upper * np.maximum(0, r - g)).sum() - nu * upper.sum() * r for r in g)
    if kind == "nu_svc":
        unit = coef[np.abs(coef).argmax()] / machine.coef[np.abs(coef).argmax()]
        b, r = machine.intercept * unit, unit
        return square - nu * upper.sum() * r + (upper * np.maximum(0, r - y * (g + b))).sum()
    rest = np.abs(target - g - machine.intercept)
    return square + nu * upper.sum() * machine.epsilon + (upper * np.maximum(0, rest - machine.epsilon)).sum()


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=20)
@given(
    seed=st.integers(0, 10**6),
    log_c=st.floats(-2, 3),
    nu=st.floats(0.05, 0.9),
    log_width=st.floats(-1, 0.3),
    weighted=st.booleans(),
)
def test_primal_and_dual_meet(kind, seed, log_c, nu, log_width, weighted):
    """Weak duality makes this a proof of optimality, whatever the solver did."""
    X, y, target, weight = problem(seed)
    upper = 10**log_c * (weight if weighted else np.ones(len(y)))
    k = Gaussian(sigma=10**log_width)
    K = k(X)
    if kind == "nu_svc":
        nu = max(nu, 0.2)  # with less, the classes' reduced hulls may meet, and there is no margin
    task, nu = task_of(kind, y, target, upper, nu)
    [machine] = fit(Gram(k, X), [task], tol=1e-8)
    assert machine.stopped == "converged"
    p = task.program
    gamma = machine.gamma[p.position] if len(p.c) == len(y) else machine.gamma  # by variable
    assert (p.lo <= gamma).all() and (gamma <= p.hi).all()
    scale = upper.sum() * max(1.0, np.abs(target).max())  # Σ Cᵢ times slacks of the order of 1
    groups = np.array([gamma[: p.split].sum(), gamma[p.split :].sum()])
    start = np.array([p.start[: p.split].sum(), p.start[p.split :].sum()])
    assert groups == pytest.approx(start, abs=1e-12 * scale)
    coef = np.bincount(p.position, gamma, minlength=len(y))
    dual = p.c @ gamma - coef @ K @ coef / 2
    value = primal(kind, machine, K, y, target, upper, nu)
    # slopes within tol of each other: every slack within tol of its own, times what slacks cost
    rounding = 1e-12 * scale + 1e-15 * abs(dual)
    assert -rounding <= value - dual <= 2e-8 * scale + rounding
    assert machine.objective - machine.gap == pytest.approx(dual, abs=rounding)
    # what is stated has the rounding of K in it, beyond what the solver was asked for
    assert 0 <= machine.gap <= 2e-8 * scale and machine.violation <= 1e-8 + machine.noise


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_as_libsvm(kind, C, weighted, rng):
    X, y, target, weight = problem(7, n=60)
    X += 0.05 * rng.normal(size=X.shape)  # no duplicates: γ is unique
    weight = weight if weighted else np.ones(60)
    upper = weight * (1 if kind in ("nu_svc", "one_class") else C)
    task, nu = task_of(kind, y, target, upper, 0.3)
    [machine] = fit(Gram(Gaussian(gamma=0.5), X), [task], tol=1e-9)
    peer = {
        "c_svc": libsvm.SVC(C=C),
        "nu_svc": libsvm.NuSVC(nu=nu),
        "svr": libsvm.SVR(C=C, epsilon=0.1),
        "nu_svr": libsvm.NuSVR(C=C, nu=nu),
        "one_class": libsvm.OneClassSVM(nu=nu),
    }[kind]
    peer.set_params(gamma=0.5, tol=1e-9)
    if kind == "one_class":
        peer.fit(X, sample_weight=weight)
    else:
        peer.fit(X, y if "svc" in kind else target, sample_weight=weight)
    coef = np.zeros(60)
    coef[peer.support_] = peer.dual_coef_[0]
    K = Gaussian(gamma=0.5)(X)
    # LIBSVM keeps its kernel values in float32, whose rounding is 6e-8 of each; K's inverse enlarges it in γ
    scale = np.abs(coef).max()
    assert machine.coef == pytest.approx(coef, abs=1e-3 * scale)
    difference = machine.values - (K @ coef + peer.intercept_)
    free = (np.abs(coef) > 1e-9 * upper) & (np.abs(coef) < (1 - 1e-9) * upper)
    if kind == "nu_svr" and len(np.unique(np.sign(coef[free]))) < 2:  # b and ε may be anything in an interval
        difference -= difference.mean()
    assert difference == pytest.approx(0, abs=2e-5 * max(1, scale))
    if kind in ("c_svc", "svr", "one_class"):
        linear = {"c_svc": y @ coef, "svr": target @ coef - 0.1 * np.abs(coef).sum(), "one_class": 0}[kind]
        dual = linear - coef @ K @ coef / 2
        assert machine.objective == pytest.approx(dual, rel=1e-6)


# --- cases solved by hand ------------------------------------------------------------------------------


def test_two_points_on_a_line():
    """At 1 and 4: f(x) = (2/3)(x - 2.5), ‖f‖ = 2/3, α = 2/9; below that C, α = C."""
    K = Gram(Linear(), [[4.0], [1.0]])
    y = np.array([1.0, -1.0])
    [machine] = fit(K, [c_svc(y, np.full(2, 10.0))], tol=1e-9)
    assert machine.coef == pytest.approx([2 / 9, -2 / 9]) and machine.intercept == pytest.approx(-5 / 3)
    assert machine.square == pytest.approx(4 / 9) and machine.values == pytest.approx([1, -1])
    [machine] = fit(K, [c_svc(y, np.full(2, 0.1))], tol=1e-9)
    # f = 0.3 x + b, any b that leaves both slacks positive: the middle one
    assert machine.coef == pytest.approx([0.1, -0.1]) and machine.intercept == pytest.approx(-0.75)
    assert machine.objective == pytest.approx(0.045 + 0.1 * 2 * (1 - 0.45))


def test_xor_with_the_quadratic_kernel():
    """f(x) = x₁x₂ = ⟨φ(x), (0, 0, 1/√2)⟩: ‖f‖² = ½, the margin 2√2."""
    X = [[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]]
    [machine] = fit(Gram(Polynomial(2, c=0), X), [c_svc(np.array([1.0, -1, 1, -1]), np.full(4, 9.0))])
    assert machine.values == pytest.approx([1, -1, 1, -1]) and machine.square == pytest.approx(0.5)


def test_regression_of_two_points():
    [machine] = fit(Gram(Linear(), [[0.0], [1.0]]), [svr(np.array([0.0, 2.0]), np.full(2, 50.0), 0.5)])
    assert machine.values == pytest.approx([0.5, 1.5]) and machine.square == pytest.approx(1.0)


def test_nu_regression_finds_the_width():
    """Of four points, ν = 0.2 leaves none outside: the narrowest tube, of slope 0.9 and ε = 0.15."""
    K = Gram(Linear(), [[0.0], [1.0], [2.0], [3.0]])
    [machine] = fit(K, [nu_svr(np.array([0.0, 1.2, 1.8, 3.0]), np.full(4, 100.0), 0.2)], tol=1e-6)
    assert machine.epsilon == pytest.approx(0.15, abs=1e-6) and machine.square == pytest.approx(
        0.81, abs=1e-5
    )


def test_one_class_of_equal_points():
    """All the same point: γ sums to νn, f = 0 at all of them, ρ = νn k(x, x)."""
    [machine] = fit(Gram(Gaussian(1.0), np.zeros((10, 2))), [one_class(np.ones(10), 0.3)])
    assert machine.coef.sum() == pytest.approx(3.0) and machine.intercept == pytest.approx(-3.0)
    assert (machine.values >= 0).all()


def test_nu_bounds_the_errors(rng):
    X, y, _, _ = problem(3, n=60)
    [machine] = fit(Gram(Gaussian(1.0), X), [nu_svc(y, np.ones(60), 0.4)], tol=1e-8)
    inside, support = (y * machine.values < 1 - 1e-6).mean(), (machine.coef != 0).mean()
    assert inside <= 0.4 <= support


def test_nu_that_leaves_no_margin():
    K = Gram(Gaussian(1.0), np.ones((4, 1)))
    (machine,) = fit(K, [nu_svc(np.array([1.0, -1, 1, -1]), np.ones(4), 0.5)])
    assert not machine.has_margin and np.isfinite(machine.coef).all()
    K = Gram(Linear(), np.full((4, 1), 1e-160))  # and one that no number can hold
    with pytest.raises(InputError, match="nu leaves no margin between two classes"):
        fit(K, [nu_svc(np.array([1.0, -1, 1, -1]), np.ones(4), 0.5)])


# --- warm starts -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("factor", [0.3, 1.0, 5.0])
def test_a_warm_start_is_feasible_and_better(kind, factor, rng):
    X, y, target, weight = problem(11)
    K = Gram(Gaussian(1.0), X)
    first, _ = task_of(kind, y, target, weight, 0.3)
    [machine] = fit(K, [first], tol=1e-6)
    second, _ = task_of(kind, y, target, factor * weight, 0.3)
    started = warm(second, machine.gamma, machine.energy)
    p, s = started.program, started.program.start
    assert (p.lo <= s).all() and (s <= p.hi).all()
    sums = s[: p.split].sum(), s[p.split :].sum()
    assert sums == pytest.approx(
        (second.program.start[: p.split].sum(), second.program.start[p.split :].sum())
    )
    dense = K.dense()

    def value(gamma):
        coef = np.bincount(p.position, gamma, minlength=len(y))
        return coef @ dense @ coef / 2 - p.c @ gamma

    assert value(s) <= value(second.program.start)
    [a], [b] = fit(K, [started], tol=1e-8), fit(K, [second], tol=1e-8)
    assert a.objective == pytest.approx(b.objective, rel=1e-6, abs=1e-6)


def test_what_does_not_fit_is_not_used(rng):
    task = c_svc(np.array([1.0, -1.0]), np.ones(2))
    for gamma in ([0.5], [-0.5, 0.5], [0.0, 0.0], [np.nan, 0.0]):
        assert warm(task, np.array(gamma), 1.0) is task


def compared(K, old, task):
    """The steps of a warm start and of a cold one, which end at the same objective."""
    [machine] = fit(K, [old])
    [a], [b] = (fit(K, [start]) for start in (warm(task, machine.gamma, machine.energy), task))
    assert a.stopped == b.stopped == "converged"
    # both are above the minimum by their gaps at most
    assert abs(a.objective - b.objective) <= 1.01 * (a.gap + b.gap)
    return a.iterations, b.iterations


@pytest.mark.parametrize(("kind", "C"), [("c_svc", 1.0), ("c_svc", 10.0), ("nu_svc", 1.0)])
def test_some_other_labels_are_a_warm_start(kind, C, rng):
    """One of a hundred: their γ has the wrong sign, the others' serves, more or less: eight choices."""
    X, y, target, _ = problem(5, n=400)
    steps = []
    for _ in range(8):
        other = y.copy()
        other[rng.choice(400, 4, replace=False)] *= -1
        old, task = (task_of(kind, labels, target, np.full(400, C), 0.6)[0] for labels in (y, other))
        steps.append(compared(Gram(Gaussian(1.0), X), old, task))
    warm_steps, cold_steps = np.sum(steps, axis=0)
    assert warm_steps < 0.9 * cold_steps


def test_another_nu_or_c_is_a_warm_start():
    X, _, target, _ = problem(5, n=3000)
    K, ones = Gram(Gaussian(1.0), X), np.ones(3000)
    order = outlying(K, ones)
    cases = [
        (one_class(ones, 0.1, order), one_class(ones, 0.12, order)),
        (nu_svr(target, ones, 0.3), nu_svr(target, ones, 0.36)),
        (nu_svr(target, ones, 0.3), nu_svr(target, 2 * ones, 0.3)),
        (nu_svr(target, ones, 0.3), nu_svr(target, 0.5 * ones, 0.3)),
    ]
    for i, (old, task) in enumerate(cases):
        warm_steps, cold_steps = compared(K, old, task)
        assert warm_steps < (0.9 if i else 1.0) * cold_steps, i


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), nu=st.floats(0.01, 1.0), log_c=st.floats(-3, 3), flips=st.integers(0, 20))
def test_every_warm_start_is_feasible(kind, seed, nu, log_c, flips):
    """Whatever γ came before: between the bounds, with the sums of the task's own start."""
    rng = np.random.default_rng(seed)
    _, y, target, weight = problem(seed)
    upper = 10**log_c * weight
    task, _ = task_of(kind, y, target, upper, nu)
    p = task.program
    gamma = np.where(rng.random(len(p.c)) < 0.5, p.start, rng.uniform(p.lo, p.hi))
    gamma[rng.choice(len(p.c), flips, replace=False)] *= -rng.exponential()
    if len(p.c) == len(y):
        gamma[p.position] = gamma.copy()  # by point
    started = warm(task, gamma, rng.exponential()).program.start
    assert (p.lo <= started).all() and (started <= p.hi).all()
    for group in (slice(0, p.split), slice(p.split, len(p.c))):
        # sums of at most 80 terms
        assert started[group].sum() == pytest.approx(p.start[group].sum(), abs=1e-12 * upper.sum())


# --- hard margins ------------------------------------------------------------------------------------------


def hard(X, y, kernel=None, **options):
    K = Gram(kernel or Linear(), X)
    weight = np.ones(len(y))
    unit = 1 / np.abs(K.diag()).mean()
    with Control() as control:
        return separate(
            K,
            lambda C, which: [c_svc(y, C * weight)],
            1,
            unit,
            control=control,
            tol=1e-6,
            cache=2**24,
            **options,
        )[0]


def test_a_margin_that_is_known(rng):
    """Half-planes at distance 1 from a line through the origin, a point of each on its boundary: 2."""
    w = np.array([3.0, 4.0]) / 5
    side = np.repeat([1.0, -1.0], 20)
    X = side[:, None] * (1 + np.r_[0, rng.uniform(0.5, 9, 19), 0, rng.uniform(0.5, 9, 19)])[:, None] * w
    X += np.r_[0, rng.normal(size=19), 0, rng.normal(size=19)][:, None] * np.array([-w[1], w[0]]) * 0.3
    machine = hard(X, side)
    assert machine.square == pytest.approx(1.0, rel=1e-4) and (side * machine.values).min() >= 1 - 2e-6
    assert 0 <= machine.gap <= 1e-4 and np.isinf(machine.hi[side > 0]).all()


@pytest.mark.parametrize("distance", [1.0, 1e-1, 1e-2, 1e-3])
def test_narrow_margins_are_found(distance):
    """Two close points of different classes: the margin is their distance, and α is 2/distance²."""
    X = np.array([[0.0, 1.0], [0.0, -1.0], [distance, 0.0], [0.0, 0.0]])
    machine = hard(X, np.array([1.0, -1.0, 1.0, -1.0]), Gaussian(1.0))
    assert machine.stopped == "converged" and machine.gap <= 1e-3 * machine.objective


@pytest.mark.sample(3)
@pytest.mark.parametrize("n", [6, 60, 300])
def test_what_is_not_separable_is_said_soon(n, rng, within_cpu):
    X, y = rng.normal(size=(n, 2)), np.where(np.arange(n) % 2, 1.0, -1.0)
    X[1], y[0], y[1] = X[0], 1.0, -1.0  # contradictory
    told = r"not separable by this kernel, or only with a margin .* finite C"
    with within_cpu(20.0):
        for kernel in (Linear(), Gaussian(1.0)):
            with pytest.raises(InputError, match=told):
                hard(X, y, kernel)


@pytest.mark.parametrize("stages", [1, 2, None])
def test_hard_margins_are_resumed(stages, tmp_path):
    """Interrupted after some stages, or at the end: the model is the same, bit by bit."""
    X = np.array([[0.0, 1.0], [0.0, -1.0], [1e-2, 0.0], [0.0, 0.0]])  # takes several stages
    y = np.array([1.0, -1.0, 1.0, -1.0])
    K, unit = Gram(Gaussian(1.0), X), 1.0
    seen = []

    def stop(event):
        seen.append(event)
        if stages is not None and sum("C" in e["facts"] for e in seen) == stages:
            raise KeyboardInterrupt

    def run(**options):
        def make(C, which):  # the second problem is easy, and found in the first stage
            return [c_svc(y[np.arange(4) if i == 0 else [0, 1, 1, 1]], np.full(4, C)) for i in which]

        with Control(checkpoint=tmp_path / "state.npz", **options) as control:
            return separate(K, make, 2, unit, control=control, tol=1e-6)

    whole = run(progress=False)
    (tmp_path / "state.npz").unlink()
    first = run(progress=stop)
    assert len(first) == 2
    assert [m.stopped for m in first] == (
        ["converged"] * 2 if stages is None else ["interrupted", "converged"]
    )
    for _ in range(2):  # and again, after the end
        for a, b in zip(run(progress=False, resume=True), whole, strict=True):
            assert np.array_equal(a.coef, b.coef) and np.array_equal(a.values, b.values)
            assert (a.intercept, a.objective, a.gap, a.iterations, a.stopped) == (
                b.intercept,
                b.objective,
                b.gap,
                b.iterations,
                "converged",
            )
            assert a.iterations > 0 and np.array_equal(a.hi, b.hi)


def test_steps_of_all_stages_are_counted(monkeypatch):
    X = np.array([[0.0, 1.0], [0.0, -1.0], [1e-2, 0.0], [0.0, 0.0]])
    counts = []

    def counted(*args, **options):
        machines = fit(*args, **options)
        counts.append(machines[0].iterations)
        return machines

    monkeypatch.setattr(hard_margin, "fit", counted)
    machine = hard(X, np.array([1.0, -1.0, 1.0, -1.0]), Gaussian(1.0))
    assert len(counts) > 1 and machine.iterations == sum(counts) > counts[-1]


def test_a_tube_without_a_function(rng):
    X = np.zeros((2, 1))
    K = Gram(Gaussian(1.0), X)
    with (
        Control() as control,
        pytest.raises(InputError, match="no function comes within epsilon of all targets"),
    ):
        separate(
            K, lambda C, w: [svr(np.array([0.0, 1.0]), np.full(2, C), 0.1)], 1, 1.0, control=control, tol=1e-3
        )
