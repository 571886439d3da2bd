"""What the tests of estimators share: processes of their own, which begin with mercer imported."""

import json
import os
import signal
import subprocess
import sys

import pytest

#: Imports take longer than most fits: one process has them, and a child of it runs each script.
PARENT = """
import json, os, sys, traceback
import numpy
from mercer import *

for line in sys.stdin:
    child = os.fork()
    if child == 0:
        status = 0
        try:
            code, sys.argv[1:] = json.loads(line)
            print(os.getpid(), flush=True)
            exec(code, {"__name__": "__main__"})
        except BaseException:
            status = 1
            traceback.print_exc(file=sys.stdout)
        sys.stdout.flush()
        os._exit(status)
    print("end", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Child:
    """A process that runs a script: its lines are read as they come; it ends with a `returncode`."""

    def __init__(self, parent: subprocess.Popen, code: str, *arguments: object) -> None:
        self._parent, self.returncode = parent, None
        print(json.dumps([code, list(map(str, arguments))]), file=parent.stdin, flush=True)
        self._pid = int(parent.stdout.readline())

    def __iter__(self):
        for line in self._parent.stdout:
            if line.startswith("end "):
                self.returncode = int(line.split()[1])
                return
            yield line.rstrip("\n")

    def kill(self) -> None:
        os.kill(self._pid, signal.SIGKILL)


@pytest.fixture(scope="session")
def parent():
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        process.stdin.close()


@pytest.fixture
def fork(parent):
    """``fork(code, *arguments)`` runs a script in a process of its own, one after the other."""
    children = []

    def start(code: str, *arguments: object) -> Child:
        children.append(Child(parent, code, *arguments))
        return children[-1]

    yield start
    for child in children:
        if child.returncode is None:  # the test ended before it did
            child.kill()
            for _ in child:
                pass
