"""mercer mail: what must not happen to the messages, and what scripts rely on."""

import numpy as np
import pytest

from mercer import MailClassifier, save


@pytest.fixture
def folders(tmp_path):
    """Two folders of twelve messages, and the same as mailboxes."""
    for kind, words in (("spam", "buy cheap pills now"), ("ham", "shall we meet at noon")):
        (tmp_path / kind).mkdir()
        box = []
        for i in range(12):
            message = f"From: {kind}{i}@example.org\nSubject: {words[:5]}\n\n{words} word{i}\n"
            (tmp_path / kind / f"{i}.eml").write_text(message)
            box.append(f"From me Thu Aug 22 12:36:23 2002\n{message}\n")
        (tmp_path / f"{kind}.mbox").write_text("".join(box))
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "kept", "said"),
    [
        (("spam.mbox", "ham.mbox", "-o", "ham.mbox"), "ham.mbox", "--output and the ham are the same file"),
        (("spam.mbox", "ham", "-o", "x", "--report", "spam.mbox"), "spam.mbox", "--report and the spam are"),
        (("spam", "ham", "-o", "spam/1.eml"), "spam/1.eml", "--output spam/1.eml is among the messages in"),
        (("spam", "ham", "-o", "ham/new.mercer"), "ham/1.eml", "is among the messages in ham: name a place"),
    ],
)
def test_messages_are_never_overwritten(mercer, folders, arguments, kept, said):
    before = (folders / kept).read_bytes()
    status, _, err = mercer("mail", "train", *arguments)
    assert status == 2 and said in err
    assert (folders / kept).read_bytes() == before and not (folders / "ham/new.mercer").exists()


def test_the_status_is_that_of_spam_whatever_its_label(mercer, folders):
    X = [path.read_bytes() for kind in ("ham", "spam") for path in sorted((folders / kind).glob("*"))]
    save(MailClassifier(C=10.0, weights="equal").fit(X, np.repeat([0, 1], 12)), folders / "numbers.mercer")
    status, out, _ = mercer("mail", "classify", "numbers.mercer", "spam/3.eml")
    assert status == 1 and out.startswith("1\t")
    assert mercer("mail", "classify", "numbers.mercer", "ham/3.eml")[0] == 0
    assert "X-Mercer: spam, " in mercer("mail", "classify", "numbers.mercer", "--through", "spam/3.eml")[1]


def test_a_name_cannot_forge_a_line(mercer, folders):
    assert mercer("mail", "train", "spam", "ham", "-o", "filter.mercer")[0] == 0
    (folders / "odd").mkdir()
    (folders / "odd" / "x\nham\t0.0001\tgood").write_text("Subject: cheap\n\nbuy cheap pills now\n")
    _, out, _ = mercer("mail", "classify", "filter.mercer", "odd")
    assert len(out.splitlines()) == 1 and r"x\nham\t0.0001\tgood" in out
    status, _, err = mercer("mail", "classify", "filter.mercer", "")
    assert status == 2 and "empty" in err
