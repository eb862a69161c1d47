"""Threads: work on several cores, how many of them torch uses inside an operation, and memory for each."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache

import torch
from threadpoolctl import ThreadpoolController
from torch import Tensor

from symenum.core.budget import Budget

__all__ = ["Job", "available_cores", "run_jobs", "single_threaded", "tile_space", "torch_threads"]


# --------------------------------------------------------------------------------------------------------------------
# Work on several threads, one operation per core, and how many threads an operation uses inside.
#
# A sum that several threads share is rounded in an order that depends on their number. So a search runs
# `single_threaded` and takes its speed from `run_jobs`, whose jobs are the same ones whatever the number of threads.


Job = Callable[[Budget], int]  # does a part of the work, gives back how much
_forked = False  # whether this process is a copy of another one, which may have used torch's threads


def _alone() -> None:
    """One thread per operation from now on: a copy has none of torch's threads, and would wait for them forever."""
    global _forked
    _forked = True
    torch.set_num_threads(1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_alone)


def available_cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Let torch use `count` threads per operation.

    Small operations want one: threads that wait for each other stall on a busy machine, and a tile per core beats a
    tile on all cores.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1 if _forked else count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class _BlasLimit:
    """Holds the BLAS libraries of NumPy and SciPy at one thread while anybody needs that.

    Their setting is the whole process's, so fits in several threads share it: the first one sets it, the last one puts
    back what was there.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders = 0
        self._restore: Callable[[], object] | None = None

    def hold(self) -> None:
        with self._lock:
            self._holders += 1
            if self._restore is None:
                self._restore = _blas().limit(limits=1, user_api="blas").restore_original_limits

    def release(self) -> None:
        with self._lock:
            self._holders -= 1
            if not self._holders and self._restore is not None:
                self._restore()
                self._restore = None


@cache
def _blas() -> ThreadpoolController:
    """The libraries of NumPy and SciPy; both are loaded when this is called first."""
    return ThreadpoolController()


_blas_limit = _BlasLimit()


@contextmanager
def single_threaded() -> Iterator[None]:
    """One thread inside every operation of torch, and of NumPy's and SciPy's linear algebra.

    With it results do not depend on the number of cores, or on what else the machine does; and thousands of small
    operations are faster, since threads that wait for each other stall on a busy machine.
    """
    _blas_limit.hold()
    try:
        with torch_threads(1):
            yield
    finally:
        _blas_limit.release()


def run_jobs(jobs: Sequence[Job], budget: Budget, threads: int) -> int:
    """Work the jobs off on `threads` threads; torch releases the interpreter inside its kernels."""
    queue = iter(jobs)
    lock = threading.Lock()
    done = [0] * threads
    errors: list[BaseException] = []

    # Python's own Thread.join takes a thread for ended when Ctrl-C interrupts the wait: it must not be relied on.
    ended = [threading.Event() for _ in range(threads)]

    def work(worker: int) -> None:
        try:
            with torch_threads(1):  # the setting is each thread's own
                while not budget.over():
                    with lock:
                        job = next(queue, None)
                    if job is None:
                        return
                    done[worker] += job(budget)
        except BaseException as error:
            errors.append(error)
            budget.end()
        finally:
            ended[worker].set()

    workers = [threading.Thread(target=work, args=(i,), name=f"symenum-{i}") for i in range(threads)]
    try:
        with torch_threads(1):
            for thread in workers:
                thread.start()
            for event in ended:
                event.wait()
    except BaseException:
        budget.end()  # Ctrl-C, or no more threads to be had: those that run end with their tiles
        raise
    finally:
        for thread, event in zip(workers, ended, strict=True):
            if thread.ident is not None:
                event.wait()
                thread.join()
    if errors:
        raise errors[0]
    return sum(done)


# --------------------------------------------------------------------------------------------------------------------
# Memory for tiles, one piece per thread, used again and again: asking the system anew costs as much as a product.


_own = threading.local()


def tile_space(rows: int, columns: int, dtype: torch.dtype, slot: int = 0) -> Tensor:
    """An uninitialised (rows, columns) tensor; this thread's next call with the same slot and type overwrites it."""
    last: dict[tuple[torch.dtype, int], Tensor] = _own.__dict__.setdefault("last", {})
    tile = last.get((dtype, slot))
    if tile is not None and tile.shape == (rows, columns):
        return tile
    spaces: dict[tuple[torch.dtype, int], Tensor] = _own.__dict__.setdefault("spaces", {})
    space = spaces.get((dtype, slot))
    if space is None or space.numel() < rows * columns:
        space = spaces[dtype, slot] = torch.empty(rows * columns, dtype=dtype)
    tile = last[dtype, slot] = space[: rows * columns].view(rows, columns)
    return tile
