r"""The server of the lab: one page and its rooms, for this machine alone.

It listens on 127.0.0.1, and every address begins with a token that only the person who started it knows:

    http://127.0.0.1:8000/TOKEN/            the page, and the files beside it
    http://127.0.0.1:8000/TOKEN/room/NAME   POST: a request as JSON, and the room's answer

A request is refused whose token is wrong (compared in constant time), whose ``Host`` is not this address, as
after DNS rebinding, whose ``Origin`` is another page, that is no JSON, or too large. Nothing of it is ever
evaluated as code, and the page may load nothing from elsewhere (``Content-Security-Policy``).
"""

from __future__ import annotations

import json
import secrets
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from typing import Any

from mercer.errors import InputError, MemoryBudgetError

_LONGEST_BODY = 1 << 20  # bytes: 2,000 points, or a table, and room to spare
_FILES = {
    "": ("lab.html", "text/html"),
    "lab.css": ("lab.css", "text/css"),
    **{
        f"{name}.js": (f"{name}.js", "text/javascript") for name in ("lab", "draw", "plane", "panels", "save")
    },
    "icon.svg": ("icon.svg", "image/svg+xml"),
}
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Lab(ThreadingHTTPServer):
    """The server; ``url`` is the address to open. Port 0 takes any that is free.

    >>> lab = Lab()
    >>> lab.url.startswith("http://127.0.0.1:"), len(lab.token) > 20
    (True, True)
    >>> lab.server_close()
    """

    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        self.token = secrets.token_urlsafe(24)
        try:
            super().__init__(("127.0.0.1", port), _Handler)
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or error
            raise InputError(f"port {port} cannot be opened: {why}; name another one, or 0 for any") from None

    @property
    def url(self) -> str:
        """The address of the page, with the token."""
        return f"http://127.0.0.1:{self.server_port}/{self.token}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing where a page was closed before its answer came."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)

    def hosts(self) -> set[str]:
        """What a browser calls this server by."""
        return {f"{name}:{self.server_port}" for name in ("127.0.0.1", "localhost")}


class _Refused(Exception):  # noqa: N818 (it is caught here)
    """A status, and a sentence about it."""

    def __init__(self, status: HTTPStatus, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class _Handler(BaseHTTPRequestHandler):
    server: Lab
    server_version, sys_version = "mercer", ""
    protocol_version = "HTTP/1.1"
    timeout = 60  # seconds that a connection may say nothing

    def log_message(self, format: str, *values: Any) -> None:
        """Nothing: addresses have the token in them."""

    def do_GET(self) -> None:
        try:
            name, kind = _FILES[self._path_after_token()]
        except KeyError:
            self._refuse(HTTPStatus.NOT_FOUND, "there is nothing at this address of the lab")
        except _Refused as refused:
            self._refuse(refused.status, str(refused))
        else:
            content = resources.files("mercer.lab").joinpath("page", name).read_bytes()
            self._send(HTTPStatus.OK, f"{kind}; charset=utf-8", content)

    def do_POST(self) -> None:
        try:
            place, _, room = self._path_after_token().partition("/")
            if place != "room":
                raise _Refused(HTTPStatus.NOT_FOUND, "there is nothing at this address of the lab")
            status, answer = _answer(room, self._body())
        except _Refused as refused:
            self._refuse(refused.status, str(refused))
        else:
            self._send_json(status, answer)

    def _path_after_token(self) -> str:
        """What is asked for, by somebody who may ask."""
        if self.headers.get("Host") not in self.server.hosts():
            raise _Refused(
                HTTPStatus.FORBIDDEN, "the lab is for this machine alone: open the address it printed"
            )
        origin = self.headers.get("Origin")
        if origin is not None and origin.removeprefix("http://") not in self.server.hosts():
            raise _Refused(HTTPStatus.FORBIDDEN, "the lab answers no other page")
        token, _, path = self.path.partition("?")[0].removeprefix("/").partition("/")
        if not secrets.compare_digest(token.encode(), self.server.token.encode()):
            raise _Refused(
                HTTPStatus.FORBIDDEN, "this address has no valid token: open the one that mercer lab printed"
            )
        return path

    def _body(self) -> Any:
        if self.headers.get_content_type() != "application/json":
            raise _Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "a request is application/json")
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()):
            raise _Refused(HTTPStatus.LENGTH_REQUIRED, "a request says how long it is")
        if int(length) > _LONGEST_BODY:
            raise _Refused(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"a request has at most {_LONGEST_BODY:,} bytes, got {int(length):,}",
            )
        try:
            return json.loads(self.rfile.read(int(length)), parse_constant=_no_number)
        except (ValueError, RecursionError):
            raise _Refused(HTTPStatus.BAD_REQUEST, "the request is no JSON") from None

    def _refuse(self, status: HTTPStatus, sentence: str) -> None:
        self.close_connection = True  # What is left of the request is not read.
        self._send_json(status, {"error": sentence})

    def _send_json(self, status: HTTPStatus, answer: dict[str, Any]) -> None:
        content = json.dumps(answer, allow_nan=False, separators=(",", ":")).encode()
        self._send(status, "application/json; charset=utf-8", content)

    def _send(self, status: HTTPStatus, kind: str, content: bytes) -> None:
        self.send_response(status)
        fields = {**_HEADERS, "Content-Type": kind, "Content-Length": str(len(content))}
        if self.close_connection:
            fields["Connection"] = "close"
        for name, value in fields.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)


def _answer(room: str, request: Any) -> tuple[HTTPStatus, dict[str, Any]]:
    """What a room says, or a sentence about what is wrong with the request."""
    from mercer.lab.rooms import answer

    try:
        return HTTPStatus.OK, answer(room, request)
    except (InputError, MemoryBudgetError) as error:
        return HTTPStatus.UNPROCESSABLE_ENTITY, {"error": str(error)}
    except Exception as error:  # A mistake in mercer ends one answer, not the lab.
        sentence = f"a mistake in mercer, please report it: {type(error).__name__}: {error}"
        return HTTPStatus.INTERNAL_SERVER_ERROR, {"error": sentence}


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")
