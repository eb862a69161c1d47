"""What users may name as a cluster, and the executor that it becomes."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor as FuturesPool
from contextlib import contextmanager

from symenum.cluster.executors import Executor, Futures, LocalProcesses

__all__ = ["CLUSTER_WORDS", "connected", "names_a_cluster"]

CLUSTER_WORDS = (
    "an address such as 'tcp://host:8786' (Dask) or 'ray://host:10001', a number of processes on this machine, a Dask "
    "client or cluster, an executor of concurrent.futures, or None"
)
_METHODS = ("places", "submit", "gather", "cancel", "close")


def names_a_cluster(value: object) -> bool:
    """Whether the value can be a cluster, as far as can be told without connecting to it."""
    if value is None or isinstance(value, (str, FuturesPool)):
        return value is None or (isinstance(value, str) and bool(value.strip())) or isinstance(value, FuturesPool)
    if isinstance(value, int):
        return not isinstance(value, bool) and value >= 1
    return _is_dask(value) or all(hasattr(value, name) for name in _METHODS)


def _is_dask(value: object) -> bool:
    """Whether the value is a client or a cluster of Dask, told without importing it."""
    return any(one.__module__.partition(".")[0] in ("distributed", "dask_jobqueue") for one in type(value).__mro__)


@contextmanager
def connected(cluster: object) -> Iterator[Executor]:
    """The executor of a cluster as users name it; closed at the end, if it was opened here."""
    executor = _executor(cluster)
    try:
        yield executor
    finally:
        executor.close()


def _executor(cluster: object) -> Executor:
    if not names_a_cluster(cluster) or cluster is None:
        raise ValueError(f"cluster must be {CLUSTER_WORDS}, not {cluster!r:.80}")
    if isinstance(cluster, int):
        return LocalProcesses(cluster)
    if isinstance(cluster, str):
        return _at(cluster.strip())
    if isinstance(cluster, FuturesPool):
        return Futures(cluster)
    if _is_dask(cluster):
        from symenum.cluster.dask_executor import Dask

        if hasattr(cluster, "scheduler_info") and hasattr(cluster, "submit"):
            return Dask(cluster)
        from distributed import Client

        return Dask(Client(cluster, set_as_default=False), own=True)
    return cluster  # type: ignore[return-value]  # it has the methods of the protocol


def _at(address: str) -> Executor:
    if address.isdecimal() and int(address) >= 1:
        return LocalProcesses(int(address))
    if address == "ray" or address.startswith("ray://"):
        from symenum.cluster.ray_executor import connect_ray

        return connect_ray(address)
    from symenum.cluster.dask_executor import connect_dask

    return connect_dask(address if "://" in address else f"tcp://{address}")
