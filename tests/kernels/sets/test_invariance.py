"""Invariance by sets: the mean of the base kernel over all variants, and images that move and turn."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits

from mercer import (
    SVC,
    Gaussian,
    Gram,
    Invariant,
    Linear,
    Polynomial,
    SetKernel,
    WeisfeilerLehman,
    certify,
    rotations,
    shifts,
)
from mercer.errors import InputError
from mercer.kernels.sets.images import (
    Bend,
    Rotation,
    Shift,
    Slant,
    Stroke,
    Zoom,
    bends,
    slants,
    strokes,
    zooms,
)
from mercer.kernels.sets.invariance import compositions
from mercer.testing.objects import OBJECTS


def brute(k, functions, X, Y):
    """One pair of points and of variants at a time."""
    functions = [lambda Z: Z, *functions]
    left, right = ([[t(Z[[i]])[0] for t in functions] for i in range(len(Z))] for Z in (X, Y))
    total = [[sum(k(a, b) for a in x for b in y) for y in right] for x in left]
    return np.array(total) / len(functions) ** 2


BASES = [
    (Gaussian(sigma=2.0), lambda a, b: np.exp(-np.sum((a - b) ** 2) / 8)),
    (Linear(), np.dot),
    (Polynomial(2), lambda a, b: (a @ b + 1) ** 2),
]


@pytest.mark.parametrize(("base", "k"), BASES)
def test_the_mean_over_variants(backend, base, k, rng):
    X, Y = rng.normal(size=(7, 12)), rng.normal(size=(4, 12))
    functions = [*shifts((3, 4), 1.0), *rotations((3, 4), 20.0), np.fliplr]
    kernel = Invariant(base, functions)
    np.testing.assert_allclose(kernel(X, Y), brute(k, functions, X, Y), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(kernel(X), brute(k, functions, X, X), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(Gram(kernel, X).diag(), np.diag(kernel(X)), rtol=1e-11)
    np.testing.assert_allclose(kernel(sparse.csr_array(X)), kernel(X), rtol=1e-12)
    assert certify(kernel).verdict == "proved"
    assert np.linalg.eigvalsh(kernel(X)).min() >= -1e-12 * np.abs(kernel(X)).max()


def test_a_group_of_transformations_makes_it_invariant(rng):
    X = rng.normal(size=(9, 6))
    kernel = Invariant(Gaussian(), [np.fliplr])
    np.testing.assert_allclose(kernel(X, np.fliplr(X)), kernel(X), rtol=1e-13)
    assert not np.allclose(Gaussian()(X, np.fliplr(X)), Gaussian()(X))


def test_no_transformations_is_the_base(rng):
    X = rng.normal(size=(9, 6))
    np.testing.assert_allclose(Invariant(Gaussian())(X), Gaussian()(X), rtol=1e-14)
    assert Invariant(Gaussian(sigma="median")).resolve(X).base == Gaussian(sigma="median").resolve(X)


def test_it_is_a_set_kernel(rng):
    X = rng.normal(size=(5, 9))
    functions = shifts((3, 3), 1.5)
    sets = [np.concatenate([X[[i]], *(t(X[[i]]) for t in functions)]) for i in range(5)]
    np.testing.assert_allclose(
        Invariant(Gaussian(), functions)(X), SetKernel(Gaussian(), "mean")(sets), rtol=1e-12
    )


def test_variants_of_objects():
    graphs = OBJECTS["graphs"](6, np.random.default_rng(0))
    kernel, base = Invariant(WeisfeilerLehman(1), [_unlabelled]), WeisfeilerLehman(1)
    plain = _unlabelled(graphs)
    wanted = (base(graphs) + base(graphs, plain) + base(plain, graphs) + base(plain)) / 4
    np.testing.assert_allclose(kernel(graphs), wanted, rtol=1e-13)
    np.testing.assert_allclose(kernel(graphs[:2], graphs), wanted[:2], rtol=1e-13)


def _unlabelled(graphs):
    return [(A, ["C"] * len(labels)) for A, labels in graphs]


def test_shifts_move_pixels():
    image = np.arange(1.0, 13.0).reshape(1, 12)
    assert Shift((3, 4), 1, 0)(image).reshape(3, 4).tolist() == [[0, 0, 0, 0], [1, 2, 3, 4], [5, 6, 7, 8]]
    assert Shift((3, 4), 0, -2, fill=9.0)(image).reshape(3, 4).tolist() == [
        [3, 4, 9, 9],
        [7, 8, 9, 9],
        [11, 12, 9, 9],
    ]
    assert (Shift((3, 4), 5, 0)(image) == 0).all() and (Shift((3, 4), 0, -7)(image) == 0).all()
    coloured = Shift((2, 2, 3), 0, 1)(np.arange(12.0).reshape(1, 12)).reshape(2, 2, 3)
    assert coloured.tolist() == [[[0, 0, 0], [0, 1, 2]], [[0, 0, 0], [6, 7, 8]]]


def test_rotations_turn_pixels(rng):
    for shape in ((5, 5), (4, 4), (5, 5, 3)):
        image = rng.normal(size=shape)
        for quarter in (1, 2, 3):
            turned = Rotation(shape, 90.0 * quarter)(image.reshape(1, -1)).reshape(shape)
            np.testing.assert_allclose(turned, np.rot90(image, quarter), atol=1e-12)
    # linear images stay linear: the corners fall out of sight, the middle is exact
    rows, columns = np.mgrid[:9, :9] - 4.0
    angle = np.deg2rad(12.0)
    turned = Rotation((9, 9), 12.0)((rows + 2 * columns).reshape(1, -1)).reshape(9, 9)
    back = (
        rows * np.cos(angle) + columns * np.sin(angle) + 2 * (columns * np.cos(angle) - rows * np.sin(angle))
    )
    np.testing.assert_allclose(turned[2:7, 2:7], back[2:7, 2:7], atol=1e-7)
    blank = Rotation((4, 6), 33.0, fill=2.5)(np.full((2, 24), 2.5))
    np.testing.assert_allclose(blank, 2.5, rtol=1e-12)


def test_slants_and_zooms_move_pixels():
    image = np.zeros((5, 5))
    image[:, 2] = 1.0
    leaning = Slant((5, 5), 1.0)(image.reshape(1, -1)).reshape(5, 5)
    assert leaning.tolist() == np.fliplr(np.eye(5)).tolist()
    point = np.zeros((5, 5))
    point[1, 3] = 1.0
    larger = Zoom((5, 5), 2.0)(point.reshape(1, -1)).reshape(5, 5)
    np.testing.assert_allclose(larger[:2, 3:], [[0.5, 1.0], [0.25, 0.5]])
    assert larger.sum() == 2.25
    assert [zoom.amount for zoom in zooms((5, 5), 1.25)] == [0.8, 1.25]
    assert [slant.amount for slant in slants((5, 5), 0.2)] == [-0.2, 0.2]


def test_bends_move_rows():
    image = np.zeros((5, 6))
    image[:, 2] = 1.0
    bent = Bend((5, 6), 2.0)(image.reshape(1, -1)).reshape(5, 6)
    # (1, ½, 0, ½, 1) of 2 pixels, less one: rows move by 1, -½, -1, -½, 1
    assert bent.argmax(axis=1).tolist() == [3, 1, 1, 1, 3] and bent[1].tolist() == [0, 0.5, 0.5, 0, 0, 0]
    assert [bend.amount for bend in bends((5, 6), 1.5)] == [-1.5, 1.5]


def test_cubic_pieces_keep_images_sharp(rng):
    rows, columns = np.mgrid[:9, :9] - 4.0
    smooth = rows * columns + columns**2 - rows  # reproduced where all neighbours are in sight
    for change, at in ((Zoom((9, 9), 1.3, 0.0, True), (rows / 1.3, columns / 1.3)),
                       (Slant((9, 9), 0.2, 0.0, True), (rows, columns + 0.2 * rows))):  # fmt: skip
        found = change(smooth.reshape(1, -1)).reshape(9, 9)
        wanted = at[0] * at[1] + at[1] ** 2 - at[0]
        np.testing.assert_allclose(found[2:7, 2:7], wanted[2:7, 2:7], atol=1e-7)  # places are rounded to 1e-9
    image = rng.normal(size=(1, 64))
    np.testing.assert_allclose(
        Rotation((8, 8), 90.0, 0.0, True)(image), Rotation((8, 8), 90.0)(image), atol=1e-12
    )
    sharp, blurred = (Slant((8, 8), 0.3, 0.0, cubic)(image) for cubic in (True, False))
    assert np.linalg.norm(blurred) < np.linalg.norm(sharp)
    np.testing.assert_allclose(Zoom((4, 6), 1.2, 2.5, True)(np.full((2, 24), 2.5)), 2.5, rtol=1e-12)


def test_strokes_become_thick_and_thin(rng):
    image = np.zeros((4, 5))
    image[1:3, 1:4] = 8.0
    thick = Stroke((4, 5), 0.5)(image.reshape(1, -1)).reshape(4, 5)
    assert thick.tolist() == [[0, 4, 4, 4, 0], [4, 8, 8, 8, 4], [4, 8, 8, 8, 4], [0, 4, 4, 4, 0]]
    thin = Stroke((4, 5), -0.5)(image.reshape(1, -1)).reshape(4, 5)
    assert thin.tolist() == [[0] * 5, [0, 4, 4, 4, 0], [0, 4, 4, 4, 0], [0] * 5]
    full = np.full((2, 20), 3.0)  # there is nothing beyond the edge
    assert (Stroke((4, 5), -1.0)(full) == 3).all() and (Stroke((4, 5), 1.0)(full) == 3).all()
    coloured = rng.normal(size=(3, 4, 5, 2))
    both = Stroke((4, 5, 2), 0.3)(coloured.reshape(3, -1)).reshape(3, 4, 5, 2)
    for channel in (0, 1):
        alone = Stroke((4, 5), 0.3)(coloured[..., channel].reshape(3, -1)).reshape(3, 4, 5)
        np.testing.assert_array_equal(both[..., channel], alone)
    assert Stroke((4, 5), 0.3)(np.zeros((2, 20), np.float32)).dtype == np.float32
    assert [change.amount for change in strokes((4, 5), [0.2, 0.4])] == [0.2, 0.4]
    for amount in (0.0, 1.5, [0.2, -2.0], float("nan")):
        with pytest.raises(InputError, match="part of at most 1"):
            strokes((4, 5), amount)


def test_compositions():
    X = np.arange(6.0).reshape(2, 3)
    found = [step(X).tolist() for step in compositions([np.negative], [np.fliplr, np.square])]
    wanted = [np.fliplr(X), X**2, -X, np.fliplr(-X), X**2]
    assert found == [table.tolist() for table in wanted]
    assert compositions([np.negative]) == compositions([np.negative]) and compositions([]) == []


def test_wrong_images():
    with pytest.raises(InputError, match="16 pixels"):
        Shift((4, 4), 1, 0)(np.ones((2, 15)))
    with pytest.raises(InputError, match="height, width"):
        shifts((4,), 1.0)
    with pytest.raises(InputError, match="must be a list of functions"):
        Invariant(Gaussian(), np.fliplr)
    with pytest.raises(InputError, match="one row per point"):
        Invariant(Gaussian(), [lambda X: X[:1]])(np.ones((3, 2)))
    assert [turn.amount for turn in rotations((3, 3), [5, 10, 15])] == [5, 10, 15]


def test_digits_are_better_known_when_they_may_move():
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[:500], order[500:]
    moved = Invariant(Gaussian(sigma=16.0), shifts((8, 8), 1.0)).normalized()
    errors = []
    for kernel in (Gaussian(sigma=20.0), moved):
        model = SVC(kernel=kernel, C=10.0).fit(X[train], y[train])
        errors.append(1 - model.score(X[test], y[test]))
    assert errors[1] < 0.8 * errors[0]
    assert (pickle.loads(pickle.dumps(model)).predict(X[test]) == model.predict(X[test])).all()
