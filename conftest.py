"""Before any test: a file whose optional library is missing has its doctests left out, and no other has."""

import os
from importlib.util import find_spec

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # scikit-learn's check of array-API input runs only then

HOMES = {
    "torch": "src/mercer/gram/backends/torch.py",
    "skops": "src/mercer/persist/__init__.py",
    "polars": "src/mercer/tables",
    "typer": "src/mercer/cli",
}

collect_ignore = [path for library, path in HOMES.items() if find_spec(library) is None]
