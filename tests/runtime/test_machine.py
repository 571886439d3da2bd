"""What is read of the machine, and by whom."""

import threading

from mercer.runtime.machine import _current


def test_one_thread_reads_and_the_others_take_what_was_read_last():
    begun, go_on, asked = threading.Event(), threading.Event(), []

    @_current
    def read(what, moment):
        asked.append(moment)
        if moment == 2:
            begun.set()
            assert go_on.wait(60)
        return what * moment

    assert read(10, 1) == 10 and read(10, 1) == 10
    slow = threading.Thread(target=read, args=(10, 2))
    slow.start()
    assert begun.wait(60)
    assert read(10, 2) == 10  # what was read last, though it is of an earlier moment
    assert read(7, 3) == 21 and asked == [1, 2, 3]  # of something else nothing was read
    go_on.set()
    slow.join()
    assert read(10, 2) == 20
    read.cache_clear()
    assert read(10, 2) == 20 and asked == [1, 2, 3, 2]


def test_what_is_too_old_is_read_again_though_somebody_else_reads():
    """As in a child of a fork, where the thread that was reading is missing."""
    begun, go_on = threading.Event(), threading.Event()

    @_current
    def read(moment):
        if moment == 2:
            begun.set()
            assert go_on.wait(60)
        return moment

    assert read(1) == 1
    slow = threading.Thread(target=read, args=(2,))
    slow.start()
    assert begun.wait(60)
    assert read(6) == 1 and read(7) == 7
    go_on.set()
    slow.join()
