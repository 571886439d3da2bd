"""``mercer lab``: open the lab in a browser, until Ctrl-C."""

from __future__ import annotations

import threading
import warnings
import webbrowser

from mercer.cli.screen import Screen
from mercer.lab.server import Lab
from mercer.runtime.imports import import_sklearn


def lab(port: int, open_browser: bool, screen: Screen) -> int:
    """Serve the page; the address is on standard output, alone on its line."""
    with Lab(port) as server, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # The page shows what a fit warns about.
        try:
            print(server.url, flush=True)
            screen.step("The lab is open, for this machine alone. Ctrl-C closes it.")
            threading.Thread(target=_prepare, daemon=True).start()
            if open_browser:
                threading.Thread(target=webbrowser.open, args=(server.url,), daemon=True).start()
            server.serve_forever()
        except KeyboardInterrupt:  # That is how one leaves it.
            screen.step("The lab is closed.")
    return 0


def _prepare() -> None:
    """Load and compile what the first answers need, while the browser opens."""
    import_sklearn()
    from mercer.lab.rooms import answer

    xor = answer("example", {"name": "xor"})["points"]
    answer("classify", {"points": xor, "kernel": "gaussian(sigma=1)"})
