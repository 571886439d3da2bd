"""``mercer train``: the door to `mercer.tables.train`. Wishes go in, a model file and a report come out."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import Any

from mercer.cli.exits import as_options
from mercer.cli.files import report_beside, require_outputs, save, stem, tables
from mercer.cli.screen import Screen
from mercer.cli.summary import show_training
from mercer.cluster.client import connected
from mercer.errors import InputError, require_installed
from mercer.runtime import clock, start
from mercer.runtime.config import config
from mercer.runtime.files import aside
from mercer.runtime.imports import is_lean
from mercer.tables import Training, read_table
from mercer.tables import train as train_table
from mercer.tables.parts import name_of, parts_of
from mercer.tables.source import STANDARD_INPUT
from mercer.tables.training import as_kernels, readable_bytes

_SAVING = 0.3  # seconds that it takes to write the model, about
#: The report may take the seconds that a page with all its pictures takes on a large table. Of a shorter time
#: it has a fifth, or up to a third where that is no more than the pictures of a small table take.
_PAGE, _SHARE = 18.0, 0.2
_PICTURES, _LARGER_SHARE = 3.0, 0.35


@dataclass(frozen=True)
class Wishes:
    """What was asked for on the command line, under the names of its options."""

    files: Sequence[str]
    target: str | None = None
    task: str | None = None
    kernel: str | None = None
    learner: str = "auto"
    time: float | None = None
    memory: str | None = None
    cluster: str | None = None
    seed: int = 0
    output: Path | None = None
    report: Path | None = None
    folds: int | None = None
    rows: int | None = None
    missing: Sequence[str] | None = None
    header: bool | None = None
    drop: Sequence[str] | None = None
    keep: Sequence[str] | None = None
    group: str | None = None
    time_column: str | None = None
    no_report: bool = False
    proba: bool = False
    explain: bool = False

    @property
    def model_path(self) -> Path:
        return self.output or Path(f"{stem(self.files)}.mercer")

    @property
    def report_path(self) -> Path | None:
        return None if self.no_report else self.report or report_beside(self.model_path)

    @property
    def page_seconds(self) -> float:
        """What is kept of the time for the report."""
        if self.no_report:
            return 0.0
        if self.time is None:
            return _PAGE
        return min(max(_SHARE * self.time, min(_LARGER_SHARE * self.time, _PICTURES)), _PAGE)


def train(wishes: Wishes, screen: Screen) -> int:
    """Do it all; the exit status."""
    start.begins()
    began = clock.STARTED if is_lean() else clock.now()
    stood = clock.compiling_seconds()
    _check(wishes)
    wishes = _with_extras(wishes, screen)
    settings: dict[str, Any] = {"progress": False} if screen.quiet else {}
    if wishes.memory is not None:
        settings["memory"] = wishes.memory
    with ExitStack() as stack:
        if wishes.cluster is not None:
            settings["cluster"] = stack.enter_context(connected(wishes.cluster))
        stack.enter_context(config(**settings))
        stack.enter_context(screen.countdown(wishes.time))
        training = _trained(wishes, screen, began)
        save(training.model, wishes.model_path)
        report = _written(training, wishes, screen, began)
    training.seconds = monotonic() - began - stood
    show_training(training, wishes.model_path, report, wishes.explain, screen)
    return 0


def _check(wishes: Wishes) -> None:
    """Whatever can be refused before the file is read."""
    if wishes.time is not None and not 0 < wishes.time < float("inf"):
        raise InputError(f"--time must be a positive number of seconds, got {wishes.time}")
    if wishes.folds is not None and wishes.folds < 0:
        raise InputError(f"--folds must be 2 or more, or 0 to hold out a tenth, got {wishes.folds}")
    if wishes.seed < 0 or wishes.seed >= 2**32:
        raise InputError(f"--seed must be from 0 to 4294967295, got {wishes.seed}")
    outputs = {"--output": wishes.model_path, "--report": wishes.report_path}
    require_outputs(outputs, tables(wishes.files))


def _with_extras(wishes: Wishes, screen: Screen) -> Wishes:
    """Say before the search what the command will lack after it; a report may be done without."""
    require_installed("skops", "models")
    if wishes.no_report:
        return wishes
    try:
        require_installed("matplotlib", "plot")
    except ImportError as error:
        if wishes.report is not None:
            raise
        screen.note(f"no report will be written: {error}")
        return replace(wishes, no_report=True)
    return wishes


def _trained(wishes: Wishes, screen: Screen, began: float) -> Training:
    """The training of the table, whose notes are in the words of the command line."""
    kernel = as_kernels(wishes.kernel)
    name = name_of(parts_of(wishes.files))
    screen.step(f"reading {name if name != STANDARD_INPUT else 'standard input'}")
    table = read_table(
        wishes.files,
        header=wishes.header,
        missing=wishes.missing or (),
        rows=wishes.rows,
        most=readable_bytes(wishes.time),
    )
    training = train_table(
        table,
        wishes.target,
        task=wishes.task,
        kernel=kernel,
        learner=wishes.learner,
        max_time=wishes.time,
        folds=wishes.folds,
        rows=wishes.rows,
        drop=wishes.drop or (),
        keep=wishes.keep or (),
        groups=wishes.group,
        times=wishes.time_column,
        probabilities=wishes.proba,
        seed=wishes.seed,
        tell=screen,
        began=began,
        spare=wishes.page_seconds + _SAVING,
    )
    training.notes = list(map(as_options, training.notes))
    return training


def _written(training: Training, wishes: Wishes, screen: Screen, began: float) -> Path | None:
    """The path of the report; None, and a note, where none could be written."""
    path = wishes.report_path
    if path is None:
        return None
    screen.step(f"the model is in {wishes.model_path}; writing the report")
    seconds = _PAGE if wishes.time is None else min(max(began + wishes.time - clock.now(), 0.0), _PAGE)
    try:
        with aside(path) as place:
            training.write_report(place, limit=seconds)
    except (InputError, ImportError) as reason:  # the model is there, and is what was asked for
        screen.note(f"no report was written: {reason}")
        return None
    return path
