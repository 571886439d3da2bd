"""Values left out against refits, slopes and coupling against general optimisers, agreement always."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, log_expit
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from mercer.errors import InputError
from mercer.solvers.svm import calibration
from mercer.solvers.svm.calibration import agree, couple, fit_binary, left_out, log_probability, probability


def fitted(K, y, C):
    """γ and the values of the classifier at the training points, by scikit-learn at a tight tolerance."""
    model = SVC(C=C, kernel="precomputed", tol=1e-8).fit(K, y)
    gamma = np.zeros(len(y))
    gamma[model.support_] = model.dual_coef_[0]
    return gamma, model.decision_function(K)


def by_span(K, y, C, gamma, values, **options):
    lo, hi = np.where(y > 0, 0.0, -C), np.where(y > 0, C, 0.0)
    return left_out(gamma, values, lo, hi, lambda i, j: K[np.ix_(i, j)], K.diagonal(), **options)


def refit(K, y, C, i):
    """f₋ᵢ(xᵢ), and γ₋ᵢ with a 0 in the place of i."""
    keep = np.arange(len(y)) != i
    model = SVC(C=C, kernel="precomputed", tol=1e-8).fit(K[np.ix_(keep, keep)], y[keep])
    gamma = np.zeros(len(y))
    gamma[np.flatnonzero(keep)[model.support_]] = model.dual_coef_[0]
    return model.decision_function(K[i, keep][None])[0], gamma


def overlapping(kernel, n=60, seed=0):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2, 1.0, -1.0)
    X = rng.normal(size=(n, 3)) + 0.8 * y[:, None]
    square = ((X[:, None] - X) ** 2).sum(-1)
    return (np.exp(-square / 4) if kernel == "gaussian" else X @ X.T), y


def places(gamma, C):
    return np.where(gamma == 0, 0, np.where(np.abs(gamma) >= C * (1 - 1e-9), 2, 1))


# --- left out ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("C", [0.3, 1.0, 5.0])
def test_values_left_out_are_near_those_of_refits(C):
    K, y = overlapping("gaussian")
    gamma, values = fitted(K, y, C)
    ours = by_span(K, y, C, gamma, values)
    truth = np.array([refit(K, y, C, i)[0] for i in range(len(y))])
    outside = gamma == 0
    assert outside.sum() > 5
    assert (ours[outside] == values[outside]).all()  # they are no part of the solution
    np.testing.assert_allclose(truth[outside], values[outside], atol=1e-6)  # the fits' 1e-8, times 60 points
    # for the others it is an extrapolation, since points change places on the way: it misses 0.25 to 0.4 of
    # the move on such data. More than half would not be worth its cost
    error, move = np.abs(ours - truth)[~outside].mean(), np.abs(values - truth)[~outside].mean()
    assert error < 0.5 * move


@pytest.mark.parametrize(("kernel", "C"), [("gaussian", 0.3), ("gaussian", 5.0), ("linear", 0.3)])
def test_values_left_out_are_exact_while_points_keep_their_places(kernel, C):
    seen = {1: 0, 2: 0}  # on the margin, inside
    for seed in range(6):
        K, y = overlapping(kernel, n=16, seed=seed)
        gamma, values = fitted(K, y, C)
        ours = by_span(K, y, C, gamma, values)
        for i in np.flatnonzero(gamma):
            truth, other = refit(K, y, C, i)
            before, after = places(gamma, C), places(other, C)
            place = int(before[i])
            before[i] = after[i] = 0
            if (before == after).all() and 1e-3 < abs(truth - values[i]) <= 0.5:
                # a theorem then; what is left is the fits' 1e-8, times the condition of K there, < 100
                assert abs(ours[i] - truth) < 1e-6
                seen[place] += 1
    assert seen[1] >= 3 and (seen[2] or C == 5.0)


def test_a_case_where_every_support_vector_is_exact():
    """Four pairs of twins, all on the margin: when one goes, its twin is left and all stay there."""
    y = np.repeat([1.0, -1.0, 1.0, -1.0], 2)
    K = np.kron(np.eye(4), [[1.0, 0.7], [0.7, 1.0]])
    gamma, values = fitted(K, y, 10.0)
    assert (places(gamma, 10.0) == 1).all()
    ours = by_span(K, y, 10.0, gamma, values)
    truth = np.array([refit(K, y, 10.0, i)[0] for i in range(8)])
    assert np.abs(truth - values).min() > 0.05  # leaving out is seen
    np.testing.assert_allclose(ours, truth, atol=1e-6)  # the fits' 1e-8 times the condition of K, < 10


def test_large_moves_use_the_band():
    """Ten features and a large C: the margin spans nearly everything, and the plain rule overshoots."""
    rng = np.random.default_rng(1)
    y = np.where(np.arange(90) % 2, 1.0, -1.0)
    X = rng.normal(size=(90, 10)) + 0.35 * y[:, None]
    K = X @ X.T
    gamma, values = fitted(K, y, 10.0)
    support = np.flatnonzero(gamma)
    truth = np.array([refit(K, y, 10.0, i)[0] for i in support])
    banded = np.abs(by_span(K, y, 10.0, gamma, values)[support] - truth).mean()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calibration, "_BAND", np.inf)  # no move is large: the plain rule
        plain = np.abs(by_span(K, y, 10.0, gamma, values)[support] - truth).mean()
    assert banded < 0.5 * plain


def test_parts_are_upper_bounds_of_the_span_and_deterministic(monkeypatch):
    monkeypatch.setattr(calibration, "_BAND", np.inf)  # the plain rule everywhere
    K, y = overlapping("gaussian")
    gamma, values = fitted(K, y, 1.0)
    whole = y * by_span(K, y, 1.0, gamma, values)
    part = y * by_span(K, y, 1.0, gamma, values, part=5)
    assert (part <= whole + 1e-9).all() and (part < whole - 1e-6).sum() > 5
    assert (part == y * by_span(K, y, 1.0, gamma, values, part=5)).all()


def test_blocks_are_small():
    K, y = overlapping("gaussian", n=200)
    gamma, values = fitted(K, y, 1.0)
    asked = []

    def block(i, j):
        asked.append((len(i), len(j)))
        return K[np.ix_(i, j)]

    lo, hi = np.where(y > 0, 0.0, -1.0), np.where(y > 0, 1.0, 0.0)
    left_out(gamma, values, lo, hi, block, K.diagonal(), part=8)
    assert len(asked) > 2 and all(columns <= 8 for _, columns in asked)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("C", [1e-6, 1.0, 1e9, np.inf])
def test_duplicates_and_extreme_bounds_are_finite(C, dtype):
    K, y = overlapping("gaussian", n=20)
    K, y = np.tile(K, (2, 2)).astype(dtype), np.tile(y, 2)
    gamma, values = fitted(K.astype(float), y, min(C, 1e6))
    if C == 1e-6:
        assert (places(gamma, C) != 1).sum() > 30  # hardly anything on the margin
    result = by_span(K, y, C, gamma, values)
    assert np.isfinite(result).all()
    if (
        dtype == np.float64 and C == 1e9
    ):  # the twin takes over: nothing moves but by the ridge, 1e-13 γ ≤ 1e-7
        free = (gamma != 0) & (np.tile(gamma[:20] * gamma[20:] != 0, 2))
        assert free.any()
        np.testing.assert_allclose(result[free], values[free], atol=1e-6)


@pytest.mark.parametrize("kind", ["zero", "one point", "one class", "constant", "indefinite"])
def test_degenerate_matrices(kind):
    n = 1 if kind == "one point" else 12
    rng = np.random.default_rng(2)
    A = rng.normal(size=(n, n))
    K = {"zero": 0 * A, "constant": 0 * A + 3.0, "indefinite": A + A.T}.get(kind, A @ A.T)
    y = np.ones(n) if kind == "one class" else np.where(np.arange(n) % 2, 1.0, -1.0)
    gamma = 0.5 * y * (np.arange(n) % 3 > 0) if n > 1 else np.array([0.5])
    result = by_span(K, y, 0.5 if kind == "constant" else 1.0, gamma, K @ gamma)
    assert np.isfinite(result).all()
    assert (y * result <= y * (K @ gamma) + 1e-12).all()  # leaving a point out is never to its advantage


def test_left_out_says_what_is_wrong():
    K, y = np.eye(3), np.array([1.0, -1.0, 1.0])
    with pytest.raises(
        InputError, match=r"lo must have one entry per training point, shape \(3,\), got \(2,\)"
    ):
        left_out(y, y, [0, 0], [1, 1, 1], None, np.ones(3))
    with pytest.raises(InputError, match="values must be finite, got nan"):
        by_span(K, y, 1.0, y, np.array([1.0, np.nan, 1.0]))
    with pytest.raises(InputError, match="part must be at least 2, got 1"):
        by_span(K, y, 1.0, y, y, part=1)
    with pytest.raises(InputError, match=r"k\(x, x'\) is not finite"):
        left_out(y, y, [-9] * 3, [9] * 3, lambda i, j: np.full((len(i), len(j)), np.inf), np.ones(3))


# --- slopes ------------------------------------------------------------------------------------------


def likelihood(a, f, target, w):
    return -(w * (target * log_expit(a * f) + (1 - target) * log_expit(-a * f))).sum()


@pytest.mark.parametrize("seed", range(5))
def test_slopes_have_the_largest_likelihood(seed):
    rng = np.random.default_rng(seed)
    f = rng.normal(size=80) * 10.0 ** rng.integers(-5, 5)
    w = rng.integers(0, 3, 80).astype(float) if seed % 2 else np.ones(80)
    y = np.where(rng.random(80) < expit(3 * f / f.std()), 1, -1)
    slopes = fit_binary(f, y, w if seed % 2 else None)
    n = [w[y < 0].sum(), w[y > 0].sum()]
    target = np.where(y > 0, (n[1] + 1) / (n[1] + 2), 1 / (n[0] + 2))
    for slope, side in zip(slopes, (f < 0, f > 0), strict=True):
        size = np.abs(f[side]).max()
        found = minimize_scalar(
            lambda b, side=side, size=size: likelihood(b / size, f[side], target[side], w[side]),
            bounds=(1e-6, 1e3), method="bounded", options={"xatol": 1e-10},
        )  # fmt: skip
        assert slope * size == pytest.approx(found.x, rel=1e-6)  # √ε: values alone do not tell more
        terms = w[side] * f[side] * (target[side] - expit(slope * f[side]))
        assert abs(terms.sum()) < 1e-13 * np.abs(f[side]).sum()  # the derivative does, to rounding


def test_whole_weights_count_points():
    f, y, w = np.array([1.0, 2.0, 0.5, -1.0, -0.2]), np.array([1, 1, -1, -1, 1]), np.array([2, 1, 1, 3, 0])
    np.testing.assert_allclose(fit_binary(f, y, w), fit_binary(np.repeat(f, w), np.repeat(y, w)), rtol=1e-12)


@pytest.mark.parametrize(
    ("f", "y"),
    [
        ([0.0, 0.0], [1, -1]),
        ([1.0, 1.0, 1.0], [1, -1, 1]),
        ([1.0, -1.0], [1, -1]),
        ([1.0, -1.0], [-1, 1]),
        ([1e-320, -1e-320], [1, -1]),
        ([1e308, -1e308], [1, -1]),
        ([1e-200, 1e200, -1.0], [1, 1, -1]),
        ([2.0, 3.0], [1, 1]),
        ([], []),
    ],
)
def test_degenerate_values_have_finite_slopes(f, y):
    slopes = fit_binary(f, y)
    assert slopes.shape == (2,) and np.isfinite(slopes).all() and (slopes > 0).all()


def test_a_side_that_is_mostly_wrong_is_flat_and_an_empty_one_copies():
    slopes = fit_binary([1.0, 2.0, -1.0, -2.0, -3.0], [-1, -1, -1, -1, -1])
    assert slopes[1] == pytest.approx(1e-6 / 2) and slopes[0] > 0.1
    below, above = fit_binary([1.0, 2.0, 3.0], [1, 1, -1])
    assert below == above > 0
    assert fit_binary([0.0], [1]).tolist() == [1, 1]


def test_fit_binary_says_what_is_wrong():
    with pytest.raises(InputError, match="values must be finite, got nan"):
        fit_binary([np.nan], [1])
    with pytest.raises(InputError, match="one entry per point"):
        fit_binary([1.0], [1, -1])
    with pytest.raises(InputError, match="not negative"):
        fit_binary([1.0], [1], [-1.0])


@given(
    f=st.floats(allow_nan=False),
    a=st.tuples(*[st.floats(1e-300, 1e300)] * 2),
)
def test_probability_agrees_with_the_sign(f, a):
    a = np.array(a)
    p, q = probability(f, a), probability(-f, a[::-1])
    assert np.argmax([q, p]) == np.argmax([1 - p, p]) == (f > 0)
    assert 0 <= p <= 1 and abs(p + q - 1) <= 2.3e-16  # one unit in the last place of 1
    assert (p == 0.5) == (f == 0)


def test_probability_is_increasing_and_has_its_tails():
    f = np.array([-1e300, -800.0, -3.0, -1e-300, 0.0, 5e-324, 2.0, 40.0, 1e300])
    p = probability(f, [1.0, 2.0])
    assert (np.diff(p) >= 0).all() and p[4] == 0.5 < p[5]
    np.testing.assert_allclose(log_probability([-800.0, -3.0, 2.0], [1.0, 2.0]), [-800.0, *np.log(p[[2, 6]])])
    several = probability(np.array([[1.0, -1.0]]), [[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_allclose(several, expit([[2.0, -3.0]]))
    with pytest.raises(InputError, match="slopes must be pairs"):
        probability(f, [0.0, 1.0])


# --- several classes ---------------------------------------------------------------------------------


def pairs(r, c):
    full = np.zeros((len(r), c, c))
    i, j = np.triu_indices(c, 1)
    full[:, i, j], full[:, j, i] = r, 1 - r
    return full


@pytest.mark.parametrize("c", [2, 3, 5])
def test_coupling_is_the_minimiser(c):
    r = np.random.default_rng(c).uniform(0.02, 0.98, size=(4, c * (c - 1) // 2))
    full = pairs(r, c)
    p = couple(full)
    np.testing.assert_array_equal(p, couple(r))
    for row, own in zip(full, p, strict=True):

        def objective(x, row=row):
            return ((row.T * x[:, None] - row * x[None, :]) ** 2)[~np.eye(c, dtype=bool)].sum()

        found = minimize(
            objective, np.full(c, 1 / c), bounds=[(0, 1)] * c, method="SLSQP", options={"ftol": 1e-15},
            constraints={"type": "eq", "fun": lambda x: x.sum() - 1},
        )  # fmt: skip
        assert objective(own) <= objective(found.x) + 1e-15
        np.testing.assert_allclose(own, found.x, atol=1e-5)  # SLSQP differentiates by differences


@given(st.integers(2, 7).flatmap(lambda c: arrays(float, c, elements=st.floats(1e-4, 1.0))))
def test_consistent_pairs_give_back_their_classes(p):
    p = p / p.sum()
    r = p[:, None] / (p[:, None] + p)
    # an error ε in r is one of about ε / min p in p, relative to the largest entry
    np.testing.assert_allclose(couple(r[None])[0], p, atol=1e-10)


@given(
    st.integers(2, 6).flatmap(
        lambda c: arrays(
            float,
            (3, c * (c - 1) // 2),
            elements=st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.5, 1.0])),
        )
    )
)
def test_coupling_gives_probabilities_for_any_pairs(r):
    p = couple(r)
    assert (p >= 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-14)


def test_coupling_in_chunks_and_for_bad_input(monkeypatch):
    r = np.random.default_rng(0).random((50, 6))
    whole = couple(r)
    monkeypatch.setattr(calibration, "_BYTES", 1)
    np.testing.assert_array_equal(whole, couple(r))
    assert couple(np.zeros((2, 1, 1))).tolist() == [[1.0], [1.0]]
    assert couple(np.zeros((0, 3))).shape == (0, 3)
    with pytest.raises(InputError, match=r"got \(50, 5\)"):
        couple(r[:, :5])
    with pytest.raises(InputError, match="no NaN"):
        couple([[np.nan, 0.5, 0.5]])


@st.composite
def rows_and_codes(draw):
    c = draw(st.integers(2, 6))
    entry = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.25, 1.0]))
    p = draw(arrays(float, (4, c), elements=entry)) + np.eye(4, c) * draw(st.sampled_from([1e-3, 1.0]))
    p[:, -1] += 1e-3
    return p / p.sum(axis=1, keepdims=True), draw(arrays(np.int64, 4, elements=st.integers(0, c - 1)))


@given(rows_and_codes())
def test_agreement_is_strict_and_the_nearest(case):
    p, codes = case
    c = p.shape[1]
    q = agree(p, codes)
    assert (q.argmax(axis=1) == codes).all() and (q >= 0).all()
    assert (np.abs(q.sum(axis=1) - 1) <= 1e-15 * c + np.abs(p.sum(axis=1) - 1)).all()
    for before, after, code in zip(p, q, codes, strict=True):
        if before.argmax() == code:
            assert (before == after).all()
            continue
        # the projection onto a convex set: (p - q)·(z - q) ≤ 0 for all z of the set, hence for its corners,
        # uniform on subsets that hold the code; of each size the one with the largest (p - q)·z is tried
        order = sorted(set(range(c)) - {code}, key=lambda k, b=before, a=after: -(b - a)[k])
        for size in range(c):
            corner = np.zeros(c)
            corner[[code, *order[:size]]] = 1 / (size + 1)
            assert (before - after) @ (corner - after) <= 1e-14


def test_agreement_for_bad_input():
    with pytest.raises(InputError, match=r"codes must be 0 … 1, got 0 … 2"):
        agree([[0.5, 0.5], [0.5, 0.5]], [0, 2])
    with pytest.raises(InputError, match="with the sum 1"):
        agree([[0.5, 0.6]], [0])
    with pytest.raises(InputError, match="no NaN"):
        agree([[np.nan, 1.0]], [0])
    with pytest.raises(InputError, match="whole numbers"):
        agree([[0.5, 0.5]], [0.0])


# --- on real data ------------------------------------------------------------------------------------


def test_held_out_probabilities_are_as_good_as_five_refits():
    """Breast cancer, three splits: the log-loss is that of Platt's sigmoid with five folds, or less."""
    data = load_breast_cancer()
    ours, peer = [], []
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(data.target))
        train, test = order[:300], order[300:]
        scaler = StandardScaler().fit(data.data[train])
        A, B = scaler.transform(data.data[train]), scaler.transform(data.data[test])
        model = SVC(gamma=1 / 30, tol=1e-5).fit(A, data.target[train])
        K = np.exp(-((A[:, None] - A) ** 2).sum(-1) / 30)
        y = np.where(data.target[train] == 1, 1.0, -1.0)
        gamma = np.zeros(len(y))
        gamma[model.support_] = model.dual_coef_[0]
        slopes = fit_binary(by_span(K, y, 1.0, gamma, model.decision_function(A)), y)
        f = model.decision_function(B)
        p = np.c_[probability(-f, slopes[::-1]), probability(f, slopes)]
        assert (p.argmax(axis=1) == model.predict(B)).all()
        ours.append(log_loss(data.target[test], p))
        # Platt's sigmoid on decision values of five folds
        folds = np.arange(len(y)) % 5
        left = np.zeros(len(y))
        for k in range(5):
            inner = SVC(gamma=1 / 30).fit(A[folds != k], data.target[train][folds != k])
            left[folds == k] = inner.decision_function(A[folds == k])
        n = [(y < 0).sum(), (y > 0).sum()]
        target = np.where(y > 0, (n[1] + 1) / (n[1] + 2), 1 / (n[0] + 2))
        ab = minimize(
            lambda ab, left=left, target=target: likelihood(1.0, ab[0] * left + ab[1], target, 1.0),
            [1.0, 0.0],
        ).x
        peer.append(log_loss(data.target[test], expit(ab[0] * f + ab[1])))
    # the standard error of a log-loss of 0.1 on 269 points is about 0.02; ours and theirs share the points
    assert np.mean(ours) < np.mean(peer) + 0.005
