"""The scan of the last layer on one GPU: bounds of all units, a limit, then exact losses of the units within the limit.

A *unit* is one column v_i against a block of 128 columns v_j, in one family of forms. A *strip* is a number of
neighbouring columns v_i; a scan goes strip by strip.

1. The tensor cores bound the losses of every unit of a strip (`kernels`); one float32 for 128 candidates.
2. The unit of lowest bound in each of some thousand groups is evaluated exactly. The k-th distinct loss among them is a
   limit that the best k do not exceed.
3. The units whose bound is within the limit are evaluated exactly, and the pairs within the limit are written.

All of it is launched without waiting for the device. The pairs go into the same pool as on the CPU. So the result is
exact, whatever the precision of the bounds; a coarse bound only costs time in step 3.

With many rows the scan sees some of them, and `judge_again` judges the written pairs on all rows, on the device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType

import numpy as np
import torch
from torch import Tensor

from symenum.core.exactness import EXACTNESS, loss_up_to
from symenum.core.target import Target
from symenum.engine.bank import NO_EXPRESSION
from symenum.engine.cuda.bank import (
    BLOCK,
    DeviceBank,
    Factors,
    inner_size,
    load_kernels,
    own_terms_apart,
    strict_function,
)
from symenum.engine.layer import Family, SymbolLayer, forms_of
from symenum.engine.shortlist import SAME_FUNCTION, Finds, Pool
from symenum.operators import Kind

__all__ = ["CAPACITY", "FORMS", "DeviceScan", "SideStreams", "Writer", "add_packed", "judge_again"]


FORMS = 8  # (+,+), (+,-), (-,+), (-,-) of sums, ± of products, ± of quotients; then follow the unary operators
# The number of each form (family, sign of v_i, sign of v_j), as in `kernels`.
_NUMBER = {
    (Family.SUM, 1, 1): 0,
    (Family.SUM, 1, -1): 1,
    (Family.SUM, -1, -1): 3,
    (Family.PRODUCT, 1, 1): 4,
    (Family.PRODUCT, -1, 1): 5,
    (Family.QUOTIENT, 1, 1): 6,
    (Family.QUOTIENT, -1, 1): 7,
}
_EXCHANGED = 2  # the number of (-,+), which on (i, j) is (+,-) on (j, i)
_NO_WAY = 1e30  # added to the bound of a form that cannot be written: above every limit, in units of y's mean square
_TIE = 2 * EXACTNESS.tie  # relative margin of the limit; the pool's own is `tie`, and must lie within it
_FLOOR = loss_up_to(EXACTNESS.rounding, 1.0)  # the loss of an exact law, in units of y's mean square
_SAME_ROOTS = 10 * SAME_FUNCTION  # part of the values by which the roots of two losses differ if functions differ

# Bytes and counts. Chosen by trial: benchmarks/gpu.py times the kernels.
UNITS = 1 << 25  # units of a strip: 128 MiB of bounds, and as much for the list of those within the limit
CAPACITY = 1 << 18  # pairs that are written at a time: 4 MiB of losses and codes
FAST = 256  # pairs that come back with the first transfer; as a rule there are fewer
ROWS = 128  # the columns v_i of a strip are a multiple of this: the rows of the larger tile
# (columns v_i of a tile, tiles of a program, warps, stages), the best of those tried on an H200.
SUM_TILE = (128, 8, 8, 3)  # of `sum_bounds`
PRODUCT_TILE = (64, 12, 4, 2)  # of `product_bounds`
PROGRAMS = 2048  # programs of the exact evaluation, some 15 for each processor of an H200
_GROUPS = 2048  # groups of units of which the best gives the first limit, at least,
_GROUPS_PER_K = 32  # or so many for each of the k that are wanted
_LISTED = 1024  # units or losses in a program that lists those within the limit
_PACKED = 1 << 16  # pairs that are brought to the host at a time: 20 MiB with 35 numbers each
_SMALL_K, _MAX_SORTED = 64, 1 << 13  # k, and number of losses, up to which one kernel finds the limit
_JUDGE_PROGRAMS = 4096  # programs that judge pairs on other rows
_CODES = 32  # codes in a program that finds their numbers and values
_UNARY_COLUMNS = 128  # columns in a program of unary_losses: one for each thread, so that no padding is computed
_TORCH_VALUES = 1 << 23  # values of a unary operator that torch computes at a time: 64 MiB
_OPERAND_VALUES = 1 << 28  # values of distinct operands that `judge_again` holds at a time: 2 GiB
_RETURNED_PER_K = 64  # pairs that are brought back at a time, for each of the k; equal ones are among them
_MIN_RETURNED = 1024  # pairs that `launch_whole` brings back at least


class DeviceScan:
    """Scans of banks of `columns` × `rows` under `layer` for the best k; its buffers are used again and again.

    Of several `shards`, the one at `place` scans the strips place, place + shards, place + 2·shards, … `directions`:
    see `distinct.signature_directions`; None if there are at most 32 rows. `units`: the most in one strip.
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
        self._kernels = load_kernels()
        self.capacity = CAPACITY
        self._k, self._rows, self._columns = k, rows, columns
        self._directions = directions
        self._aside: torch.cuda.Stream | None = None
        self._side_streams = SideStreams(device, len(Family))
        self.writer = Writer(layer, device, self._kernels)
        self.factors = Factors(columns, rows, device, self._kernels)
        self.families = self.writer.families()
        self._blocks = columns // BLOCK
        strip = max(1, units // max(1, len(self.families) * self._blocks * ROWS))
        strip = min(strip, -(-columns // (ROWS * shards)))
        self.strip_rows = strip * ROWS
        self.strips = range(0, columns, self.strip_rows)
        self._first_strip = place * self.strip_rows
        self._unit_count = len(self.families) * self.strip_rows * self._blocks
        self._group_size = max(1, self._unit_count // max(_GROUPS, _GROUPS_PER_K * k))
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
        self._out_loss, self._out_code = buffer(self.capacity, torch.float64), buffer(self.capacity, torch.int64)
        self._out_count = buffer(1, torch.int32)
        self._places = torch.arange(self.capacity, device=device)
        self.returned = min(self.capacity, _PACKED, max(_MIN_RETURNED, _RETURNED_PER_K * k))
        reach = self.writer.reachable()
        self._reach = reach.int().to(device)
        penalty = torch.where(reach, 0.0, _NO_WAY)
        self._penalty = {
            family: penalty[:, part].contiguous().to(device)
            for family, part in zip(Family, (slice(0, 4), slice(4, 6), slice(6, 8)), strict=True)
        }
        kinds = [list(Family).index(family) for family in self.families]
        self._kinds = torch.tensor(kinds or [0], dtype=torch.int32, device=device)

    def launch(self, bank: DeviceBank, y: Tensor, weight: Tensor, scale2: Tensor, strip: int, *, unary: bool) -> Tensor:
        """Launch all work of one strip, without waiting; `self.limit` must hold a limit of the loss, or inf.

        y and weight (rows,), and scale2 (1,), the mean square of y, float64 on the device. Returns, on the device,
        (FAST + 1, 3 + signature) float64: first the number of pairs written, then loss, complexity, number and
        signature of each of the first FAST pairs.
        """
        self._write(bank, y, weight, scale2, strip, unary=unary)
        return self._pack(self._out_code[:FAST], self._out_loss[:FAST], self._out_count, bank)

    def launch_whole(self, bank: DeviceBank, y: Tensor, weight: Tensor, scale2: Tensor) -> Tensor:
        """Launch a pass of one strip, without waiting and with no limit from before.

        Arguments and result as of `launch`, but with the `returned` pairs of least loss, loss ascending: that is
        enough as a rule, even where each function is written in dozens of ways.
        """
        self.limit.fill_(float("inf"))
        self._write(bank, y, weight, scale2, 0, unary=True)
        losses, order = torch.where(self._places < self._out_count, self._out_loss, float("inf")).sort()
        return self._pack(self._out_code[order[: self.returned]], losses[: self.returned], self._out_count, bank)

    def take_whole(self, packed: Tensor, pool: Pool) -> bool:
        """Bring the result of `launch_whole`, on the CPU, into the pool; False if a pair may be missing there."""
        count = int(packed[0, 0])
        if count > self.capacity:
            return False
        rows = packed[1 : 1 + min(count, self.returned)]
        for start in range(0, len(rows), FAST):
            if float(rows[start, 0]) > pool.limit:
                return True  # all that follow have larger losses
            add_packed(pool, rows[start : start + FAST])
            pool.best()  # so that the limit is that of all added so far
        return count <= self.returned or float(rows[-1, 0]) > pool.limit

    def _write(self, bank: DeviceBank, y: Tensor, weight: Tensor, scale2: Tensor, strip: int, *, unary: bool) -> None:
        """Write the pairs of a strip that are within the limit."""
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

    def collect(
        self, packed: Tensor, bank: DeviceBank, y: Tensor, weight: Tensor, scale2: Tensor, strip: int, pool: Pool
    ) -> None:
        """Bring the pairs that `launch` wrote into the pool; `packed` is its result, on the CPU."""
        count = int(packed[0, 0])
        if count <= FAST:
            add_packed(pool, packed[1 : 1 + count])
            return
        if count <= self.capacity:
            self._add_many(count, bank, pool)
            return
        pieces = [(0, int(self._count))]
        self._tighten(self._out_loss, self._out_code, bank, y, weight, scale2)
        self._out_count.zero_()
        if strip == 0 and self.writer.unary:  # listed again: which of them found room is not known
            self._list_unary(self.writer.unary_losses(bank, y, weight))
        self._add_many(min(self.capacity, int(self._out_count)), bank, pool)
        while pieces:
            begin, end = pieces.pop()
            self.limit.clamp_(max=pool.limit)
            self._out_count.zero_()
            ends = [torch.tensor([at], dtype=torch.int32, device=y.device) for at in (begin, end)]
            self._exact(bank, y, weight, strip, self._found, *ends, best=False)
            count = int(self._out_count)
            if count > self.capacity:
                self._tighten(self._out_loss, self._out_code, bank, y, weight, scale2)
                middle = (begin + end) // 2  # ends, because one unit has far fewer pairs
                pieces += [(begin, middle), (middle, end)]
            else:
                self._add_many(count, bank, pool)

    @property
    def written(self) -> tuple[Tensor, Tensor]:
        """The codes (capacity,) int64 of the pairs that `launch` wrote, and the number found (1,) int32."""
        return self._out_code, self._out_count

    def mean_square(self, y: Tensor, weight: Tensor, out: Tensor) -> None:
        """Write the weighted mean square of y into `out` (1,) float64, on the device."""
        tiny = torch.finfo(torch.float64).tiny
        self._kernels.mean_square[(1,)](y, weight, self._rows, tiny, out, BK=256)

    def bounds(self, bank: DeviceBank, strip: int) -> Tensor:
        """Step 1: lower bounds (units,) float32 of the losses of all units, in units of the mean square of y."""
        for place, family in enumerate(self.families):
            with self._side_streams.one(place):
                self._family_bounds(bank, strip, place, family)
        self._side_streams.join()
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
            apart = own_terms_apart(self._rows)
            self._kernels.product_bounds[grid](*both, *where, SYMMETRIC=symmetric, APART=apart, **tile)

    def _first_limit(self, bank: DeviceBank, y: Tensor, weight: Tensor, scale2: Tensor, strip: int) -> None:
        self._kernels.lowest_of_groups[(self._groups,)](
            self._units, self._unit_count, self._group_size, self._chosen, SIZE=_LISTED
        )
        self._exact(bank, y, weight, strip, self._chosen, self._zero, self._all_groups, best=True)
        self._tighten(self._best_loss, self._best_code, bank, y, weight, scale2)

    def _tighten(self, loss: Tensor, code: Tensor, bank: DeviceBank, y: Tensor, weight: Tensor, scale2: Tensor) -> None:
        """Step 2: lower the limit to the k-th distinct one of some exact losses.

        Two losses belong to different functions if their roots differ by more than rounding allows for equal ones.
        """
        number = self.writer.numbers(code, bank)
        if self._k <= _SMALL_K and len(loss) <= _MAX_SORTED:
            self._kernels.lower_limit[(1,)](
                loss, number, len(loss), self._k, y, weight, self._rows, scale2, _SAME_ROOTS, _FLOOR,
                _TIE, self.limit, SIZE=1 << (len(loss) - 1).bit_length(), BK=128, num_warps=8,
            )  # fmt: skip
            return
        ordered = torch.where(number == NO_EXPRESSION, float("inf"), loss).sort().values
        root = ordered.sqrt()
        gap = _SAME_ROOTS * (y.abs().amax() + root / weight.amin().sqrt())
        new = torch.nn.functional.pad(root.diff() > gap[1:], (1, 0), value=True)
        place = torch.searchsorted(new.long().cumsum(0), self._kth)
        kth = torch.nn.functional.pad(ordered, (0, 1), value=float("inf"))[place]
        self.limit.copy_(torch.minimum(self.limit, torch.maximum(kth, _FLOOR * scale2) * (1 + _TIE)))

    def _list(self, scale2: Tensor) -> None:
        """List the units whose bound is within the limit."""
        self._count.zero_()
        self._kernels.list_units[(-(-self._unit_count // _LISTED),)](
            self._units, self._unit_count, self.limit, scale2, self._found, self._count, SIZE=_LISTED
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
            self.limit, strip, self.strip_rows, self._blocks, self._columns, *out, self._out_count, self.capacity,
            COLUMNS=BLOCK, BEST=best,
        )  # fmt: skip

    def _unary_aside(self, bank: DeviceBank, y: Tensor, weight: Tensor) -> Tensor:
        """The losses of the unary operators; in a recorded pass they are computed at the same time as the bounds."""
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
        """Write the unary candidates within the limit."""
        if self._aside is not None:
            torch.cuda.current_stream().wait_stream(self._aside)
            self._aside = None
        self._kernels.list_losses[(-(-losses.numel() // _LISTED),)](
            losses, losses.numel(), self._columns, self.limit, self._out_loss, self._out_code, self._out_count,
            self.capacity, SIZE=_LISTED,
        )  # fmt: skip

    def pack(self, codes: Tensor, losses: Tensor, bank: DeviceBank) -> Tensor:
        """Loss, complexity, number and signature (len(codes), 3 + signature) of these codes and their losses."""
        return self._pack(codes, losses, torch.tensor([len(codes)], dtype=torch.int32, device=codes.device), bank)[1:]

    def _pack(self, codes: Tensor, losses: Tensor, count: Tensor, bank: DeviceBank) -> Tensor:
        """(len(codes) + 1, 3 + signature) float64: see `launch`."""
        packed = self.writer.pack(codes, losses, count, bank)
        return packed if self._directions is None else torch.cat([packed[:, :3], packed[:, 3:] @ self._directions], 1)

    def _add_many(self, count: int, bank: DeviceBank, pool: Pool) -> None:
        """Bring the first `count` written pairs into the pool, lowest losses first."""
        losses, order = self._out_loss[:count].sort()
        for start in range(0, count, _PACKED):
            part = slice(start, min(start + _PACKED, count))
            if float(losses[part.start]) > pool.limit:
                return
            add_packed(pool, self.pack(self._out_code[order[part]], losses[part], bank).cpu())


def add_packed(pool: Pool, rows: Tensor) -> None:
    """Add rows (N, 3 + signature) float64 on the CPU, as `DeviceScan.launch` returns them, to the pool."""
    table = rows.numpy()
    table = table[table[:, 2] >= 0]  # without those of number NONE: the half that semisub or semidiv does not have
    if len(table):
        loss, (complexity, number) = table[:, 0], table[:, 1:3].T.astype(np.int64)
        pool.add(Finds(*map(torch.from_numpy, (loss, complexity, number, table[:, 3:]))))


def judge_again(
    scan: DeviceScan,
    bank: DeviceBank,
    outputs: Callable[[Tensor], Tensor],
    slots: Tensor,
    target: Target,
    pool: Pool,
) -> bool:
    """Judge on all rows the pairs that `scan` wrote, and add the best to the pool; False: they did not fit its buffer.

    `outputs` maps slot values (inputs, rows) to all outputs (raw width, rows) of the last layer but one, a part of the
    rows at a time. `slots` (inputs, all rows) and `target` float64 on the CPU. A candidate that fails on any row is
    left out. Whether two candidates are equal is decided by their values on the rows of the scan.
    """
    codes, count = scan.written
    found = int(count)
    if found > scan.capacity:
        return False
    losses = _losses(scan, bank, outputs, slots, target, found)
    losses, order = losses.nan_to_num_(nan=float("inf")).sort(stable=True)
    end = int(torch.isfinite(losses).sum())
    step = _RETURNED_PER_K * pool.k
    for start in range(0, end, step):
        part = slice(start, min(start + step, end))
        if float(losses[start]) > pool.limit:
            break
        add_packed(pool, scan.pack(codes[order[part]], losses[part], bank).cpu())
    return True


def _losses(
    scan: DeviceScan, bank: DeviceBank, outputs: Callable[[Tensor], Tensor], slots: Tensor, target: Target, found: int
) -> Tensor:
    """The losses (found,) float64 on all rows, on the device."""
    device = bank.values.device
    losses = torch.zeros(found, dtype=torch.float64, device=device)
    data = torch.cat([slots, target.y[None], target.weight[None]]).to(device)
    step = max(1, _OPERAND_VALUES // len(bank.stand_in))
    for start in range(0, target.rows, step):
        part = data[:, start : start + step].contiguous()
        scan.writer.add_losses(scan.written[0], bank, outputs(part[:-2]), part[-2], part[-1], losses)
    return losses


class Writer:
    """From the codes of pairs that a device found to candidates: numbers, complexities and values.

    It holds a table of the ways to write each form with the operators of a layer, on the device.
    """

    def __init__(self, layer: SymbolLayer, device: torch.device, kernels: ModuleType) -> None:
        self._layer = layer
        self._kernels = kernels
        self.forms = {_NUMBER[form.family, form.first, form.second]: form for form in forms_of(layer.operators)}
        if 1 in self.forms:
            self.forms[_EXCHANGED] = self.forms[1]
        self.unary = [block for block in layer.blocks if block.operator.arity == 1]
        width = max([1, *(len(form.ways) for form in self.forms.values())])
        # Sign of v_i, sign of v_j, exchanged, complexity, first number, squared, commutative, whether there is a way.
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
        self.coded = kernels.has_codes(block.operator for block in self.unary)
        unary = [(b.start, b.operator.complexity, b.operator.kernel or 0) for b in self.unary]
        self._unary = torch.tensor(unary or [(0, 0, 0)], dtype=torch.int64, device=device)

    def reachable(self) -> Tensor:
        """(4, 8) bool on the CPU: whether each form can be written.

        Axis 0: bit 2 is set if v_i has both signs, bit 1 if v_j has.
        """
        out = torch.zeros(4, FORMS, dtype=torch.bool)
        for signs in range(4):
            for number, form in self.forms.items():
                has = bool(signs & 2), bool(signs & 1)
                out[signs, number] = form.reachable(*(has[::-1] if number == _EXCHANGED else has))
        return out

    def families(self) -> list[Family]:
        """The families that the operators can write, in the order of `Family`."""
        return [family for family in Family if any(form.family is family for form in self.forms.values())]

    def numbers(self, codes: Tensor, bank: DeviceBank) -> Tensor:
        """The number (int64) of the simplest way to write each of `codes` (int64); NONE if there is no way."""
        numbers = torch.empty_like(codes)
        self._kernels.number_candidates[(-(-len(codes) // _CODES),)](
            codes, len(codes), *self._ways(bank), len(bank.values), self._layer.width, numbers, **self._tile
        )
        return numbers

    def pack(self, codes: Tensor, losses: Tensor, count: Tensor, bank: DeviceBank) -> Tensor:
        """(len(codes) + 1, 3 + rows) float64: first `count`, then loss, complexity, number and values of each code."""
        columns, rows = bank.values.shape
        packed = torch.empty(len(codes) + 1, 3 + rows, dtype=torch.float64, device=codes.device)
        self._kernels.pack_candidates[(-(-len(codes) // _CODES),)](
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
        """Add to `losses` (m,) float64 the losses of the first m codes on other rows: y, weight (rows,).

        `outputs` (raw width, rows) float64: all outputs of the last layer but one, which `bank.stand_in` indexes.
        """
        self._kernels.candidate_losses[(min(_JUDGE_PROGRAMS, max(1, len(losses))),)](
            codes, len(losses), self._unary, bank.plus, bank.stand_in, outputs, len(y), len(bank.values), y, weight,
            losses, BK=1024,
        )  # fmt: skip

    def unary_losses(self, bank: DeviceBank, y: Tensor, weight: Tensor) -> Tensor:
        """The losses (operators, 2, columns) float64 of u(v) and u(-v) for every column; inf if it does not exist."""
        columns, rows = bank.values.shape
        if not self.coded:
            return self._unary_losses_by_torch(bank, y, weight)
        losses = torch.empty(len(self.unary), 2, columns, dtype=torch.float64, device=y.device)
        self._kernels.unary_losses[(columns // _UNARY_COLUMNS, len(self.unary))](
            bank.values, rows, columns, y, weight, bank.plus, bank.minus, self._unary, losses, SIZE=_UNARY_COLUMNS, BK=4
        )
        return losses

    def _unary_losses_by_torch(self, bank: DeviceBank, y: Tensor, weight: Tensor) -> Tensor:
        columns, rows = bank.values.shape
        step = max(_CODES, _TORCH_VALUES // rows)
        parts = []
        for start in range(0, columns, step):
            signed = torch.stack([bank.values[start : start + step], -bank.values[start : start + step]])
            values = torch.stack([strict_function(block.operator)(signed, None) for block in self.unary])
            parts.append(values.sub_(y).square_() @ weight)
        losses = torch.cat(parts, dim=2)
        exists = torch.stack([bank.plus != NO_EXPRESSION, bank.minus != NO_EXPRESSION])
        return torch.where(exists, losses, float("inf")).nan_to_num_(nan=float("inf"))

    @property
    def _tile(self) -> dict[str, int]:
        return {"WAYS": self._table.shape[1], "SIZE": _CODES}

    def _ways(self, bank: DeviceBank) -> tuple[Tensor, ...]:
        return self._table, self._unary, bank.plus, bank.minus, bank.plus_complexity, bank.minus_complexity


class SideStreams:
    """`count` CUDA streams for kernels that need not wait for each other; on the CPU, under Triton's interpreter, none.

    Nothing may be allocated inside: memory belongs to the stream that it was allocated on.
    """

    def __init__(self, device: torch.device, count: int) -> None:
        on_gpu = device.type == "cuda"
        self._streams = [torch.cuda.Stream(device) for _ in range(count if on_gpu else 0)]  # type: ignore[no-untyped-call]
        self._busy: list[torch.cuda.Stream] = []

    @contextmanager
    def one(self, place: int) -> Iterator[None]:
        """Inside, launches go to the stream of that place, and wait for what was launched before it."""
        if not self._streams:
            yield
            return
        stream = self._streams[place]
        stream.wait_stream(torch.cuda.current_stream())
        self._busy.append(stream)
        with torch.cuda.stream(stream):
            yield

    def join(self) -> None:
        """Let the current stream wait for all that was launched on the side streams."""
        for stream in self._busy:
            torch.cuda.current_stream().wait_stream(stream)
        self._busy.clear()
