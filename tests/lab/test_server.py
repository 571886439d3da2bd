"""The server answers this machine's own page, and nobody else."""

import http.client
import json
import re
import threading
from importlib import resources

import pytest

from mercer.errors import InputError
from mercer.lab import rooms
from mercer.lab.server import Lab

XOR = [[1, 1, 1], [-1, 1, -1], [-1, -1, 1], [1, -1, -1]]


@pytest.fixture(scope="module")
def lab():
    with Lab() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def ask(lab, method="GET", path="", body=None, headers=None, token=None):
    """Status, headers and content; ``path`` is what follows the token."""
    connection = http.client.HTTPConnection("127.0.0.1", lab.server_port, timeout=60)
    fields = {"Host": f"127.0.0.1:{lab.server_port}", **(headers or {})}
    if body is not None:
        fields.setdefault("Content-Type", "application/json")
    connection.request(method, f"/{lab.token if token is None else token}/{path}", body, fields)
    response = connection.getresponse()
    content = response.read()
    connection.close()
    return response.status, response.headers, content


def post(lab, room, body, **headers):
    status, _, content = ask(lab, "POST", f"room/{room}", body, headers)
    return status, json.loads(content)


def test_it_is_bound_to_this_machine(lab):
    assert lab.server_address[0] == "127.0.0.1" and lab.url.endswith(f"/{lab.token}/")
    assert Lab().token != lab.token


def test_the_page_and_its_files(lab):
    status, headers, content = ask(lab)
    assert status == 200 and b"<title>mercer lab</title>" in content
    assert "script-src 'self'" in headers["Content-Security-Policy"]
    assert headers["Referrer-Policy"] == "no-referrer" and headers["Access-Control-Allow-Origin"] is None
    kinds = {"lab.css": "text/css", "lab.js": "text/javascript", "icon.svg": "image/svg+xml"}
    for name in re.findall(rb'(?:src|href)="([^"#]+)"', content):
        status, headers, _ = ask(lab, path=name.decode())
        assert status == 200 and headers["Content-Type"].startswith(kinds[name.decode()])


def test_every_file_of_the_page_is_served_and_none_names_another_place(lab):
    for file in resources.files("mercer.lab").joinpath("page").iterdir():
        path = "" if file.name == "lab.html" else file.name
        assert ask(lab, path=path)[2] == file.read_bytes()
        places = set(
            re.findall(r"(?:https?:)?//[\w.-]+\.\w+", re.sub(r"(?m)^//.*", "", file.read_text("utf-8")))
        )
        assert places <= {"http://www.w3.org"}  # the name of SVG


def test_a_room_answers(lab):
    body = json.dumps({"points": XOR, "kernel": "polynomial(2, c=0)", "C": 100})
    status, answer = post(lab, "classify", body)
    assert status == 200 and answer["values"] == [1, -1, 1, -1]
    origin = f"http://127.0.0.1:{lab.server_port}"
    assert post(lab, "classify", body, Origin=origin)[0] == 200
    assert post(lab, "classify", body, Host=f"localhost:{lab.server_port}")[0] == 200


@pytest.mark.parametrize("token", ["", "wrong", "x" * 32, "%00", "room"])
def test_without_the_token_nothing_is_told(lab, token):
    for method, path in (("GET", ""), ("GET", "lab.js"), ("POST", "room/classify")):
        status, _, content = ask(lab, method, path, b"{}" if method == "POST" else None, token=token)
        assert status == 403 and b"no valid token" in content


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "evil.example:{port}", "[::1]:{port}"]
)
def test_another_host_is_refused(lab, host):
    """After DNS rebinding a page elsewhere reaches 127.0.0.1, and sends its own name."""
    status, answer = post(lab, "classify", b"{}", Host=host.format(port=lab.server_port))
    assert status == 403 and "this machine alone" in answer["error"]


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:1", "https://127.0.0.1:{port}"]
)
def test_another_page_is_refused(lab, origin):
    status, answer = post(lab, "classify", b"{}", Origin=origin.format(port=lab.server_port))
    assert status == 403 and "no other page" in answer["error"]


@pytest.mark.parametrize(
    ("body", "headers", "status", "says"),
    [
        (b"{", {}, 400, "no JSON"),
        (b"\xff\xfe", {}, 400, "no JSON"),
        (b'{"C": NaN}', {}, 400, "no JSON"),
        (b"[" * 100_000, {}, 400, "no JSON"),
        (b"{}", {"Content-Type": "text/plain"}, 415, "application/json"),
        (b"{}", {"Content-Length": "10000000"}, 413, "at most 1,048,576 bytes, got 10,000,000"),
        (b"{}", {"Content-Length": "-1"}, 411, "how long"),
        (b"[]", {}, 422, "a request is an object"),
        (b'{"points": [[0, 0, 1], [1, 1, -1]], "kernel": "exp("}', {}, 422, "not closed"),
    ],
)
def test_bad_requests_get_a_sentence(lab, body, headers, status, says):
    found, answer = post(lab, "classify", body, **headers)
    assert found == status and says in answer["error"]


def test_unknown_places(lab):
    assert post(lab, "atlantis", b"{}")[0] == 422
    assert ask(lab, path="../server.py")[0] == 404
    assert ask(lab, "POST", "elsewhere", b"{}")[0] == 404
    assert ask(lab, "PUT", "room/classify", b"{}")[0] == 501


def test_a_mistake_of_ours_ends_one_answer_and_not_the_lab(lab, monkeypatch):
    def broken(asked):
        raise RuntimeError("a bug")

    monkeypatch.setitem(rooms.ROOMS, "broken", broken)
    status, answer = post(lab, "broken", b"{}")
    assert status == 500 and answer["error"] == "a mistake in mercer, please report it: RuntimeError: a bug"
    assert ask(lab)[0] == 200


def test_a_port_that_is_taken(lab):
    with pytest.raises(InputError, match=f"port {lab.server_port} cannot be opened"):
        Lab(lab.server_port)
    with pytest.raises(InputError, match="port 99999 cannot be opened"):
        Lab(99999)
