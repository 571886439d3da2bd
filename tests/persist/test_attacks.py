"""Nothing that a file names is imported or run."""

import io
import json
import sys
import zipfile

import pytest

from mercer.errors import InputError
from mercer.persist import load

from .conftest import with_payload


@pytest.fixture
def trap(tmp_path, monkeypatch):
    """A module that leaves a trace when it is imported, and when its class or function is used."""
    trace = tmp_path / "trace"
    (tmp_path / "harmful.py").write_text(
        f"open({str(trace)!r}, 'w').close()\n"
        "class Thing:\n    def __setstate__(self, state): pass\n"
        "def act(*arguments): return 1.0\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    yield trace
    sys.modules.pop("harmful", None)


def node(loader, module, name, **more):
    return {"__class__": name, "__module__": module, "__loader__": loader, "__id__": 1, **more}


EMPTY = node("JsonNode", "builtins", "str", content="null", is_json=True)


@pytest.mark.parametrize(
    "schema",
    [
        node("FunctionNode", "harmful", "act"),
        node("TypeNode", "harmful", "Thing"),
        node("ObjectNode", "harmful", "Thing", content=EMPTY),
        node("ObjectNode", "mercer.kernels.base", "Kernel.__class__"),
        node("ObjectNode", "mercer.__main__", "Thing", content=EMPTY),
        node("ObjectNode", "mercer.runtime.threads", "Lock", content=EMPTY),
        node("ObjectNode", "sklearn.tests.test_base", "MyEstimator", content=EMPTY),
        node("ObjectNode", "sklearn.externals.joblib", "Memory", content=EMPTY),
        node("ObjectNode", "subprocess", "Popen", content=EMPTY),
        node("LossNode", "harmful", "Thing", content=EMPTY, __reduce__={"args": EMPTY}),
        node("MethodNode", "harmful", "Thing", content={"func": "act", "obj": EMPTY}),
        node("OperatorFuncNode", "operator", "methodcaller", attrs=EMPTY),
        node("PartialNode", "functools", "partial", content={"func": EMPTY, "args": EMPTY, "kwds": EMPTY}),
        node("ConstructorFromReduceNode", "harmful", "Thing", content=EMPTY),
        node("DictNode", "harmful", "Thing", content={}, key_types=EMPTY),
        node("ListNode", "harmful", "Thing", content=[]),
        node("TupleNode", "harmful", "Thing", content=[]),
        node("RandomStateNode", "harmful", "Thing", content=EMPTY),
        node(
            "RandomGeneratorNode",
            "numpy.random",
            "Generator",
            content={"bit_generator": EMPTY, "seed_seq": EMPTY},
        ),
        node("NdArrayNode", "harmful", "act", type="numpy", file="a.npy"),
        node("ListNode", "builtins", "list", content=[node("FunctionNode", "harmful", "act")]),
        {**EMPTY, "hidden": node("FunctionNode", "harmful", "act")},
    ],
    ids=lambda schema: f"{schema['__loader__']}-{schema['__class__']}",
)
@pytest.mark.parametrize("protocol", [0, 1, 2, 3])
def test_nothing_is_imported_or_run(schema, protocol, trap, path):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(
            "schema.json", json.dumps({**schema, "protocol": protocol, "_skops_version": "0.16.0"})
        )
    path.write_bytes(with_payload(buffer.getvalue()))
    with pytest.raises(InputError, match="cannot be loaded"):
        load(path)
    assert not trap.exists()


def test_the_trap_works(trap):
    __import__("harmful")
    assert trap.exists()
