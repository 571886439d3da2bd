r"""Tasks on a cluster: sent, watched, received, and sent again where they were lost.

Whatever mercer waits for on a cluster it waits for here, so that every wait ends: with what was found, by
others where workers died, or with a sentence (`mercer.cluster.client` has the limits).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from itertools import islice
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any

from mercer.cluster.client import is_alive, limit, lost_scheduler, threads_of
from mercer.errors import ClusterError, InputError

#: Seconds between two looks at the cluster while nothing comes.
_LOOK = 0.5
#: Seconds for a result that is there to arrive, at first.
_ARRIVAL = 60.0


def in_turn(count: int) -> Callable[[int], list[int]]:
    """Numbers of tasks as `Run.go` asks for them: all there are, one after the other.

    >>> following = in_turn(3)
    >>> following(2), following(2), following(2)
    ([0, 1], [2], [])
    """
    left = iter(range(count))
    return lambda room: list(islice(left, room))


class Run:
    """Numbered tasks that are under way together.

    ``submit(numbers)`` sends some of them and returns their futures, ``where(g)`` names one in an error, and
    ``receive(g, found)`` takes what it found. ``ahead``: how many are under way for each thread of the
    cluster; all of them by default. ``stranded(numbers)``: those of them that nobody will do.
    """

    def __init__(
        self,
        client: Any,
        submit: Callable[[Sequence[int]], dict[int, Any]],
        where: Callable[[int], str],
        receive: Callable[[int, Any], None],
        ahead: int | None = None,
        stranded: Callable[[Sequence[int]], list[int]] = lambda numbers: [],
    ) -> None:
        self.client, self.submit, self.where, self.receive = client, submit, where, receive
        self.ahead, self.stranded = ahead, stranded
        self.done: SimpleQueue[tuple[int, Any]] = SimpleQueue()
        self.under_way: dict[int, Any] = {}
        self.sendings: dict[int, int] = {}
        self.last_seen = monotonic()
        self.threads = 1
        self.patience = _ARRIVAL

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
                    self.rescue()
                    continue
                if self.under_way.get(g) is future:
                    self.take(g, future)
        finally:
            self.end()

    def send(self, numbers: Sequence[int]) -> None:
        if not numbers:
            return
        if not is_alive(self.client):
            raise lost_scheduler(self.client)
        futures = self.submit(numbers)
        self.under_way |= futures
        for g, future in futures.items():
            self.sendings[g] = self.sendings.get(g, 0) + 1
            future.add_done_callback(lambda done, g=g: self.done.put((g, done)))

    def take(self, g: int, future: Any) -> None:
        """Receive what a task found, or send it again, or wait for it again."""
        if future.status == "error":
            return self.failed(g, future.exception())
        try:
            found = future.result(timeout=self.patience)
        except CancelledError as error:  # by others, or because the scheduler could not read the task
            return self.again(g, f"was cancelled on the cluster, {{}} times over: {error}", error)
        except TimeoutError:
            self.look()
            self.patience *= 2  # Large results take long through a narrow net.
            return self.done.put((g, future))
        except Exception as error:
            return self.failed(g, error)
        del self.under_way[g]
        self.last_seen = monotonic()
        self.receive(g, found)

    def failed(self, g: int, error: BaseException) -> None:
        """Send a task again whose workers died; a task that raises ends the run."""
        if type(error).__name__ == "KilledWorker":
            words = (
                "was lost with every worker that computed it, {} times over: give the workers more memory, "
                "or take fewer landmarks; their logs tell why they died"
            )
            return self.again(g, words, error)
        kind = InputError if isinstance(error, InputError) else ClusterError
        name = "" if kind is InputError else f"{type(error).__name__}: "
        cause = f" ({type(of).__name__}: {of})" if (of := error.__cause__) is not None else ""
        words = " ".join(f"{name}{error}{cause}".split())  # Dask's own have several lines.
        raise kind(f"{self.where(g)} failed on the cluster: {words}") from error

    def again(self, g: int, words: str, error: BaseException) -> None:
        """Send a task anew, if it was not sent too often; else the words, with the number of times."""
        if not is_alive(self.client):
            raise lost_scheduler(self.client) from error
        if self.sendings[g] > limit("sendings"):
            raise ClusterError(f"{self.where(g)} {words.replace('{}', str(self.sendings[g]), 1)}") from error
        self.under_way.pop(g)
        self.send([g])

    def look(self) -> None:
        """Whether there is still somebody to wait for."""
        if not is_alive(self.client):
            raise lost_scheduler(self.client)
        if threads := threads_of(self.client):
            self.last_seen, self.threads = monotonic(), sum(threads.values())
        if monotonic() - self.last_seen > limit("workers-timeout"):
            raise ClusterError(
                f"the cluster has had no worker for {limit('workers-timeout'):.0f} s: start some, or raise "
                "dask.config.set({'mercer.workers-timeout': …})"
            )

    def rescue(self) -> None:
        """Send again what nobody will do."""
        with suppress(OSError, TimeoutError):
            for g in self.stranded(list(self.under_way)):
                self.client.cancel([self.under_way[g]])
                self.again(g, "was left without a worker, {} times over", TimeoutError())

    def end(self) -> None:
        """Leave no task behind, where the run was ended."""
        if self.under_way and is_alive(self.client):
            with suppress(Exception):
                self.client.cancel(list(self.under_way.values()), force=True)
        self.under_way.clear()
