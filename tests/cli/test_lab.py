"""mercer lab: the address alone on a line, the page behind it, and Ctrl-C."""

import re
import signal
import subprocess
import sys
import threading
import urllib.request

import pytest

from mercer.cli import lab as command
from mercer.cli.screen import Screen


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is another thing there")
def test_it_opens_and_closes():
    process = subprocess.Popen(
        [sys.executable, "-m", "mercer", "lab", "--no-browser"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        url = process.stdout.readline().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{32}/", url)
        with urllib.request.urlopen(url) as page:
            assert b"<title>mercer lab</title>" in page.read()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0 and out == ""
    assert err.splitlines() == [
        "The lab is open, for this machine alone. Ctrl-C closes it.",
        "The lab is closed.",
    ]


def test_the_browser_is_opened_at_the_address(monkeypatch, capsys):
    opened = threading.Event()
    seen = []

    def look(url):
        seen.append(url)
        opened.set()

    def serve(server):
        assert opened.wait(60)
        raise KeyboardInterrupt

    monkeypatch.setattr(command.webbrowser, "open", look)
    monkeypatch.setattr(command, "_prepare", lambda: None)
    monkeypatch.setattr(command.Lab, "serve_forever", serve)
    assert command.lab(0, True, Screen(quiet=True)) == 0
    assert seen == [capsys.readouterr().out.strip()]


def test_a_port_that_is_none(mercer):
    status, out, err = mercer("lab", "--no-browser", "--port", "99999")
    assert (status, out) == (2, "") and "port 99999 cannot be opened" in err
