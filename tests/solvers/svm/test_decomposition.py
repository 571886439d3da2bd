"""The quadratic programs of the five support vector machines: against LIBSVM and their own conditions."""

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import svm

from mercer import Gaussian, Gram, Linear, Polynomial, Precomputed, config
from mercer.errors import InputError
from mercer.solvers.control import Control
from mercer.solvers.result import Stop
from mercer.solvers.svm import decomposition
from mercer.solvers.svm import program as program_module
from mercer.solvers.svm.decomposition import QuadraticProgram, solve
from mercer.solvers.svm.on_device import DeviceIterate

pytestmark = pytest.mark.usefixtures("cpu_clock")  # a limit is of work, on a busy machine too

SEEDS = st.integers(0, 2**32 - 1)


# --- the five problems -------------------------------------------------------------------------------


def c_svc(y, C=1.0, segments=(0,)):
    """y: ±1; C: a number, or one per point."""
    bound = y * C
    n = len(y)
    return QuadraticProgram(
        y.astype(float),
        np.minimum(bound, 0.0),
        np.maximum(bound, 0.0),
        np.zeros(n),
        np.arange(n),
        n,
        segments,
    )


def fill(total, hi):
    """The first variables at their upper bound, until they sum to total."""
    return np.clip(total - np.concatenate([[0.0], np.cumsum(hi)[:-1]]), 0.0, hi)


def nu_svc(y, nu):
    n, half = len(y), nu * len(y) / 2
    position = np.argsort(-y, kind="stable")
    plus = int((y > 0).sum())
    sign = y[position].astype(float)
    one = np.ones(n)
    start = np.concatenate([fill(half, one[:plus]), -fill(half, one[plus:])])
    return QuadraticProgram(np.zeros(n), np.minimum(sign, 0.0), np.maximum(sign, 0.0), start, position, plus)


def svr(y, C=1.0, epsilon=0.1):
    n = len(y)
    bound = np.broadcast_to(C, n).astype(float)
    zero = np.zeros(n)
    return QuadraticProgram(
        np.concatenate([y - epsilon, y + epsilon]),
        np.concatenate([zero, -bound]),
        np.concatenate([bound, zero]),
        np.zeros(2 * n),
        np.concatenate([np.arange(n), np.arange(n)]),
        2 * n,
    )


def nu_svr(y, C=1.0, nu=0.5):
    n = len(y)
    bound, zero = np.full(n, C), np.zeros(n)
    first = fill(C * nu * n / 2, bound)
    return QuadraticProgram(
        np.concatenate([y, y]),
        np.concatenate([zero, -bound]),
        np.concatenate([bound, zero]),
        np.concatenate([first, -first]),
        np.concatenate([np.arange(n), np.arange(n)]),
        n,
    )


def one_class(n, nu, weight=1.0):
    hi = np.broadcast_to(weight, n).astype(float)
    return QuadraticProgram(np.zeros(n), np.zeros(n), hi, fill(nu * hi.sum(), hi), np.arange(n), n)


def coefficients(program, gamma):
    """One number per point: the sum of its variables."""
    return np.bincount(program.position, gamma, minlength=program.position.max() + 1)


# --- what must hold, whoever solved it ---------------------------------------------------------------


def objective(K, program, gamma):
    a = coefficients(program, gamma)
    return 0.5 * a @ K @ a - program.c @ gamma


def groups(program):
    l = len(program.c)
    return [slice(0, l)] if program.split == l else [slice(0, program.split), slice(program.split, l)]


def check(K, program, solution, tol, rounding=1e-9):
    """Feasible, optimal up to tol, and all that is reported true; K is dense."""
    gamma, p = solution.gamma, program
    scale = max(1.0, np.abs(gamma).max())
    assert (gamma >= p.lo).all() and (gamma <= p.hi).all()
    values = K @ coefficients(p, gamma)
    size = max(1.0, np.abs(K).max() * np.abs(gamma).sum())
    np.testing.assert_allclose(solution.values, values, rtol=0, atol=rounding * size)
    v = p.c - values[p.position]
    violation, gap = 0.0, 0.0
    for group, level in zip(groups(p), solution.level, strict=True):
        # pairs move by one step: sums are kept up to rounding of thousands of steps
        assert gamma[group].sum() == pytest.approx(p.start[group].sum(), abs=1e-10 * scale * len(gamma))
        rising, falling = gamma[group] < p.hi[group], gamma[group] > p.lo[group]
        top = v[group][rising].max(initial=-np.inf)
        bottom = v[group][falling].min(initial=np.inf)
        violation = max(violation, top - bottom)
        slack = tol + rounding * size
        assert min(top, bottom) - slack <= level <= max(top, bottom) + slack
        over, under = np.maximum(v[group] - level, 0.0), np.maximum(level - v[group], 0.0)
        with np.errstate(invalid="ignore"):  # ∞ · 0
            gap += np.where(over > 0, (p.hi - gamma)[group] * over, 0.0).sum()
            gap += np.where(under > 0, (gamma - p.lo)[group] * under, 0.0).sum()
    assert violation <= tol + rounding * size
    assert solution.violation == pytest.approx(violation, abs=rounding * size)
    assert solution.violation <= tol
    assert solution.stopped == "converged"
    assert solution.objective == pytest.approx(objective(K, p, gamma), abs=rounding * size * scale)
    assert solution.gap >= 0.0
    bound = (p.hi - p.lo).sum()
    if np.isfinite(bound):
        assert solution.gap == pytest.approx(gap, abs=rounding * size * max(bound, 1.0))
        assert solution.gap <= 2 * tol * max(bound, 1.0)


def dense(X, sigma):
    return np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2) / (2 * sigma**2))


def run(program, K, **options):
    """The problem with a matrix that is there."""
    return solve(Gram(Precomputed(K), np.arange(len(K))), [program], **options)[0]


def libsvm(model, K, y=None, weight=None, tol=1e-8):
    """One signed number per point."""
    model.set_params(kernel="precomputed", tol=tol, cache_size=500)
    model.fit(K, y, sample_weight=weight)
    a = np.zeros(len(K))
    a[model.support_] = model.dual_coef_[0]
    return a


def problem(name, rng, n, d=3, separation=1.0, C=None):
    """K, the program, and the objective that LIBSVM finds."""
    X = rng.normal(size=(n, d))
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    X[:, 0] += separation * y
    t = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=n)
    K = dense(X, rng.uniform(0.5, 1.5))  # wider ones are so close to singular that LIBSVM takes minutes
    C = C or 10 ** rng.uniform(-2, 3)
    nu = rng.uniform(0.2, 0.9)
    if name == "C-SVC":
        program = c_svc(y, C)
        a = libsvm(svm.SVC(C=C), K, y)
        return K, program, 0.5 * a @ K @ a - np.abs(a).sum()
    if name == "nu-SVC":
        nu *= 2 * min((y > 0).mean(), (y < 0).mean())
        a = libsvm(svm.NuSVC(nu=nu), K, y)
        a *= nu * n / np.abs(a).sum()  # LIBSVM has divided by r
        return K, nu_svc(y, nu), 0.5 * a @ K @ a
    if name == "SVR":
        epsilon = rng.uniform(0.01, 0.5)
        a = libsvm(svm.SVR(C=C, epsilon=epsilon), K, t)
        return K, svr(t, C, epsilon), 0.5 * a @ K @ a - t @ a + epsilon * np.abs(a).sum()
    if name == "nu-SVR":
        a = libsvm(svm.NuSVR(C=C, nu=nu), K, t)
        return K, nu_svr(t, C, nu), 0.5 * a @ K @ a - t @ a
    a = libsvm(svm.OneClassSVM(nu=nu), K)
    return K, one_class(n, nu), 0.5 * a @ K @ a


NAMES = ["C-SVC", "nu-SVC", "SVR", "nu-SVR", "one-class"]


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25)
@given(seed=SEEDS, n=st.integers(3, 60), separation=st.sampled_from([0.0, 1.0, 3.0]))
def test_libsvm_finds_the_same_minimum(name, seed, n, separation):
    K, program, expected = problem(name, np.random.default_rng(seed), n, separation=separation)
    solution = run(program, K, tol=1e-8)
    check(K, program, solution, 1e-8)
    assert solution.objective == pytest.approx(expected, rel=1e-6, abs=1e-9)


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n", [300, 700])  # with two variables per point, 600: more than one working set
def test_working_sets(name, n, rng):
    K, program, expected = problem(name, rng, n, C=20.0)
    for tol in (1e-3, 1e-6):
        solution = run(program, K, tol=tol)
        check(K, program, solution, tol)
        # LIBSVM at 1e-8 is at the minimum; nobody is lower, nor higher by more than the gap
        slack = 1e-6 * abs(expected) + 1e-9
        assert expected - slack <= solution.objective <= expected + solution.gap + slack
    assert solution.objective == pytest.approx(expected, rel=1e-6, abs=1e-6)


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", NAMES)
def test_more_variables_than_a_block_has(name, rng):
    K, program, expected = problem(name, rng, 1100 if "SVR" in name else 2200, C=2.0)
    solution = run(program, K, tol=1e-6)
    check(K, program, solution, 1e-6)
    assert solution.objective == pytest.approx(expected, rel=1e-6)


@pytest.mark.sample(12)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("rows, n", [(2, 60), (3, 60), (10, 100), (50, 400), (300, 600)])
def test_a_small_store_changes_nothing_but_time(name, rows, n, rng):
    K, program, expected = problem(name, rng, n, C=2.0)
    size = -(-len(K) * 8 // 64) * 64
    with Control(max_time=20) as control:
        solution = run(program, K, tol=1e-3, cache=rows * size, control=control)
    check(K, program, solution, 1e-3)
    slack = 1e-6 * abs(expected) + 1e-9
    assert expected - slack <= solution.objective <= expected + solution.gap + slack


def easy(rng, n):
    """Most points far from the boundary, at a bound early on: there is much to leave aside."""
    X = rng.normal(size=(n, 3))
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    X[:, 0] += 1.5 * y
    return dense(X, 1.0), c_svc(y, 300.0)


@pytest.fixture
def small_sets(monkeypatch):
    """Small working sets, so that a problem of a few hundred points takes many rounds and shrinks."""
    monkeypatch.setattr(decomposition, "WHOLE", 16)
    monkeypatch.setattr(program_module, "WHOLE", 16)
    monkeypatch.setattr(program_module.Iterate, "first", 16)
    monkeypatch.setattr(decomposition.smo, "LARGEST_BLOCK", 24)
    monkeypatch.setattr(decomposition, "_LOOK", 3)
    shrunk = []

    def solve_inside(K, *args, **options):
        shrunk.append(K.shape[0])
        return solve(K, *args, **options)

    monkeypatch.setattr(decomposition, "solve", solve_inside)
    return shrunk


def test_shrinking_changes_nothing_but_time(small_sets, rng):
    K, program = easy(rng, 200)
    whole = run(program, K, tol=1e-4, shrinking=False)
    check(K, program, whole, 1e-4)
    assert not small_sets
    solution = run(program, K, tol=1e-4)
    check(K, program, solution, 1e-4)
    assert small_sets and max(small_sets) < 100
    # each within its gap of the minimum
    assert abs(solution.objective - whole.objective) <= max(solution.gap, whole.gap)


@pytest.mark.full
def test_steps_of_a_shrunken_problem_count(small_sets, rng):
    K, program = easy(rng, 400)
    steps = run(program, K, tol=1e-4).iterations
    before = len(small_sets)
    solution = run(program, K, tol=1e-4, max_iter=steps - 10)
    assert before < len(small_sets)
    assert (solution.iterations, solution.stopped) == (steps - 10, "max_iter")
    assert solution.objective == pytest.approx(objective(K, program, solution.gamma))


def test_shrinking_with_two_variables_per_point(small_sets, rng):
    X = rng.normal(size=(150, 2))
    y, K = np.sin(2 * X[:, 0]), dense(X, 1.0)
    for program in (svr(y, 2.0, 0.1), nu_svr(y, 2.0, 0.2)):
        check(K, program, run(program, K, tol=1e-3), 1e-3)
    assert small_sets


def require_the_same_when_resumed(run, K, program, path):
    """Interrupted after four rounds and resumed from its checkpoint, it ends at the same γ, bit for bit."""
    expected = run(program, K, tol=1e-4)

    def press(event):
        if event["done"] == 4:
            raise KeyboardInterrupt

    with Control(progress=press, checkpoint=path) as control:
        assert run(program, K, tol=1e-4, control=control).stopped == "interrupted"
    with Control(checkpoint=path, resume=True) as control:
        resumed = run(program, K, tol=1e-4, control=control)
    np.testing.assert_array_equal(resumed.gamma, expected.gamma)
    assert resumed.iterations == expected.iterations


@pytest.mark.full
def test_a_checkpoint_of_a_problem_that_shrinks(small_sets, rng, tmp_path):
    require_the_same_when_resumed(run, *easy(rng, 400), tmp_path / "rounds.npz")
    assert small_sets


def test_small_working_sets_are_only_slower(small_sets, rng):
    for name in NAMES:
        K, program, expected = problem(name, rng, 150, C=2.0)
        solution = run(program, K, tol=1e-5)
        check(K, program, solution, 1e-5)
        assert solution.objective <= expected + solution.gap + 1e-9 * abs(expected)


@pytest.mark.parametrize("shift", [-100.0, 100.0])
@pytest.mark.parametrize("make", [svr, nu_svr])
def test_targets_far_from_zero(make, shift, rng):
    """Σγ = 0: a constant added to all targets moves the level, and nothing else."""
    X = rng.normal(size=(80, 2))
    y, K = np.sin(X[:, 0]), dense(X, 1.0)
    plain, shifted = run(make(y), K, tol=1e-8), run(make(y + shift), K, tol=1e-8)
    check(K, make(y + shift), shifted, 1e-8)
    assert shifted.objective == pytest.approx(plain.objective, rel=1e-6)
    assert np.subtract(shifted.level, plain.level) == pytest.approx(shift, abs=1e-4)


# --- duality -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [200, 800])
def test_the_gap_is_primal_minus_dual_and_closes(n, rng):
    X = rng.normal(size=(n, 3))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    C = rng.uniform(0.1, 10.0, n)  # weights: a bound of its own for each point
    K = dense(X, 1.0)
    gaps = []
    for tol in (1e-1, 1e-3, 1e-5, 1e-7):
        s = run(c_svc(y, C), K, tol=tol)
        f = K @ s.gamma + s.level[0]
        primal = 0.5 * s.gamma @ K @ s.gamma + C @ np.maximum(1 - y * f, 0.0)
        assert s.gap == pytest.approx(primal + s.objective, abs=1e-10 * primal)
        gaps.append(s.gap)
    assert gaps[0] > gaps[1] > gaps[2] > gaps[3] >= 0
    assert gaps[3] <= 1e-6 * primal


def test_the_gap_of_regression(rng):
    X = rng.normal(size=(90, 3))
    y, K = X[:, 0] ** 2, dense(X, 1.0)
    s = run(svr(y, 2.0, 0.1), K, tol=1e-5)
    a = coefficients(svr(y), s.gamma)
    f = K @ a + s.level[0]
    primal = 0.5 * a @ K @ a + 2.0 * np.maximum(np.abs(y - f) - 0.1, 0.0).sum()
    assert s.gap == pytest.approx(primal + s.objective, abs=1e-10 * primal)


@pytest.mark.full
def test_levels_are_intercepts(rng):
    """b of LIBSVM's models, by the formulas for each problem."""
    X = rng.normal(size=(60, 2))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=60) > 0, 1.0, -1.0)
    t, K = np.sin(X[:, 0]), dense(X, 1.0)
    close = {"abs": 1e-6}  # slopes of free variables are all within tol of the level

    def intercept(model, target):
        return model.set_params(kernel="precomputed", tol=1e-9).fit(K, target).intercept_[0]

    s = run(c_svc(y, 10.0), K, tol=1e-9)
    assert s.level[0] == pytest.approx(intercept(svm.SVC(C=10.0), y), **close)
    s = run(svr(t, 10.0, 0.1), K, tol=1e-9)
    assert s.level[0] == pytest.approx(intercept(svm.SVR(C=10.0, epsilon=0.1), t), **close)
    s = run(one_class(60, 0.3), K, tol=1e-9)
    assert s.level[0] == pytest.approx(intercept(svm.OneClassSVM(nu=0.3), None), **close)
    s = run(nu_svc(y, 0.4), K, tol=1e-9)
    plus, minus = s.level
    margin = (minus - plus) / 2
    assert margin > 0
    assert (plus + minus) / 2 / margin == pytest.approx(intercept(svm.NuSVC(nu=0.4), y), **close)
    s = run(nu_svr(t, 10.0, 0.4), K, tol=1e-9)
    plus, minus = s.level
    # LIBSVM rounds K to float32, which tells where ε is as small as here
    assert (plus + minus) / 2 == pytest.approx(intercept(svm.NuSVR(C=10.0, nu=0.4), t), abs=1e-4)
    assert (plus - minus) / 2 > 0  # ε


def test_two_points_by_hand():
    """x = ±1 with the linear kernel: γ = (½, -½), b = 0, and the margin 2/‖w‖ = 2."""
    K = Gram(Linear(), np.array([[1.0], [-1.0]]))
    s = solve(K, [c_svc(np.array([1.0, -1.0]), 10.0)])[0]
    assert s.gamma.tolist() == [0.5, -0.5]
    assert s.level == (0.0,) and s.objective == -0.5 and s.gap == 0.0 and s.stopped == "converged"


# --- several problems --------------------------------------------------------------------------------


@pytest.mark.parametrize("cache", [2**28, 40 * 64 * 60])
def test_all_pairs_of_classes_are_as_if_alone(cache, rng):
    sizes = [40, 170, 100, 130]
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    X = rng.normal(size=(440, 3))
    for k in range(4):
        X[bounds[k] : bounds[k + 1], k % 3] += 1.5
    K = Gram(Gaussian(sigma=1.0), X)
    whole = K.dense()
    pairs = [(i, j) for i in range(4) for j in range(i + 1, 4)]
    programs = [c_svc(np.concatenate([np.ones(sizes[i]), -np.ones(sizes[j])]), 5.0, (i, j)) for i, j in pairs]
    together = solve(K, programs, bounds=bounds, tol=1e-6, cache=cache)
    for (i, j), program, solution in zip(pairs, programs, together, strict=True):
        points = np.concatenate([np.arange(*bounds[k : k + 2]) for k in (i, j)])
        part = whole[np.ix_(points, points)]
        check(part, program, solution, 1e-6)
        alone = run(c_svc(program.c, 5.0), part, tol=1e-6)
        # both are within a gap of tol Σ(hi - lo) of the minimum
        assert solution.objective == pytest.approx(alone.objective, rel=1e-6)


def test_each_class_against_the_rest(rng):
    """Problems over all points, with more than one working set each."""
    X = rng.normal(size=(700, 3))
    label = rng.integers(0, 3, 700)
    X[np.arange(700), label] += 2.0
    K = Gram(Gaussian(sigma=1.5), X)
    programs = [c_svc(np.where(label == k, 1.0, -1.0), 2.0) for k in range(3)]
    for program, solution in zip(programs, solve(K, programs, tol=1e-5), strict=True):
        check(K.dense(), program, solution, 1e-5)
        alone = solve(K, [program], tol=1e-5)[0]
        assert solution.objective == pytest.approx(alone.objective, rel=1e-6)


def test_no_problem_at_all():
    assert solve(Gram(Linear(), np.ones((2, 1))), []) == []


# --- where a run begins and ends ---------------------------------------------------------------------


@pytest.mark.parametrize("n", [200, 900])
def test_a_warm_start_gets_to_the_same_minimum_sooner(n, rng):
    X = rng.normal(size=(n, 3))
    y, K = np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0), dense(X, 1.0)
    first = run(c_svc(y, 1.0), K, tol=1e-6)
    cold = run(c_svc(y, 1.2), K, tol=1e-6)
    box = c_svc(y, 1.2)
    warm_program = QuadraticProgram(box.c, box.lo, box.hi, 1.2 * first.gamma, box.position, box.split)
    warm = run(warm_program, K, tol=1e-6)
    check(K, warm_program, warm, 1e-6)
    assert warm.objective == pytest.approx(cold.objective, rel=1e-6)
    assert warm.iterations < cold.iterations
    again = run(QuadraticProgram(box.c, box.lo, box.hi, warm.gamma, box.position, box.split), K, tol=1e-5)
    assert (again.iterations, again.stopped) == (0, "converged")
    np.testing.assert_array_equal(again.gamma, warm.gamma)


@pytest.mark.parametrize("n", [100, 900])
@pytest.mark.parametrize("max_iter", [0, 1, 7, 50])
def test_steps_are_limited(n, max_iter, rng):
    K, program, _ = problem("C-SVC", rng, n)
    solution = run(program, K, tol=1e-9, max_iter=max_iter)
    assert (solution.iterations, solution.stopped) == (max_iter, "max_iter")
    assert solution.violation > 1e-9
    assert solution.objective == pytest.approx(objective(K, program, solution.gamma))
    if max_iter == 0:
        np.testing.assert_array_equal(solution.gamma, program.start)


def test_the_time_is_over(rng):
    K, program, _ = problem("C-SVC", rng, 700)
    with Control(max_time=0.0) as control:
        solution = run(program, K, control=control)
    assert solution.stopped == "max_time" and solution.iterations == 0
    assert solution.gap > 0


class OverAfter(Control):
    """A control whose time is over after some steps."""

    def __init__(self, steps):
        super().__init__()
        self.most = steps

    @property
    def stopped(self):
        return Stop.MAX_TIME if self.iterations >= self.most else None


@pytest.mark.parametrize("n", [60, 700])
def test_who_is_done_has_converged_whatever_the_clock_says(n, rng):
    K, program, _ = problem("C-SVC", rng, n)
    counted = OverAfter(np.inf)
    free = run(program, K, control=counted)
    for steps in range(counted.iterations + 1):
        solution = run(program, K, control=OverAfter(steps))
        assert (solution.stopped == "converged") == (solution.violation <= 1e-3)
    assert solution.stopped == free.stopped == "converged"
    np.testing.assert_array_equal(solution.gamma, free.gamma)


def test_ctrl_c_keeps_the_best_so_far(rng):
    K, program, expected = problem("C-SVC", rng, 900)

    def press(event):
        if event["done"] == 2:
            raise KeyboardInterrupt

    with Control(progress=press) as control:
        solution = run(program, K, tol=1e-9, control=control)
    assert solution.stopped == "interrupted" and control.iterations == 2
    assert expected < solution.objective < 0  # 0 at the start
    assert (solution.gamma >= program.lo).all() and (solution.gamma <= program.hi).all()


@pytest.mark.parametrize("after", [1, 3])
def test_a_checkpoint_goes_on_to_the_same_solution(after, rng, tmp_path):
    """Two problems, of which one may be done; rows are read, not computed: the same to the last bit."""
    K, program, _ = problem("C-SVC", rng, 900)
    easy = c_svc(program.c, 1e-3)
    G = Gram(Precomputed(K), np.arange(900))
    expected = solve(G, [program, easy], tol=1e-6)

    def press(event):
        if event["done"] == after:
            raise KeyboardInterrupt

    path = tmp_path / "rounds.npz"
    with Control(progress=press, checkpoint=path) as control:
        stopped = solve(G, [program, easy], tol=1e-6, control=control)
    assert stopped[0].stopped == "interrupted"
    with Control(checkpoint=path, resume=True) as control:
        resumed = solve(G, [program, easy], tol=1e-6, control=control)
    for one, other in zip(resumed, expected, strict=True):
        np.testing.assert_array_equal(one.gamma, other.gamma)
        assert (one.iterations, one.stopped, one.level) == (other.iterations, "converged", other.level)
    with Control(checkpoint=path, resume=True) as control:  # of a run that was done
        done = solve(G, [program, easy], tol=1e-6, control=control)
    np.testing.assert_array_equal(done[0].gamma, expected[0].gamma)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_threads_do_not_change_a_bit(dtype, rng):
    X = rng.normal(size=(1300, 3))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=1300) > 0, 1.0, -1.0)
    solutions = []
    for threads in (1, 2):
        with config(threads=threads, dtype=dtype):
            K = Gram(Gaussian(sigma=1.0), X)
            solutions.append(solve(K, [c_svc(y, 3.0), c_svc(y, 1.0)], tol=1e-4))
    for one, two in zip(*solutions, strict=True):
        np.testing.assert_array_equal(one.gamma, two.gamma)
        assert one.iterations == two.iterations


def test_float32_values(rng):
    """K is rounded, and the problem of the rounded K is solved just as well."""
    X = rng.normal(size=(900, 3))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=900) > 0, 1.0, -1.0)
    with config(dtype="float32"):
        K = Gram(Gaussian(sigma=1.0), X)
        solution = solve(K, [c_svc(y, 2.0)], tol=1e-4)[0]
        # blocks of other shapes round the same entry differently, by some 1e-7
        check(K.dense().astype(np.float64), c_svc(y, 2.0), solution, 1e-4, rounding=1e-6)
    exact = run(c_svc(y, 2.0), dense(X, 1.0), tol=1e-6)
    assert solution.objective == pytest.approx(exact.objective, rel=1e-5)


# --- awkward problems --------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [60, 700])
def test_a_matrix_that_is_no_kernels_ends(n, rng):
    A = rng.normal(size=(n, n)) / np.sqrt(n)
    K = A + A.T
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    with Control(max_time=20) as control:
        solution = run(c_svc(y, 1.0), K, tol=1e-3, control=control)
    check(K, c_svc(y, 1.0), solution, 1e-3)
    assert solution.objective < 0


@pytest.mark.parametrize("n", [60, 700])
@pytest.mark.parametrize("name", ["c_svc", "one_class", "svr"])
def test_duplicates(name, n, rng):
    """Every point three times, with labels that contradict each other."""
    X = np.repeat(rng.normal(size=(n // 3 + 1, 2)), 3, axis=0)[:n]
    K = dense(X, 1.0)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    program = {
        "c_svc": lambda: c_svc(y, 10.0),
        "one_class": lambda: one_class(n, 0.3),
        "svr": lambda: svr(y),
    }[name]()
    check(K, program, run(program, K, tol=1e-6), 1e-6)


def test_all_points_the_same():
    K, y = np.ones((50, 50)), np.where(np.arange(50) % 3 == 0, 1.0, -1.0)
    solution = run(c_svc(y, 2.0), K, tol=1e-8)
    check(K, c_svc(y, 2.0), solution, 1e-8)
    assert solution.level[0] == pytest.approx(-1.0)  # the majority's


def test_a_kernel_that_is_zero(rng):
    """The linear kernel of points at the origin: f = b."""
    y = np.where(np.arange(30) % 3 == 0, 1.0, -1.0)
    solution = run(c_svc(y, 2.0), np.zeros((30, 30)), tol=1e-8)
    check(np.zeros((30, 30)), c_svc(y, 2.0), solution, 1e-8)


@pytest.mark.parametrize("n, C", [(100, 1e-6), (100, 1e9), (700, 1e-6), (700, 1e4)])
def test_extreme_penalties_end(n, C, rng):
    """Also on data that no plane separates, where steps get lost in rounding."""
    X = rng.normal(size=(n, 2))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    K = dense(X, 1.0)
    with Control(max_time=30) as control:
        solution = run(c_svc(y, C), K, tol=1e-3, control=control)
    assert solution.stopped in ("converged", "rounding")
    assert solution.gap >= 0
    if C < 1:
        check(K, c_svc(y, C), solution, 1e-3)


def test_scales_of_the_kernel(rng):
    """k in other units, with C in their inverse."""
    X = rng.normal(size=(80, 2))
    y, K = np.where(X[:, 0] > 0, 1.0, -1.0), dense(X, 1.0)
    expected = run(c_svc(y, 5.0), K, tol=1e-6).objective
    for scale in (2.0**-150, 2.0**-60, 2.0**60, 2.0**150):
        solution = run(c_svc(y, 5.0 / scale), K * scale, tol=1e-6)
        assert solution.stopped == "converged"
        assert solution.objective * scale == pytest.approx(expected, rel=1e-6)


def test_the_hard_margin(rng):
    """C = ∞ on data that a plane separates: the same as a C that nothing reaches."""
    X = rng.normal(size=(60, 2))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    X[:, 0] += y
    K = X @ X.T
    hard, soft = run(c_svc(y, np.inf), K, tol=1e-8), run(c_svc(y, 1e4), K, tol=1e-8)
    check(K, c_svc(y, np.inf), hard, 1e-8)
    assert hard.objective == pytest.approx(soft.objective, rel=1e-6)


@pytest.mark.parametrize("n", [20, 700])
def test_a_hard_margin_that_does_not_exist(n, rng):
    """The same point with both labels: the dual has no minimum, and says so."""
    X = rng.normal(size=(n, 2))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    X[:2], y[:2] = 0.5, (1.0, -1.0)
    with Control(max_time=5) as control:
        solution = run(c_svc(y, np.inf), dense(X, 1.0), control=control)
    assert solution.stopped == "unbounded"


def test_a_plane_that_does_not_exist(rng):
    """No duplicates, but more points than a plane can separate."""
    X = rng.normal(size=(60, 2))
    y = np.where(rng.random(60) < 0.5, 1.0, -1.0)
    with Control(max_time=20) as control:
        solution = run(c_svc(y, np.inf), X @ X.T, control=control)
    assert solution.stopped == "unbounded"


def test_a_hard_margin_of_an_indefinite_matrix(rng):
    """The objective falls for ever along a direction of negative curvature: no infinite coefficients."""
    A = rng.normal(size=(50, 50))
    y = np.where(rng.random(50) < 0.5, 1.0, -1.0)
    with Control(max_time=20) as control:
        solution = run(c_svc(y, np.inf), (A + A.T) / 7, control=control)
    assert solution.stopped == "unbounded"
    assert np.isfinite(solution.gamma).all() and np.isfinite(solution.objective)


@pytest.mark.parametrize("margin", [1e3, 1.0, 1e-3])
def test_a_margin_that_is_known(margin, rng):
    """Two points at ±m on the first axis, all others further out: w = 1/m, and the objective -1/(2m²)."""
    y = np.where(np.arange(100) % 2 == 0, 1.0, -1.0)
    X = np.column_stack([y * margin * rng.uniform(1.5, 5.0, 100), margin * rng.normal(size=100)])
    X[0], X[1] = (margin, 0.0), (-margin, 0.0)
    solution = run(c_svc(y, np.inf), X @ X.T, tol=1e-8)
    assert solution.stopped == "converged"
    assert solution.objective == pytest.approx(-0.5 / margin**2, rel=1e-6)
    assert X.T @ solution.gamma == pytest.approx([1 / margin, 0.0], rel=1e-5, abs=1e-5 / margin)


def test_one_point_only():
    s = run(one_class(1, 0.5), np.ones((1, 1)))
    assert s.gamma.tolist() == [0.5] and s.stopped == "converged"


def test_values_that_are_not_finite():
    K = Gram(Polynomial(5), np.array([[1.0], [1e90]]))
    with pytest.raises(InputError, match=r"k\(x, x\) is not finite for point 1: rescale the data"):
        solve(K, [c_svc(np.array([1.0, -1.0]))])


# --- on a device -------------------------------------------------------------------------------------


class Tensors:
    """A matrix that is there, as tensors: what a Gram is on a device."""

    error = 0.0

    def __init__(self, K):
        self.torch = pytest.importorskip("torch")
        self.K, self.shape, self.dtype = self.torch.tensor(K), K.shape, K.dtype
        self.asked = 0

    def session(self):
        return nullcontext()

    def tensor(self, array):
        return self.torch.tensor(array)

    def empty(self, *shape):
        return self.torch.full(shape, np.nan, dtype=self.K.dtype)

    def write_rows(self, index, columns, out, places):
        self.asked += len(index)
        out[places, slice(*columns)] = self.K[index, slice(*columns)]

    def block(self, index):
        return self.K[index][:, index].numpy()


def run_on_torch(program, K, **options):
    return run(program, K, device=Tensors(K), **options)


@pytest.mark.parametrize("name", NAMES)
def test_vectors_in_torch_lead_to_the_same_minimum(name, rng):
    K, program, expected = problem(name, rng, 700, C=20.0)
    for tol in (1e-3, 1e-6):
        solution = run_on_torch(program, K, tol=tol)
        check(K, program, solution, tol)
        slack = 1e-6 * abs(expected) + 1e-9
        assert expected - slack <= solution.objective <= expected + solution.gap + slack


@pytest.mark.parametrize("name", NAMES)
def test_small_working_sets_in_torch(small_sets, name, rng, monkeypatch):
    """Many rounds, few rows that are kept, and nothing that shrinks."""
    monkeypatch.setattr(DeviceIterate, "first", 16)
    K, program, expected = problem(name, rng, 150, C=2.0)
    solution = run_on_torch(program, K, tol=1e-5, cache=20 * 1216)
    check(K, program, solution, 1e-5)
    assert not small_sets
    assert solution.objective <= expected + solution.gap + 1e-9 * abs(expected)


def test_torch_without_an_intercept(rng):
    K, program, _ = problem("C-SVC", rng, 700, C=5.0)
    program = replace(program, balanced=False)
    here, there = run(program, K, tol=1e-6), run_on_torch(program, K, tol=1e-6)
    assert there.violation <= 1e-6
    assert there.objective == pytest.approx(here.objective, abs=here.gap + there.gap)


def test_several_problems_in_torch_share_rows(rng):
    """Pairs of three classes, one of which is one working set by itself."""
    sizes = [40, 700, 600]
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    X = rng.normal(size=(bounds[-1], 3)) + np.repeat(np.eye(3), sizes, axis=0)
    K = dense(X, 1.0)
    pairs = [(0, 1), (0, 2), (1, 2)]
    programs = [c_svc(np.repeat([1.0, -1.0], [sizes[i], sizes[j]]), 5.0, (i, j)) for i, j in pairs]
    programs.append(c_svc(np.repeat([1.0, -1.0], [sizes[0], 30]), 5.0, (0, 3)))
    bounds = np.append(bounds, bounds[-1] + 30)
    K = dense(np.vstack([X, rng.normal(size=(30, 3))]), 1.0)
    device = Tensors(K)
    found = solve(Gram(Precomputed(K), np.arange(len(K))), programs, bounds=bounds, tol=1e-5, device=device)
    for program, solution in zip(programs, found, strict=True):
        points = np.concatenate([np.arange(bounds[s], bounds[s + 1]) for s in program.segments])
        check(K[np.ix_(points, points)], program, solution, 1e-5)
    assert device.asked <= len(K)


def test_a_checkpoint_of_vectors_in_torch(small_sets, rng, tmp_path, monkeypatch):
    monkeypatch.setattr(DeviceIterate, "first", 16)
    require_the_same_when_resumed(run_on_torch, *easy(rng, 200), tmp_path / "rounds.npz")


@pytest.mark.parametrize("split", [0, 30, 200])
def test_torch_selects_by_the_same_bins(split, rng):
    """As ``fill`` does, from as many of each bin; of those in the last bin, which is free."""
    K = np.eye(200)
    lo, hi = np.zeros(200), rng.choice([1.0, 2.0], 200)
    start = np.minimum(rng.choice([0.0, 0.5, 1.0], 200), hi)
    slopes = np.round(rng.normal(size=200), 1)
    program = QuadraticProgram(slopes, lo, hi, start, np.arange(200), split)
    args = np.array([0, 200]), np.ones(200), np.ones(200), None
    here, there = program_module.Iterate(program, *args), DeviceIterate(program, *args, Tensors(K))
    kept = rng.choice(200, 10, replace=False)
    (mine, worst), (theirs, same) = here._select(60, kept), there._select(60, kept)
    assert worst == same
    assert len(np.unique(theirs)) == len(theirs) <= 60 and set(kept) <= set(theirs)
    np.testing.assert_array_equal(np.sort(slopes[mine]), np.sort(slopes[theirs]))
