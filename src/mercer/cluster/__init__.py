r"""A cluster: who else may map blocks of rows, by Dask distributed. All of Dask is in this room.

client ─> which cluster: ``config(cluster=…)``, else the client that is active where the data are Dask's
rows   ─> a Dask array or frame as points: its shape here, its rows there
spread ─> tasks over groups of rows, whose results are the same whoever computes them, and whoever dies
runs   ─> tasks that are under way: watched, received, and sent again where they were lost
lazy   ─> predictions of Dask collections, block by block, when Dask is asked for them
trials ─> whole fits as tasks, for searches
"""

from mercer.cluster.rows import DaskRows, is_collection
from mercer.cluster.spread import Spread, spread_of

__all__ = ["DaskRows", "Spread", "is_collection", "spread_of"]
