"""The error of all rows from searches for some of them: unbiased, and no worse than those alone."""

import numpy as np
import pytest

from mercer.selection.two_phase import corrected, error_of


def population(rng, n=20_000):
    """Losses of searches and, much alike and smaller, of the machine alone."""
    honest = rng.exponential(size=n)
    return 0.7 * honest + 0.1 * rng.exponential(size=n), honest


def test_it_is_unbiased_and_its_variance_is_the_true_one(rng):
    """Over many draws of 100 rows, of which 20 are judged: mean and variance within four standard errors."""
    cheap, honest = population(rng)
    drawn = [rng.integers(len(cheap), size=100) for _ in range(1500)]
    found = np.array([corrected(cheap[rows], honest[rows[:20]], np.arange(20)) for rows in drawn])
    means, variances = found.T
    assert abs(means.mean() - honest.mean()) < 4 * means.std() / np.sqrt(len(means))
    fourth = np.mean((means - means.mean()) ** 4)
    of_variance = np.sqrt(fourth - means.var() ** 2) / np.sqrt(len(means))
    assert abs(variances.mean() - means.var()) < 4 * (of_variance + variances.std() / np.sqrt(len(means)))
    few = np.array([honest[rows[:20]].mean() for rows in drawn])
    assert means.std() < 0.7 * few.std()
    assert cheap.mean() < 0.85 * honest.mean()  # which would be wrong alone


def test_with_every_row_judged_it_is_their_mean(rng):
    cheap, honest = population(rng, 50)
    mean, variance = corrected(cheap, honest, np.arange(50))
    assert mean == pytest.approx(honest.mean(), rel=1e-12)
    assert variance == pytest.approx(honest.var(ddof=1) / 50, rel=1e-12)


def test_a_choice_among_features_of_noise_is_not_called_good(rng):
    """The best of 300 random rules looks right on 60 % of its rows; it is right on half of new ones."""
    stated, alone = [], []
    for _ in range(300):
        rules, labels = rng.integers(2, size=(300, 100)), rng.integers(2, size=100)
        wrong = (rules != labels).astype(float)  # (rules, rows)
        chosen = wrong.mean(axis=1).argmin()
        without = wrong[:, 20:].mean(axis=1).argmin()
        stated.append(error_of(wrong[chosen], wrong[without, :20], np.arange(20), True)[0])
        alone.append(wrong[chosen].mean())
    assert abs(np.mean(stated) - 0.5) < 4 * np.std(stated) / np.sqrt(len(stated))
    assert np.mean(alone) < 0.4


@pytest.mark.parametrize("is_class", [True, False])
def test_intervals_cover(rng, is_class):
    """At least 95 % of 1,000, less three standard errors."""
    share, missed = 0.1, 0
    for _ in range(1000):
        honest = (rng.random(400) < share).astype(float)
        cheap = np.where(rng.random(400) < 0.03, 1 - honest, honest)
        _, (low, high) = error_of(cheap, honest[:80], np.arange(80), is_class)
        truth = share if is_class else np.sqrt(share)
        missed += not low <= truth <= high
    # Squares that are 0 or 1 are far from normal: of these 90 % are asked for.
    assert missed / 1000 < (0.05 if is_class else 0.1) + 3 * np.sqrt(0.05 * 0.95 / 1000)


def test_few_rows_that_agree_do_not_make_it_sure():
    """Without an error or a difference, 20 judged rows of 1,000 allow for what 20 rows do."""
    none = np.zeros(1000)
    error, (low, high) = error_of(none, none[:20], np.arange(20), True)
    assert error == 0.0 and low == 0.0 and 0.1 < high < 0.2


def test_it_stays_in_its_range():
    """A correction may be larger than what it corrects."""
    cheap = np.zeros(50)
    cheap[:5] = 1.0
    for is_class in (True, False):
        error, (low, high) = error_of(cheap, np.zeros(10), np.arange(10), is_class)
        assert error == 0.0 == low and 0.0 < high <= 1.0
