"""mercer certify, mail and demo, and the help."""

import io
import json
import re
import shutil

import pytest

from mercer import __version__
from mercer.cli.mail import _marked
from mercer.verdict import percent


@pytest.mark.parametrize(
    ("expression", "status", "said"),
    [
        ("2*gaussian(sigma=1.0) + polynomial(3)", 0, "is proved positive definite: a sum of kernels"),
        ("sigmoid(eta=1.0, nu=-1.0)", 1, "is refuted: k(x, x) = -0.469945 < 0 at one point"),
        ("wendland(dim=3)", 0, "is proved positive definite"),
        ("exp(-r)", 0, "is proved positive definite: by its formula"),
    ],
)
def test_certify(mercer, expression, status, said):
    found, out, err = mercer("certify", expression)
    assert (found, err) == (status, "")
    assert said in out
    facts = json.loads(mercer("certify", expression, "--json")[1])
    assert facts["verdict"] == {0: "proved", 1: "refuted", 3: "unknown"}[status]


def test_certify_in_a_dimension(mercer):
    status, out, _ = mercer("certify", "wendland(dim=3)", "--dim", "5")
    assert status == 1
    assert "it is positive definite in ℝ^m for m ≤ 3" in out


# --- mail --------------------------------------------------------------------------------------------------


def write_mails(folder, subject, words, n=12):
    folder.mkdir()
    for i in range(n):
        (folder / f"{i}.eml").write_text(
            f"From: {subject}{i}@example.org\nSubject: {subject} {i}\n\n{words} {i} and more\n"
        )


def test_mail(mercer, tmp_path, monkeypatch):
    write_mails(tmp_path / "spam", "cheap", "buy cheap pills now")
    write_mails(tmp_path / "ham", "lunch", "shall we meet at noon")
    status, out, err = mercer("mail", "train", "spam", "ham", "-o", "filter.mercer")
    assert status == 0
    assert "12 spams, 12 hams" in out
    assert re.search(r"weights +\w+ 0\.\d\d", out)
    assert "learning from 12 spams and 12 hams" in err

    status, out, _ = mercer("mail", "classify", "filter.mercer", "spam/3.eml", "ham/4.eml")
    assert status == 1  # there is spam among them
    labels = [line.split("\t") for line in out.splitlines()]
    assert [(label, name) for label, _, name in labels] == [("spam", "spam/3.eml"), ("ham", "ham/4.eml")]
    assert float(labels[0][1]) > 0.5 > float(labels[1][1])

    class Standard:
        buffer = io.BytesIO((tmp_path / "ham" / "5.eml").read_bytes())

    monkeypatch.setattr("sys.stdin", Standard)
    status, out, _ = mercer("mail", "classify", "filter.mercer", "--json", "--explain")
    assert status == 0
    facts = json.loads(out)
    assert (facts["file"], facts["label"]) == ("-", "ham")
    assert "words" in facts["aspects"]
    status, out, _ = mercer("mail", "classify", "filter.mercer", "ham")
    assert (status, len(out.splitlines())) == (0, 12)
    assert out.splitlines()[0].split("\t")[2] == "ham/0.eml"
    status, _, err = mercer("predict", "filter.mercer", "ham/4.eml")
    assert status == 2
    assert "holds a MailClassifier, which takes no tables" in err
    status, _, err = mercer("mail", "train", "spam", "spam", "-o", "x.mercer")
    assert status == 2
    assert "spam and ham are the same folder" in err
    status, _, err = mercer("mail", "train", "spam", ".", "-o", "x.mercer")
    assert status == 2
    assert "its messages would be spam and ham at once" in err
    shutil.copy("spam/1.eml", "ham/twice.eml")
    status, _, err = mercer("mail", "train", "spam", "ham", "-o", "x.mercer")
    assert status == 0
    assert "1 messages are in both, spam and ham" in err


def test_mail_passes_through(mercer, tmp_path):
    """In a pipeline: the message as it was, with one field more; what its sender wrote there is gone."""
    write_mails(tmp_path / "spam", "cheap", "buy cheap pills now")
    write_mails(tmp_path / "ham", "lunch", "shall we meet at noon")
    assert mercer("mail", "train", "spam", "ham", "-o", "filter.mercer")[0] == 0
    raw = b"From x\r\nSubject: cheap\r\nx-mercer: ham,\r\n 0.0\r\n\r\nbuy cheap pills \xff\r\nX-Mercer: y\r\n"
    assert _marked(raw, "spam, 1.0000") == (
        b"From x\r\nX-Mercer: spam, 1.0000\r\nSubject: cheap\r\n\r\nbuy cheap pills \xff\r\nX-Mercer: y\r\n"
    )
    for bare in (b"", b"\nbody", b"Subject: x", b"Subject: x\n\n"):
        assert _marked(bare, "ham, 0").replace(b"X-Mercer: ham, 0\n", b"") == bare
    status, out, _ = mercer("mail", "classify", "filter.mercer", "--through", "spam/3.eml")
    assert status == 0
    whole = (tmp_path / "spam" / "3.eml").read_text()
    assert re.fullmatch(r"X-Mercer: spam, [01]\.\d{4}\n" + re.escape(whole), out)
    status, out, err = mercer("mail", "classify", "filter.mercer", "--through", "spam")
    assert (status, out) == (2, "")
    assert "takes one message, spam has 12" in err


# --- help and demo -----------------------------------------------------------------------------------------


def test_version(mercer):
    assert mercer("--version") == (0, f"mercer {__version__}\n", "")


@pytest.mark.parametrize(
    "command", ["", "train", "predict", "report", "certify", "demo", "mail", "mail train", "mail classify"]
)
def test_help_has_examples(mercer, command):
    status, out, err = mercer(*command.split(), "--help")
    assert (status, err) == (0, "")
    assert out.startswith(f"Usage: mercer {command}".rstrip())
    if command not in ("demo", "mail"):
        assert re.search(rf"Examples:\n +mercer {command}".rstrip(), out)


def test_completion(mercer, monkeypatch):
    monkeypatch.setenv("_MERCER_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "mercer tr")
    monkeypatch.setenv("COMP_CWORD", "1")
    _, out, _ = mercer()
    assert out.split() == ["train"]


def test_demo_ends_with_the_path(mercer, tmp_path, monkeypatch):
    """With one kernel and a stand-in for the report; the real one is timed by hand."""
    import mercer.cli.demo as demo
    from mercer.cli.train import Wishes

    monkeypatch.setattr(
        demo,
        "Wishes",
        lambda *args, **options: Wishes(*args, kernel="gaussian(sigma=5.0)", folds=2, **options),
    )
    monkeypatch.setattr(
        "mercer.reporting.write_report", lambda model, X, y, path, **more: path.write_text("<html>")
    )
    status, out, err = mercer("demo", "here")
    assert status == 0
    assert out.splitlines()[-1] == f"Report: {tmp_path / 'here' / 'tumours.html'}"
    assert "$ mercer train here/tumours.csv --target diagnosis" in err
    predictions = (tmp_path / "here" / "predictions.csv").read_text().splitlines()
    assert len(predictions) == 115
    assert predictions[0].endswith("diagnosis,P(benign),P(malignant),prediction")
    assert sum(line.split(",")[-1] != line.split(",")[-4] for line in predictions[1:]) <= 8


def test_demo_overwrites_nothing_but_its_own(mercer, tmp_path, monkeypatch):
    """Its own are known by the tables, which are the same each time."""

    def predict(model, file, *, output, **more):
        output.write_text("predictions")
        return 0

    monkeypatch.setattr("mercer.cli.demo.train", lambda wishes, screen: wishes.output.write_text("model") * 0)
    monkeypatch.setattr("mercer.cli.demo.predict", predict)
    assert mercer("demo", "here")[0] == 0
    written = {path.name: path.read_bytes() for path in (tmp_path / "here").iterdir()}
    assert sorted(written) == ["new.csv", "predictions.csv", "tumours.csv", "tumours.mercer"]
    (tmp_path / "here" / "new.csv").unlink()
    assert mercer("demo", "here")[0] == 0
    assert {path.name: path.read_bytes() for path in (tmp_path / "here").iterdir()} == written
    for folder, name in (("one", "new.csv"), ("two", "tumours.mercer"), ("here", "tumours.csv")):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / name).write_text("my own")
        status, out, err = mercer("demo", folder)
        assert (status, out) == (2, "")
        assert f"would overwrite {folder}/{name}, which it did not write: name another folder" in err
        assert (tmp_path / folder / name).read_text() == "my own"
    assert len(list((tmp_path / "one").iterdir())) == 1


def test_percent():
    assert [percent(x) for x in (0, 0.00123, 0.0567, 0.5, 1.0)] == [
        "0 %",
        "0.123 %",
        "5.67 %",
        "50.0 %",
        "100 %",
    ]


# --- warm --------------------------------------------------------------------------------------------------


def test_what_is_compiled_is_kept(mercer, monkeypatch, tmp_path):
    """The two halves together compile all that the examples of the library need, and it is known then."""
    from mercer.cli.warm import is_warm

    done = []

    class Pool:
        def __init__(self, processes):
            assert processes == 2

        def __enter__(self):
            return self

        def __exit__(self, *error):
            pass

        def map(self, work, items, chunksize):
            done.extend((work.__name__, item) for item in items)

    monkeypatch.setattr("multiprocessing.context.SpawnContext.Pool", lambda self, n: Pool(n))
    monkeypatch.setattr("mercer.cli.warm.cache_folder", lambda: tmp_path)
    assert not is_warm()
    status, out, err = mercer("warm")
    assert status == 0 and out.strip() == str(tmp_path) and "The tile loop of all kernels is compiled" in err
    assert done == [("_tile_loop", "float64"), ("_tile_loop", "float32")] + [
        ("_solvers_and_kernels", half) for half in (0, 1)
    ]
    assert is_warm()
    monkeypatch.setattr("mercer.cli.warm.version", lambda library: "another")
    assert not is_warm()


def test_nowhere_to_keep_it(mercer, monkeypatch):
    monkeypatch.setattr("mercer.cli.warm.cache_folder", lambda: None)
    status, out, err = mercer("warm")
    assert status == 2 and out == ""
    assert "no folder to keep compiled code in can be written: name one in MERCER_CACHE_DIR" in err
