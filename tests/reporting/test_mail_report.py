"""The report of a filter of mails: aspects and their weights, errors left out, elements."""

import json

import numpy as np
import pytest

from mercer import MailClassifier
from mercer.cli.commands import invoke
from mercer.plots import DecisionBoundaryDisplay, GramDisplay, SpectrumDisplay
from mercer.plots.learned import learned
from mercer.plots.style import new_figure
from mercer.reporting import write_report
from mercer.reporting.mail_case import MailCase
from mercer.verdict import percent

from .test_report import Page, check_structure

NAMES = [f"person{i}" for i in range(16)]


@pytest.fixture(scope="module")
def mails():
    rng = np.random.default_rng(0)
    often = ["the", "to", "you", "and", "for", "with", "from", "this"]
    kinds = [("spam.example", "win", "buy cheap pills now"), ("work.example", "<b>lunch</b>", "meet at noon")]
    messages = [
        f"From: {name}@{host}\nSubject: {subject} {name}\n\n{text} {' '.join(rng.choice(often, 6))}".encode()
        for host, subject, text in kinds
        for name in NAMES
    ]
    y = np.repeat(["spam", "ham"], len(NAMES))
    return messages, y, MailClassifier().fit(messages, y)


@pytest.mark.sample(2)
@pytest.mark.parametrize("ham", ["ham", "spam"], ids=["ham first", "ham second"])
def test_a_filter_is_a_kernel_machine_on_rows(mails, ham):
    """f by rows is the filter's own, with either label as the wanted one; so are the probabilities."""
    messages, y, _ = mails
    model = MailClassifier(ham=ham).fit(messages, y)
    found = learned(model)
    Z = found.points(messages)
    np.testing.assert_allclose(found.values(Z)[:, 0], model.decision_function(messages), atol=1e-12)
    np.testing.assert_allclose(found.machine.predict_proba(Z), model.predict_proba(messages), atol=1e-12)
    K = (Z @ Z.T).toarray()
    truth = sum(
        weight * (rows @ rows.T).toarray()
        for weight, rows in zip(
            model.weights_.values(), model._rows(found_mails(messages)).values(), strict=True
        )
    )
    np.testing.assert_allclose(K, truth, atol=1e-12)


def found_mails(messages):
    from mercer.features.email import read

    return [read(message) for message in messages]


def test_displays_take_filters(mails):
    messages, y, model = mails
    ax = new_figure()[1]
    shown = DecisionBoundaryDisplay.from_estimator(model, messages, y, plane="normal", ax=ax)
    # along the normal no point can be misplaced
    right = np.asarray(shown.targets)[np.argsort(shown.points[:, 0])]
    np.testing.assert_array_equal(right, np.repeat([0, 1], len(NAMES)))
    within, between = GramDisplay.from_estimator(model, messages, y, ax=ax).contrast()
    assert within > between
    assert SpectrumDisplay.from_estimator(model, messages, ax=ax).penalty == pytest.approx(1 / model.C_)


def test_the_report_of_a_filter(mails, tmp_path):
    messages, y, model = mails
    text = write_report(model, messages, y, tmp_path / "mail.html").read_text("utf-8")
    page = Page(text)
    check_structure(page, text)
    said = page.said()
    assert "could not be made" not in text and "not shown, because" not in text
    assert "MailClassifier on 32 messages" in said and "The learned weights" in said
    for name, weight in model.weights_.items():
        assert f"{name} {weight:.1%}".replace("%", " %") in said
    wrong = np.mean((model.left_out_ > model.threshold_) != (y == "spam"))
    assert (
        f"error {percent(wrong)} (" in said
        and "of 32 messages left out" in said
        and "those with the same words in one fold" in said
    )
    assert "<b>lunch</b>" in said and "<b>" not in text  # the subject of a prototype
    assert "for spam" in said and "cheap pills" in said
    assert f"{len(model.support_)} of 32" in said


@pytest.mark.full
def test_messages_that_are_new_to_the_filter(mails, tmp_path):
    messages, y, model = mails
    other = [message.replace(b"noon", b"ten") for message in messages]
    case = MailCase.of(model, other, y)
    assert not case.is_training and case.places == {}
    assert MailCase.of(model, messages, y).is_training
    wrong = np.mean(model.predict(other) != y)
    assert case.held_out.error == wrong and "are new" in case.held_out.how
    text = write_report(model, other[:20], y[:20], tmp_path / "new.html").read_text("utf-8")
    assert "not among the messages of this report" in text and "could not be made" not in text


@pytest.mark.full
def test_the_command_writes_it(mails, tmp_path, capsys):
    messages, y, _ = mails
    for label in ("spam", "ham"):
        (tmp_path / label).mkdir()
    for i, message in enumerate(messages):
        (tmp_path / y[i] / f"{i}").write_bytes(message)
    folders = [str(tmp_path / "spam"), str(tmp_path / "ham")]
    report, model = str(tmp_path / "mail.html"), str(tmp_path / "mail.mercer")
    assert invoke(["mail", "train", *folders, "-o", model, "--report", report, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["report"] == report
    assert "The learned weights" in (tmp_path / "mail.html").read_text("utf-8")
    assert invoke(["mail", "train", *folders, "-o", model, "--report", model]) == 2
    assert "are the same file" in capsys.readouterr().err
