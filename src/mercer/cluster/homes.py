r"""Which worker has which of the rows that were sent: a task goes to its rows, and not they to it.

Dask gives a task to the worker where it would begin first. With tasks of 50 ms and rows that take 20 ms to
send, half of the rows were sent from worker to worker in a pass. So tasks say which worker they prefer:
others still take them from one that is late or gone.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from heapq import heapify, heapreplace
from typing import TypeVar

Place = TypeVar("Place", bound=Hashable)


def settled(
    homes: Mapping[Place, str], places: Sequence[Place], threads: Mapping[str, int]
) -> dict[Place, str]:
    """The worker of each place: the one it had, if that is there and has no more than its share.

    Shares are those of threads.

    >>> settled({}, [1, 2, 3, 4], {"one": 1, "two": 1})
    {1: 'one', 2: 'two', 3: 'one', 4: 'two'}
    >>> settled({1: "dead", 2: "two", 3: "two", 4: "two"}, [1, 2, 3, 4], {"two": 1, "late": 1})
    {2: 'two', 3: 'two', 1: 'late', 4: 'late'}
    """
    total = sum(threads.values())
    share = {worker: -(-len(places) * count // total) for worker, count in threads.items()}
    found: dict[Place, str] = {}
    load = dict.fromkeys(threads, 0)
    for place in places:
        home = homes.get(place, "")
        if load.get(home, 0) < share.get(home, 0):
            found[place] = home
            load[home] += 1
    # The worker that is next is the one whose threads would have least to do.
    room = [((load[worker] + 1) / count, i, worker) for i, (worker, count) in enumerate(threads.items())]
    heapify(room)
    for place in places:
        if place not in found:
            _, i, worker = room[0]
            found[place] = worker
            load[worker] += 1
            heapreplace(room, ((load[worker] + 1) / threads[worker], i, worker))
    return found
