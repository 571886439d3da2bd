r"""Whole fits as tasks of a cluster: folds of a nested error, trials of a search.

They are given the settings of the client (memory, number type, device, backend), and one thread. Where no
memory was configured, a worker gives each of its threads half of its share of what it may hold.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from mercer.cluster.client import dask_module, require_worker_memory
from mercer.cluster.runs import in_turn
from mercer.cluster.spread import Spread
from mercer.runtime.config import memory_budget, settings, thread_count, threads_within, within
from mercer.runtime.threads import run

#: what a task takes from the settings of the client
_SETTINGS = ("memory", "dtype", "device", "backend")

#: ``receive(chain, item, found)``: whether to go on
Receive = Callable[[int, Any, Any], bool]


def each(what: str, function: Callable[..., Any], shared: tuple[Any, ...], items: Sequence[Any]) -> list[Any]:
    """``function(*shared, item)`` for every item, in their order: by the configured cluster, else one by one.

    >>> each("power", pow, (2,), [3, 4])
    [8, 16]
    """
    client = settings().cluster
    if client is None:
        return [function(*shared, item) for item in items]
    found: dict[int, Any] = {}
    spread = Spread(client, None)
    whole = spread.run(what, _Task(function), shared, lambda g: ([(items[g],)], ()), found.__setitem__)
    spread.follow(whole, in_turn(len(items)))
    return [found[g] for g in range(len(items))]


@dataclass(frozen=True)
class _Task:
    """A function under the settings of where this was made: the last argument holds those of one item."""

    function: Callable[..., Any]
    settings: dict[str, Any] = field(
        default_factory=lambda: {name: getattr(settings(), name) for name in _SETTINGS}
    )

    def __call__(self, *arguments: Any) -> Any:
        *shared, item = arguments
        memory = self.settings["memory"] or _share_of_worker()
        with within(**{**self.settings, "memory": memory}):
            return self.function(*shared, *item)


def _share_of_worker() -> int:
    """Half of what the worker may hold, for each of its threads, or of what its machine has free."""
    worker = dask_module("distributed").get_worker()
    most = worker.memory_manager.memory_limit
    return min(memory_budget(), int(most) // (2 * worker.state.nthreads)) if most else memory_budget()


class Team:
    """Who does what comes in chains: the workers of the configured cluster, else our threads."""

    def __init__(self) -> None:
        client = settings().cluster
        self._spread = None if client is None else Spread(client, None)

    @property
    def is_elsewhere(self) -> bool:
        """Whether a cluster does it."""
        return self._spread is not None

    def size(self, n_bytes: int) -> int:
        """How many items are done at a time, where each takes so much memory."""
        if self._spread is None:
            return max(1, min(thread_count(), memory_budget() // n_bytes))
        require_worker_memory(self._spread.client, n_bytes, "take larger workers, or fewer threads for each")
        return max(1, sum(self._spread.client.nthreads().values()))

    def follow(
        self,
        what: str,
        function: Callable[..., Any],
        shared: Any,
        chains: Sequence[Iterator[tuple[Any, ...]]],
        receive: Receive,
        threads: int,
    ) -> None:
        """``receive(number, item, function(shared, *item))`` for all items of every chain.

        The next item of a chain is asked for when the one before was received, for it may follow from that.
        ``receive`` says whether to go on; on a cluster, what is under way is then given up.

        >>> found = []
        >>> Team().follow(
        ...     "sum", int.__add__, 1, [iter([(2,), (3,)])], lambda *one: found.append(one) or True, 1
        ... )
        >>> found
        [(0, (2,), 3), (0, (3,), 4)]
        """
        if self._spread is not None:
            self._follow_elsewhere(self._spread, what, function, shared, chains, receive)
            return

        def task(number: int) -> None:
            for item in chains[number]:
                receive(number, item, function(shared, *item))

        with threads_within(threads):  # A chain has its share of what the others leave.
            run(task, range(len(chains)))

    @staticmethod
    def _follow_elsewhere(
        spread: Spread,
        what: str,
        function: Callable[..., Any],
        shared: Any,
        chains: Sequence[Iterator[tuple[Any, ...]]],
        receive: Receive,
    ) -> None:
        """As many items are asked for as there are threads, so that none waits while its time passes."""
        items: list[tuple[int, tuple[Any, ...]]] = []
        ready = deque(range(len(chains)))

        def following(room: int) -> list[int]:
            before = len(items)
            while ready and len(items) < before + room:
                number = ready.popleft()
                items.extend((number, item) for item in islice(chains[number], 1))
            return list(range(before, len(items)))

        def arrived(g: int, found: Any) -> None:
            number, item = items[g]
            if receive(number, item, found):
                ready.append(number)
            else:
                ready.clear()
                whole.end()

        def arguments(g: int) -> tuple[Any, tuple[Any, ...]]:
            return [items[g][1]], ()

        whole = spread.run(what, _Task(function), (shared,), arguments, arrived, 1)
        spread.follow(whole, following)
