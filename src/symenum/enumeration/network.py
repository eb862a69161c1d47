"""PSRN, the parallel symbolic regression network: all candidates of an architecture scored on data, the best kept."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor

from symenum.core.budget import Budget
from symenum.enumeration.architecture import Architecture
from symenum.enumeration.devices import choose_devices
from symenum.enumeration.memory import DEFAULT_MEMORY, check_mask_fits
from symenum.enumeration.one_pass import Pass
from symenum.enumeration.screening import SCREEN_FROM, SCREEN_ROWS
from symenum.enumeration.seeds import torch_stream
from symenum.enumeration.shortlist import Shortlist
from symenum.enumeration.target import Target, check_names, check_slots, check_target, check_whole
from symenum.enumeration.threads import available_cores, single_threaded
from symenum.expressions import Expression
from symenum.operators import Operator, get_operators

__all__ = ["PSRN"]

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
        return check_names(slots, self.inputs)
