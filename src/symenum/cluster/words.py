"""What users may name as a cluster; told without connecting to it, and without importing any engine."""

from __future__ import annotations

from concurrent.futures import Executor

__all__ = ["CLUSTER_WORDS", "is_dask", "names_a_cluster"]

CLUSTER_WORDS = (
    "an address such as 'tcp://host:8786' (Dask) or 'ray://host:10001', a number of processes on this machine, a Dask "
    "client or cluster, an executor of concurrent.futures, or None"
)
_METHODS = ("places", "submit", "gather", "cancel", "close")  # of the protocol `symenum.cluster.Executor`
_DASK = ("distributed", "dask_jobqueue", "dask_kubernetes", "dask_cuda")  # packages of its clients and clusters


def names_a_cluster(value: object) -> bool:
    """Whether the value can be a cluster."""
    if value is None or isinstance(value, Executor):
        return True
    if isinstance(value, str):
        return bool(value.strip())
    if isinstance(value, int):
        return not isinstance(value, bool) and value >= 1
    return is_dask(value) or all(hasattr(value, name) for name in _METHODS)


def is_dask(value: object) -> bool:
    """Whether the value is a client or a cluster of Dask."""
    return any(one.__module__.partition(".")[0] in _DASK for one in type(value).__mro__)
