"""From the codes of pairs that a device found to candidates: numbers, complexities and values, by fixed operations."""

from __future__ import annotations

from types import ModuleType

import torch
from torch import Tensor

from symenum.enumeration.backends.device_bank import DeviceBank
from symenum.enumeration.backends.device_layers import strict_function
from symenum.enumeration.bank import NONE
from symenum.enumeration.forms import Family, forms_of
from symenum.enumeration.layer import SymbolLayer
from symenum.operators import Kind

__all__ = ["FORMS", "Writer"]

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
        from symenum.enumeration.backends.operator_kernels import has_codes  # Triton is not everywhere

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
