r"""The report of a model: one HTML file, with its pictures inside, that one would show to a colleague.

Experimental: names and results may change from one version to the next (README.md).

>>> import tempfile
>>> from pathlib import Path
>>> import numpy as np
>>> from mercer import KernelRidge
>>> x = np.linspace(0, 6, 40)[:, None]
>>> with tempfile.TemporaryDirectory() as folder:
...     path = write_report(
...         KernelRidge(0.1).fit(x, np.sin(x[:, 0])), x, np.sin(x[:, 0]), Path(folder) / "sine.html"
...     )
...     path.name, "<svg" in path.read_text("utf-8")
('sine.html', True)
"""

from mercer.reporting.write import write_report

__all__ = ["write_report"]
