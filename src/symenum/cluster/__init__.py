"""The same search on many machines: on Dask, Ray, or any executor of `concurrent.futures`.

Work that splits runs on the cluster that is there: parts of one pass of the network (`search_network`), islands of one
search (`PSERegressor(cluster=…)`), runs of a bench. `crew` is the driver's side, `worker` the other one; what goes
between them is bytes (`messages`). Nothing is imported of Dask or Ray before an address asks for it.
"""

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
