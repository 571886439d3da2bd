"""Memory that fits borrow: used again, never by two at once, and given to the system when it is large."""

import subprocess
import sys
import weakref

import numpy as np
import pytest

from mercer import SVC, Gaussian, Gram, config
from mercer.runtime import scratch
from mercer.runtime.scratch import borrow

needs_pages = pytest.mark.skipif(not scratch._CAN_KEEP, reason="pages cannot be marked free here")


@pytest.fixture(autouse=True)
def nothing_idle(monkeypatch):
    monkeypatch.setattr(scratch, "_idle", [])


@needs_pages
def test_memory_that_was_given_back_is_used_again():
    first = borrow(1000)
    first.array(np.float64)[:3] = 7.0
    first.give_back()
    assert borrow(2**20) is first
    assert borrow(1000) is not first  # it is taken


@needs_pages
def test_it_grows_unless_somebody_still_looks_at_it():
    memory = borrow(1)
    size = memory.size
    memory.give_back()
    larger = borrow(2 * size)
    if sys.platform.startswith("linux"):
        assert larger is memory
    assert larger.size >= 2 * size
    larger.array(np.float32)[-1] = 1.0
    view = larger.array(np.float64)
    larger.give_back()
    other = borrow(4 * size)
    assert other is not larger
    other.array(np.float64)[:5] = 3.0
    view[:5] = 4.0
    assert (other.array(np.float64)[:5] == 3.0).all()


@needs_pages
def test_the_larger_one_stays():
    small, large = borrow(1), borrow(2 * borrow(1).size)
    large.give_back()
    small.give_back()
    assert scratch._idle == [large]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads what is resident from /proc")
def test_what_stays_is_bounded(monkeypatch):
    monkeypatch.setattr(scratch, "_BYTES_KEPT", 2**26)

    def resident():
        with open("/proc/self/statm") as numbers:
            return int(numbers.read().split()[1]) * 4096

    before = resident()
    memory = borrow(2 * scratch._BYTES_KEPT)
    memory.array(np.uint8)[:: 2**12] = 1
    assert resident() - before > 1.9 * scratch._BYTES_KEPT
    memory.give_back()
    assert resident() - before < 1.1 * scratch._BYTES_KEPT


def test_without_pages_to_mark_memory_is_plain(monkeypatch):
    monkeypatch.setattr(scratch, "_CAN_KEEP", False)
    memory = borrow(100)
    memory.array(np.float64)[:] = 1.0
    memory.give_back()
    assert borrow(100) is not memory


def test_fits_one_after_the_other_are_as_in_new_memory(rng):
    X = rng.normal(size=(700, 5)).astype(np.float32)
    y = (X[:, 0] + rng.normal(size=700) > 0).astype(int)
    first = SVC(C=3.0).fit(X, y)
    SVC(C=100.0, gamma=7.0).fit(X[::-1], y)  # leaves other rows behind
    again = SVC(C=3.0).fit(X, y)
    np.testing.assert_array_equal(first.dual_coef_, again.dual_coef_)


def test_a_gram_that_is_gone_leaves_nothing_behind(rng, collect):
    with config(backend="numba"):
        K = Gram(Gaussian(sigma=1.0), rng.normal(size=(50, 3)))
        K.dense()
        backend = weakref.ref(K._backend)
    del K
    collect()
    assert backend() is None


@needs_pages
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the limit is one of Linux")
def test_a_small_limit_of_memory_is_a_memory_error():
    """Under ulimit -v mapping fails with OSError, which nobody would take for want of memory."""
    code = (
        "import resource\n"
        "from mercer.runtime.scratch import borrow\n"
        "resource.setrlimit(resource.RLIMIT_AS, (2**31, 2**31))\n"
        "try:\n    borrow(2**33)\n"
        "except MemoryError as error:\n    print(error)\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "8192 MiB of memory to give: raise the limit of the process (ulimit -v)" in said
