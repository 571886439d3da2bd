r"""Tasks over groups of rows on a cluster; what they find is received here, and added in its place.

    X            Dask's own rows       they are read, or lie, where Dask has them, chunk by chunk in each pass
                 an array in a file    workers that see the file read their rows from it
                 any other             sent once, in groups of rows; the scheduler keeps what it was sent, and
                                       sends it again where a worker is lost
    V, Z         sent once for all tasks, and from worker to worker
    y, weights   of a group's rows, with its task
    results      one of each task, as soon as it is there: what came is never computed again

Which rows a task has does not depend on the workers. A task begins with nothing and changes nothing: that a
worker dies costs time alone.
"""

from __future__ import annotations

import sys
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any

import numpy as np

from mercer.cluster.client import dask_module, is_alive, limit, lost_scheduler, quiet_graphs
from mercer.cluster.rows import DaskRows
from mercer.data import points as data
from mercer.errors import ClusterError, InputError
from mercer.runtime.config import settings, within
from mercer.runtime.threads import single_threaded_blas

__all__ = ["Run", "Spread", "in_turn", "spread_of"]

#: Seconds between two looks at the cluster while nothing comes.
_LOOK = 0.5
#: Seconds for a result that is there to arrive.
_ARRIVAL = 60.0
#: Tasks with large results that are under way for each thread of the cluster.
_LARGE_AHEAD = 2

Cuts = Sequence[tuple[int, int]]


def spread_of(X: Any) -> Spread | None:
    """The rows X on the cluster of their Dask collection, or on the one configured; None without either."""
    client = X.client if isinstance(X, DaskRows) else settings().cluster
    return None if client is None else Spread(client, X)


@dataclass(frozen=True)
class _FileRows:
    """Rows of an array in a file that all workers see."""

    path: str
    offset: int
    dtype: str
    shape: tuple[int, ...]
    start: int
    stop: int
    #: the size of the file and the second it was written in, by which a worker knows it
    stamp: tuple[int, int]

    def read(self) -> np.ndarray:
        if _stamp(self.path) != self.stamp:
            raise InputError(
                f"this worker does not see the file {self.path} as it is on the client: put the table where "
                "all workers see it, mercer.DataSource(path, folder=…)"
            )
        mapped = np.memmap(self.path, self.dtype, "r", self.offset, self.shape)
        return np.asarray(mapped[self.start : self.stop])


def _stamp(path: str) -> tuple[int, int] | None:
    with suppress(OSError):
        status = Path(path).stat()
        return status.st_size, int(status.st_mtime)
    return None


def work(version: str, task: Callable[..., Any], *arguments: Any) -> Any:
    """What a worker does: a task with one thread, of BLAS too, its rows read where they are in a file.

    Dask's nannies start their workers with one thread of BLAS; others do not, and products had other bits.
    """
    from mercer import __version__

    if version != __version__:
        raise InputError(
            f"this worker has mercer {__version__} and the client {version}: install the same on both"
        )
    given = [value.read() if isinstance(value, _FileRows) else value for value in arguments]
    with within(threads=1, progress=False), single_threaded_blas():
        return task(*given)


def hold(value: Any) -> Any:
    """What was sent, on a worker."""
    return value


class Spread:
    """Rows X, n of them, as tasks of a client see them."""

    def __init__(self, client: Any, X: Any) -> None:
        self.client, self.X = client, X
        self._name = uuid.uuid4().hex[:12]
        self._passes = 0
        self._sent: dict[Any, Any] = {}
        self._shared: dict[int, tuple[Any, Any]] = {}
        self._file = None if isinstance(X, DaskRows) else _seen_by_all(client, X)

    def beside(self, X: Any) -> Spread:
        """Other rows on the same cluster."""
        return Spread(self.client, X)

    def map(
        self,
        what: str,
        task: Callable[..., Any],
        shared: tuple[Any, ...],
        groups: Sequence[Cuts],
        own: Callable[[Any], tuple[Any, ...]],
        receive: Callable[[int, Any], None],
        is_large: bool = False,
    ) -> None:
        """``receive(g, task(*shared, rows of group g, its cuts, *own(rows)))`` for every group, in any order.

        ``is_large``: results are, and only some of them are under way at a time.
        """
        self._passes += 1

        def arguments(g: int) -> tuple[Any, tuple[Any, ...]]:
            start, stop = (groups[g][0][0], groups[g][-1][1]) if groups[g] else (0, 0)
            cuts = [(i - start, j - start) for i, j in groups[g]]
            return (start, stop), (cuts, *own(slice(start, stop)))

        name, ahead = f"{what}-{self._passes}-block", _LARGE_AHEAD if is_large else None
        Run(self, name, task, shared, arguments, receive, ahead).go(in_turn(len(groups)))

    # --- what is sent ------------------------------------------------------------------------------------

    def send(self, what: str, value: Any) -> Any:
        """A value on some worker, that the scheduler can send again."""
        key = f"mercer-{what}-{self._name}-{uuid.uuid4().hex[:8]}"
        with quiet_graphs():
            return self.client.submit(hold, value, key=key, pure=False)

    def shared(self, value: Any) -> Any:
        """What all tasks take, sent once while it is the same object."""
        found = self._shared.get(id(value))
        if found is None or found[0] is not value or found[1].status in ("cancelled", "lost"):
            found = self._shared[id(value)] = value, self.send("shared", value)
        return found[1]

    def forget(self, values: tuple[Any, ...]) -> None:
        """What no later pass takes."""
        for value in values:
            self._shared.pop(id(value), None)

    def rows(self, place: Any) -> Any:
        """The rows of a place, (start, stop), as a task takes them; anything else in a list is sent along."""
        if isinstance(place, list):
            return place[0]
        if isinstance(self.X, DaskRows):
            return self.X.array[slice(*place)]
        if self._file is not None:
            return replace(self._file, start=place[0], stop=place[1])
        found = self._sent.get(place)
        if found is None or found.status in ("cancelled", "lost"):
            found = self._sent[place] = self.send("rows", data.take(self.X, slice(*place)))
        return found


def _seen_by_all(client: Any, X: Any) -> _FileRows | None:
    """Where the array X lies in a file, if every worker there is now sees it too."""
    base = X
    while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
        base = base.base
    if not isinstance(base, np.memmap) or base.filename is None or not X.flags.c_contiguous:
        return None
    offset = base.offset + X.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    path = str(Path(base.filename).absolute())
    stamp = _stamp(path)
    answers = client.run(_stamp, path, on_error="ignore") or {}
    if stamp is None or not answers or any(answer != stamp for answer in answers.values()):
        return None
    return _FileRows(path, int(offset), X.dtype.str, X.shape, 0, len(X), stamp)


# --- a run over all groups -------------------------------------------------------------------------------


def in_turn(count: int) -> Callable[[int], list[int]]:
    """Numbers of tasks as `Run.go` asks for them: all there are, one after the other.

    >>> following = in_turn(3)
    >>> following(2), following(2), following(2)
    ([0, 1], [2], [])
    """
    left = iter(range(count))
    return lambda room: list(islice(left, room))


class Run:
    """The tasks of one pass: sent, watched, received, and sent again where they were lost.

    ``ahead``: how many are under way for each thread of the cluster; all of them by default.
    """

    def __init__(
        self,
        spread: Spread,
        name: str,
        task: Callable[..., Any],
        shared: tuple[Any, ...],
        arguments: Callable[[int], tuple[Any, tuple[Any, ...]]],
        receive: Callable[[int, Any], None],
        ahead: int | None = None,
    ) -> None:
        self.spread, self.client, self.name = spread, spread.client, name
        self.task, self.shared, self.arguments, self.receive = task, shared, arguments, receive
        self.ahead = ahead
        self.done: SimpleQueue[tuple[int, Any]] = SimpleQueue()
        self.under_way: dict[int, Any] = {}
        self.sendings: dict[int, int] = {}
        self.last_seen = monotonic()
        self.threads = 1

    def go(self, following: Callable[[int], list[int]]) -> None:
        """``following(room)``: at most so many tasks that may begin now; none, when none is left."""
        try:
            self.look()
            while True:
                room = sys.maxsize if self.ahead is None else self.ahead * self.threads - len(self.under_way)
                self.send(following(room) if room > 0 else [])
                if not self.under_way:
                    return
                try:
                    g, future = self.done.get(timeout=_LOOK)
                except Empty:
                    self.look()
                    continue
                if self.under_way.get(g) is future:
                    self.take(g, future)
        finally:
            self.end()

    def send(self, groups: Sequence[int]) -> None:
        """Tasks for these groups; of a Dask collection they are one graph, so that a chunk is read once."""
        from mercer import __version__

        if not groups:
            return
        if not is_alive(self.client):
            raise lost_scheduler(self.client)
        shared = [self.spread.shared(value) for value in self.shared]
        calls = {}
        for g in groups:
            place, own = self.arguments(g)
            calls[g] = (__version__, self.task, *shared, self.spread.rows(place), *own)
            self.sendings[g] = self.sendings.get(g, 0) + 1
        names = {g: f"mercer-{self.name}-{g}-{uuid.uuid4().hex[:12]}" for g in groups}
        retries = int(limit("retries"))
        with quiet_graphs():
            if isinstance(self.spread.X, DaskRows):
                delayed = dask_module("dask").delayed
                made = [delayed(work, pure=False)(*calls[g], dask_key_name=names[g]) for g in groups]
                futures = dict(zip(groups, self.client.compute(made, retries=retries), strict=True))
            else:  # One graph: of many, the scheduler takes several milliseconds for each.
                given = list(zip(*calls.values(), strict=True))
                sent = self.client.map(work, *given, key=list(names.values()), retries=retries, pure=False)
                futures = dict(zip(groups, sent, strict=True))
        self.under_way |= futures
        for g, future in futures.items():
            future.add_done_callback(lambda done, g=g: self.done.put((g, done)))

    def take(self, g: int, future: Any) -> None:
        """Receive what a task found, or send it again, or wait for it again."""
        if future.status == "error":
            return self.failed(g, future.exception())
        try:
            found = future.result(timeout=_ARRIVAL)
        except CancelledError:
            return self.again(g)
        except TimeoutError:
            self.look()
            return self.done.put((g, future))
        except Exception as error:
            return self.failed(g, error)
        del self.under_way[g]
        self.last_seen = monotonic()
        self.receive(g, found)

    def failed(self, g: int, error: BaseException) -> None:
        """Send a task again whose workers died; a task that raises ends the run."""
        if type(error).__name__ == "KilledWorker":
            if self.sendings[g] <= limit("sendings"):
                self.again(g)
                return
            raise ClusterError(
                f"{self.where(g)} was lost with every worker that computed it, {self.sendings[g]} times "
                "over: give the workers more memory, or take fewer landmarks; their logs tell why they died"
            ) from error
        kind = InputError if isinstance(error, InputError) else ClusterError
        name = "" if kind is InputError else f"{type(error).__name__}: "
        raise kind(f"{self.where(g)} failed on the cluster: {name}{error}") from error

    def again(self, g: int) -> None:
        if not is_alive(self.client):
            raise lost_scheduler(self.client)
        self.under_way.pop(g)
        self.send([g])

    def where(self, g: int) -> str:
        place, _ = self.arguments(g)
        rows = f", rows {place[0]:,} to {place[1] - 1:,}," if isinstance(place, tuple) else ""
        of, _, unit = self.name.rpartition("-")
        return f"{unit} {g}{of and ' of '}{of.replace('-', ' ')}{rows}"

    def look(self) -> None:
        """Whether there is still somebody to wait for."""
        if not is_alive(self.client):
            raise lost_scheduler(self.client)
        with suppress(OSError, TimeoutError):
            if threads := self.client.nthreads():
                self.last_seen, self.threads = monotonic(), sum(threads.values())
        if monotonic() - self.last_seen > limit("workers-timeout"):
            raise ClusterError(
                f"the cluster has had no worker for {limit('workers-timeout'):.0f} s: start some, or raise "
                "dask.config.set({'mercer.workers-timeout': …})"
            )

    def end(self) -> None:
        """Leave nothing behind: neither tasks, when the run was ended, nor what only it took."""
        if self.under_way and is_alive(self.client):
            with suppress(Exception):
                self.client.cancel(list(self.under_way.values()), force=True)
        self.under_way.clear()
        self.spread.forget(self.shared[1:])
