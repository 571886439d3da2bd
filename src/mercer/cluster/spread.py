r"""Tasks over groups of rows on a cluster; what they find is received here, and added in its place.

    X            Dask's own rows       they are read, or lie, where Dask has them, chunk by chunk in each pass
                 an array in a file    workers that see the file read their rows from it
                 any other             sent once, in groups of rows, and tasks go where these are (`homes`);
                                       the scheduler keeps what it was sent, for where a worker is lost
    V, Z         sent once for all tasks, and from worker to worker
    y, weights   of a group's rows, with its task
    results      one of each task, as soon as it is there: what came is never computed again

Which rows a task has does not depend on the workers. A task begins with nothing and changes nothing: that a
worker dies costs time alone.
"""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from mmap import ALLOCATIONGRANULARITY
from pathlib import Path
from typing import Any

import numpy as np

from mercer.cluster.client import dask_module, forget_messages, limit, require_waiting, sending, threads_of
from mercer.cluster.homes import settled
from mercer.cluster.rows import DaskRows
from mercer.cluster.runs import Run, in_turn
from mercer.data import points as data
from mercer.errors import InputError
from mercer.runtime.config import settings, within
from mercer.runtime.threads import single_threaded_blas

#: Tasks with large results that are under way for each thread of the cluster.
_LARGE_AHEAD = 2

#: states of what was sent and is no longer there
_GONE = ("cancelled", "lost", "error")

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
    with within(threads=1, progress=False, cluster=None), single_threaded_blas():
        return task(*given)


def hold(value: Any) -> Any:
    """What was sent, on a worker: a module that it lacks is then an error of this task, with its name."""
    return pickle.loads(value) if isinstance(value, bytes) else value


def preferring(homes: dict[str, str | None]) -> Any:
    """Tasks that are sent in here go to these workers, by their keys, as long as these are there."""
    if not all(homes.values()):
        return nullcontext()
    return dask_module("dask").annotate(workers=homes.__getitem__, allow_other_workers=True)


class Spread:
    """Rows X, n of them, as tasks of a client see them."""

    def __init__(self, client: Any, X: Any) -> None:
        require_waiting(client)
        self.client, self.X = client, X
        self._name = uuid.uuid4().hex[:12]
        self._passes = 0
        self._sent: dict[Any, Any] = {}
        #: where rows that are sent are to be
        self._homes: dict[Any, str] = {}
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

        places = [(group[0][0], group[-1][1]) if group else (0, 0) for group in groups]

        def arguments(g: int) -> tuple[Any, tuple[Any, ...]]:
            start, stop = places[g]
            cuts = [(i - start, j - start) for i, j in groups[g]]
            return (start, stop), (cuts, *own(slice(start, stop)))

        self.settle(places)
        name, ahead = f"{what}-{self._passes}-block", _LARGE_AHEAD if is_large else None
        run = self.run(name, task, shared, arguments, receive, ahead)
        self.follow(run, in_turn(len(groups)), shared[1:])

    def run(
        self,
        name: str,
        task: Callable[..., Any],
        shared: tuple[Any, ...],
        arguments: Callable[[int], tuple[Any, tuple[Any, ...]]],
        receive: Callable[[int, Any], None],
        ahead: int | None = None,
    ) -> Run:
        """``receive(g, task(*shared, rows of the place, *own))`` for (place, own) = arguments(g)."""
        from mercer import __version__

        def submit(numbers: Sequence[int]) -> dict[int, Any]:
            """Send all tasks as one graph: for each graph the scheduler takes several milliseconds."""
            common = [self.shared(value) for value in shared]
            calls, homes = [], []
            for g in numbers:
                place, own = arguments(g)
                calls.append((__version__, task, *common, self.rows(place), *own))
                homes.append(self.home(place))
            keys = [f"mercer-{name}-{g}-{self._name}-{uuid.uuid4().hex[:8]}" for g in numbers]
            retries = int(limit("retries"))
            with sending():
                if isinstance(self.X, DaskRows):  # Parts of a collection; a chunk of it is read once for all.
                    delayed = dask_module("dask").delayed(work, pure=False)
                    made = [delayed(*call, dask_key_name=key) for call, key in zip(calls, keys, strict=True)]
                    sent = self.client.compute(made, retries=retries)
                else:
                    given = zip(*calls, strict=True)
                    with preferring(dict(zip(keys, homes, strict=True))):
                        sent = self.client.map(work, *given, key=keys, retries=retries, pure=False)
            return dict(zip(numbers, sent, strict=True))

        def where(g: int) -> str:
            place, _ = arguments(g)
            rows = f", rows {place[0]:,} to {place[1] - 1:,}," if isinstance(place, tuple) else ""
            of, _, unit = name.rpartition("-")
            return f"{unit} {g}{of and ' of '}{of.replace('-', ' ')}{rows}"

        def stranded(numbers: Sequence[int]) -> list[int]:
            return self.stranded({g: arguments(g)[0] for g in numbers}) if self._homes else []

        return Run(self.client, submit, where, receive, ahead, stranded)

    def follow(self, run: Run, following: Callable[[int], list[int]], passing: tuple[Any, ...] = ()) -> None:
        """Do a run to its end; ``passing``: what is shared by its tasks, and by no later run.

        A run that was ended leaves nothing on the cluster, whoever keeps the exception and all it holds.
        """
        try:
            run.go(following)
        except BaseException:
            self._sent.clear()
            self._shared.clear()
            self._homes.clear()
            raise
        finally:
            forget_messages(self.client)
        for value in passing:
            self._shared.pop(id(value), None)

    # --- what is sent ------------------------------------------------------------------------------------

    def settle(self, places: Sequence[tuple[int, int]]) -> None:
        """Choose the workers of rows that are sent, where they have none."""
        is_sent = self._file is None and not isinstance(self.X, DaskRows)
        if is_sent and (threads := threads_of(self.client)):
            self._homes |= settled(self._homes, places, threads)

    def home(self, place: Any) -> str | None:
        """The worker that has the rows of a place, or is to have them; None where Dask chooses."""
        return None if isinstance(place, list) else self._homes.get(place)

    def stranded(self, places: dict[int, tuple[int, int]]) -> list[int]:
        """Tasks that nobody will do, whose rows are then sent to another worker.

        A task whose worker dies while there is no other waits for it for ever, for Dask does not give it to
        workers that come later.
        """
        threads = threads_of(self.client)
        lost = [g for g, place in places.items() if self.home(place) not in threads]
        busy = {str(key) for keys in self.client.processing().values() for key in keys}
        if not threads or not lost or any(self._name in key for key in busy):
            return []
        for g in lost:
            if (sent := self._sent.get(places[g])) is not None and sent.status != "finished":
                del self._sent[places[g]]
        self.settle([*places.values()])
        return lost

    def send(self, what: str, value: Any, home: str | None = None) -> Any:
        """A value on some worker, that the scheduler can send again."""
        key = f"mercer-{what}-{self._name}-{uuid.uuid4().hex[:8]}"
        with sending():
            packed = (
                value
                if isinstance(value, np.ndarray)
                else dask_module("distributed.protocol.pickle").dumps(value)
            )
            with preferring({key: home}):
                return self.client.submit(hold, packed, key=key, pure=False)

    def shared(self, value: Any) -> Any:
        """What all tasks take, sent once while it is the same object."""
        found = self._shared.get(id(value))
        if found is None or found[0] is not value or found[1].status in _GONE:
            found = self._shared[id(value)] = value, self.send("shared", value)
        return found[1]

    def rows(self, place: Any) -> Any:
        """The rows of a place, (start, stop), as a task takes them; anything else in a list is sent along."""
        if isinstance(place, list):
            return place[0]
        if isinstance(self.X, DaskRows):
            return self.X.array[slice(*place)]
        if self._file is not None:
            return replace(self._file, start=place[0], stop=place[1])
        found = self._sent.get(place)
        if found is None or found.status in _GONE:
            rows = data.take(self.X, slice(*place))
            found = self._sent[place] = self.send("rows", rows, self.home(place))
        return found


def _seen_by_all(client: Any, X: Any) -> _FileRows | None:
    """Where the array X lies in a file, if every worker there is now sees it too."""
    base = X
    while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
        base = base.base
    if not isinstance(base, np.memmap) or base.filename is None or not X.flags.c_contiguous:
        return None
    if base.mode == "c":  # What was written to it is here alone.
        return None
    # Parts of a map have the offset of all of it; where X lies is told by the addresses, from its first page.
    first_page = base.offset - base.offset % ALLOCATIONGRANULARITY
    begin = np.frombuffer(base._mmap, np.uint8).__array_interface__["data"][0]  # type: ignore[attr-defined]
    offset = first_page + X.__array_interface__["data"][0] - begin
    path = str(Path(base.filename).absolute())
    stamp = _stamp(path)
    answers = client.run(_stamp, path, on_error="ignore") or {}
    if stamp is None or not answers or any(answer != stamp for answer in answers.values()):
        return None
    return _FileRows(path, int(offset), X.dtype.str, X.shape, 0, len(X), stamp)
