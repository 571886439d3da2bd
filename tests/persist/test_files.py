"""Files: whole or not there, and other files are told from them."""

import json
import os
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import skops.io
from sklearn.ensemble import RandomForestClassifier

import mercer
from mercer import SVC, Gaussian
from mercer.errors import InputError, InputTypeError
from mercer.persist import describe, load, save

from .conftest import payload_of, rezip, seal, with_payload


def test_a_file_describes_itself(path):
    save(SVC(), path)
    about = describe(path)
    assert (about["kind"], about["class"]) == ("SVC", "mercer.estimators.svc.SVC")
    assert about["mercer"] == mercer.__version__ and about["numpy"] == np.__version__
    assert path.read_bytes().startswith(b"mercer model 2\n")


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_file_that_is_there_is_replaced_as_a_whole_or_not_at_all(failing, path, monkeypatch):
    save(Gaussian(1.0), path)
    before = path.read_bytes()

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, failing, full)
    with pytest.raises(InputError, match="cannot be written: No space left"):
        save(Gaussian(2.0), path)
    monkeypatch.undo()
    assert path.read_bytes() == before and os.listdir(path.parent) == [path.name]
    save(Gaussian(2.0), path)
    assert load(path) == Gaussian(2.0) and os.listdir(path.parent) == [path.name]


def test_who_may_read_a_file_stays_as_it_was(path):
    save(Gaussian(1.0), path)
    path.chmod(0o600)
    save(Gaussian(2.0), path)
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_link_stays_a_link(path, tmp_path):
    link = tmp_path / "latest"
    link.symlink_to(path)
    save(Gaussian(1.0), link)
    assert link.is_symlink() and load(path) == load(str(link)) == Gaussian(1.0)


def test_a_file_with_what_only_a_later_version_has(path):
    """It is of a known format, and holds a class that is not there yet."""
    save(Gaussian(1.0), path)
    raw = rezip(path.read_bytes(), lambda name, content: content.replace(b'"Gaussian"', b'"Tomorrow"'))
    payload = payload_of(raw)
    for version, expected in (("99.1", True), (mercer.__version__, False)):
        about = json.dumps({"bytes": len(payload), "mercer": version}).encode()
        path.write_bytes(seal(about + b"\n" + payload))
        with pytest.raises(InputError, match="class 'Tomorrow'") as caught:
            load(path)
        assert str(caught.value).endswith(f"this is {mercer.__version__}: upgrade mercer") is expected


def test_links_that_lead_nowhere(tmp_path):
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(InputError, match=r"no file|cannot be read"):
        load(loop)
    (tmp_path / "new").symlink_to(tmp_path / "target")
    save(Gaussian(1.0), tmp_path / "new")
    assert (tmp_path / "new").is_symlink() and load(tmp_path / "target") == Gaussian(1.0)
    (tmp_path / "away").symlink_to(tmp_path / "nowhere" / "target")
    with pytest.raises(InputError, match="cannot be written: No such file"):
        save(SVC(), tmp_path / "away")


def test_a_device_is_written_to_and_never_replaced(tmp_path):
    """/dev/null must stay what it is, for whoever may replace it."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(pipe.read_bytes)
        save(Gaussian(1.0), pipe)
        (tmp_path / "copy").write_bytes(reading.result(timeout=60))
    assert pipe.is_fifo() and load(tmp_path / "copy") == Gaussian(1.0)
    assert sorted(os.listdir(tmp_path)) == ["copy", "pipe"]


@pytest.mark.parametrize("given", [None, 3, ["a"], SVC])
def test_paths_that_are_none(given):
    for action in (load, lambda path: save(SVC(), path), describe):
        with pytest.raises(InputTypeError, match="path of a model file"):
            action(given)


def test_places_where_nothing_can_be(tmp_path):
    for wrong in ("", "a\0b"):
        with pytest.raises(InputError, match="path of a model file"):
            load(wrong)
    with pytest.raises(InputError, match="no file"):
        load(tmp_path / "nothing.mercer")
    with pytest.raises(InputError, match="is no file"):
        load(tmp_path)
    with pytest.raises(InputError, match="folder"):
        save(SVC(), tmp_path)
    with pytest.raises(InputError, match="cannot be written: No such file"):
        save(SVC(), tmp_path / "nowhere" / "model")
    with pytest.raises(InputError, match="cannot be written"):
        save(SVC(), tmp_path / ("x" * 300))
    with pytest.raises(InputError, match="cannot be read: File name too long"):
        load(tmp_path / ("x" * 300))
    save(SVC(), tmp_path / ("ё" * 127))  # as long as a name may be
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(InputError, match="is no file"):  # and does not wait for somebody to write
            load(tmp_path / "pipe")


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "is empty"),
        (b"\n", "no model file"),
        (b"age,city\n3,Rome\n", "no model file"),
        (pickle.dumps({"a": 1}), "looks like a pickle"),
        (skops.io.dumps({"a": 1}), "looks like a zip archive"),
        (b"mercer model 2", "no model file"),
        (b"mercer model 2\n", "damaged"),
        (b"mercer model 3\n" + b"x" * 200, "later version; upgrade mercer"),
        (b"mercer model 1\n" + b"x" * 200, "earlier version; train the model again"),
        (b"mercer model 0\n" + b"x" * 200, "no model file"),
        (b"mercer model 999999999999\n" + b"x" * 200, "no model file"),
        (b"mercer model x\n" + b"x" * 200, "no model file"),
        (seal(b""), "description"),
        (seal(b"[]\n"), "description"),
        (seal(b"[" * 100_000), "description"),
        (seal(b'{"bytes": 3}\nab'), "description"),
        (with_payload(b""), "fit together"),
        (with_payload(b"PK\x05\x06" + b"\0" * 18), "fit together"),
        (with_payload(skops.io.dumps({"a": 1})), "fit together"),
        (with_payload(skops.io.dumps(RandomForestClassifier(1).fit([[0], [1]], [0, 1]))), "never|know"),
    ],
    ids=range(20),
)  # fmt: skip
def test_files_of_other_kinds(raw, message, path):
    path.write_bytes(raw)
    with pytest.raises(InputError, match=message):
        load(path)
