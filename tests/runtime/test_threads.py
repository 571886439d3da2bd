"""Threads: obeyed, never oversubscribed, stopped by an error."""

import os
import signal
import sys
import threading
import time
import weakref

import pytest
from threadpoolctl import threadpool_info

from mercer import config
from mercer.runtime import threads
from mercer.runtime.config import thread_count
from mercer.runtime.machine import available_cores
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


def test_an_error_of_a_helper_reaches_the_caller():
    caller, at_once = threading.get_ident(), threading.Barrier(2, timeout=20)

    def task(_):
        at_once.wait()  # one task is the caller's, the other one is a helper's
        if threading.get_ident() != caller:
            raise ValueError("a helper's")

    with pytest.raises(ValueError, match="a helper's"):
        run(task, range(2), 2)


def test_tasks_that_run_tasks_come_to_an_end_when_every_thread_is_at_work():
    done = []

    def inner(i):
        done.append(i)

    def outer(i):
        run(inner, range(5), 3)

    run(outer, range(20), 3)
    assert sorted(done) == sorted(list(range(5)) * 20)


def test_each_task_has_its_share_of_the_threads():
    seen = []
    with config(threads=6):
        run(lambda _: seen.append(thread_count()), range(3))
    assert seen == [2, 2, 2]


def test_threads_are_kept_from_one_run_to_the_next():
    run(lambda _: None, range(3), 3)
    before = threading.active_count()
    for _ in range(50):
        run(lambda _: None, range(3), 3)
    assert threading.active_count() <= max(before, 1 + max(2, available_cores() - 1))


def test_a_run_that_was_over_before_its_call_was_heard_leaves_its_place_to_the_next():
    for _ in range(200):
        barrier = threading.Barrier(2, timeout=20)
        with config(threads=2):
            run(lambda _: None, range(2))
            run(lambda _, barrier=barrier: barrier.wait(), range(2))  # passes only if two threads are at it


def test_data_are_let_go_when_a_run_is_over():
    class Data:
        pass

    data = Data()
    alive = weakref.ref(data)
    run(lambda _, data=data: None, range(4), 2)
    del data
    for _ in range(2000):  # a helper that comes too late still holds its call for a moment
        if alive() is None:
            break
        time.sleep(0.01)
    assert alive() is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_has_threads_of_its_own():
    run(lambda _: None, range(2), 2)
    child = os.fork()
    if child == 0:
        barrier = threading.Barrier(2, timeout=20)
        run(lambda _: barrier.wait(), range(2), 2)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers")
def test_an_interrupt_at_any_moment_leaves_the_threads_of_blas_as_they_were():
    """Alarms come inside, between, and on the way in and out; what is over no longer counts.

    Coverage looks away meanwhile: it has a lock of its own, and an alarm there would leave it taken.
    """
    before, alarms = blas_threads(), []

    def stop(*_):
        alarms.append(True)
        raise KeyboardInterrupt

    previous, tracer = signal.signal(signal.SIGALRM, stop), sys.gettrace()
    sys.settrace(None)
    try:
        for i in range(300):
            try:
                signal.setitimer(signal.ITIMER_REAL, 2e-4 + 1e-6 * (i % 97))
                while len(alarms) == i:  # a callback of Python's own may have swallowed the interrupt
                    with single_threaded_blas():
                        pass
            except KeyboardInterrupt:
                pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
        sys.settrace(tracer)
    with single_threaded_blas():
        assert blas_threads() == {1}
    assert blas_threads() == before and not threads._wishes
