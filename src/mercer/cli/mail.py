"""``mercer mail``: a filter from two folders of messages, and its word on new ones."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from mercer.cli.exits import DONE, NO
from mercer.cli.files import require_writable
from mercer.cli.screen import Screen, percent
from mercer.cli.train import save
from mercer.errors import InputError
from mercer.tables.source import STANDARD_INPUT

__all__ = ["classify", "train"]


def train(spam: Path, ham: Path, *, output: Path, seed: int, ham_loss: float, screen: Screen) -> int:
    """Learn from the messages in two folders (or mailboxes), and save the filter."""
    from mercer.features.email import messages
    from mercer.selection.mail import MailClassifier

    require_writable(output)
    began = monotonic()
    if spam.exists() and ham.exists() and spam.resolve() == ham.resolve():
        raise InputError(f"spam and ham are the same folder, {spam}: name two")
    screen.step("reading messages")
    spams, hams = list(messages(spam)), list(messages(ham))
    screen.step(f"learning from {len(spams):,} spams and {len(hams):,} hams")
    y = np.array(["spam"] * len(spams) + ["ham"] * len(hams))
    model = MailClassifier(random_state=seed, ham_loss=ham_loss).fit(spams + hams, y)
    save(model, output)
    facts: dict[str, Any] = {
        "spams": len(spams),
        "hams": len(hams),
        "weights": model.weights_,
        "model": str(output),
    }
    facts |= _left_out(model, y == "spam") | {"seconds": round(monotonic() - began, 3)}
    if screen.as_json:
        screen.json(facts)
        return DONE
    lost, missed = percent(facts["ham_lost"]), percent(facts["spam_missed"])
    weights = sorted(model.weights_.items(), key=lambda item: -item[1])
    screen.facts(
        [
            ("messages", f"{len(spams):,} spams, {len(hams):,} hams"),
            ("error", f"{percent(facts['error'])} ({lost} of hams lost, {missed} of spams missed)"),
            ("", "from folds of the messages; C and the threshold were chosen on them too"),
            ("weights", ", ".join(f"{name} {weight:.2f}" for name, weight in weights)),
            ("time", f"{facts['seconds']:.1f} s"),
            ("model", str(output)),
        ]
    )
    return DONE


def _left_out(model: Any, is_spam: np.ndarray) -> dict[str, float]:
    """Errors on messages that the machine did not see; of a part of them where they are many."""
    known = np.isfinite(model.left_out_)
    is_spam, called_spam = is_spam[known], model.left_out_[known] > model.threshold_
    return {
        "error": float(np.mean(is_spam != called_spam)),
        "ham_lost": float(np.mean(called_spam[~is_spam])),
        "spam_missed": float(np.mean(~called_spam[is_spam])),
    }


def classify(model_path: Path, files: Sequence[str], *, explain: bool, screen: Screen) -> int:
    """A line for each message: label, probability of spam, name. The status is 1 if any is spam."""
    import mercer
    from mercer.selection.mail import MailClassifier

    if not model_path.is_file():
        raise InputError(
            f"the model {str(model_path)!r} does not exist: pass a file that 'mercer mail train' wrote"
        )
    model = mercer.load(model_path)
    if not isinstance(model, MailClassifier):
        raise InputError(f"{model_path} is no filter of mails, it holds a {type(model).__name__}")
    any_spam = False
    for name, message in _messages(files or [STANDARD_INPUT]):
        found = model.explain(message)
        is_spam = str(found.label) == "spam"
        any_spam = any_spam or is_spam
        if screen.as_json:
            facts = {"file": name, "label": str(found.label), "spam": found.probability, "value": found.value}
            if explain:
                facts |= {"aspects": found.aspects, "elements": found.elements[:50]}
            screen.json(facts)
        elif explain:
            print(f"{name}: {found}", flush=True)
        else:
            print(f"{found.label}\t{found.probability:.4f}\t{name}", flush=True)
    return NO if any_spam else DONE


def _messages(files: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    from mercer.features.email import messages

    for file in files:
        if file == STANDARD_INPUT:
            yield "-", sys.stdin.buffer.read()
            continue
        found = list(messages(Path(file)))
        place = Path(file)
        for i, message in enumerate(found):
            yield (file if len(found) == 1 and not place.is_dir() else f"{file}[{i + 1}]"), message
