"""Files that were damaged or forged, with every checksum right: refused, or a model."""

import io
import json
import tracemalloc
import zipfile

import numpy as np
import pytest

from mercer import Expansion, Gaussian, Precomputed
from mercer.errors import InputError
from mercer.persist import load, save

from .conftest import rezip, seal


def test_a_file_of_which_any_bytes_were_changed_is_refused(files, path, rng):
    """Two thousand mutations: every byte of the head, and places all over the rest."""
    for raw, _, _ in files:
        places = [*range(150), *rng.integers(0, len(raw), 300)]
        for place in places:
            changed = bytearray(raw)
            changed[place] = (changed[place] + rng.integers(1, 256)) % 256
            path.write_bytes(changed)
            with pytest.raises(InputError):
                load(path)
        for length in [*range(0, 120, 3), *rng.integers(0, len(raw), 60)]:
            path.write_bytes(raw[:length])
            with pytest.raises(InputError):
                load(path)
        for more in (b"\0", b"\n", raw):
            path.write_bytes(raw + more)
            with pytest.raises(InputError, match="damaged"):
                load(path)


def test_bytes_changed_behind_the_checksum(files, path, rng):
    """Zip archives have checksums of their own; what they do not cover does not matter."""
    for raw, points, values in files:
        body = raw.split(b"\n", 2)[2]
        for place in rng.integers(0, len(body), 150):
            changed = bytearray(body)
            changed[place] = (changed[place] + rng.integers(1, 256)) % 256
            path.write_bytes(seal(bytes(changed)))
            try:
                model = load(path)
            except InputError:
                continue
            np.testing.assert_array_equal(model.decision_function(points), values)


JUNK = [
    None,
    0,
    -1,
    10**12,
    2.5,
    True,
    [],
    {},
    [1],
    "",
    "os",
    "system",
    "builtins",
    "numpy",
    "subprocess",
    "Popen",
]
JUNK += [
    "FunctionNode",
    "MethodNode",
    "ObjectNode",
    "TypeNode",
    "OperatorFuncNode",
    "LossNode",
    "PartialNode",
]


def slots(tree):
    """Every place of a JSON document that could hold something else."""
    found, waiting = [], [tree]
    while waiting:
        part = waiting.pop()
        for key in part if isinstance(part, dict) else range(len(part)):
            found.append((part, key))
            if isinstance(part[key], dict | list):
                waiting.append(part[key])
    return found


def test_schemas_made_by_an_attacker(files, path, rng, tries):
    """With every checksum right: it is refused, or it is a model; nothing else is raised."""
    refused = 0

    def change(name, content):
        if name != "schema.json":
            return content
        schema = json.loads(content)
        places = slots(schema)
        for place in rng.integers(0, len(places), rng.integers(1, 3)):
            part, key = places[place]
            part[key] = JUNK[rng.integers(len(JUNK))]
        return json.dumps(schema)

    for raw, _, _ in files:
        for _ in tries(90):
            path.write_bytes(rezip(raw, change))
            try:
                load(path)
            except InputError:
                refused += 1
    assert refused > len(tries(120))


def npy(shape, dtype="<f8", content=b""):
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": dtype, "fortran_order": False, "shape": shape})
    return head.getvalue() + content


def test_no_file_takes_more_memory_than_it_has_bytes(files, path, rng):
    raw = files[0][0]
    packed = rng.normal(size=(400, 400))
    save(Precomputed(packed + packed.T), path)
    square = path.read_bytes()

    def large(name, content):
        return npy((10**11,)) if name.endswith(".npy") else content

    def zeros(name, content):
        return npy((10**7,), content=bytes(8 * 10**7)) if name.endswith(".npy") else content

    attacks = [rezip(square, large), rezip(square, zeros, zipfile.ZIP_DEFLATED), rezip(raw, large)]
    for attack in attacks:
        path.write_bytes(attack)
        assert len(attack) < 2e6
        tracemalloc.start()
        with pytest.raises(InputError, match="cannot be loaded"):
            load(path)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 5e6


def test_parameters_are_checked_when_they_come_back(path):
    """A kernel in a file is no less valid than one that was made."""
    save(Gaussian(sigma=2.0), path)

    def negative(name, content):
        return content.replace(b'"2.0"', b'"-2.0"')

    path.write_bytes(rezip(path.read_bytes(), negative))
    with pytest.raises(InputError, match=r"sigma must be positive, got -2\.0"):
        load(path)


def forge(raw, name, content):
    """The file with an attribute of its model changed to a number or a text, or taken away (None)."""

    def change(member, old):
        if member != "schema.json":
            return old
        schema = json.loads(old)
        attributes = schema["content"]["content"]
        if content is None:
            del attributes[name]
        else:
            blank = {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode", "__id__": 1}
            attributes[name] = {**blank, "content": json.dumps(content), "is_json": True}
        return json.dumps(schema)

    return rezip(raw, change)


@pytest.mark.parametrize(
    ("kind", "name", "content", "message"),
    [
        (0, "kernel", None, "its SVC has no kernel"),
        (1, "C", None, "its SVC has no C"),
        (0, "n_features_in_", 0, "its SVC was fitted to 0 columns, and its points have 2"),
        (2, "n_features_in_", 5, "its SVC was fitted to 5 columns, and its points have 2"),
        (0, "n_features_in_", "two", "its SVC has a str as n_features_in_"),
        (1, "classes_", "ab", "its SVC has a str as classes_"),
        (2, "kernel_", 1.5, "its SVC has a float as kernel_"),
        (0, "expansion_", 3, "its SVC has a int as expansion_"),
    ],
)
def test_models_that_no_fit_could_have_left(kind, name, content, message, files, path):
    """They would predict nothing, and the error would be about something else."""
    path.write_bytes(forge(files[kind][0], name, content))
    with pytest.raises(InputError, match=f"cannot be loaded: the file is damaged: {message}; save the model"):
        load(path)


@pytest.mark.parametrize(
    ("name", "message"),
    [("coef", "coef must have one entry per anchor"), ("anchors", "has no anchors"), ("kernel", "Kernel")],
)
def test_functions_that_do_not_fit_together(name, message, path):
    f = Expansion(Gaussian(1.0), np.eye(3), [1.0, 2.0, 3.0])
    if name == "coef":
        f.coef = np.ones(2)
    elif name == "anchors":
        del f.anchors
    else:
        f.kernel = 2.5
    save(f, path)
    with pytest.raises(InputError, match=f"cannot be loaded: .*{message}"):
        load(path)
