"""The scan of the last layer on one GPU: bounds of all units, a limit, then the exact losses of what it lets in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType

import numpy as np
import torch
from torch import Tensor

from symenum.core.exactness import EXACTNESS, loss_up_to
from symenum.core.target import Target
from symenum.engine.bank import NONE
from symenum.engine.cuda.bank import BLOCK, DeviceBank, Factors, inner_size, strict_function
from symenum.engine.layer import Family, SymbolLayer, forms_of
from symenum.engine.shortlist import SAME_FUNCTION, Finds, Pool
from symenum.operators import Kind

__all__ = ["CAPACITY", "FORMS", "DeviceScan", "SideStreams", "Writer", "add_packed", "judge_again", "load_kernels"]


# --------------------------------------------------------------------------------------------------------------------
# Kernels that need not wait for each other, side by side: one's last blocks leave room for the next one's first.


class SideStreams:
    """`count` streams beside the current one; on the CPU, where Triton's interpreter runs, one after another.

    Nothing may be allocated inside: memory belongs to the stream that it was allocated on.
    """

    def __init__(self, device: torch.device, count: int) -> None:
        on_gpu = device.type == "cuda"
        self._streams = [torch.cuda.Stream(device) for _ in range(count if on_gpu else 0)]  # type: ignore[no-untyped-call]
        self._busy: list[torch.cuda.Stream] = []

    @contextmanager
    def one(self, place: int) -> Iterator[None]:
        """Inside, launches go to the stream of that place, and wait for what was launched before, outside."""
        if not self._streams:
            yield
            return
        stream = self._streams[place]
        stream.wait_stream(torch.cuda.current_stream())
        self._busy.append(stream)
        with torch.cuda.stream(stream):
            yield

    def join(self) -> None:
        """Let the current stream wait for all that was launched on them."""
        for stream in self._busy:
            torch.cuda.current_stream().wait_stream(stream)
        self._busy.clear()


# --------------------------------------------------------------------------------------------------------------------
# From the codes of pairs that a device found to candidates: numbers, complexities and values, by fixed operations.


FORMS = 8  # (+,+), (+,-), (-,+), (-,-) of sums, ± of products, ± of quotients; then the unary operators
_NUMBER = {
    (Family.SUM, 1, 1): 0,
    (Family.SUM, 1, -1): 1,
    (Family.SUM, -1, -1): 3,
    (Family.PRODUCT, 1, 1): 4,
    (Family.PRODUCT, -1, 1): 5,
    (Family.QUOTIENT, 1, 1): 6,
    (Family.QUOTIENT, -1, 1): 7,
}
_EXCHANGED = 2  # (-,+) on (i, j) is (+,-) on (j, i)
_PROGRAMS = 4096
_SIZE = 32  # codes of a program
_COLUMNS = 128  # of a program; each thread has one, so that no function is computed for padding


class Writer:
    """The ways to write each form with the operators of a layer, as a table on the device."""

    def __init__(self, layer: SymbolLayer, device: torch.device, kernels: ModuleType) -> None:
        self._layer = layer
        self._kernels = kernels
        self.forms = {_NUMBER[form.family, form.first, form.second]: form for form in forms_of(layer.operators)}
        if 1 in self.forms:
            self.forms[_EXCHANGED] = self.forms[1]
        self.unary = [block for block in layer.blocks if block.operator.arity == 1]
        width = max([1, *(len(form.ways) for form in self.forms.values())])
        # Signs of v_i and v_j, exchanged, complexity, first number, squared, commutative, whether there is a way.
        table = torch.zeros(FORMS, width, 8, dtype=torch.int64)
        starts = {block.operator: block.start for block in layer.blocks}
        for number, form in self.forms.items():
            for place, way in enumerate(form.ways):
                operator = way.operator
                fields = (
                    way.first_sign,
                    way.second_sign,
                    way.exchanged,
                    operator.complexity,
                    starts[operator],
                    operator.kind is Kind.SQUARED,
                    operator.commutative,
                    True,
                )
                table[number, place] = torch.tensor([int(field) for field in fields])
        self._table = table.to(device)
        from symenum.engine.cuda.kernels import has_codes  # Triton is not everywhere

        self.coded = has_codes(block.operator for block in self.unary)
        unary = [(b.start, b.operator.complexity, b.operator.kernel or 0) for b in self.unary]
        self._unary = torch.tensor(unary or [(0, 0, 0)], dtype=torch.int64, device=device)

    def reachable(self) -> Tensor:
        """(4, 8) bool on the CPU: whether a form can be written when i, j have both signs (bits 2 and 1 of axis 0)."""
        out = torch.zeros(4, FORMS, dtype=torch.bool)
        for signs in range(4):
            for number, form in self.forms.items():
                has = bool(signs & 2), bool(signs & 1)
                out[signs, number] = form.reachable(*(has[::-1] if number == _EXCHANGED else has))
        return out

    def families(self) -> list[Family]:
        """Those that the operators can write, in the order of their numbers."""
        return [family for family in Family if any(form.family is family for form in self.forms.values())]

    def numbers(self, codes: Tensor, bank: DeviceBank) -> Tensor:
        """The number (int64) of the simplest way to write each of `codes` (int64); NONE: there is none."""
        numbers = torch.empty_like(codes)
        self._kernels.number_candidates[(-(-len(codes) // _SIZE),)](
            codes, len(codes), *self._ways(bank), len(bank.values), self._layer.width, numbers, **self._tile
        )
        return numbers

    def pack(self, codes: Tensor, losses: Tensor, count: Tensor, bank: DeviceBank) -> Tensor:
        """(len(codes) + 1, 3 + rows) float64: `count`, then loss, complexity, number and values of so many."""
        columns, rows = bank.values.shape
        packed = torch.empty(len(codes) + 1, 3 + rows, dtype=torch.float64, device=codes.device)
        self._kernels.pack_candidates[(-(-len(codes) // _SIZE),)](
            codes, losses, count, len(codes), *self._ways(bank), bank.values, rows, columns, self._layer.width, packed,
            UNARY=len(self.unary) if self.coded else 0, BK=32, **self._tile,
        )  # fmt: skip
        if not self.coded:
            operands, forms = packed[1:, 3:].clone(), codes // columns**2
            for place, block in enumerate(self.unary):
                applied = strict_function(block.operator)(operands, None)
                packed[1:, 3:] = torch.where((forms == FORMS + place)[:, None], applied, packed[1:, 3:])
        return packed

    def add_losses(
        self, codes: Tensor, bank: DeviceBank, outputs: Tensor, y: Tensor, weight: Tensor, losses: Tensor
    ) -> None:
        """Add to `losses` (float64) those of the first so many codes on other rows: y, weight (rows,).

        `outputs` (raw width, rows) float64: those of the layers below, in which `bank.stand_in` counts.
        """
        self._kernels.candidate_losses[(min(_PROGRAMS, max(1, len(losses))),)](
            codes, len(losses), self._unary, bank.plus, bank.stand_in, outputs, len(y), len(bank.values), y, weight,
            losses, BK=1024,
        )  # fmt: skip

    def unary_losses(self, bank: DeviceBank, y: Tensor, weight: Tensor) -> Tensor:
        """The losses (operators, 2, columns) float64 of u(v) and u(-v) for every column, inf where there is none."""
        columns, rows = bank.values.shape
        if not self.coded:
            return self._unary_losses_by_torch(bank, y, weight)
        losses = torch.empty(len(self.unary), 2, columns, dtype=torch.float64, device=y.device)
        self._kernels.unary_losses[(columns // _COLUMNS, len(self.unary))](
            bank.values, rows, columns, y, weight, bank.plus, bank.minus, self._unary, losses, SIZE=_COLUMNS, BK=4
        )
        return losses

    def _unary_losses_by_torch(self, bank: DeviceBank, y: Tensor, weight: Tensor) -> Tensor:
        columns, rows = bank.values.shape
        step = max(_SIZE, (1 << 23) // rows)
        parts = []
        for start in range(0, columns, step):
            signed = torch.stack([bank.values[start : start + step], -bank.values[start : start + step]])
            values = torch.stack([strict_function(block.operator)(signed, None) for block in self.unary])
            parts.append(values.sub_(y).square_() @ weight)
        losses = torch.cat(parts, dim=2)
        exists = torch.stack([bank.plus != NONE, bank.minus != NONE])
        return torch.where(exists, losses, float("inf")).nan_to_num_(nan=float("inf"))

    @property
    def _tile(self) -> dict[str, int]:
        return {"WAYS": self._table.shape[1], "SIZE": _SIZE}

    def _ways(self, bank: DeviceBank) -> tuple[Tensor, ...]:
        return self._table, self._unary, bank.plus, bank.minus, bank.plus_complexity, bank.minus_complexity


# --------------------------------------------------------------------------------------------------------------------
# The scan of the last layer on one device: bounds of all units, a limit, then the exact losses of what it lets in.
#
# 1. The bounds of every unit of a strip of the bank on the tensor cores (`kernels`); one float32 for 128 candidates.
# 2. The unit of lowest bound of each of some thousand groups is evaluated exactly. The k-th distinct loss among them
# is a limit that the best k do not exceed. 3. The units that the limit does not exclude are evaluated exactly, and
# the pairs below it are written.
#
# All of it is launched without waiting for the device. What was written goes into the same pool as on the CPU. So the
# result is exact, whatever the precision of the bounds; a coarse bound costs time in step 3 only.


UNITS = 1 << 25  # at a time: 128 MB of bounds, and as much for the list of those that are left
CAPACITY = 1 << 18  # pairs that are written at a time
FAST = 256  # so many, and as a rule it is fewer, come back with the one transfer that there is
ROWS = 128  # the columns of a strip are a multiple of this
# (rows of a tile, tiles of a program, warps, stages), the best of those tried on an H200.
SUM_TILE = (128, 8, 8, 3)
PRODUCT_TILE = (64, 12, 4, 2)
PROGRAMS = 2048  # of the exact evaluation
_GROUPS = 2048
_PIECE = 1 << 16
_SMALL, _SORTED = 64, 1 << 13  # k and losses up to which one small kernel finds the limit
_TIE = 2 * EXACTNESS.tie  # more than the pool's own
_FLOOR = loss_up_to(EXACTNESS.rounding, 1.0)


class DeviceScan:
    """For banks of `columns` × `rows` under `layer`, and the best k; buffers are made once and used again.

    Of several `shards`, the one at `place` has every so-many-th strip, from the one of its own number on.
    """

    def __init__(
        self,
        layer: SymbolLayer,
        columns: int,
        rows: int,
        k: int,
        device: torch.device,
        directions: Tensor | None,
        *,
        place: int = 0,
        shards: int = 1,
        units: int = UNITS,
    ) -> None:
        self._kernels, self._preparing = load_kernels()
        self._k, self._rows, self._columns = k, rows, columns
        self._directions = directions
        self._aside: torch.cuda.Stream | None = None
        self._beside = SideStreams(device, len(Family))
        self.writer = Writer(layer, device, self._preparing)
        self.factors = Factors(columns, rows, device, self._preparing)
        self.families = self.writer.families()
        self._blocks = columns // BLOCK
        strip = max(1, units // max(1, len(self.families) * self._blocks * ROWS))
        strip = min(strip, -(-columns // (ROWS * shards)))
        self.strip_rows = strip * ROWS
        self.strips = range(0, columns, self.strip_rows)
        self._first_strip = place * self.strip_rows
        self._unit_count = len(self.families) * self.strip_rows * self._blocks
        self._group_size = max(1, self._unit_count // max(_GROUPS, 32 * k))
        self._groups = -(-self._unit_count // self._group_size)

        def buffer(size: int, dtype: torch.dtype) -> Tensor:
            return torch.empty(size, dtype=dtype, device=device)

        self.limit = buffer(1, torch.float64)
        self._units = buffer(self._unit_count, torch.float32)
        self._found = buffer(self._unit_count, torch.int32)
        self._count = buffer(1, torch.int32)
        self._kth = torch.full((1,), k, device=device)
        self._zero = torch.zeros(1, dtype=torch.int32, device=device)
        self._all_groups = torch.full((1,), self._groups, dtype=torch.int32, device=device)
        self._chosen = buffer(self._groups, torch.int32)
        self._best_loss, self._best_code = buffer(self._groups, torch.float64), buffer(self._groups, torch.int64)
        self._out_loss, self._out_code = buffer(CAPACITY, torch.float64), buffer(CAPACITY, torch.int64)
        self._out_count = buffer(1, torch.int32)
        reach = self.writer.reachable()
        self._reach = reach.int().to(device)
        penalty = torch.where(reach, 0.0, 1e30)
        self._penalty = {
            family: penalty[:, part].contiguous().to(device)
            for family, part in zip(Family, (slice(0, 4), slice(4, 6), slice(6, 8)), strict=True)
        }
        kinds = [list(Family).index(family) for family in self.families]
        self._kinds = torch.tensor(kinds or [0], dtype=torch.int32, device=device)

    def launch(self, bank: DeviceBank, y: Tensor, weight: Tensor, scale2: Tensor, strip: int, *, unary: bool) -> Tensor:
        """All work of one strip; `limit` must hold a valid one, or inf. Waits for nothing.

        y and weight (rows,), and scale2 (1,), the mean square of y, float64 on the device. Returns
        (FAST + 1, 3 + signature) float64: first the number of pairs written, then loss, complexity, number and
        signature of the first of them.
        """
        self._out_count.zero_()
        if self.families and strip == self._first_strip:
            self.factors.make(bank.values, bank.counts, y, weight, scale2)
        with_unary = unary and bool(self.writer.unary)
        losses = self._unary_aside(bank, y, weight) if with_unary else None
        if self.families:
            self.bounds(bank, strip)
            self._first_limit(bank, y, weight, scale2, strip)
            self._list(scale2)
            self._exact(bank, y, weight, strip, self._found, self._zero, self._count, best=False)
        if losses is not None:
            self._list_unary(losses)
        return self._pack(self._out_code[:FAST], self._out_loss[:FAST], self._out_count, bank)

    def collect(
        self, packed: Tensor, bank: DeviceBank, y: Tensor, weight: Tensor, scale2: Tensor, strip: int, pool: Pool
    ) -> None:
        """Bring what `launch` wrote into the pool; `packed` is its result, on the CPU."""
        count = int(packed[0, 0])
        if count <= FAST:
            add_packed(pool, packed[1 : 1 + count])
            return
        if count <= CAPACITY:
            self._add_many(count, bank, pool)
            return
        pieces = [(0, int(self._count))]
        self._tighten(self._out_loss, self._out_code, bank, y, weight, scale2)
        self._out_count.zero_()
        if strip == 0 and self.writer.unary:  # again: which of them were written before the end is not known
            self._list_unary(self.writer.unary_losses(bank, y, weight))
        self._add_many(min(CAPACITY, int(self._out_count)), bank, pool)
        while pieces:
            begin, end = pieces.pop()
            self.limit.clamp_(max=pool.limit)
            self._out_count.zero_()
            ends = [torch.tensor([at], dtype=torch.int32, device=y.device) for at in (begin, end)]
            self._exact(bank, y, weight, strip, self._found, *ends, best=False)
            count = int(self._out_count)
            if count > CAPACITY:
                self._tighten(self._out_loss, self._out_code, bank, y, weight, scale2)
                middle = (begin + end) // 2  # one unit has far less than CAPACITY pairs, so this ends
                pieces += [(begin, middle), (middle, end)]
            else:
                self._add_many(count, bank, pool)

    @property
    def written(self) -> tuple[Tensor, Tensor]:
        """The codes (CAPACITY,) int64 of the pairs that `launch` has found, and their number (1,) int32."""
        return self._out_code, self._out_count

    def mean_square(self, y: Tensor, weight: Tensor, out: Tensor) -> None:
        """The mean square of y into `out` (1,) float64."""
        tiny = torch.finfo(torch.float64).tiny
        self._preparing.mean_square[(1,)](y, weight, self._rows, tiny, out, BK=256)

    def bounds(self, bank: DeviceBank, strip: int) -> Tensor:
        """Step 1: the bounds (units,) float32, in units of the mean square of y."""
        for place, family in enumerate(self.families):
            with self._beside.one(place):
                self._family_bounds(bank, strip, place, family)
        self._beside.join()
        return self._units

    def _family_bounds(self, bank: DeviceBank, strip: int, place: int, family: Family) -> None:
        K, part = inner_size(self._rows)
        size = self.strip_rows * self._blocks
        factors = self.factors
        where = (bank.counts, self._penalty[family], self._units[place * size :], strip, self.strip_rows)
        rows, step, warps, stages = SUM_TILE if family is Family.SUM else PRODUCT_TILE
        tile = {"K": K, "BK": part, "ROWS": rows, "COLUMNS": BLOCK, "STEP": step}
        tile |= {"num_warps": warps, "num_stages": stages}
        grid = (self._blocks, -(-self.strip_rows // (rows * step)))
        if family is Family.SUM:
            self._kernels.sum_bounds[grid](factors.x, factors.own, factors.along, *where, **tile)
        else:
            both = factors.product if family is Family.PRODUCT else factors.quotient
            symmetric = family is Family.PRODUCT
            self._kernels.product_bounds[grid](*both, *where, SYMMETRIC=symmetric, **tile)

    def _first_limit(self, bank: DeviceBank, y: Tensor, weight: Tensor, scale2: Tensor, strip: int) -> None:
        self._kernels.lowest_of_groups[(self._groups,)](
            self._units, self._unit_count, self._group_size, self._chosen, SIZE=1024
        )
        self._exact(bank, y, weight, strip, self._chosen, self._zero, self._all_groups, best=True)
        self._tighten(self._best_loss, self._best_code, bank, y, weight, scale2)

    def _tighten(self, loss: Tensor, code: Tensor, bank: DeviceBank, y: Tensor, weight: Tensor, scale2: Tensor) -> None:
        """Lower the limit to the k-th distinct of exact losses.

        Losses whose roots differ by more than two equal functions could make them differ belong to different functions.
        """
        number = self.writer.numbers(code, bank)
        if self._k <= _SMALL and len(loss) <= _SORTED:
            self._preparing.lower_limit[(1,)](
                loss, number, len(loss), self._k, y, weight, self._rows, scale2, 10 * SAME_FUNCTION, _FLOOR,
                _TIE, self.limit, SIZE=1 << (len(loss) - 1).bit_length(), BK=128, num_warps=8,
            )  # fmt: skip
            return
        ordered = torch.where(number == NONE, float("inf"), loss).sort().values
        root = ordered.sqrt()
        gap = 10 * SAME_FUNCTION * (y.abs().amax() + root / weight.amin().sqrt())
        new = torch.nn.functional.pad(root.diff() > gap[1:], (1, 0), value=True)
        place = torch.searchsorted(new.long().cumsum(0), self._kth)
        kth = torch.nn.functional.pad(ordered, (0, 1), value=float("inf"))[place]
        self.limit.copy_(torch.minimum(self.limit, torch.maximum(kth, _FLOOR * scale2) * (1 + _TIE)))

    def _list(self, scale2: Tensor) -> None:
        self._count.zero_()
        size = 1024
        self._kernels.list_units[(-(-self._unit_count // size),)](
            self._units, self._unit_count, self.limit, scale2, self._found, self._count, SIZE=size
        )

    def _exact(
        self,
        bank: DeviceBank,
        y: Tensor,
        weight: Tensor,
        strip: int,
        found: Tensor,
        begin: Tensor,
        end: Tensor,
        *,
        best: bool,
    ) -> None:
        out = (self._best_loss, self._best_code) if best else (self._out_loss, self._out_code)
        self._kernels.exact_units[(PROGRAMS,)](
            found, begin, end, self._kinds, self.factors.transposed, y, weight, self._rows, bank.counts, self._reach,
            self.limit, strip, self.strip_rows, self._blocks, self._columns, *out, self._out_count, CAPACITY,
            COLUMNS=BLOCK, BEST=best,
        )  # fmt: skip

    def _unary_aside(self, bank: DeviceBank, y: Tensor, weight: Tensor) -> Tensor:
        """The losses of the unary operators; in a recorded pass beside the bounds, which leave room for them."""
        if not (y.is_cuda and torch.cuda.is_current_stream_capturing()):
            return self.writer.unary_losses(bank, y, weight)
        here = torch.cuda.current_stream()
        aside: torch.cuda.Stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        aside.wait_stream(here)
        with torch.cuda.stream(aside):
            losses = self.writer.unary_losses(bank, y, weight)
        self._aside = aside
        return losses

    def _list_unary(self, losses: Tensor) -> None:
        if self._aside is not None:
            torch.cuda.current_stream().wait_stream(self._aside)
            self._aside = None
        size = 1024
        self._kernels.list_losses[(-(-losses.numel() // size),)](
            losses, losses.numel(), self._columns, self.limit, self._out_loss, self._out_code, self._out_count,
            CAPACITY, SIZE=size,
        )  # fmt: skip

    def pack(self, codes: Tensor, losses: Tensor, bank: DeviceBank) -> Tensor:
        """Loss, complexity, number and signature (len(codes), 3 + signature) of these codes and their losses."""
        return self._pack(codes, losses, torch.tensor([len(codes)], dtype=torch.int32, device=codes.device), bank)[1:]

    def _pack(self, codes: Tensor, losses: Tensor, count: Tensor, bank: DeviceBank) -> Tensor:
        """(len(codes) + 1, 3 + signature) float64: see `launch`."""
        packed = self.writer.pack(codes, losses, count, bank)
        return packed if self._directions is None else torch.cat([packed[:, :3], packed[:, 3:] @ self._directions], 1)

    def _add_many(self, count: int, bank: DeviceBank, pool: Pool) -> None:
        losses, order = self._out_loss[:count].sort()
        for start in range(0, count, _PIECE):
            part = slice(start, min(start + _PIECE, count))
            if float(losses[part.start]) > pool.limit:
                return
            add_packed(pool, self.pack(self._out_code[order[part]], losses[part], bank).cpu())


def add_packed(pool: Pool, rows: Tensor) -> None:
    """Rows (N, 3 + signature) on the CPU, as `launch` writes them, into the pool."""
    table = rows.numpy()
    table = table[table[:, 2] >= 0]  # NONE: a half that semisub or semidiv does not have
    if len(table):
        loss, (complexity, number) = table[:, 0], table[:, 1:3].T.astype(np.int64)
        pool.add(Finds(*map(torch.from_numpy, (loss, complexity, number, table[:, 3:]))))


def load_kernels() -> tuple[ModuleType, ModuleType]:
    """The modules of the scan's kernels and of those around it."""
    from symenum.engine.cuda import kernels  # Triton is not everywhere
    from symenum.engine.cuda import kernels as prepare_kernels

    return kernels, prepare_kernels


# --------------------------------------------------------------------------------------------------------------------
# What a scan of a few rows has left, judged on all rows without leaving the device.
#
# The operands' values on all rows are made anew, some rows at a time. Of thousands of survivors the best few hundred
# come back; whether two of them are the same is seen on the rows of the scan.


_VALUES = 1 << 28  # of distinct operands at a time: 2 GB
_BACK = 64  # times k come back first; equal ones are among them


def judge_again(
    scan: DeviceScan,
    bank: DeviceBank,
    outputs: Callable[[Tensor], Tensor],
    slots: Tensor,
    target: Target,
    pool: Pool,
) -> bool:
    """Add to the pool the best on all rows of the pairs that `scan` has written; False: they did not fit its buffer.

    `outputs` gives all outputs (raw width, rows) below the last layer from slot values (inputs, rows); slots (inputs,
    all rows) and `target` float64 on the CPU. A candidate that fails on any row is none.
    """
    codes, count = scan.written
    found = int(count)
    if found > CAPACITY:
        return False
    losses = _losses(scan, bank, outputs, slots, target, found)
    losses, order = losses.nan_to_num_(nan=float("inf")).sort(stable=True)
    end = int(torch.isfinite(losses).sum())
    step = _BACK * pool.k
    for start in range(0, end, step):
        part = slice(start, min(start + step, end))
        if float(losses[start]) > pool.limit:
            break
        add_packed(pool, scan.pack(codes[order[part]], losses[part], bank).cpu())
    return True


def _losses(
    scan: DeviceScan, bank: DeviceBank, outputs: Callable[[Tensor], Tensor], slots: Tensor, target: Target, found: int
) -> Tensor:
    """The losses (found,) float64 on all rows."""
    device = bank.values.device
    losses = torch.zeros(found, dtype=torch.float64, device=device)
    data = torch.cat([slots, target.y[None], target.weight[None]]).to(device)
    step = max(1, _VALUES // len(bank.stand_in))
    for start in range(0, target.rows, step):
        part = data[:, start : start + step].contiguous()
        scan.writer.add_losses(scan.written[0], bank, outputs(part[:-2]), part[-2], part[-1], losses)
    return losses
