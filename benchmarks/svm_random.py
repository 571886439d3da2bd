"""Random, badly scaled problems for the support vector machines: time, and dual values against LIBSVM's.

Run with ``python -m benchmarks.svm_random [problems] [first] [seed]``, by default 10,000 problems from 0.
Two to eighty points, all five machines, three kernels, C over eight decades; columns and rows scaled by up to
10^±10, constant columns, timestamps, duplicates, classes of one point. Both libraries get the same tolerance,
1e-3, and the dual values at their coefficients are computed in exact arithmetic (`_svm_random`).

A problem fails if our fit takes over 5 s of processor time, or its dual value is more than 1e-3 of the best
known above LIBSVM's. For the machines with ν, whose least values may be 0, what the tolerance allows for is
added to the scale: 1e-3 Cνn, for Cνn is the sum of all multipliers.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks._svm_random import MACHINES, TOL, Problem, dual_value, make
from mercer.errors import InputError

SLOW = 5.0  # seconds
WORSE = 1e-3
_SHOWN = 25
_COMPILED = 10  # problems of seed 0 that need all of the code between them


@dataclass(frozen=True)
class Outcome:
    """How a problem went."""

    problem: Problem
    seconds: float
    peer_seconds: float
    steps: int
    worse: float  # relative, positive where LIBSVM is better
    stopped: str
    refused: str = ""

    @property
    def failed(self) -> bool:
        return self.seconds > SLOW or self.worse > WORSE


def measure(problem: Problem) -> Outcome:
    """Fit both, and compare."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.process_time()
        try:
            ours = problem.fit(problem.mercer())
        except InputError as error:
            return Outcome(problem, time.process_time() - start, 0.0, 0, 0.0, "refused", str(error))
        seconds = time.process_time() - start
        start = time.process_time()
        try:
            theirs = problem.fit(problem.peer())
        except ValueError:  # its coefficients are not finite
            theirs = None
        peer_seconds = time.process_time() - start
    if theirs is None:
        return Outcome(problem, seconds, peer_seconds, int(np.sum(ours.n_iter_)), 0.0, ours.report_.stopped)
    a, b = dual_value(problem, ours), dual_value(problem, theirs)
    scale = max(abs(a), abs(b))
    if "nu" in problem.parameters:
        scale += TOL * problem.parameters.get("C", 1.0) * problem.parameters["nu"] * len(problem.X)
    worse = (a - b) / scale if scale > 0 else 0.0
    steps = int(np.sum(ours.n_iter_))
    return Outcome(problem, seconds, peer_seconds, steps, worse, ours.report_.stopped)


def main(problems: int = 10_000, first: int = 0, seed: int = 0) -> int:
    """Print a row per machine and the worst problems; returns how many failed."""
    for number in range(_COMPILED):  # code is compiled
        measure(make(number))
    measure_all: list[Outcome] = []
    for number in range(first, first + problems):
        outcome = measure(make(number, seed))
        measure_all.append(outcome)
        if outcome.failed:
            print(_line(outcome), flush=True)
    print("\nmachine | problems | failed | > 5 s | worse by > 1e-3 | better by > 1e-3 | refused | "
          "slowest, s | all, s | LIBSVM, s")  # fmt: skip
    for machine in (*MACHINES, "all"):
        print(_row(machine, [o for o in measure_all if machine in ("all", o.problem.machine)]))
    print("\nstopped:", dict(Counter(o.stopped for o in measure_all)))
    for refused, count in Counter(o.refused for o in measure_all if o.refused).most_common():
        print(f"refused {count}: {refused}")
    print("\nslowest:")
    for outcome in sorted(measure_all, key=lambda o: -o.seconds)[:_SHOWN]:
        print(_line(outcome))
    print("\nworst:")
    for outcome in sorted(measure_all, key=lambda o: -o.worse)[:_SHOWN]:
        print(_line(outcome))
    return sum(outcome.failed for outcome in measure_all)


def _row(machine: str, outcomes: list[Outcome]) -> str:
    def count(condition: Any) -> int:
        return sum(map(bool, map(condition, outcomes)))

    cells = [
        machine,
        len(outcomes),
        count(lambda o: o.failed),
        count(lambda o: o.seconds > SLOW),
        count(lambda o: o.worse > WORSE),
        count(lambda o: o.worse < -WORSE),
        count(lambda o: o.refused),
        f"{max((o.seconds for o in outcomes), default=0):.2f}",
        f"{sum(o.seconds for o in outcomes):.1f}",
        f"{sum(o.peer_seconds for o in outcomes):.1f}",
    ]
    return " | ".join(map(str, cells))


def _line(outcome: Outcome) -> str:
    return (
        f"{outcome.seconds:.2f} s, {outcome.steps:,} steps, worse by {outcome.worse:.2g}, {outcome.stopped}: "
        f"{outcome.problem}"
    )


if __name__ == "__main__":
    sys.exit(1 if main(*map(int, sys.argv[1:])) else 0)
