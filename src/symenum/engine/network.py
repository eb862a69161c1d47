"""PSRN, the parallel symbolic regression network: all candidates of an architecture scored on data, the best kept."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from symenum.core.budget import Budget
from symenum.core.devices import choose_devices
from symenum.core.memory import DEFAULT_MEMORY
from symenum.core.seeds import torch_stream
from symenum.core.target import Target, check_slots, check_target, check_whole
from symenum.core.threads import Job, available_cores, run_jobs, single_threaded, torch_threads
from symenum.engine import cpu
from symenum.engine.architecture import Architecture, check_bank_fits, check_mask_fits
from symenum.engine.bank import build_bank
from symenum.engine.cuda import passes as cuda
from symenum.engine.distinct import signature
from symenum.engine.screening import (
    SCREEN_FROM,
    SCREEN_ROWS,
    losses_of,
    screening_pool,
    select_rows,
    successive_halving,
)
from symenum.engine.shortlist import Finds, Pool, Scorer, Shortlist
from symenum.expressions import Apply, Constant, Expression, Variable, canonical, evaluate
from symenum.expressions.candidate import Candidate
from symenum.operators import Operator, get_operators

__all__ = ["PSRN", "Pass", "slot_expressions"]


# --------------------------------------------------------------------------------------------------------------------
# One pass of a network over one data set: bank, scan, and the way back from numbers to expressions.


_DEVICE_POOL = 1024  # candidates of a scan on a few rows that are judged on all, and more
_VALUES = 1 << 22  # of candidates that are evaluated at a time: 32 MB
_ALONE = 1_000_000  # values; so few are computed before threads have started
_SMALL = 5_000_000  # numbers in a bank; below this, threads inside an operation cost more than they give


@dataclass(frozen=True)
class _Scanned:
    """Numbers (int64) of the best candidates, loss ascending, and what their classes stand for on the data."""

    numbers: Tensor
    stand_in: Tensor
    scored: int
    complete: bool


@dataclass(frozen=True)
class Pass:
    """Checked data for one search; rows are in no particular order."""

    architecture: Architecture
    slots: list[Expression]
    values: Tensor  # (inputs, rows) float64
    target: Target
    max_memory: int
    budget: Budget
    threads: int
    devices: tuple[torch.device, ...] = ()  # GPUs; the CPU if there are none

    def exact(self, k: int) -> Shortlist:
        """The best k, every candidate judged on all rows."""
        scanned = self._scan(self.values, self.target, Pool(k, self.target))
        return self._shortlist(scanned, scanned.numbers, k)

    def screen(self, k: int) -> Shortlist:
        """The best k of those that are near the best on some of the rows."""
        few, target = select_rows(self.target, SCREEN_ROWS)
        if self.devices:
            return self._screen_on_device(self.values[:, few], target, k)
        scanned = self._scan(self.values[:, few], target, screening_pool(k, target))

        def losses(numbers: Tensor, rows: Tensor, target: Target) -> Tensor:
            return losses_of(self.architecture, scanned.stand_in, numbers, self.values[:, rows], target)

        numbers = successive_halving(scanned.numbers, self.target, k, losses, self.budget.over)
        complete = scanned.complete and not self.budget.over()
        return self._shortlist(replace(scanned, complete=complete), numbers[: 2 * k], k)

    def _screen_on_device(self, few: Tensor, target: Target, k: int) -> Shortlist:
        """`screen` for slot values (inputs, few rows); exact where the device has no room to screen."""
        pool = Pool(2 * k, self.target)
        found = cuda.screen_network(
            self.architecture,
            few,
            target,
            (self.values, self.target),
            self._complexity,
            max(_DEVICE_POOL, 32 * k),
            pool,
            self.devices[0],
        )
        if found is None:
            return self.exact(k)
        numbers = _numbers(pool)
        return self._shortlist(_Scanned(numbers, found.stand_in, found.scored, found.complete), numbers, k)

    @property
    def _complexity(self) -> list[int]:
        return [slot.complexity for slot in self.slots]

    def _scan(self, values: Tensor, target: Target, pool: Pool) -> _Scanned:
        if self.devices:
            found = cuda.scan_network(
                self.architecture,
                values,
                self._complexity,
                target,
                pool.k,
                pool,
                self.budget,
                self.devices,
                self.threads,
            )
            return _Scanned(_numbers(pool), found.stand_in, found.scored, found.complete)
        check_bank_fits(self.architecture.columns, target.rows, self.max_memory)
        small = len(self.architecture.kept) * target.rows < _SMALL
        with torch_threads(1 if small else self.threads):
            bank = build_bank(self.architecture, values, torch.tensor(self._complexity))
        scored, complete = cpu.scan(Scorer(self.architecture.last_layer, bank, target, pool), self.budget, self.threads)
        return _Scanned(_numbers(pool), bank.stand_in, scored, complete)

    def _evaluate(self, scanned: _Scanned, numbers: list[int]) -> Tensor:
        """The values (numbers, rows) of candidates' expressions, as anyone would compute them."""
        slots = [Variable(f"x{i}") for i in range(len(self.slots))]
        columns = {f"x{i}": column for i, column in enumerate(self.values)}
        values = torch.empty(len(numbers), self.target.rows, dtype=torch.float64)

        def fill(at: int, _: Budget) -> int:
            values[at] = evaluate(self.architecture.reconstruct(numbers[at], slots, scanned.stand_in), columns)
            return 1

        jobs: list[Job] = [partial(fill, at) for at in range(len(numbers))]
        whole = Budget()  # what was found is judged, even if the time is over
        if values.numel() > _ALONE:
            run_jobs(jobs, whole, self.threads)
        else:
            for job in jobs:
                job(whole)
        return values

    def _shortlist(self, scanned: _Scanned, numbers: Tensor, k: int) -> Shortlist:
        """The best k as expressions, each with the loss of the expression itself on all rows."""
        pool = Pool(k, self.target)
        expressions: dict[int, Expression] = {}
        step = max(1, min(k, _VALUES // self.target.rows))
        for start in range(0, len(numbers), step):
            if pool.full and pool.limit > 2 * self.target.floor:
                break  # the rest lose more; at rounding a simpler one may be among them
            part = numbers[start : start + step]
            values = self._evaluate(scanned, part.tolist())
            loss = self.target.loss(values)
            fine = torch.nonzero(torch.isfinite(loss)).flatten()
            for number in part[fine].tolist():
                expressions[number] = canonical(self.architecture.reconstruct(number, self.slots, scanned.stand_in))
            complexity = torch.tensor([expressions[number].complexity for number in part[fine].tolist()])
            pool.add(Finds(loss[fine], complexity, part[fine], signature(values[fine])))
        best = pool.best()
        pairs = [] if best is None else zip(best.number.tolist(), best.loss.tolist(), strict=True)
        candidates = tuple(Candidate(expressions[number], loss) for number, loss in pairs)
        return Shortlist(candidates, scanned.complete, scanned.scored)


def _numbers(pool: Pool) -> Tensor:
    finds = pool.best()
    return torch.empty(0, dtype=torch.int64) if finds is None else finds.number


# --------------------------------------------------------------------------------------------------------------------
# PSRN, the parallel symbolic regression network: all candidates of an architecture scored on data, the best kept.


_MODES = ("auto", "exact", "screen")
_MASK_WORK = 20_000  # to tell one sub-expression from all others takes about as long as to score so many rows


class PSRN:
    """All expressions that `layers` layers of `operators` build on `inputs` slots.

    `operators` is a set's name ("koza"), or a sequence of names, signs and Operator records. A network that would take
    more than `max_memory` bytes is refused. Nothing is computed before it is needed.

    >>> net = PSRN(inputs=2, operators="arithmetic", layers=2)
    >>> net.sizes
    (13, 616)
    >>> values = [[1.0, 2.0], [2.0, 5.0], [3.0, 1.0], [4.0, 4.0]]
    >>> y = [a * (a + b) for a, b in values]
    >>> print(net.search(values, y, k=1)[0].expression)
    x1*(x1 + x2)
    """

    def __init__(
        self,
        inputs: int,
        operators: str | Iterable[str | Operator] = "koza",
        layers: int = 3,
        *,
        max_memory: int = DEFAULT_MEMORY,
    ) -> None:
        check_whole("inputs", inputs)
        check_whole("layers", layers)
        check_whole("max_memory", max_memory)
        records = get_operators(operators)
        check_mask_fits(inputs, records, layers, max_memory)
        self._architecture = Architecture(inputs, records, layers)
        self._max_memory = max_memory

    def __repr__(self) -> str:
        names = [operator.name for operator in self.operators]
        return f"PSRN(inputs={self.inputs}, operators={names}, layers={self.layers})"

    @property
    def inputs(self) -> int:
        """The number of slots."""
        return self._architecture.inputs

    @property
    def operators(self) -> tuple[Operator, ...]:
        """The operators of every layer."""
        return self._architecture.operators

    @property
    def layers(self) -> int:
        """The number of symbol layers."""
        return self._architecture.layers

    @property
    def raw_sizes(self) -> tuple[int, ...]:
        """The layers' sizes by the paper's formula, no duplicates removed."""
        return self._architecture.raw_sizes

    @property
    def sizes(self) -> tuple[int, ...]:
        """The layers' sizes as used: the last but one without duplicates, the last is the number of candidates.

        An expression and its negative count once in the last but one: they are one column with two signs.
        """
        return self._architecture.sizes

    def expression(self, number: int, slots: Iterable[str | Expression] | None = None) -> Expression:
        """The candidate of that number, from 0 to sizes[-1] - 1."""
        return self._architecture.reconstruct(number, self._slots(slots))

    def search(
        self,
        values: object,
        y: object,
        k: int = 10,
        sample_weight: object = None,
        *,
        slots: Iterable[str | Expression] | None = None,
        mode: str = "auto",
        time_limit: float | None = None,
        stop: Callable[[], bool] | None = None,
        threads: int | None = None,
        device: str | Sequence[str] = "auto",
        seed: int = 0,
    ) -> Shortlist:
        """The best k candidates that differ on the data, by weighted mean square error, loss ascending.

        `values` (rows, inputs) are the slots' values and `y` (rows,) the target. `slots` names the inputs, or gives
        their expressions; x1, x2, … without. With fewer than k candidates, all of them come back.

        `mode`: "exact" scores every candidate on all rows; "screen" scans 256 rows and judges on all of them what comes
        near the best there, which costs far less but may lose a candidate; "auto" screens from 2,000 rows on. After
        `time_limit` seconds, or when `stop()` is true, the best so far come back, and `complete` is False. `threads`:
        all cores without.

        `device`: "cpu", "cuda", "cuda:1", or several of the latter, which share the pass; "auto" takes a GPU where
        there is one and the pass is large enough for it. `seed`: of the order in which many rows are looked at.

        Candidates that take the same values are one, and the simplest stays. A candidate with a sub-expression that is
        not finite on some row is none.
        """
        budget = Budget(time_limit, stop)
        check_whole("k", k)
        if threads is not None:
            check_whole("threads", threads)
        if mode not in _MODES:
            raise ValueError(f"mode must be one of {', '.join(map(repr, _MODES))}, not {mode!r}")
        expressions = self._slots(slots)
        columns, target = self._checked_data(values, y, sample_weight, seed)
        for place in choose_devices(device, self._architecture.raw_width * _MASK_WORK)[:1]:
            self._architecture.prepare(place)
        devices = choose_devices(device, self.sizes[-1] * target.rows)
        wanted = mode == "screen" or (mode == "auto" and target.rows >= SCREEN_FROM)
        cores = threads or available_cores()
        one = Pass(self._architecture, expressions, columns, target, self._max_memory, budget, cores, devices)
        with single_threaded():
            try:
                return one.screen(k) if wanted and target.rows > SCREEN_ROWS else one.exact(k)
            except MemoryError as error:
                if device != "auto" or not devices:
                    raise
                warnings.warn(f"{error}; this pass runs on the CPU", RuntimeWarning, stacklevel=2)
        return self.search(
            values, y, k, sample_weight, slots=expressions, mode=mode, time_limit=time_limit, stop=stop,
            threads=threads, device="cpu", seed=seed,
        )  # fmt: skip

    def _checked_data(self, values: object, y: object, sample_weight: object, seed: int) -> tuple[Tensor, Target]:
        """The slots' values (inputs, rows) float64 and the target, on the rows that have weight."""
        data = check_slots(values, self.inputs)
        target, rows = check_target(y, sample_weight, len(data))
        data = data[rows]
        if len(rows) > SCREEN_ROWS:  # sorted data must not make the first rows special
            shuffle = torch.randperm(len(rows), generator=torch_stream(seed, "order of the rows"))
            data, target = data[shuffle], target.at(shuffle)
        return data.T.contiguous(), target

    def _slots(self, slots: Iterable[str | Expression] | None) -> list[Expression]:
        return slot_expressions(slots, self.inputs)


# --------------------------------------------------------------------------------------------------------------------
# What a pass is given, checked and ready for the kernels: y with its weights and scale, slots and their names.


def slot_expressions(slots: Iterable[str | Expression] | None, inputs: int) -> list[Expression]:
    """The slots' expressions: x1, x2, … without names, and all different."""
    if slots is None:
        return [Variable(f"x{i + 1}") for i in range(inputs)]
    if isinstance(slots, str) or not isinstance(slots, Iterable) or len(slots := list(slots)) != inputs:
        raise ValueError(f"slots must be a sequence of {inputs} names or expressions, not {slots!r}")
    found: list[Expression] = []
    for slot in slots:
        if not isinstance(slot, (str, Variable, Constant, Apply)):
            raise TypeError(f"slots must hold names or expressions, not {type(slot).__name__}")
        found.append(Variable(slot) if isinstance(slot, str) else slot)
    if len(set(found)) < len(found):
        raise ValueError(f"slots must differ from each other, not {', '.join(map(str, found))}")
    return found
