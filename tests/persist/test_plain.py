"""Plain data: whatever lists, dicts and arrays hold comes back, and tokens that lie are refused."""

import tracemalloc
from collections import Counter, OrderedDict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.utils import Bunch

from mercer.errors import InputError
from mercer.persist.plain import Plain, decode, encode, refuse

from .conftest import there_and_back

moments = st.one_of(st.dates(), st.datetimes(), st.times(), st.timedeltas())
generic = [np.float32(1.5), np.int8(3), np.str_("ab"), np.datetime64("2020-01-01"), np.bool_(True)]
numbers = st.one_of(st.integers(), st.floats(), st.complex_numbers(), st.decimals(allow_nan=False))
scalars = st.one_of(
    st.none(), st.booleans(), numbers, st.text(), st.binary(), moments, st.sampled_from(generic)
)
hashables = st.recursive(
    scalars.filter(lambda value: value == value), lambda inner: st.tuples(inner, inner), max_leaves=4
)
ARRAYS = [
    np.arange(6).reshape(2, 3),
    np.arange(6.0).reshape(2, 3).T,
    np.array(["a", "bc"]),
    np.zeros((0, 3)),
    np.array(2.5),
    np.array([None, "a", (1, 2)], dtype=object),
    np.array(["2020"], dtype="M8[D]"),
    np.arange(8, dtype=">i2")[::2],
    np.array([[True]]),
    sparse.csr_array(np.eye(2)),
    sparse.csc_matrix([[0, 1]]),
    range(3, 9, 2),
    np.dtype("f4"),
    np.float32,
    float,
    np.exp,
    np.fliplr,
]
data = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(hashables, inner, max_size=4),
        st.dictionaries(hashables, inner, max_size=4).map(OrderedDict),
        st.dictionaries(st.text(), inner, max_size=4).map(lambda d: Bunch(**d)),
        st.dictionaries(hashables, st.integers(), max_size=4).map(Counter),
        st.sets(hashables, max_size=4),
        st.frozensets(hashables, max_size=4),
        st.builds(slice, st.integers(), st.none(), st.integers(1, 3)),
        st.sampled_from(ARRAYS),
    ),
    max_leaves=12,
)


def assert_same(a, b):
    assert type(a) is type(b)
    if isinstance(a, np.ndarray):
        assert a.dtype == b.dtype and a.shape == b.shape
        for x, y in zip(a.ravel().tolist(), b.ravel().tolist(), strict=True):
            assert_same(x, y)
    elif sparse.issparse(a):
        assert_same(a.toarray(), b.toarray())
    elif isinstance(a, dict):
        for pair, other in zip(a.items(), b.items(), strict=True):
            assert_same(pair, other)
    elif isinstance(a, list | tuple):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            assert_same(x, y)
    else:
        assert a == b or (a != a and b != b)
        assert str(a) == str(b) or isinstance(a, set | frozenset)  # 0.0 and -0.0, 1 and True


@settings(max_examples=200)
@given(data)
def test_plain_data_come_back(value):
    packed = encode(value, refuse)
    assert_same(decode(packed, refuse), value)


def test_data_may_be_deep():
    value = ()
    for _ in range(20_000):
        value = (value, "leaf")
    back = decode(encode(value, refuse), refuse)
    depth = 0
    while back:
        back, depth = back[0], depth + 1
    assert depth == 20_000


@pytest.mark.parametrize(
    ("tokens", "content"),
    [
        ('[["list", 1000000000000]]', None),
        ('[["tuple", -1]]', None),
        ('[["list", 2.5]]', None),
        ('[["dict", 1], 1]', None),
        ('[["array", "<f8", [1000000000], "C"]]', b"12345678"),
        ('[["array", "<f8", [-1], "C"]]', b"12345678"),
        ('[["array", "|O", [1], "C"]]', b"12345678"),
        ('[["array", "<U0", [1000000000000], "C"]]', None),
        ('[["array", "<f8", [1], "K"]]', b"12345678"),
        ('[["array", "<f8", [1], "C"]]', b"123456789"),
        ('[["bytes", 9]]', b"12345678"),
        ('[["object", 0]]', None),
        ('[["object", -1]]', None),
        ('[["function", "os", "system"]]', None),
        ('[["function", "numpy", "fromfile"]]', None),
        ('[["function", "numpy", "save"]]', None),
        ('[["function", "mercer.kernels.base", "replace"]]', None),  # imported there from elsewhere
        ('[["function", "mercer.persist", "save"]]', None),
        ('[["type", "builtins.eval"]]', None),
        ('[["type", "numpy.ndarray"]]', None),
        ('[["type", "mercer.SVC"]]', None),
        ('[["frame", "os"], ["list", []], ["list", []]]', None),
        ('[["sparse", "csr_array", [1, 1]], ["array", "<f8", [1], "C"], ["array", "<i4", [1], "C"], '
         '["array", "<i4", [2], "C"]]', np.float64(1).tobytes() + np.array([7, 0, 1], "<i4").tobytes()),
        ('[["nothing"]]', None),
        ("[[]]", None),
        ("[]", None),
        ("[1, 2]", None),
        ("{}", None),
        ("1", None),
        ("[" * 100_000, None),
    ],
)  # fmt: skip
def test_tokens_that_do_not_fit_together_are_refused(tokens, content):
    packed = Plain(tokens, None if content is None else np.frombuffer(content, np.uint8), [])
    tracemalloc.start()
    with pytest.raises(Exception) as caught:
        decode(packed, refuse)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert isinstance(
        caught.value,
        InputError | ValueError | TypeError | IndexError | KeyError | RecursionError | AttributeError,
    )
    assert peak < 5e6


def test_mails_in_data(path):
    from mercer.features.email import Mail

    mails = [Mail(Counter("ab"), {"a b": 1}, {}, {"x": 0.5}, {}, {}, {}, {}), Mail(*({},) * 8)]
    back = there_and_back(mails, path)
    assert back == mails and all(type(mail) is Mail for mail in back)
    assert type(back[0].words) is Counter
