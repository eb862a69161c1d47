"""PSRN, the parallel symbolic regression network: all candidates of an architecture scored on data; the best come back.

`PSRN` checks what the user gives and chooses devices. A `Pass` does the work on checked data: bank, scan, and the way
back from candidates' numbers to expressions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from symenum.core.budget import Budget
from symenum.core.devices import choose_devices, lost_devices
from symenum.core.memory import DEFAULT_MEMORY
from symenum.core.seeds import torch_stream
from symenum.core.target import Target, check_slots, check_target, check_whole
from symenum.core.threads import Job, available_cores, run_jobs, single_threaded, torch_threads
from symenum.engine import cpu
from symenum.engine.architecture import Architecture, check_bank_fits, check_mask_fits
from symenum.engine.bank import build_bank
from symenum.engine.cuda import passes as cuda
from symenum.engine.distinct import signature
from symenum.engine.layer_dimensions import SlotDimensions, dimensions_of_classes
from symenum.engine.numbered import NumberedPass
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


_MODES = ("auto", "exact", "screen")
# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
_RESCORED_PER_K = 2  # candidates that are evaluated on all rows in the end, for each of the k that are wanted
_MASK_WORK = 20_000  # rows scored in the time that it takes to compare one sub-expression with all others
_DEVICE_POOL = 1024  # candidates of a GPU's scan of some rows that are judged on all rows, at least,
_DEVICE_POOL_PER_K = 32  # or so many for each of the k that are wanted
_EVALUATED_VALUES = 1 << 22  # values of candidates in memory at a time: 32 MiB
_MAX_SERIAL_VALUES = 1_000_000  # values of candidates that are computed sooner than threads have started
_MAX_SERIAL_BANK = 5_000_000  # numbers in a bank that one thread computes sooner than several


class PSRN:
    """All expressions that `layers` symbol layers of `operators` build on `inputs` slots.

    `operators` is the name of a set ("koza"), or a sequence of names, signs and Operator records. ValueError for a
    network that needs more than `max_memory` bytes. `last_operators`: those of the last layer, by default all.
    Nothing is computed before it is needed.

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
        last_operators: Iterable[str | Operator] | None = None,
        max_memory: int = DEFAULT_MEMORY,
    ) -> None:
        check_whole("inputs", inputs)
        check_whole("layers", layers)
        check_whole("max_memory", max_memory)
        records = get_operators(operators)
        check_mask_fits(inputs, records, layers, max_memory)
        last = None if last_operators is None else get_operators(last_operators)
        self._architecture = Architecture(inputs, records, layers, last)
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
    def last_operators(self) -> tuple[Operator, ...]:
        """The operators of the last layer."""
        return self._architecture.last_operators

    @property
    def layers(self) -> int:
        """The number of symbol layers."""
        return self._architecture.layers

    @property
    def max_memory(self) -> int:
        """Bytes that a pass may take."""
        return self._max_memory

    @property
    def raw_sizes(self) -> tuple[int, ...]:
        """The layers' sizes by the paper's formula, duplicates included."""
        return self._architecture.raw_sizes

    @property
    def sizes(self) -> tuple[int, ...]:
        """The layers' sizes as used: the last but one without duplicates, the last one counts the candidates.

        In the last but one an expression and its negative count once: they are one column with two signs.
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

        `values` (rows, inputs) are the slots' values and `y` (rows,) the target: arrays, tables, tensors or lists of
        real numbers. `slots`: names or expressions of the inputs; by default x1, x2, … If there are fewer than k
        candidates, all of them come back.

        `mode`: "exact" scores every candidate on all rows. "screen" scans 256 rows and judges on all rows the
        candidates that are near the best there; it costs far less but may lose a candidate. "auto" screens from 2,000
        rows on. After `time_limit` seconds, or when `stop()` is true, the best so far come back, and `complete` is
        False. `threads`: by default one for each core.

        `device`: "cpu", "cuda", "cuda:1", or a sequence of GPUs that share the pass; "auto" takes a GPU if there is one
        and the pass is large enough. DeviceLostError if a GPU fails or has too little memory: the same call with
        device="cpu" goes on without it. `seed`: of the order in which more than 256 rows are scanned.

        Candidates with the same values count once, as the simplest expression. A candidate with a sub-expression that
        is not finite on some row is left out.
        """
        budget = Budget(time_limit, stop)
        self._check_options(k, threads, mode)
        one = self._checked_pass(values, y, sample_weight, slots, budget, threads, seed)
        return self._run([one], k, self._is_screened(mode, one.target), device)[0]

    def numbered(
        self,
        values: object,
        y: object,
        k: int = 10,
        sample_weight: object = None,
        *,
        slots: Iterable[str | Expression] | None = None,
        mode: str = "auto",
        threads: int | None = None,
        seed: int = 0,
    ) -> NumberedPass:
        """What `search` does on the CPU, in parts with numbers that many machines can share; arguments as there."""
        self._check_options(k, threads, mode)
        one = self._checked_pass(values, y, sample_weight, slots, Budget(), threads, seed)
        return NumberedPass(one, k, screened=self._is_screened(mode, one.target))

    def search_many(
        self,
        values: Sequence[object],
        y: object,
        k: int = 10,
        sample_weight: object = None,
        *,
        slots: Sequence[Iterable[str | Expression] | None],
        mode: str = "auto",
        stop: Callable[[], bool] | None = None,
        threads: int | None = None,
        device: str | Sequence[str] = "auto",
        seed: int = 0,
        dimensions: Sequence[SlotDimensions] | None = None,
    ) -> list[Shortlist]:
        """For each of several slot sets what `search` gives, on the same rows and target; on a GPU in one go.

        `values`: an array (rows, inputs) for each set; `slots`: names or expressions of the inputs for each set. When
        `stop()` is true, the sets that are left have empty shortlists that are not `complete`.

        `dimensions`: for each set those of its slots and of the target; only candidates that have the target's are
        scored then, on the CPU.

        On one GPU the passes are launched one behind the other, and the expressions of one are written while the next
        is scanned. DeviceLostError if a GPU fails: the same call with device="cpu" goes on without it.
        """
        budget = Budget(None, stop)
        self._check_options(k, threads, mode)
        if not isinstance(values, Sequence) or not isinstance(slots, Sequence) or isinstance(slots, str):
            raise TypeError("values and slots must be sequences with one element for each slot set")
        if len(values) != len(slots):
            raise ValueError(f"values and slots must be equally many, not {len(values)} and {len(slots)}")
        if not values:
            return []
        tables = [check_slots(data, self.inputs) for data in values]
        if len({len(data) for data in tables}) > 1:
            raise ValueError(f"all values must have the same rows, not {', '.join(str(len(data)) for data in tables)}")
        rows, target = _checked_target(y, sample_weight, len(tables[0]), seed)
        passes = [
            self._pass(self._slots(names), data[rows], target, budget, threads)
            for data, names in zip(tables, slots, strict=True)
        ]
        if dimensions is not None:
            passes = [replace(one, dimensions=own) for one, own in zip(passes, dimensions, strict=True)]
            device = "cpu"
        return self._run(passes, k, self._is_screened(mode, target), device)

    def warm_up(self, rows: int, k: int = 10, *, device: str | Sequence[str] = "auto") -> None:
        """Make a GPU ready for passes of so many rows and k: find the duplicates, compile the kernels, take the memory.

        The first pass on a machine does the same if it must, and compiling takes up to 20 s. This may run in a thread
        of its own while the CPU does other work; it must have ended before the next call. On the CPU nothing is done.
        """
        check_whole("rows", rows)
        self._check_options(k, None, "exact")
        devices = self._devices(device, rows)
        if len(devices) == 1:
            steps = torch.arange(rows * (self.inputs + 1), dtype=torch.float64)
            data = 1 + 0.5 * steps.sin().view(rows, -1)  # any numbers do that are finite and not all the same
            target, _ = check_target(data[:, -1], None, rows)
            one = self._pass(self._slots(None), data[:, :-1], target, Budget(), None)
            with lost_devices(devices):
                exact_passes([replace(one, devices=devices)], k)

    def _check_options(self, k: int, threads: int | None, mode: str) -> None:
        check_whole("k", k)
        if threads is not None:
            check_whole("threads", threads)
        if mode not in _MODES:
            raise ValueError(f"mode must be one of {', '.join(map(repr, _MODES))}, not {mode!r}")

    def _checked_pass(
        self,
        values: object,
        y: object,
        sample_weight: object,
        slots: Iterable[str | Expression] | None,
        budget: Budget,
        threads: int | None,
        seed: int,
    ) -> Pass:
        """The pass on what the user gives; arguments as in `search`."""
        expressions = self._slots(slots)
        data = check_slots(values, self.inputs)
        rows, target = _checked_target(y, sample_weight, len(data), seed)
        return self._pass(expressions, data[rows], target, budget, threads)

    def _pass(self, slots: list[Expression], data: Tensor, target: Target, budget: Budget, threads: int | None) -> Pass:
        """The pass on checked data (rows, inputs)."""
        values, cores = data.T.contiguous(), threads or available_cores()
        return Pass(self._architecture, slots, values, target, self._max_memory, budget, cores)

    def _run(self, passes: Sequence[Pass], k: int, screened: bool, device: str | Sequence[str]) -> list[Shortlist]:
        """The shortlists of passes on one target."""
        devices = self._devices(device, passes[0].target.rows * len(passes))
        passes = [replace(one, devices=devices) for one in passes]
        with single_threaded(), lost_devices(devices):
            if len(passes) > 1 and len(devices) == 1 and not screened:
                return exact_passes(passes, k)
            return [
                Shortlist((), False, 0) if at and one.budget.over() else one.screen(k) if screened else one.exact(k)
                for at, one in enumerate(passes)
            ]

    def _devices(self, device: str | Sequence[str], rows: int) -> tuple[torch.device, ...]:
        """The devices for passes of so many rows in all; the duplicates are found on the first."""
        places = choose_devices(device, self._architecture.raw_width * _MASK_WORK)[:1]
        with lost_devices(places):
            for place in places:
                self._architecture.prepare(place)
        return choose_devices(device, self.sizes[-1] * rows)

    @staticmethod
    def _is_screened(mode: str, target: Target) -> bool:
        wanted = mode == "screen" or (mode == "auto" and target.rows >= SCREEN_FROM)
        return wanted and target.rows > SCREEN_ROWS

    def _slots(self, slots: Iterable[str | Expression] | None) -> list[Expression]:
        return slot_expressions(slots, self.inputs)


def _checked_target(y: object, sample_weight: object, count: int, seed: int) -> tuple[Tensor, Target]:
    """The rows to use (int64) of `count` rows, in order and without those of weight zero, and the target on them."""
    target, rows = check_target(y, sample_weight, count)
    if len(rows) > SCREEN_ROWS:  # shuffled: the first rows of sorted data are not like the rest
        shuffle = torch.randperm(len(rows), generator=torch_stream(seed, "order of the rows"))
        return rows[shuffle], target.at(shuffle)
    return rows, target


def slot_expressions(slots: Iterable[str | Expression] | None, inputs: int) -> list[Expression]:
    """The slots' expressions; by default x1, x2, … ValueError unless all are different."""
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


@dataclass(frozen=True)
class _Scanned:
    """What a scan has found."""

    numbers: Tensor  # int64, of the best candidates, loss ascending
    stand_in: Tensor  # (classes,) int64, the output that represents each class on the data, see `Bank`
    scored: int  # candidates
    complete: bool  # whether all candidates were scored


@dataclass(frozen=True)
class Pass:
    """One pass over checked data; its rows are in no particular order."""

    architecture: Architecture
    slots: list[Expression]
    values: Tensor  # (inputs, rows) float64
    target: Target
    max_memory: int
    budget: Budget
    threads: int
    devices: tuple[torch.device, ...] = ()  # GPUs; the CPU if there are none
    dimensions: SlotDimensions | None = None  # only candidates that have the target's are scored

    def exact(self, k: int) -> Shortlist:
        """The best k of all candidates, each judged on all rows."""
        scanned = self._scan(self.values, self.target, Pool(k, self.target))
        return self._shortlist(scanned, scanned.numbers, k)

    def screen(self, k: int) -> Shortlist:
        """The best k on all rows, of the candidates that are near the best on 256 rows."""
        few, target = select_rows(self.target, SCREEN_ROWS)
        if self.devices:
            return self._screen_on_device(self.values[:, few], target, k)
        return self._screened(self._scan(self.values[:, few], target, screening_pool(k, target)), k)

    def _screened(self, scanned: _Scanned, k: int) -> Shortlist:
        """The shortlist of a scan of 256 rows, judged on all rows."""

        def losses(numbers: Tensor, rows: Tensor, target: Target) -> Tensor:
            return losses_of(self.architecture, scanned.stand_in, numbers, self.values[:, rows], target)

        numbers = successive_halving(scanned.numbers, self.target, k, losses, self.budget.over)
        complete = scanned.complete and not self.budget.over()
        return self._shortlist(replace(scanned, complete=complete), numbers[: _RESCORED_PER_K * k], k)

    def _screen_on_device(self, few: Tensor, target: Target, k: int) -> Shortlist:
        """`screen` on a GPU, for slot values (inputs, few rows); `exact` if the GPU cannot screen this pass."""
        pool = Pool(_RESCORED_PER_K * k, self.target)
        found = cuda.screen_network(
            self.architecture,
            few,
            target,
            (self.values, self.target),
            self._complexity,
            max(_DEVICE_POOL, _DEVICE_POOL_PER_K * k),
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
        scorer = self._scorer(values, target, pool)
        if self.dimensions is None:
            scored, complete = cpu.scan(scorer, self.budget, self.threads)
        else:
            scored, complete = cpu.scan_admissible(scorer, self.budget, self.threads)
        return _Scanned(_numbers(pool), scorer.bank.stand_in, scored, complete)

    def _scorer(self, values: Tensor, target: Target, pool: Pool) -> Scorer:
        """The scorer of a scan on the CPU, on slot values (inputs, rows); it holds the bank."""
        check_bank_fits(self.architecture.columns, target.rows, self.max_memory)
        small = len(self.architecture.kept) * target.rows < _MAX_SERIAL_BANK
        with torch_threads(1 if small else self.threads):
            bank = build_bank(self.architecture, values, torch.tensor(self._complexity))
        scorer = Scorer(self.architecture.last_layer, bank, target, pool)
        return scorer if self.dimensions is None else self._with_dimensions(scorer)

    # For `NumberedPass`, which scans a pass in parts

    def scan_pool(self, k: int, *, screened: bool) -> Pool:
        """An empty pool for the scan, for k candidates in the end."""
        return screening_pool(k, select_rows(self.target, SCREEN_ROWS)[1]) if screened else Pool(k, self.target)

    def scorer(self, pool: Pool, *, screened: bool) -> Scorer:
        """The scorer of the scan on the CPU, on all rows or on 256 of them."""
        if not screened:
            return self._scorer(self.values, self.target, pool)
        few, target = select_rows(self.target, SCREEN_ROWS)
        return self._scorer(self.values[:, few], target, pool)

    def from_pool(
        self, pool: Pool, stand_in: Tensor, scored: int, complete: bool, k: int, *, screened: bool
    ) -> Shortlist:
        """The shortlist of a scan that has filled the pool."""
        scanned = _Scanned(_numbers(pool), stand_in, scored, complete)
        return self._screened(scanned, k) if screened else self._shortlist(scanned, scanned.numbers, k)

    def _with_dimensions(self, scorer: Scorer) -> Scorer:
        """The scorer on the columns that have a dimension, and these dimensions."""
        assert self.dimensions is not None  # asked before
        found = dimensions_of_classes(self.architecture, self.dimensions, scorer.bank.stand_in[scorer.bank.plus])
        kept = torch.nonzero(~torch.isnan(found)).flatten()
        return replace(scorer, dimension=found, wanted=self.dimensions.wanted).at(kept)

    def _evaluate(self, scanned: _Scanned, numbers: list[int]) -> tuple[list[Expression], Tensor]:
        """The candidates' expressions, and their values (len(numbers), rows) float64 as `evaluate` gives them."""
        if len(numbers) * self.target.rows <= _MAX_SERIAL_VALUES:
            both = self.architecture.valued(numbers, self.slots, self.values, scanned.stand_in)
            return [expression for expression, _ in both], torch.stack([values for _, values in both])
        slots = [Variable(f"x{i}") for i in range(len(self.slots))]
        columns = {f"x{i}": column for i, column in enumerate(self.values)}
        values = torch.empty(len(numbers), self.target.rows, dtype=torch.float64)

        def fill(at: int, _: Budget) -> int:
            values[at] = evaluate(self.architecture.reconstruct(numbers[at], slots, scanned.stand_in), columns)
            return 1

        jobs: list[Job] = [partial(fill, at) for at in range(len(numbers))]
        # Without a limit: candidates that were found are evaluated even if the time is over.
        run_jobs(jobs, Budget(), self.threads)
        return [self.architecture.reconstruct(number, self.slots, scanned.stand_in) for number in numbers], values

    def _shortlist(self, scanned: _Scanned, numbers: Tensor, k: int) -> Shortlist:
        """The best k of `numbers` as expressions, each with the loss of that expression on all rows."""
        pool = Pool(k, self.target)
        expressions: dict[int, Expression] = {}
        step = max(1, min(k, _EVALUATED_VALUES // self.target.rows))
        for start in range(0, len(numbers), step):
            if pool.full and pool.limit > 2 * self.target.floor:
                break  # the rest have larger losses; below that limit, which is rounding, a simpler one may follow
            part = numbers[start : start + step]
            written, values = self._evaluate(scanned, part.tolist())
            loss = self.target.loss(values)
            fine = torch.nonzero(torch.isfinite(loss)).flatten()
            for at in fine.tolist():
                expressions[int(part[at])] = canonical(written[at])
            complexity = torch.tensor([expressions[number].complexity for number in part[fine].tolist()])
            pool.add(Finds(loss[fine], complexity, part[fine], signature(values[fine])))
        best = pool.best()
        pairs = [] if best is None else zip(best.number.tolist(), best.loss.tolist(), strict=True)
        candidates = tuple(Candidate(expressions[number], loss) for number, loss in pairs)
        return Shortlist(candidates, scanned.complete, scanned.scored)


def exact_passes(passes: Sequence[Pass], k: int) -> list[Shortlist]:
    """What `Pass.exact` gives for each of several passes on one target and one GPU."""
    first = passes[0]
    found = cuda.scan_many(
        first.architecture,
        [(one.values, one._complexity) for one in passes],
        first.target,
        k,
        first.budget,
        first.devices[0],
        first.threads,
    )
    shortlists = []
    for one, (pool, scan) in zip(passes, found, strict=True):
        numbers = _numbers(pool)
        scanned = _Scanned(numbers, scan.stand_in, scan.scored, scan.complete)
        shortlists.append(one._shortlist(scanned, numbers, k))
    return shortlists


def _numbers(pool: Pool) -> Tensor:
    finds = pool.best()
    return torch.empty(0, dtype=torch.int64) if finds is None else finds.number
