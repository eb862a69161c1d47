"""The same search on many machines: on Dask, Ray, or any executor of `concurrent.futures`.

Work that splits runs on the cluster that is there: parts of one pass of the network (`search_network`), islands of one
search (`PSERegressor(cluster=…)`), runs of a bench. `crew` is the driver's side, `worker` the other one; what goes
between them is bytes (`messages`). Nothing is imported of Dask or Ray before an address asks for it, and nothing of
torch before a name of this list is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from symenum.cluster.connect import connected
    from symenum.cluster.crew import Crew
    from symenum.cluster.errors import ClusterError, NoWorkersError
    from symenum.cluster.executors import Executor, Futures, InProcess, LocalProcesses, Place, Reply
    from symenum.cluster.network import search_network

__all__ = [
    "ClusterError",
    "Crew",
    "Executor",
    "Futures",
    "InProcess",
    "LocalProcesses",
    "NoWorkersError",
    "Place",
    "Reply",
    "connected",
    "search_network",
]

_PARTS = {
    "connect": ("connected",),
    "crew": ("Crew",),
    "errors": ("ClusterError", "NoWorkersError"),
    "executors": ("Executor", "Futures", "InProcess", "LocalProcesses", "Place", "Reply"),
    "network": ("search_network",),
}
_HOME = {name: part for part, names in _PARTS.items() for name in names}


if not TYPE_CHECKING:  # with `__getattr__` a type checker would accept every misspelt name

    def __getattr__(name):
        if name not in _HOME:
            raise AttributeError(f"module 'symenum.cluster' has no attribute {name!r}")
        return getattr(import_module(f"symenum.cluster.{_HOME[name]}"), name)
