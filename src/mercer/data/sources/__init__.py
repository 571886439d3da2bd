r"""Tables in files, as arrays: a file is converted once, and everything else sees NumPy.

    path ── files ──> columns of numbers ── convert ──> .npy files in a cache ── cache ──> arrays on disk

`DataSource` names a table and the columns that are meant; `door` is where estimators meet it.

>>> import tempfile, numpy as np
>>> path = tempfile.mkdtemp() + "/points.npy"
>>> np.save(path, np.array([[1.0, 2.0], [3.0, 4.0]]))
>>> table = DataSource(path).open()
>>> table.points, table.names
(array([[1., 2.],
       [3., 4.]]), None)
"""

from mercer.data.sources.source import DataSource, Opened

__all__ = ["DataSource", "Opened"]
