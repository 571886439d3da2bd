"""The Python code that reproduces what is on screen."""

from __future__ import annotations

import numpy as np

from mercer.lab.typed import TypedKernel


def array(name: str, values: np.ndarray) -> str:
    """An assignment that gives these numbers back, to the last digit.

    >>> print(array("X", np.array([[0.1, 2.0], [3.0, 4.5]])))
    X = np.array([
        [0.1, 2.0],
        [3.0, 4.5],
    ])
    """
    if values.ndim == 1:
        rows = [", ".join(map(repr, values[i : i + 12].tolist())) for i in range(0, len(values), 12)]
    else:
        rows = [f"[{', '.join(map(repr, row))}]" for row in values.tolist()]
    return "\n".join([f"{name} = np.array([", *(f"    {row}," for row in rows), "])"])


def script(typed: TypedKernel, imports: list[str], body: list[str]) -> str:
    """A whole script: imports, the kernel where there is one, then what is done with it."""
    homes: dict[str, set[str]] = {}
    for line in (*imports, *(line for line in typed.imports if line.startswith("from "))):
        home, names = line.removeprefix("from ").split(" import ")
        homes.setdefault(home, set()).update(names.split(", "))
    own = [f"from {home} import {', '.join(sorted(names))}" for home, names in sorted(homes.items())]
    rest = [line for line in typed.imports if not line.startswith("from ")]
    return "\n".join(["import numpy as np", *own, *(rest or [""]), *body, ""])
