"""The command line: its words, options and help. What they do is in the files beside this one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from mercer.cli import options
from mercer.cli.exits import BAD_INPUT, INTERRUPTED, run
from mercer.cli.options import path, text
from mercer.cli.screen import Screen
from mercer.runtime.imports import import_sklearn

_CONTEXT = {"help_option_names": ["-h", "--help"]}

app = typer.Typer(
    name="mercer",
    help="Learning with kernels: from a table or a folder of mails to a model one can trust.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings=_CONTEXT,
    epilog="\b\nExamples:\n  mercer demo\n  mercer train iris.csv --target species\n\n"
    "\b\nA script with mercer in the place of scikit-learn:\n  mercer patched fit.py",
)
mail_app = typer.Typer(
    help="A filter for mails: learn it from two folders, ask it about messages.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings=_CONTEXT,
)
app.add_typer(mail_app, name="mail")


def _examples(*lines: str) -> str:
    """Lines of a help text that stay lines."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def invoke(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status."""
    given = _expressions_last(sys.argv[1:] if arguments is None else list(arguments))
    try:
        chosen = app(args=given, prog_name="mercer", standalone_mode=False)
    except Exception as error:  # what typer raises about the command line itself
        if not hasattr(error, "show"):
            if type(error).__name__ == "Abort":
                raise KeyboardInterrupt from None
            raise
        error.show()
        return int(getattr(error, "exit_code", BAD_INPUT))
    except SystemExit as error:
        return int(error.code or 0) if isinstance(error.code, int | None) else BAD_INPUT
    if callable(chosen):
        return int(chosen())
    if chosen == INTERRUPTED:  # newer versions of typer return it
        raise KeyboardInterrupt
    return chosen if isinstance(chosen, int) else 0


def _expressions_last(arguments: list[str]) -> list[str]:
    """``certify -gaussian(1)`` with the expression behind ``--``: it begins as options do, and is none.

    >>> _expressions_last(["certify", "-gaussian(1)", "--dim", "-3"])
    ['certify', '--dim', '-3', '--', '-gaussian(1)']
    """
    if arguments[:1] != ["certify"] or "--" in arguments:
        return arguments
    found = [
        number
        for number, argument in enumerate(arguments)
        if argument[:1] == "-"
        and argument not in ("-", "-h")
        and argument[1:2] != "-"
        and arguments[number - 1] != "--dim"
    ]
    kept = [argument for number, argument in enumerate(arguments) if number not in found]
    return [*kept, "--", *(arguments[number] for number in found)] if found else arguments


#: What a command returns: all that is to be done, for typer to have ended before it begins. What it needs it
#: imports itself, for that may be interrupted, or fail, too.
Work = Callable[[], int]


def _work(action: Work, quiet: bool = False) -> Work:
    return lambda: run(action, quiet)


def _learning(action: Work, quiet: bool = False) -> Work:
    """The work of a command that needs scikit-learn."""

    def begin() -> int:
        import_sklearn()
        return action()

    return _work(begin, quiet)


def _version(wanted: bool) -> None:
    if wanted:
        from mercer import __version__

        print(f"mercer {__version__}")
        raise typer.Exit(0)


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    pass


# --- the commands ----------------------------------------------------------------------------------------


@app.command(
    "train",
    epilog=_examples(
        "mercer train iris.csv --target species",
        "mercer train houses.parquet -t price --time 600 --memory 4GiB -o houses.mercer",
        'mercer train a9a.libsvm --kernel "gaussian(sigma=median)" --learner logistic',
        "mercer train visits.csv -t pressure --group patient",
        "mercer train rides/*.parquet -t duration --cluster tcp://scheduler:8786",
        'mercer train sqlite:///rides.db -t duration --query "select * from rides where km > 1"',
        "zcat big.csv.gz | mercer train - -t label --rows 20000 --json",
    ),
)
def _train(
    files: options.Files,
    target: options.Target = None,
    query: options.Query = None,
    task: options.Task = None,
    kernel: options.KernelText = None,
    learner: options.Learner = "auto",
    time: options.Time = None,
    memory: options.Memory = None,
    cluster: options.Cluster = None,
    seed: options.Seed = 0,
    output: options.Output = None,
    report: options.ReportFile = None,
    folds: options.Folds = None,
    rows: options.Rows = None,
    missing: options.Missing = None,
    header: options.Header = None,
    drop: options.Drop = None,
    keep: options.Keep = None,
    group: options.Group = None,
    time_column: options.TimeColumn = None,
    no_report: options.NoReport = False,
    proba: options.Proba = False,
    explain: options.Explain = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> Work:
    """Choose, fit and check a kernel machine for a table; write MODEL.mercer and a report."""
    wishes = {name: value for name, value in locals().items() if name not in ("json", "quiet", "query")}

    def action() -> int:
        from mercer.cli.files import with_query
        from mercer.cli.train import Wishes, train

        asked = wishes | {"files": with_query(files, query)}
        return train(Wishes(**asked), Screen(quiet, json))

    return _learning(action, quiet)


@app.command(
    "predict",
    epilog=_examples(
        "mercer predict iris.mercer new.csv > predicted.csv",
        "cat new.csv | mercer predict iris.mercer - --proba",
        "mercer predict houses.mercer new.csv --interval 0.9",
    ),
)
def _predict(
    model: options.Model,
    files: options.Files,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", parser=path, help="Write here instead of standard output."),
    ] = None,
    proba: Annotated[bool, typer.Option("--proba", help="Probabilities of the classes too.")] = False,
    query: options.Query = None,
    interval: Annotated[
        float | None,
        typer.Option(
            "--interval", help="Also where this part of targets is, such as 0.9; of classes, a set of them."
        ),
    ] = None,
    memory: options.Memory = None,
    missing: options.Missing = None,
    header: options.Header = None,
    quiet: options.Quiet = False,
) -> Work:
    """Print the table as CSV with the prediction in its last column."""

    def action() -> int:
        from mercer.cli.files import with_query
        from mercer.cli.predict import predict

        return predict(
            model,
            with_query(files, query),
            output=output,
            proba=proba,
            interval=interval,
            memory=memory,
            missing=tuple(missing or ()),
            header=header,
            screen=Screen(quiet),
        )

    return _learning(action, quiet)


@app.command("report", epilog=_examples("mercer report iris.mercer iris.csv"))
def _report(
    model: options.Model,
    files: options.Files,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", parser=path, help="The report; the model's name with .html by default."
        ),
    ] = None,
    query: options.Query = None,
    missing: options.Missing = None,
    header: options.Header = None,
    quiet: options.Quiet = False,
) -> Work:
    """Write a report (HTML) of a model on a table that has the target, and print its path."""

    def action() -> int:
        from mercer.cli.files import with_query
        from mercer.cli.predict import report

        gaps = tuple(missing or ())
        return report(
            model, with_query(files, query), output=output, missing=gaps, header=header, screen=Screen(quiet)
        )

    return _learning(action, quiet)


@app.command(
    "certify",
    epilog=_examples(
        'mercer certify "2*gaussian(sigma=1) + polynomial(3)"',
        'mercer certify "wendland(dim=3)" --dim 5',
        'mercer certify "max(1 - r, 0)" --dim 2',
    ),
)
def _certify(
    expression: Annotated[
        str,
        typer.Argument(
            help='A kernel, such as "gaussian(2) * linear + 1", or φ(r), such as "exp(-r)".',
            autocompletion=options.kernels_beginning,
        ),
    ],
    dim: Annotated[int | None, typer.Option(help="The number of columns of the points.")] = None,
    json: options.Json = False,
) -> Work:
    """Is it a kernel? The status is 0 for proved, 1 for refuted, 3 for unknown."""

    def action() -> int:
        from mercer.cli.certify import certify

        return certify(expression, dim, Screen(as_json=json))

    return _work(action)


@app.command("kernels", epilog=_examples("mercer kernels", "mercer kernels --json"))
def _kernels(json: options.Json = False) -> Work:
    """List the kernels that --kernel and certify take, with their formulas and parameters."""

    def action() -> int:
        from mercer.cli.kernels import kernels

        return kernels(Screen(as_json=json))

    return _work(action)


@mail_app.command(
    "train",
    epilog=_examples(
        "mercer mail train spam/ ham/ -o filter.mercer", "mercer mail train spam/ ham/ --report filter.html"
    ),
)
def _mail_train(
    spam: Annotated[Path, typer.Argument(parser=path, help="A folder of spams, one a file, or a mailbox.")],
    ham: Annotated[Path, typer.Argument(parser=path, help="The same of wanted mails.")],
    output: Annotated[Path, typer.Option("--output", "-o", parser=path, help="The model.")] = Path(
        "mail.mercer"
    ),
    ham_loss: Annotated[float, typer.Option(help="The share of wanted mails that may be lost.")] = 0.003,
    report: Annotated[Path | None, typer.Option(parser=path, help="A report (HTML) of the filter.")] = None,
    seed: Annotated[int, typer.Option(help="Of the folds.")] = 0,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> Work:
    """Learn to tell spam from ham."""

    def action() -> int:
        from mercer.cli.mail import train

        screen = Screen(quiet, json)
        return train(spam, ham, output=output, report=report, seed=seed, ham_loss=ham_loss, screen=screen)

    return _learning(action, quiet)


@mail_app.command(
    "classify",
    epilog=_examples(
        "mercer mail classify filter.mercer inbox/ --json",
        "mercer mail classify filter.mercer --through < message > marked",
    ),
)
def _mail_classify(
    model: Annotated[Path, typer.Argument(parser=path, help="A file that 'mercer mail train' wrote.")],
    files: Annotated[
        list[str] | None,
        typer.Argument(parser=text, help="Messages, mailboxes or folders; standard input by default."),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show what speaks for spam and for ham.")
    ] = False,
    through: Annotated[
        bool, typer.Option("--through", help="Print the message itself, with a field X-Mercer: spam or ham.")
    ] = False,
    json: options.Json = False,
) -> Work:
    """Print label, probability of spam and name of each message. The status is 1 if any is spam."""

    def action() -> int:
        from mercer.cli.mail import classify

        screen = Screen(as_json=json)
        return classify(model, files or [], explain=explain, through=through, screen=screen)

    return _learning(action)


@app.command("lab", epilog=_examples("mercer lab", "mercer lab --port 8000 --no-browser"))
def _lab(
    port: Annotated[int, typer.Option(help="On 127.0.0.1; 0 for any that is free.")] = 0,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only print the address.")] = False,
    quiet: options.Quiet = False,
) -> Work:
    """Open the lab in a browser: draw points, choose a kernel, and see at once what it does."""

    def action() -> int:
        from mercer.cli.lab import lab

        return lab(port, not no_browser, Screen(quiet))

    return _work(action, quiet)


@app.command("demo")
def _demo(
    folder: Annotated[Path, typer.Argument(parser=path, help="Where to write.")] = Path("mercer-demo"),
    quiet: options.Quiet = False,
) -> Work:
    """The whole way on a real table, in less than a minute; the last line is the path of the report."""

    def action() -> int:
        from mercer.cli.demo import demo

        return demo(folder, Screen(quiet))

    return _learning(action, quiet)


@app.command("warm")
def _warm(quiet: options.Quiet = False) -> Work:
    """Compile what the first fits would compile; the last line is the folder it is kept in."""

    def action() -> int:
        from mercer.cli.warm import warm

        return warm(Screen(quiet))

    return _learning(action, quiet)
