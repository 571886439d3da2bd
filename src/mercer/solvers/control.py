r"""Control over a long run: progress, a time limit, Ctrl-C, checkpoints. Every iterative solver takes one.

    control.step(state, …)      after each iteration, at a point where the model is whole
    control.stopped             Stop.MAX_TIME or Stop.INTERRUPTED once it is time to return the best so far
    control.restored            the state that a checkpoint held, to go on from

``state`` is a function without arguments that returns the solver's state, a dict of arrays, numbers and
strings; it is called only when a checkpoint is due. A solver that starts from ``restored`` must go on as if
it had never stopped: whatever the next iteration reads belongs into the state.

Ctrl-C sets ``stopped`` and lets the iteration finish; pressed again, it raises KeyboardInterrupt at once.

>>> control = Control("halving", max_time=60)
>>> with control:
...     x = 1.0
...     while x > 1e-3 and not control.stopped:
...         x /= 2
...         control.step(lambda: {"x": x}, gap=x)
>>> control.iterations, control.stopped
(10, None)
"""

from __future__ import annotations

import math
import os
import signal
import threading
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import perf_counter
from types import FrameType
from typing import Any, Self

import numpy as np

from mercer.data.types import Checkpoint, ProgressMode
from mercer.errors import InputError, warn_user
from mercer.runtime.clock import now
from mercer.runtime.config import settings
from mercer.runtime.progress import Progress
from mercer.solvers.result import Stop

State = dict[str, Any]

_EVERY = 5.0  # seconds between two checkpoints
_FORMAT = "mercer checkpoint 2"


class Control:
    """See the module. Used without ``with`` it only counts.

    Parameters
    ----------
    label : what is shown beside the bar
    total : iterations at most, when known
    max_time : seconds, those of compiling not counted (`mercer.runtime.clock`)
    progress : as in ``mercer.config``; None takes what is configured
    checkpoint : path of the file that keeps the state, written aside and renamed
    resume : whether to go on from that file, if it exists
    identity : says which problem this is; a checkpoint of another one is refused
    """

    def __init__(
        self,
        label: str = "",
        total: int | None = None,
        *,
        max_time: float | None = None,
        progress: ProgressMode = None,
        checkpoint: Checkpoint = None,
        resume: bool = False,
        identity: str = "",
    ) -> None:
        self.iterations = 0
        self.restored: State | None = None
        self._max_time = max_time
        self._path = None if checkpoint is None else Path(checkpoint)
        self._resume = resume
        self._identity = identity
        mode = settings().progress if progress is None else progress
        self._most = total
        self._bar = Progress(total, label, mode, limit=max_time)
        self._is_open = False
        self._interrupted = False
        self._state: Callable[[], State] | None = None  # gives the state of the last step, until it is saved
        self._start, self._saved_at = now(), perf_counter()
        self._end = self._limit()
        self._earlier = 0.0  # seconds spent before the checkpoint was written
        self._handler: Any = None

    def __enter__(self) -> Self:
        self._start, self._saved_at = now(), perf_counter()
        self._end = self._limit()
        if self._path is not None:
            _require_place(self._path)
            if self._resume and self._path.exists():
                self.restored = self._load(self._path)
        # Only Python's own handler is replaced: a program that has one of its own keeps it.
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._handler = signal.signal(signal.SIGINT, self._interrupt)
        try:
            self._bar.__enter__()
            if self.iterations:
                self._bar.advance(self.iterations)
        except KeyboardInterrupt:  # a user's callback may ask to stop so
            self._interrupted = True
        except BaseException:
            self._restore_handler()
            raise
        self._is_open = True
        return self

    def __exit__(self, kind: Any, *exception: Any) -> None:
        self._restore_handler()
        self._is_open = False
        try:
            if kind is None and self._state is not None:
                self._save()
        finally:
            self._bar.__exit__(kind, *exception)

    def _restore_handler(self) -> None:
        if self._handler is not None:
            signal.signal(signal.SIGINT, self._handler)
            self._handler = None

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if self._interrupted:
            raise KeyboardInterrupt
        self._interrupted = True

    def _limit(self) -> float:
        """When the time will be over, on the clock that stands still while code is compiled."""
        return np.inf if self._max_time is None else now() + self._max_time

    @property
    def stopped(self) -> Stop | None:
        """Why to stop, or None."""
        if self._interrupted:
            return Stop.INTERRUPTED
        return Stop.MAX_TIME if now() >= self._end else None

    @property
    def seconds(self) -> float:
        """Time since the start, in which nothing was compiled."""
        return now() - self._start

    @property
    def total_seconds(self) -> float:
        """Time since the start, and before the checkpoint this run went on from."""
        return self._earlier + self.seconds

    def step(
        self,
        state: Callable[[], State] | None = None,
        steps: int = 1,
        *,
        expected: float = math.inf,
        **facts: Any,
    ) -> None:
        """One more iteration (or ``steps`` of whatever the total counts) is done, of so many ``expected``."""
        self.iterations += steps
        if not self._is_open:
            return
        if self._most is not None:
            self._bar.total = max(self.iterations, math.ceil(min(expected, self._most)))
        try:
            self._bar.advance(steps, **facts)
        except KeyboardInterrupt:  # a user's callback may ask to stop so
            self._interrupted = True
        if self._path is not None and state is not None:
            self._state = state
            if perf_counter() - self._saved_at >= _EVERY or self.stopped:
                self._save()

    def show(self, **facts: Any) -> None:
        """What is known within an iteration, for the bar."""
        if self._is_open:
            self._bar.show(**facts)

    def inner(self) -> Inner:
        """The control of a solver that runs inside an iteration of this one."""
        return Inner(self)

    # --- the file --------------------------------------------------------------------------------------

    def _save(self) -> None:
        assert self._path is not None and self._state is not None
        facts: State = {
            "_format": _FORMAT,
            "_identity": self._identity,
            "_iterations": self.iterations,
            "_seconds": self.total_seconds,
        }
        aside = _aside(self._path)
        try:
            with aside.open("wb") as file:
                np.savez(file, allow_pickle=False, **facts, **self._state())
            aside.replace(self._path)
        except OSError as error:  # What was learned by now is worth more than the file.
            warn_user(
                f"checkpoint={str(self._path)!r} could not be written ({error.strerror or error}): the fit "
                "goes on without it, and the one before stays; make room for it",
                UserWarning,
            )
        finally:
            with suppress(OSError):
                aside.unlink(missing_ok=True)
        self._state = None
        self._saved_at = perf_counter()

    def _load(self, path: Path) -> State:
        try:
            with np.load(path, allow_pickle=False) as file:
                state = {name: _plain(file[name]) for name in file.files}
        except (OSError, ValueError, TypeError, EOFError, NotImplementedError, zipfile.BadZipFile) as error:
            raise InputError(
                f"{path} cannot be read as a checkpoint ({error}): remove it, or name another file"
            ) from None
        if state.pop("_format", None) != _FORMAT:
            raise InputError(f"{path} is not a checkpoint of this version: remove it, or name another file")
        if state.pop("_identity") != self._identity:
            raise InputError(
                f"{path} is the checkpoint of another fit: data, kernel or parameters differ; name another "
                "file, or fit with resume=False to overwrite it"
            )
        self.iterations = int(state.pop("_iterations"))
        self._earlier = float(state.pop("_seconds"))
        return state


def expected(done: int, first: float, now: float, aim: float) -> float:
    """How many iterations bring an error from ``first`` to ``aim``, if each takes off as large a part of it.

    >>> expected(2, 1.0, 1e-2, 1e-6), expected(2, 1.0, 1e-7, 1e-6), expected(2, 1.0, 1.0, 1e-6)
    (6.0, 2.0, inf)
    """
    if not math.inf > first > now > 0 or not aim > 0:
        return math.inf
    return done * max(1.0, math.log(first / aim) / math.log(first / now))


class Inner(Control):
    """Stops when the outer control does, counts its own iterations, and leaves bar and checkpoint alone.

    An inner run that is stopped is lost to the checkpoint, which then holds the outer state before it: the
    resumed run repeats the iteration from there.
    """

    def __init__(self, outer: Control) -> None:
        super().__init__()
        self._outer = outer

    @property
    def stopped(self) -> Stop | None:
        return self._outer.stopped


def _plain(array: np.ndarray) -> Any:
    return array.item() if array.ndim == 0 else array


def _require_place(path: Path) -> None:
    """Refuse a file that cannot be written, before the work that it is to keep."""
    if not path.parent.is_dir():
        raise InputError(
            f"checkpoint={str(path)!r} is in a folder that does not exist: make it, or name another"
        )
    if path.is_dir():
        raise InputError(f"checkpoint={str(path)!r} is a folder: name a file in it")
    aside = _aside(path)
    try:
        aside.touch()
        aside.unlink()
    except OSError as error:
        raise InputError(
            f"checkpoint={str(path)!r} cannot be written ({error.strerror}): name a file in a folder of yours"
        ) from None


def _aside(path: Path) -> Path:
    """Where a checkpoint is written before it takes its name."""
    return path.with_name(f"{path.name}.{os.getpid()}.part")
