"""The best pairs a·v_i·w_j + b on a GPU: bounds of all units on the tensor cores, then exact losses of what is left.

The ladder is that of `enumeration.backends.device_scan`: TF32 bounds with certified margins, a limit from the best
units, double precision for the units below it, and the heads' own exact residuals for the pairs below it. So the result
is that of a scan in exact arithmetic, up to ties.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from symenum.enumeration.backends.device_scan import load_kernels
from symenum.enumeration.budget import Budget

__all__ = ["AffineProductScan"]

BLOCK = 64  # columns of a unit; three accumulators of a tile must stay in registers
UNITS = 1 << 27  # at a time: 512 MB of bounds, and as much for the list of those that are left
CAPACITY = 1 << 20
_TILE = {"ROWS": 64, "STEP": 16, "num_warps": 4, "num_stages": 2}
_PROGRAMS = 2048
_ADDITION = 2.0**-23
_ROUNDING = 2.0**-10 * 1.01

Exact = Callable[[Tensor, Tensor], Tensor]


class AffineProductScan:
    """All pairs of V (N, n) and W (M, n), t (n,) weighted, centred, of unit norm, root (n,): float64 on one GPU."""

    def __init__(self, V: Tensor, W: Tensor, target: Tensor, root: Tensor, *, same: bool) -> None:
        from symenum.heads import pair_kernels  # Triton is not everywhere

        self._kernels = pair_kernels
        self._list = load_kernels()[0].list_units
        self._same = same
        self._samples = V.shape[1]
        device = V.device
        # R² does not see the scale of a row; with a largest value of 1 no square leaves the range.
        tiny = torch.finfo(torch.float64).tiny
        V, W = (_padded(rows / rows.abs().amax(dim=1, keepdim=True).clamp_min(tiny)) for rows in (V, W))
        self._rows, self._columns = len(V), len(W)
        self._blocks = len(W) // BLOCK
        self._weight, self._target = root.square(), target * root
        self._K, self._part = _inner(self._samples)
        self._factors = [
            _tf32(part, self._K)
            for part in (V * self._weight, V * self._target, V.square() * self._weight, W, W.square())
        ]
        self._left, self._right = V.T.contiguous(), W.T.contiguous()
        gamma = _ROUNDING + (1.25 * self._K + 16) * _ADDITION
        self._share = 7 * gamma + 2.0**-18
        self._slack = 8 * (self._samples + 12) * 2.0**-53
        tiles = max(1, UNITS // (self._blocks * _TILE["ROWS"]))
        self._strip_rows = min(tiles * _TILE["ROWS"], self._rows)
        self.strips = range(0, self._rows, self._strip_rows)
        self._units = torch.empty(self._strip_rows * self._blocks, device=device)
        self._found = torch.empty(len(self._units), dtype=torch.int32, device=device)
        self._count, self._out_count, self._zero = torch.zeros(3, 1, dtype=torch.int32, device=device)
        self._out_loss = torch.empty(CAPACITY, dtype=torch.float64, device=device)
        self._out_code = torch.empty(CAPACITY, dtype=torch.int64, device=device)
        self._one = torch.ones(1, dtype=torch.float64, device=device)
        self.limit = torch.full((1,), float("inf"), dtype=torch.float64, device=device)

    def best(self, exact: Exact, width: int, *, diagonal: bool, budget: Budget) -> tuple[Tensor, Tensor]:
        """Indices (m,) int64 of the `width` pairs of smallest exact(i, j); i ≤ j, or i < j without the diagonal."""
        best = _Best(width, self.limit)
        for strip in self.strips:
            if budget.over():
                break
            self.bounds(strip)
            if not best.full:
                chosen = _lowest_of_groups(self._units, min(len(self._units), max(4096, 4 * width)))
                self._evaluate(chosen, 0, len(chosen), strip, diagonal, best=True)
                best.add(exact, self._out_code[: len(chosen)], self._out_loss[: len(chosen)], self._columns)
            self._count.zero_()
            size = 1024
            self._list[(-(-len(self._units) // size),)](
                self._units, len(self._units), self.limit, self._one, self._found, self._count, SIZE=size
            )
            pieces = [(0, int(self._count))]
            while pieces:
                begin, end = pieces.pop()
                self._out_count.zero_()
                self._evaluate(self._found, begin, end, strip, diagonal, best=False)
                count = int(self._out_count)
                written = min(count, CAPACITY)
                best.add(exact, self._out_code[:written], self._out_loss[:written], self._columns)
                if count > CAPACITY:
                    middle = (begin + end) // 2
                    pieces += [(begin, middle), (middle, end)]
        return best.codes // self._columns, best.codes % self._columns

    def bounds(self, strip: int) -> Tensor:
        """Lower bounds of 1 - R² of the units of a strip, (units,) float32."""
        self._units.fill_(float("inf"))
        rows = min(self._strip_rows, self._rows - strip)
        grid = (self._blocks, -(-rows // (_TILE["ROWS"] * _TILE["STEP"])))
        self._kernels.affine_bounds[grid](
            *self._factors, self._units, strip, rows, self._blocks, self._rows, self._columns, self._share,
            SYMMETRIC=self._same, K=self._K, BK=self._part, COLUMNS=BLOCK, **_TILE,
        )  # fmt: skip
        return self._units

    def _evaluate(self, found: Tensor, begin: int, end: int, strip: int, diagonal: bool, *, best: bool) -> None:
        ends = torch.tensor([[begin], [end]], dtype=torch.int32, device=found.device)
        self._kernels.affine_units[(_PROGRAMS,)](
            found, ends[0], ends[1], self._left, self._right, self._weight, self._target, self._samples, strip,
            self._blocks, self._rows, self._columns, self.limit, self._slack, self._out_loss, self._out_code,
            self._out_count, CAPACITY, COLUMNS=BLOCK, BEST=best, DIAGONAL=diagonal, SYMMETRIC=self._same,
        )  # fmt: skip


class _Best:
    """The codes of the `width` pairs of smallest loss; `limit` (1,) on the device falls with them."""

    def __init__(self, width: int, limit: Tensor) -> None:
        self._width, self._limit = width, limit
        self.codes = torch.empty(0, dtype=torch.int64, device=limit.device)
        self._loss = torch.empty(0, dtype=torch.float64, device=limit.device)

    @property
    def full(self) -> bool:
        """Whether there are `width` pairs, so that there is a limit."""
        return len(self._loss) == self._width

    def add(self, exact: Exact, codes: Tensor, losses: Tensor, columns: int) -> None:
        """Judge pairs exactly; `losses` say which of them do not exist (inf), and no more."""
        codes = codes[torch.isfinite(losses)]
        found = torch.cat([self._loss, exact(codes // columns, codes % columns)])
        codes, first = _unique(torch.cat([self.codes, codes]))
        loss, order = found[first].sort(stable=True)
        self._loss, self.codes = loss[: self._width], codes[order[: self._width]]
        if self.full:
            self._limit.copy_((self._loss[-1:] * (1 + 1e-9)).clamp_min(1e-30))


def _unique(codes: Tensor) -> tuple[Tensor, Tensor]:
    """The codes once each, and where."""
    codes, order = codes.sort()
    new = torch.nn.functional.pad(codes.diff() > 0, (1, 0), value=True)
    return codes[new], order[new]


def _lowest_of_groups(units: Tensor, groups: int) -> Tensor:
    """The number (int32) of the unit of lowest bound in each of some equal groups."""
    size = -(-len(units) // groups)
    whole = torch.nn.functional.pad(units, (0, -len(units) % size), value=float("inf")).view(-1, size)
    lowest = whole.argmin(dim=1) + torch.arange(len(whole), device=units.device) * size
    return lowest.clamp_(max=len(units) - 1).int()


def _inner(samples: int) -> tuple[int, int]:
    if samples <= 64:
        size = 16 if samples <= 16 else 32 if samples <= 32 else 64
        return size, size
    return -(-samples // 64) * 64, 64


def _padded(rows: Tensor) -> Tensor:
    return torch.nn.functional.pad(rows, (0, 0, 0, -len(rows) % 128)).contiguous()


def _tf32(values: Tensor, size: int) -> Tensor:
    """Rounded to the nearest TF32 number, as float32, and padded with zeros to (rows, size)."""
    rounded = ((values.float().view(torch.int32) + 0x1000) & -0x2000).view(torch.float32)
    return torch.nn.functional.pad(rounded, (0, size - values.shape[1])).contiguous()
