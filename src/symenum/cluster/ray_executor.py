"""Ray as an executor, thin: as many anonymous places as the cluster has cores (or GPUs, where it has any)."""

from __future__ import annotations

import itertools
from typing import Any

from symenum.cluster.errors import ClusterError
from symenum.cluster.executors import Place, Reply
from symenum.cluster.worker import answer

__all__ = ["Ray", "connect_ray"]


def connect_ray(address: str) -> Ray:
    """The executor of the Ray cluster at "ray://host:10001", or "ray" for the one that `ray.init` finds or starts."""
    try:
        import ray
    except ImportError as error:
        raise ClusterError(
            f"cluster: {address!r} is an address of Ray, which is not installed here: pip install 'symenum[ray]'"
        ) from error
    own = not ray.is_initialized()
    if own:
        try:
            ray.init(address if "://" in address else None, log_to_driver=False)
        except (ConnectionError, RuntimeError, TimeoutError) as error:
            raise ClusterError(
                f"cluster: no Ray cluster answered at {address} ({error}): is one running there (ray start --head)?"
            ) from error
    return Ray(ray, own=own)


class Ray:
    """The cores of a Ray cluster; Ray decides where a piece runs. `own`: Ray was started here, so it is ended here."""

    def __init__(self, ray: Any, *, own: bool = False) -> None:
        self._ray = ray
        self._own = own
        self._tickets = itertools.count()
        self._running: dict[Any, int] = {}
        self._answer = ray.remote(max_retries=0)(answer)

    @property
    def name(self) -> str:
        return "Ray"

    def places(self) -> tuple[Place, ...]:
        resources = self._ray.cluster_resources()
        gpus = int(resources.get("GPU", 0))
        cores = int(resources.get("CPU", 0))
        return tuple(
            Place(f"Ray {number + 1}", gpus=int(number < gpus), addressed=False) for number in range(max(cores, gpus))
        )

    def submit(self, place: Place, message: bytes) -> int:
        ticket = next(self._tickets)
        call = self._answer.options(num_gpus=1) if place.gpus else self._answer
        self._running[call.remote(message)] = ticket
        return ticket

    def gather(self, timeout: float) -> list[Reply]:
        if not self._running:
            return []
        done, _ = self._ray.wait(list(self._running), num_returns=1, timeout=timeout)
        return [self._reply(self._running.pop(one), one) for one in done]

    def _reply(self, ticket: int, reference: Any) -> Reply:
        errors = self._ray.exceptions
        try:
            return Reply(ticket, self._ray.get(reference))
        except (errors.WorkerCrashedError, errors.NodeDiedError, errors.TaskCancelledError) as error:
            return Reply(ticket, error=f"{type(error).__name__}: {error}", lost=True)
        except errors.RayError as error:
            return Reply(ticket, error=f"{type(error).__name__}: {error}")

    def cancel(self, ticket: int) -> None:
        for reference, number in list(self._running.items()):
            if number == ticket:
                self._ray.cancel(reference, force=False)
                del self._running[reference]

    def close(self) -> None:
        for ticket in list(self._running.values()):
            self.cancel(ticket)
        if self._own:
            self._ray.shutdown()
