"""Regular expressions in model files: what finds words comes back, what may take for ever does not."""

import re
import time

import pytest
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.pipeline import make_pipeline

from mercer import SVC, BagOfWords
from mercer.errors import InputError
from mercer.persist import load, save
from mercer.persist.patterns import is_quick

TEXTS = ["to be or not", "be", "the question is", "is it"]

QUICK = [
    r"(?u)\b\w\w+\b",
    r"\w+",
    r"\S+",
    r"[a-z]+",
    r"[^\W\d_]{2,}",
    r"(?i)\bno\b",
    r"\w+|[^\w\s]",
    r"-?\d{1,3}",
]
QUICK += [r"[]a]+", r"\$\d+", r"^.", r"[\]\[]*", r"\d{4}"]
SLOW = [
    r"(\w+)+!",
    r"(?:a|a)*!",
    r"\w*\w*\w*!",
    r"(\w)\1+",
    "a?" * 25 + "a" * 25,
    "a{0,99}" * 9 + "!",
    r"(?=\w+x)\w",
    "|".join("ab" * 20),
    "a" * 201,
]


@pytest.mark.parametrize("pattern", QUICK)
def test_what_finds_words_is_quick(pattern):
    assert is_quick(pattern)
    start = time.process_time()
    for text in ("a" * 3000, "a" * 3000 + "!", "1" * 3000, " " * 3000, "[" * 3000):
        re.findall(pattern, text)
    assert time.process_time() - start < 5  # n² steps would be a tenth of a second


@pytest.mark.parametrize("pattern", SLOW)
def test_what_may_take_for_ever_is_not(pattern):
    re.compile(pattern)
    assert not is_quick(pattern)


def test_files_have_quick_ones_alone(path):
    model = SVC(kernel=BagOfWords(pattern=r"\w+")).fit(TEXTS, [0, 1, 0, 1])
    save(model, path)
    assert load(path).kernel_.pattern == r"\w+"
    slow = SVC(kernel=BagOfWords(pattern=r"(\w+)!?")).fit(TEXTS, [0, 1, 0, 1])
    message = r"BagOfWords has the regular expression .*, which may take for ever on some texts: .*trusted=\["
    with pytest.raises(InputError, match=message):
        save(slow, path)
    save(slow, path, trusted=[BagOfWords])  # as a stranger would
    with pytest.raises(InputError, match=message):
        load(path)
    assert load(path, trusted=[BagOfWords]).kernel_.pattern == r"(\w+)!?"


@pytest.mark.parametrize("kind", [CountVectorizer, TfidfVectorizer])
def test_those_of_scikit_learn_too(kind, path):
    good = make_pipeline(kind(), SVC()).fit(TEXTS, [0, 1, 0, 1])
    save(good, path)
    assert load(path).predict(TEXTS).tolist() == good.predict(TEXTS).tolist()
    with pytest.raises(InputError, match="may take for ever"):
        save(kind(token_pattern=r"(\w+)+!"), path)


@pytest.mark.parametrize("pattern", ["(", "a{99999999999999999999}", "(" * 5000, 3, None])
def test_what_is_no_expression_is_refused(pattern):
    with pytest.raises(InputError, match="pattern must be a regular expression"):
        BagOfWords(pattern=pattern)
