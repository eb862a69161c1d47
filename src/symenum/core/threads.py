"""Threads: jobs on several cores, the number of threads inside an operation, and scratch memory for each thread.

A sum that several threads share is rounded in an order that depends on their number. So a search runs with one thread
inside each operation (`single_threaded`), and takes its speed from `run_jobs`, whose jobs do not depend on the threads.
"""

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

__all__ = ["Job", "available_cores", "cores_limited", "run_jobs", "single_threaded", "tile_space", "torch_threads"]


Job = Callable[[Budget], int]  # does a part of the work until the budget is over; returns how much it has done
_scratch = threading.local()  # of each thread: its tiles, and the cores that it may use
_forked = False  # whether this process was forked from another one, which may have used torch's threads


def _after_fork() -> None:
    """Use one thread per operation: a forked process has none of torch's threads, and would wait for them forever."""
    global _forked
    _forked = True
    torch.set_num_threads(1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def available_cores() -> int:
    """The number of cores that this thread may use: those of the process, or fewer inside `cores_limited`."""
    limit: int | None = _scratch.__dict__.get("cores")
    return _process_cores() if limit is None else min(limit, _process_cores())


@contextmanager
def cores_limited(count: int) -> Iterator[None]:
    """Inside, this thread takes so many cores at most: a cluster's worker has a part of its machine.

    A setting of the thread, not of the process: one process may be several workers.
    """
    before = _scratch.__dict__.get("cores")
    _scratch.cores = count
    try:
        yield
    finally:
        _scratch.cores = before


def _process_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Inside, torch uses `count` threads per operation, in this thread.

    One is best for small operations: threads that wait for each other stall on a busy machine, and one tile per core is
    faster than one tile on all cores.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1 if _forked else count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class _BlasLimit:
    """Limits the BLAS libraries of NumPy and SciPy to one thread while at least one caller holds it.

    The setting belongs to the process, so fits in several threads share it: the first one sets it, the last one
    restores what was there before.
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
    """The BLAS libraries that NumPy and SciPy have loaded by the first call."""
    return ThreadpoolController()


_blas_limit = _BlasLimit()


@contextmanager
def single_threaded() -> Iterator[None]:
    """Inside, each operation of torch and of NumPy's and SciPy's linear algebra uses one thread.

    Then results do not depend on the number of cores or on what else the machine does. Thousands of small operations
    are also faster, because no thread waits for another.
    """
    _blas_limit.hold()
    try:
        with torch_threads(1):
            yield
    finally:
        _blas_limit.release()


def run_jobs(jobs: Sequence[Job], budget: Budget, threads: int) -> int:
    """Run the jobs on `threads` threads until the budget is over; returns the sum of what they return.

    torch releases the interpreter lock inside its operations, so the threads run side by side. An error in one job ends
    the budget and is raised here when all threads have ended. A single job runs in the thread of the caller: to start
    one for it may take longer than the job.
    """
    if len(jobs) == 1:
        with torch_threads(1):
            return 0 if budget.over() else jobs[0](budget)
    threads = min(threads, max(1, len(jobs)))
    queue = iter(jobs)
    lock = threading.Lock()
    done = [0] * threads
    errors: list[BaseException] = []

    # Not by Thread.join: once Ctrl-C has interrupted it, it takes the thread for ended.
    ended = [threading.Event() for _ in range(threads)]

    def work(worker: int) -> None:
        try:
            with torch_threads(1):  # each thread has a setting of its own
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
        budget.end()  # after Ctrl-C, or if no more threads can start: those that run end after their current tile
        raise
    finally:
        for thread, event in zip(workers, ended, strict=True):
            if thread.ident is not None:
                event.wait()
                thread.join()
    if errors:
        raise errors[0]
    return sum(done)


def tile_space(rows: int, columns: int, dtype: torch.dtype, slot: int = 0) -> Tensor:
    """An uninitialised (rows, columns) tensor on the CPU, from memory that this thread uses again and again.

    The thread's next call with the same slot and dtype overwrites it. To allocate a tile anew costs as much time as the
    matrix product that fills it.
    """
    last: dict[tuple[torch.dtype, int], Tensor] = _scratch.__dict__.setdefault("last", {})
    tile = last.get((dtype, slot))
    if tile is not None and tile.shape == (rows, columns):
        return tile
    buffers: dict[tuple[torch.dtype, int], Tensor] = _scratch.__dict__.setdefault("buffers", {})
    buffer = buffers.get((dtype, slot))
    if buffer is None or buffer.numel() < rows * columns:
        buffer = buffers[dtype, slot] = torch.empty(rows * columns, dtype=dtype)
    tile = last[dtype, slot] = buffer[: rows * columns].view(rows, columns)
    return tile
