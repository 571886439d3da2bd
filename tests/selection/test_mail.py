import email
import pickle

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import mercer
from mercer import SVC, Linear, MailClassifier, Precomputed
from mercer.errors import InputError, InputTypeError
from mercer.features.email import ASPECTS, read
from mercer.features.email.vocabulary import Vocabulary
from mercer.selection.mail import _folds, _sample, _upper_end
from mercer.selection.mixture import learn_weights, left_out_loss

GOOD = ["meet", "lunch", "report", "meeting", "kernel", "paper", "draft"]
BAD = ["cheap", "pills", "free", "winner", "offer", "click", "loan"]


def letter(rng, is_spam):
    """A message whose words, sender and links lean to one side, as its label does."""
    lean = BAD if is_spam else GOOD
    words = [*rng.choice(lean, 6), *rng.choice(GOOD + BAD, 3), f"unique{rng.integers(10**6)}x"]
    name = "".join(rng.choice(list("abcdefgh"), 5))
    host = "shop.example" if rng.random() < (0.8 if is_spam else 0.1) else "work.example"
    return (
        f"From: {name} <{name}@{host}>\nSubject: {rng.choice(lean)}\n"
        f"Received: from {host} ({host} [{66 if is_spam else 77}.1.{rng.integers(9)}.7]) by me; "
        "Thu, 22 Aug 2002 12:34:53\n"
        f"Date: Thu, 22 Aug 2002 {rng.integers(24):02}:00:00 +0100\n\n{' '.join(words)} http://{host}/{name}\n"
    )


@pytest.fixture(scope="module")
def mails():
    rng = np.random.default_rng(0)
    y = np.array(["spam", "ham", "ham"] * 50)
    return [letter(rng, label == "spam") for label in y], y


@pytest.fixture(scope="module")
def model(mails):
    X, y = mails
    return MailClassifier().fit(X[:100], y[:100])


def test_new_messages_are_told_apart(model, mails):
    X, y = mails
    assert np.mean(model.predict(X[100:]) == y[100:]) >= 0.9
    P = model.predict_proba(X[100:])
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    assert list(model.classes_) == ["ham", "spam"]
    assert P[y[100:] == "spam", 1].mean() > 0.8 > 0.2 > P[y[100:] == "ham", 1].mean()
    assert set(model.weights_) == set(ASPECTS)
    np.testing.assert_allclose(sum(model.weights_.values()), 1.0)


def test_f_is_that_of_a_machine_on_the_sum_of_kernels(model, mails):
    """The kernel by its definition, from dicts; the machine on a matrix of it; both sides of the theorem."""
    X, y = mails
    train, new = [read(x) for x in X[:100]], [read(x) for x in X[100:]]

    def directions(bags, worth):
        """Vectors of length 1, with a place for each element."""
        places = {t: i for i, t in enumerate(set().union(*bags))}
        vectors = np.zeros((len(bags), len(places)))
        for row, bag in zip(vectors, bags, strict=True):
            for t, c in bag.items():
                row[places[t]] = worth(t) * np.log2(1 + c)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors / np.where(lengths > 0, lengths, 1.0)

    K, alone = np.zeros((len(X), 100)), np.zeros(100)
    for aspect, weight in model.weights_.items():
        often = {}
        for mail in train:
            for t in getattr(mail, aspect):
                often[t] = often.get(t, 0) + 1

        def worth(t, often=often):
            return np.log(101 / (1 + max(often.get(t, 1), 1))) + 1

        vectors = directions([getattr(mail, aspect) for mail in train + new], worth)
        K += weight * vectors @ vectors[:100].T
        for i, mail in enumerate(train):  # by elements that no other training message has
            bag = getattr(mail, aspect)
            own = {t: c for t, c in bag.items() if often[t] == 1}
            squares = [sum((worth(t) * np.log2(1 + c)) ** 2 for t, c in b.items()) for b in (own, bag)]
            alone[i] += weight * squares[0] / squares[1] if squares[1] else 0.0
    machine = SVC(kernel=Precomputed(K[:100] - np.diag(alone)), C=model.C_, tol=1e-6).fit(
        np.arange(100), y[:100]
    )
    wanted = K[100:][:, machine.support_] @ machine.dual_coef_[0] + machine.intercept_[0]
    # both machines are solved to within their tolerance, the model's to 1e-3
    np.testing.assert_allclose(model.decision_function(X[100:]) + model.threshold_, wanted, atol=5e-3)


def test_the_explanation_adds_up(model, mails):
    X, _ = mails
    for x in X[100:110]:
        found = model.explain(x)
        np.testing.assert_allclose(found.value, model.decision_function([x])[0], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(found.rest + sum(found.aspects.values()), found.value)
        for aspect in ASPECTS:
            of_it = sum(v for a, _, v in found.elements if a == aspect)
            np.testing.assert_allclose(of_it, found.aspects[aspect], atol=1e-12)
        assert found.label == model.predict([x])[0]
    spoken = {(a, t) for a, t, v in model.explain("From: x@y.example\n\nfree pills, click").elements if v > 0}
    assert ("words", "pills") in spoken and ("words", "click") in spoken
    assert "words: " in str(found) and found.label in str(found)


def test_the_threshold_is_where_the_share_of_hams_is_lost(mails):
    X, y = mails
    for share in (0.0, 0.05, 0.5):
        model = MailClassifier(ham_loss=share, weights="equal", C=10.0).fit(X, y)
        lost = np.mean(model.left_out_[y == "ham"] > model.threshold_)
        assert model.threshold_ >= 0 and lost <= share + 0.01
        assert model.threshold_ == 0 or lost >= share - 0.02
    slope, offset = model.curve_
    np.testing.assert_allclose(
        model.predict_proba(X[:5])[:, 1],
        expit(slope * (model.decision_function(X[:5]) + model.threshold_) + offset),
    )


def test_the_threshold_of_many_hams_comes_from_their_upper_end(rng):
    """Of the values to come the share is lost, and the threshold varies less than a quantile does."""
    found = {"tail": [], "quantile": []}
    for _ in range(200):
        values = rng.normal(size=3000)
        found["tail"].append(_upper_end(values, 0.003))
        found["quantile"].append(np.quantile(values, 0.997))
    # 0.3 % of normal values are above 2.748; their end is not quite exponential: chance matters more
    assert abs(np.mean(found["tail"]) - 2.748) < 0.5 * np.std(found["quantile"])
    assert np.std(found["tail"]) < 0.9 * np.std(found["quantile"])
    assert _upper_end(np.arange(100.0), 0.0) == 99.0 and _upper_end(np.arange(4000.0), 0.0) == 3999.0


def test_the_same_words_are_never_on_both_sides_of_a_fold(mails):
    """Every message twice, the second time with another label: values left out must not see the first."""
    X, y = mails
    doubled = MailClassifier(weights="equal", C=100.0).fit(X[:60] + X[:60], np.concatenate([y[:60], y[:60]]))
    single = MailClassifier(weights="equal", C=100.0).fit(X[:60], y[:60])
    wrong = [
        np.mean((m.left_out_ > 0) != (np.resize(y[:60], len(m.left_out_)) == "spam"))
        for m in (doubled, single)
    ]
    assert abs(wrong[0] - wrong[1]) < 0.1


def test_the_same_words_in_both_classes():
    """Whatever the folds are, each leaves messages of both to learn from."""
    A, B, C = (f"Subject: {word}\n\n{word}" for word in ("one", "two", "three"))
    for seed in range(5):
        options = {"C": 1.0, "weights": "equal", "random_state": seed}
        model = MailClassifier(**options).fit([A, C, B, C], ["spam", "spam", "ham", "ham"])
        assert np.isfinite(model.left_out_).all()


def test_weights_of_any_size(mails):
    X, y = mails
    models = [
        MailClassifier(weights={"words": w, "pairs": w}, C=1.0).fit(X[:30], y[:30])
        for w in (1.0, 1e308, 5e-324)
    ]
    for model in models:
        assert model.weights_ == models[0].weights_ and model.weights_["words"] == 0.5


@pytest.mark.full
def test_labels_of_any_kind_and_either_order(mails):
    X, y = mails
    numbers = np.where(y == "spam", 0, 1)
    model = MailClassifier(ham=1, weights="equal", C=10.0).fit(X, numbers)
    plain = MailClassifier(weights="equal", C=10.0).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), -plain.decision_function(X))
    assert (model.predict(X) == np.where(plain.predict(X) == "spam", 0, 1)).all()
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X)[:, ::-1])


@pytest.mark.full
def test_fits_repeat(mails):
    X, y = mails
    first, second = (MailClassifier(random_state=3).fit(X[:60], y[:60]) for _ in range(2))
    assert first.weights_ == second.weights_ and first.threshold_ == second.threshold_
    assert clone(first).get_params() == first.get_params()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"aspects": ("words", "colour")}, "aspects must be a list of some of words"),
        ({"aspects": ()}, "aspects must be"),
        ({"ham_loss": 2}, "ham_loss must be between 0 and 1, got 2"),
        ({"C": -1}, "C must be 'auto' or a positive number"),
        ({"C": True}, "C must be 'auto' or a positive number"),
        ({"weights": "learned"}, "weights must be 'learn', 'equal'"),
        ({"weights": {"words": -1.0}}, "weights must be zero or more"),
        ({"weights": {"words": "1"}}, "weights must be zero or more"),
        ({"weights": {"words": 0}}, "weights must be zero or more"),
        ({"weights": {"words": 1.0, "wrods": 1.0}}, "weights has 'wrods', which is none of the aspects"),
        ({"weights": np.ones(8)}, "weights must be 'learn', 'equal'"),
        ({"aspects": "words"}, "aspects must be a list"),
        ({"aspects": None}, "aspects must be a list"),
        ({"folds": 1}, "folds must be a whole number of at least 2, got 1"),
        ({"ham": "no"}, "ham must be one of the labels"),
    ],
)
def test_parameters_are_checked(mails, options, message):
    X, y = mails
    with pytest.raises(InputError, match=message):
        MailClassifier(**options).fit(X[:30], y[:30])


def test_bad_input_is_refused(mails, model):
    X, y = mails
    with pytest.raises(InputError, match="two labels"):
        MailClassifier().fit(X[:3], ["a", "a", "a"])
    with pytest.raises(InputError, match="one label for each of 3"):
        MailClassifier().fit(X[:3], y[:2])
    with pytest.raises(InputError, match="have the same words"):
        MailClassifier().fit([X[0]] * 5 + X[1:6], ["spam"] * 5 + ["ham"] * 5)
    with pytest.raises(InputError, match="at least two spams and two hams"):
        MailClassifier().fit(X[:4], ["spam", "ham", "ham", "ham"])
    with pytest.raises(InputError, match="got None for point 1"):
        MailClassifier().fit(X[:4], ["spam", None, "ham", None])
    with pytest.raises(InputError, match="got NaN for point 2"):
        MailClassifier().fit(X[:3], [0.0, 1.0, np.nan])
    with pytest.raises(InputTypeError, match="labels of one type, got str"):
        MailClassifier().fit(X[:4], np.array([1, "a", 1, "a"], dtype=object))
    for single in (X[0], bytearray(b"x"), email.message_from_string(X[0]), {"a": 1}, np.array([X])):
        with pytest.raises(InputTypeError, match=r"pass \[message\]"):
            model.predict(single)
    with pytest.raises(NotFittedError):
        MailClassifier().predict(X)
    assert model.predict([b"", "", b"\xff\x00"]).shape == (3,)
    assert len(model.predict([])) == 0


def test_numbers_of_other_libraries_are_numbers(mails):
    X, y = mails
    plain = MailClassifier(weights="equal", C=3.0, ham_loss=0.25).fit(X[:30], y[:30])
    same = MailClassifier(weights="equal", C=np.int64(3), ham_loss=np.float32(0.25)).fit(X[:30], y[:30])
    np.testing.assert_array_equal(plain.decision_function(X), same.decision_function(X))


def test_files_and_copies_of_a_filter_say_the_same(model, mails, tmp_path):
    X, _ = mails
    before = str(model.explain(X[100]))
    mercer.save(model, tmp_path / "filter.mercer")
    for again in (mercer.load(tmp_path / "filter.mercer"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
        assert str(again.explain(X[100])) == before


def test_more_messages_than_are_chosen_on(mails, monkeypatch):
    """The machine learns from all of them; C, threshold and curve come from some, rare spams among them."""
    X, y = mails
    monkeypatch.setattr("mercer.selection.mail._MOST_CHOSEN", 60)
    monkeypatch.setattr("mercer.selection.mail._LEAST_RARE", 8)
    few = np.concatenate([np.flatnonzero(y == "ham"), np.flatnonzero(y == "spam")[:10]])
    model = MailClassifier(weights="equal", C=10.0).fit([X[i] for i in few], y[few])
    known = np.isfinite(model.left_out_)
    assert known.sum() == 60 and (known & (y[few] == "spam")).sum() == 8  # by their share, 5
    whole = SVC(kernel=Linear(), C=10.0).fit(
        model._scaled(
            {
                a: v.rows([getattr(read(X[i]), a) for i in few])[:, v.is_shared]
                for a, v in model.vocabularies_.items()
            }
        ),
        y[few],
    )
    # a fitted model has lost elements without use, none of the shared ones; both machines are solved
    # to within 1e-3
    np.testing.assert_allclose(model.intercept_, whole.intercept_[0], atol=5e-3)
    rest = np.flatnonzero(y == "spam")[10:]
    assert np.mean(model.predict([X[i] for i in rest]) == "spam") > 0.7


def test_a_sample_stands_for_all():
    signs = np.where(np.arange(30_000) % 100 == 0, 1.0, -1.0)
    some, stands_for = _sample(signs, np.random.default_rng(0))
    assert len(some) == 8000 and (np.diff(some) > 0).all()
    assert (signs[some] > 0).sum() == 300  # all of the rare ones, as there are no more than 1,000
    for sign in (-1, 1):
        np.testing.assert_allclose(stands_for[signs[some] == sign].sum(), (signs == sign).sum())
    some, stands_for = _sample(-np.sign(np.arange(-4000, 6001) + 0.5), np.random.default_rng(0))
    assert len(some) == 8000 and abs(stands_for - 10_001 / 8000).max() < 1e-3  # no kind is rare


# --- weights of kernels -------------------------------------------------------------------------------


def test_values_left_out_are_those_of_fits_without_the_point(rng):
    X, y = rng.normal(size=(20, 3)), np.where(rng.random(20) < 0.5, -1.0, 1.0)
    parts, at = [X @ X.T, np.exp(-((X[:, None] - X) ** 2).sum(2))], np.array([0.3, -0.7])
    K = sum(w * P for w, P in zip(np.exp(at), parts, strict=True)) + 10.0
    left = np.empty(20)
    for i in range(20):
        rest = np.delete(np.arange(20), i)
        left[i] = K[i, rest] @ np.linalg.solve(K[np.ix_(rest, rest)] + np.eye(19), y[rest])
    value, slopes = left_out_loss(parts, y, at)
    np.testing.assert_allclose(value, np.mean(np.log1p(np.exp(-4 * y * left))), rtol=1e-10)
    for j in range(2):
        step = np.eye(2)[j] * 1e-5
        by_difference = (left_out_loss(parts, y, at + step)[0] - left_out_loss(parts, y, at - step)[0]) / 2e-5
        np.testing.assert_allclose(slopes[j], by_difference, rtol=1e-5, atol=1e-9)


def test_blocks_and_irrelevant_kernels(rng):
    def block():
        y = np.repeat([1.0, -1.0], 100)
        x, z = y + rng.normal(size=200), rng.normal(size=200)
        return [np.exp(-(np.subtract.outer(v, v) ** 2)) for v in (x, z)], y

    blocks = [block(), block()]
    weights = learn_weights(blocks)
    assert weights[0] > 0.7 and weights.sum() == pytest.approx(1.0)
    leaning = learn_weights(blocks, np.array([1.0, 20.0]))  # a prior for the wrong one, which points overrule
    assert leaning[0] / leaning[1] > 3 / 20


def test_a_vocabulary_forgets_without_changing_rows():
    bags = [{"a": 1, "b": 2}, {"b": 1, "c": 0.5}, {}]
    known = Vocabulary.of(bags)
    kept = known.keep(np.array([False, True, False]))
    np.testing.assert_allclose(kept.rows(bags).toarray()[:, 0], known.rows(bags).toarray()[:, 1])
    np.testing.assert_allclose((known.rows(bags).toarray() ** 2).sum(axis=1), [1, 1, 0])
    assert Vocabulary.of([]).rows([{"x": 1}]).shape == (1, 0)


def test_folds_have_some_of_both_and_keep_groups_together(rng):
    for _ in range(200):
        groups = rng.integers(0, 12, size=40)
        groups[:6] = np.arange(6)
        signs = np.where(groups % 2 == 0, 1, -1)
        fold = _folds(signs, groups, 3, rng)
        for f in range(3):
            assert set(signs[fold == f]) == set(signs[fold != f]) == {-1, 1}
        assert all(len(set(fold[groups == group])) == 1 for group in groups)
