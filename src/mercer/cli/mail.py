"""``mercer mail``: a filter from two folders of messages, and its word on new ones."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from mercer.cli.exits import DONE, NO
from mercer.cli.files import require_outputs, save
from mercer.cli.screen import Screen
from mercer.data.types import Model
from mercer.errors import InputError, warn_user
from mercer.runtime import start
from mercer.runtime.files import aside
from mercer.tables.source import STANDARD_INPUT
from mercer.verdict import percent


def train(
    spam: Path,
    ham: Path,
    *,
    output: Path,
    seed: int,
    ham_loss: float,
    screen: Screen,
    report: Path | None = None,
) -> int:
    """Learn from the messages in two folders (or mailboxes), save the filter, write a report if asked to."""
    from mercer.features.email import messages
    from mercer.selection.mail import MailClassifier

    start.begins()
    began, outputs = monotonic(), {"--output": output, "--report": report}
    require_outputs(outputs, {"the spam": spam, "the ham": ham})
    _require_apart(spam, ham)
    _require_elsewhere(outputs, (spam, ham))
    screen.step("reading messages")
    spams, hams = list(messages(spam)), list(messages(ham))
    both = len(set(spams) & set(hams))
    if both:
        warn_user(f"{both:,} messages are in both, spam and ham: remove them from one", UserWarning)
    screen.step(f"learning from {len(spams):,} spams and {len(hams):,} hams")
    y = np.array(["spam"] * len(spams) + ["ham"] * len(hams))
    model = MailClassifier(random_state=seed, ham_loss=ham_loss).fit(spams + hams, y)
    save(model, output)
    if report is not None:
        screen.step("writing the report")
        _write_report(model, spams + hams, y, report)
    facts: dict[str, Any] = {
        "spams": len(spams),
        "hams": len(hams),
        "weights": model.weights_,
        "model": str(output),
        "report": None if report is None else str(report),
    }
    _show(facts | _left_out(model, y == "spam") | {"seconds": round(monotonic() - began, 3)}, screen)
    return DONE


def _show(facts: dict[str, Any], screen: Screen) -> None:
    if screen.as_json:
        screen.json(facts)
        return
    lost, missed = percent(facts["ham_lost"]), percent(facts["spam_missed"])
    weights = sorted(facts["weights"].items(), key=lambda item: -item[1])
    screen.facts(
        [
            ("messages", f"{facts['spams']:,} spams, {facts['hams']:,} hams"),
            ("error", f"{percent(facts['error'])} ({lost} of hams lost, {missed} of spams missed)"),
            ("", "from folds of the messages; C and the threshold were chosen on them too"),
            ("weights", ", ".join(f"{name} {weight:.2f}" for name, weight in weights)),
            ("time", f"{facts['seconds']:.1f} s"),
            ("model", facts["model"]),
            *([("report", facts["report"])] if facts["report"] is not None else []),
        ]
    )


def _require_elsewhere(outputs: Mapping[str, Path | None], folders: Sequence[Path]) -> None:
    """Refuse outputs among the messages."""
    for name, path in outputs.items():
        for folder in folders:
            if path is not None and path.resolve().is_relative_to(folder.resolve()):
                raise InputError(f"{name} {path} is among the messages in {folder}: name a place elsewhere")


def _require_apart(spam: Path, ham: Path) -> None:
    """Refuse folders of which one has the messages of the other."""
    if not (spam.exists() and ham.exists()):
        return  # They are told where mails are read.
    one, other = spam.resolve(), ham.resolve()
    if one == other:
        raise InputError(f"spam and ham are the same folder, {spam}: name two")
    for inner, outer in ((one, other), (other, one)):
        hidden = any(part.startswith(".") for part in inner.parts[len(outer.parts) :])
        if inner.is_relative_to(outer) and not hidden:
            raise InputError(
                f"the folder {str(inner)!r} is inside of {str(outer)!r}: its messages would be spam and "
                "ham at once, name folders apart"
            )


def _write_report(model: Model, messages: list[bytes], y: np.ndarray, path: Path) -> None:
    from mercer.reporting import write_report

    with aside(path) as place:
        write_report(model, messages, y, place, title=f"Spam and ham: {len(messages):,} messages")


def _left_out(model: Model, is_spam: np.ndarray) -> dict[str, float]:
    """Errors on messages that the machine did not see; of a part of them where they are many."""
    known = np.isfinite(model.left_out_)
    called_spam = model.left_out_ > model.threshold_
    lost, missed = (
        float(np.mean(called_spam[known & ~is_spam])),
        float(np.mean(~called_spam[known & is_spam])),
    )
    share = float(np.mean(is_spam))  # the kinds count by their shares, however many of each are known
    return {"error": share * missed + (1 - share) * lost, "ham_lost": lost, "spam_missed": missed}


#: the field that is added to a message on its way through
FIELD = "X-Mercer"


def classify(
    model_path: Path, files: Sequence[str], *, explain: bool, screen: Screen, through: bool = False
) -> int:
    """A line for each message: label, probability of spam, name. The status is 1 if any is spam.

    ``through``: the one message itself, with a field that says so in its head; the status is then 0.
    """
    import mercer
    from mercer.selection.mail import MailClassifier

    if through and (len(files) > 1 or explain or screen.as_json):
        raise InputError("--through takes one message and prints it: leave out --explain, --json and files")
    if not model_path.is_file():
        raise InputError(
            f"the model {str(model_path)!r} does not exist: pass a file that 'mercer mail train' wrote"
        )
    model = mercer.load(model_path)
    if not isinstance(model, MailClassifier):
        raise InputError(f"{model_path} is no filter of mails, it holds a {type(model).__name__}")
    if through:
        return _pass(model, files[0] if files else STANDARD_INPUT)
    any_spam = False
    for name, message in _messages(files or [STANDARD_INPUT]):
        found = model.explain(message)
        any_spam = any_spam or found.is_spam
        if screen.as_json:
            facts = {"file": name, "label": str(found.label), "spam": found.probability, "value": found.value}
            if explain:
                facts |= {"aspects": found.aspects, "elements": found.elements[:50]}
            screen.json(facts)
        elif explain:
            print(f"{_on_one_line(name)}: {found}", flush=True)
        else:
            print(f"{found.label}\t{found.probability:.4f}\t{_on_one_line(name)}", flush=True)
    return NO if any_spam else DONE


def _on_one_line(name: str) -> str:
    r"""A name whose ends of lines, and other signs that cannot be printed, are spelled.

    >>> _on_one_line("a\nham\t1")
    'a\\nham\\t1'
    """
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in name)


def _pass(model: Model, file: str) -> int:
    [(_, message), *others] = _messages([file])
    if others:
        raise InputError(f"--through takes one message, {file} has {1 + len(others)}: pass them one by one")
    found = model.explain(message)
    sys.stdout.buffer.write(
        _marked(message, f"{'spam' if found.is_spam else 'ham'}, {found.probability:.4f}")
    )
    return DONE


def _marked(message: bytes, word: str) -> bytes:
    r"""The message with a field of ours in its head, and without those that its sender wrote in our name.

    >>> _marked(b"From x\r\nTo: me\r\nX-Mercer: ham,\r\n 0\r\n\r\nX-Mercer: yes\r\n", "spam, 1")
    b'From x\r\nX-Mercer: spam, 1\r\nTo: me\r\n\r\nX-Mercer: yes\r\n'
    """
    end = re.search(rb"^\r?\n", message, re.MULTILINE)
    head, rest = (message[: end.start()], message[end.start() :]) if end else (message, b"")
    head = re.sub(rb"(?im)^%s[ \t]*:.*(?:\n[ \t].*)*\n?" % FIELD.encode(), b"", head)
    envelope = re.match(rb">?From [^\n]*\n", head)
    begin = envelope.end() if envelope else 0
    line_end = b"\r\n" if b"\r\n" in message[:4000] else b"\n"
    return head[:begin] + f"{FIELD}: {word}".encode() + line_end + head[begin:] + rest


def _messages(files: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    from mercer.features.email.boxes import located

    for file in files:
        if file == STANDARD_INPUT:
            yield "-", sys.stdin.buffer.read()
        else:
            yield from located(file)
