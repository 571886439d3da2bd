r"""Places to write to, looked at before any work is done."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from mercer.data.sources.database import Database, is_database
from mercer.errors import InputError
from mercer.runtime.files import aside, is_device
from mercer.tables.parts import parts_of
from mercer.tables.source import STANDARD_INPUT, without_packing

#: what the names of tables end with; what a file is, its content says
_TABLES = {
    *(".csv", ".tsv", ".tab", ".txt", ".dat", ".data", ".parquet", ".pq", ".arrow", ".feather", ".ipc"),
    *(".libsvm", ".svmlight", ".svm", ".arff", ".npy", ".npz"),
}


def tables(files: Sequence[str]) -> dict[str, str]:
    """The files of a table, as refusals call them."""
    parts = parts_of(files)
    if is_database(parts[0]):
        return {"the database": Database.of(parts[0]).path}
    return {"the table" if len(parts) == 1 else f"{part} of the table": str(part) for part in parts}


def stem(files: Sequence[str]) -> str:
    """A name for what is made of a table: that of its file or folder, without what says that it is one.

    >>> stem(["data/sales.2023.csv.gz"]), stem(["sales.2024"]), stem(["-"])
    ('sales.2023', 'sales.2024', 'model')
    >>> stem(["sqlite:///data/city.db?table=rides"]), stem(["sqlite:///data/city.db?query=select 1"])
    ('rides', 'city')
    >>> stem(["data/rides/a.csv", "data/rides/b.csv"]), stem(["data/rides/"]), stem(["a.csv", "b.csv"])
    ('rides', 'rides', 'a')
    """
    file, folder = files[0], os.path.dirname(files[0])
    if len(files) > 1 and folder and all(os.path.dirname(other) == folder for other in files):
        file = folder
    if file == STANDARD_INPUT:
        return "model"
    if is_database(file):
        address, _, asked = file.partition("?")
        return asked.removeprefix("table=") if asked.startswith("table=") else Path(address).stem
    name = Path(file).name
    while (shorter := without_packing(name)) != name:
        name = shorter
    suffix = Path(name).suffix
    return (name.removesuffix(suffix) if suffix.lower() in _TABLES else name) or "model"


def with_query(files: Sequence[str], query: str | None) -> list[str]:
    """The files; of a database with what --query asks of it.

    >>> with_query(["sqlite:///city.db"], "select km % 10 from rides")
    ['sqlite:///city.db?query=select%20km%20%25%2010%20from%20rides']
    """
    if query is None:
        return list(files)
    if len(files) != 1 or not is_database(files[0]):
        raise InputError(
            f"--query asks one database, got {', '.join(map(repr, files))}: name it as sqlite:///PATH"
        )
    if "?" in files[0]:
        raise InputError(f"{files[0]!r} says already what to read: leave out --query, or all from ? on")
    return [f"{files[0]}?query={quote(query)}"]


def report_beside(model: Path) -> Path:
    """Where the report of a model goes.

    >>> report_beside(Path("a/sales.2023.mercer")).as_posix(), report_beside(Path("sales.2023")).as_posix()
    ('a/sales.2023.html', 'sales.2023.html')
    """
    return model.parent / f"{model.name.removesuffix('.mercer')}.html"


def require_outputs(outputs: Mapping[str, Path | None], inputs: Mapping[str, Path | str]) -> None:
    """Refuse outputs that cannot be written, that are an input, or another output; None is no output.

    >>> require_outputs({"--output": Path("a.mercer")}, {"the model": "./a.mercer"})
    Traceback (most recent call last):
    mercer.errors.InputError: --output and the model are the same file, a.mercer: name another one
    """
    asked = {name: path for name, path in outputs.items() if path is not None}
    for path in asked.values():
        _require_writable(path)
    _require_apart(asked, inputs)


def save(model: Any, path: Path) -> None:
    """The model file, written aside and renamed."""
    import mercer

    with aside(path) as place:
        mercer.save(model, place)


def _require_writable(path: Path) -> None:
    """Refuse a place where no file can be made."""
    if path.is_dir():
        raise InputError(f"{path} is a folder: name a file to write")
    if is_device(path):
        return
    folder = (path.resolve() if path.is_symlink() else path).parent
    if not folder.is_dir():
        raise InputError(f"the folder {str(folder)!r} does not exist: make it first, or write elsewhere")
    if not os.access(folder, os.W_OK):
        raise InputError(f"the folder {str(folder)!r} cannot be written to: write elsewhere")


def _require_apart(outputs: Mapping[str, Path], inputs: Mapping[str, Path | str]) -> None:
    taken = {Path(path).resolve(): name for name, path in inputs.items() if str(path) != STANDARD_INPUT}
    read = next((name for name, path in inputs.items() if str(path) == STANDARD_INPUT), None)
    for name, path in outputs.items():
        if is_device(path):
            continue
        other = read if read and _is_standard_input(path) else taken.setdefault(path.resolve(), name)
        if other != name:
            raise InputError(f"{name} and {other} are the same file, {path}: name another one")


def _is_standard_input(path: Path) -> bool:
    """Whether standard input comes from this file."""
    with suppress(OSError):  # the stream is closed, or there is no such file
        return os.path.samestat(os.fstat(0), path.stat())
    return False
