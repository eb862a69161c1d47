"""What users may name as a cluster, and the executor that it becomes."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor as FuturesPool
from contextlib import contextmanager

from symenum.cluster.executors import Executor, Futures, LocalProcesses
from symenum.cluster.words import CLUSTER_WORDS, is_dask, names_a_cluster

__all__ = ["connected"]


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
    if is_dask(cluster):
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
