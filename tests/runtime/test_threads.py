"""Threads: obeyed, never oversubscribed, stopped by an error."""

import os
import threading
import time

import pytest
from threadpoolctl import threadpool_info

from mercer import config
from mercer.runtime import threads
from mercer.runtime.threads import run, single_threaded_blas


def blas_threads():
    return {lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"}


@pytest.mark.parametrize("count", [1, 2, 3])
def test_the_configured_number_of_threads_work(count):
    seen, barrier = set(), threading.Barrier(count, timeout=20)

    def task(_):
        seen.add(threading.get_ident())
        barrier.wait()  # passes only if `count` tasks run at the same time

    with config(threads=count):
        run(task, range(count * 3))
    assert len(seen) == count


def test_blas_has_one_thread_inside_and_its_own_number_after():
    before = blas_threads()
    seen = []
    run(lambda _: seen.append(blas_threads()), range(4), 2)
    assert all(s == {1} for s in seen)
    assert blas_threads() == before


def test_overlapping_users_restore_blas_once():
    before = blas_threads()
    inside, leave = threading.Event(), threading.Event()

    def other():
        with single_threaded_blas():
            inside.set()
            leave.wait(20)

    thread = threading.Thread(target=other)
    with single_threaded_blas():
        thread.start()
        inside.wait(20)
    assert blas_threads() == {1}  # the other one is still inside
    leave.set()
    thread.join()
    assert blas_threads() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_forked_while_others_are_inside_works():
    before = blas_threads()
    with single_threaded_blas():
        child = os.fork()
        if child == 0:  # the users of the parent are not the child's
            os._exit(0 if blas_threads() == before and not threads._wishes else 1)
        assert os.waitpid(child, 0)[1] == 0
    threads._lock.acquire()
    try:
        child = os.fork()
        if child == 0:
            with single_threaded_blas():
                os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    finally:
        threads._lock.release()


def test_an_error_reaches_the_caller_and_stops_the_rest():
    done = []

    def task(i):
        if i == 3:
            raise ValueError("tile 3")
        time.sleep(0.01)
        done.append(i)

    with pytest.raises(ValueError, match="tile 3"):
        run(task, range(1000), 2)
    assert len(done) < 100
    with pytest.raises(ValueError, match="tile 3"):
        run(task, range(5), 1)


def test_settings_are_those_of_the_caller():
    from mercer.runtime.config import settings

    seen = []
    with config(dtype="float32"):
        run(lambda _: seen.append(settings().dtype), range(4), 2)
    assert seen == ["float32"] * 4
