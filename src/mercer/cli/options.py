"""The options of the command line: each a type, with the words of its help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

# --- names of files, whose types the help calls by the names of these functions ----------------------------


def text(name: str) -> str:
    """Refuse an empty name, which a variable of the shell that is not set leaves."""
    if not str(name):
        raise typer.BadParameter("the name is empty: name a file or a folder")
    return name


def path(name: str) -> Path:
    """The text as a path; an empty one is refused, for it would be this folder."""
    return Path(text(name))


def kernels_beginning(incomplete: str) -> list[tuple[str, str]]:
    """The names of kernels that begin so: the shell asks for them while one types."""
    from mercer.cli.kernels import complete

    return complete(incomplete)


# --- options that several commands share ---------------------------------------------------------------

Files = Annotated[
    list[str],
    typer.Argument(
        parser=text,
        metavar="FILE...",
        help="CSV, TSV, Parquet, Arrow, LIBSVM, ARFF, .npy or .npz, packed or not; several files, "
        "or a folder of them, are one table; - reads standard input; sqlite:///PATH?table=NAME a database.",
    ),
]
Query = Annotated[
    str | None, typer.Option("--query", help='One SELECT, of a database: "select km, city from rides".')
]
Model = Annotated[Path, typer.Argument(parser=path, help="A file that 'mercer train' wrote.")]
Json = Annotated[bool, typer.Option("--json", help="Results as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Nothing on standard error but failures.")]
Memory = Annotated[
    str | None, typer.Option(help="Memory to use at most, such as 4GiB; half of what is free by default.")
]
Cluster = Annotated[
    str | None, typer.Option(help="The scheduler of a Dask cluster that does the work: tcp://HOST:8786.")
]
Missing = Annotated[
    list[str] | None, typer.Option(help="A text that stands for a missing value; may be repeated.")
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header", help="Whether the first line names the columns; found out by default."
    ),
]


# --- options of "train" alone --------------------------------------------------------------------------

Target = Annotated[
    str | None,
    typer.Option(
        "--target", "-t", help="The column to predict: its name or position (1 is the first, -1 the last)."
    ),
]
Task = Annotated[str | None, typer.Option(help="classification or regression; found out by default.")]
KernelText = Annotated[
    str | None,
    typer.Option(
        help='A kernel, such as "2*gaussian(sigma=median) + polynomial(3)", see "mercer kernels"; '
        "chosen by default.",
        autocompletion=kernels_beginning,
    ),
]
Learner = Annotated[
    str,
    typer.Option(help="auto; svm, logistic, fisher, parzen, perceptron for classes; ridge, svr for numbers."),
]
Time = Annotated[float | None, typer.Option(help="Seconds to take, about.")]
Seed = Annotated[int, typer.Option(help="Of everything that is drawn at random.")]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", parser=path, help="The model; FILE's name with .mercer by default."),
]
ReportFile = Annotated[
    Path | None, typer.Option(parser=path, help="The report; the model's name with .html by default.")
]
Folds = Annotated[
    int | None,
    typer.Option(
        help="Folds for the error; 0 holds out a tenth. By default 5, or a tenth where these take long."
    ),
]
Rows = Annotated[
    int | None,
    typer.Option(
        help="Take so many rows, at equal distances; by default all that memory and time allow, or 100,000."
    ),
]
Drop = Annotated[list[str] | None, typer.Option(help="A column to leave out; may be repeated.")]
Keep = Annotated[
    list[str] | None, typer.Option(help="A column to keep though it looks like a row number or a code.")
]
Group = Annotated[
    str | None,
    typer.Option(
        help="Rows with one value in this column stay together in all folds, so that the error is of new "
        "values; it is no feature."
    ),
]
TimeColumn = Annotated[
    str | None,
    typer.Option(
        help="Later rows are predicted from those earlier in this column of numbers or dates, so that the "
        "error is of the future; a feature only with --keep."
    ),
]
NoReport = Annotated[bool, typer.Option("--no-report", help="Write no report.")]
Proba = Annotated[
    bool, typer.Option("--proba", help="Learn probabilities of classes also from more than 5,000 rows.")
]
Explain = Annotated[
    bool, typer.Option("--explain", help="Show what became of the columns and all that was tried.")
]
