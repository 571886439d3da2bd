"""kill -9 at random moments of fits on landmarks, and what a resumed fit gives: the same bits, or not.

    make bench BENCH=kills

A fit in a process of its own writes a checkpoint after every iteration, and is killed at a moment drawn
evenly from the time that it takes; another process resumes it. What counts is that coefficients and intercept
are equal, to the last bit, to those of a fit that nobody disturbed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks._timing import Table, write

KILLS = int(os.environ.get("KILLS", 20))  # of each learner

_FIT = """
import sys
import numpy as np
import mercer
from mercer.solvers import control

control._EVERY = 0.0
name, path = sys.argv[1:]
rng = np.random.default_rng(0)
X = rng.normal(size=(20_000, 5))
y = np.sin(2 * X[:, 0]) * X[:, 1] + 0.3 * rng.normal(size=len(X))
options = {"landmarks": 200, "checkpoint": path, "resume": True, "progress": False}
kernel = mercer.Gaussian(2.0)
if name == "ridge":
    model = mercer.KernelRidge(1e-4, kernel=kernel, tol=1e-20, **options)
else:
    model = mercer.KernelLogisticRegression(kernel, C=100.0, tol=1e-10, **options)
print("begins", flush=True)
model.fit(X, y if name == "ridge" else y > 0)
np.savez(path + ".model.npz", coef=model.expansion_.coef, intercept=model.expansion_.intercept)
print(model.n_iter_, flush=True)
"""


class Fit:
    """A fit in a process of its own, that begins when this is made."""

    def __init__(self, name: str, path: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", _FIT, name, str(path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.path = path
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "begins\n"
        self.began = time.perf_counter()

    def end(self) -> int:
        """The iterations, after it has ended by itself."""
        told, _ = self.process.communicate()
        assert self.process.returncode == 0
        return int(told)

    def kill(self, after: float) -> bool:
        """Kill -9 so many seconds after the fit began; whether it was still at work."""
        time.sleep(max(0.0, self.began + after - time.perf_counter()))
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()
        return self.process.returncode == -signal.SIGKILL

    def model(self) -> tuple[bytes, ...]:
        with np.load(f"{self.path}.model.npz") as file:
            return tuple(file[name].tobytes() for name in ("coef", "intercept"))


def kills(name: str, folder: Path, rng: np.random.Generator) -> tuple[int, ...]:
    """Iterations of a fit; kills: all, before the first checkpoint, while one was written; equal results."""
    Fit(name, folder / "warm").end()  # It compiles what it needs.
    whole = Fit(name, folder / "whole")
    iterations = whole.end()
    seconds = time.perf_counter() - whole.began
    done = early = writing = equal = 0
    while done < KILLS:
        own = folder / str(done)
        own.mkdir(exist_ok=True)
        path = own / "fit.npz"
        if not Fit(name, path).kill(rng.uniform(0.0, seconds)):
            for left in own.iterdir():  # It was faster than the one before: once more.
                left.unlink()
            continue
        done += 1
        early += not path.exists()
        writing += len([left for left in own.iterdir() if left != path]) > 0
        rest = Fit(name, path)
        rest.end()
        equal += rest.model() == whole.model()
    return iterations, done, early, writing, equal


def main() -> None:
    table = Table(
        "kill -9 at random moments, resumed: 20,000 × 5, 200 landmarks, a checkpoint after every iteration",
        *("learner", "iterations of a fit", "kills", "before a checkpoint", "while one was written"),
        "equal bit for bit",
    )
    rng = np.random.default_rng()  # other moments each time
    for name in ("ridge", "logistic"):
        with tempfile.TemporaryDirectory() as scratch:
            table.add(name, *kills(name, Path(scratch), rng))
    write("kills", table)


if __name__ == "__main__":
    main()
