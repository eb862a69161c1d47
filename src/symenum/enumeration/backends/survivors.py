"""From the codes of pairs that a device found to candidates: numbers, complexities and values, by fixed operations."""

from __future__ import annotations

from types import ModuleType

import torch
from torch import Tensor

from symenum.enumeration.backends.device_bank import DeviceBank, strict_function
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
_SIZE = 32  # codes of a program


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
        starts = {block.operator.name: block.start for block in layer.blocks}
        for number, form in self.forms.items():
            for place, way in enumerate(form.ways):
                operator = way.operator
                fields = (
                    way.first_sign,
                    way.second_sign,
                    way.exchanged,
                    operator.complexity,
                    starts[operator.name],
                    operator.kind is Kind.SQUARED,
                    operator.commutative,
                    True,
                )
                table[number, place] = torch.tensor([int(field) for field in fields])
        self._table = table.to(device)
        unary = [(block.start, block.operator.complexity) for block in self.unary] or [(0, 0)]
        self._unary = torch.tensor(unary, dtype=torch.int64, device=device)

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

    def write(self, codes: Tensor, bank: DeviceBank) -> tuple[Tensor, Tensor]:
        """Number and complexity (int64) of the simplest way to write each of `codes` (int64); NONE: there is none."""
        number, complexity = torch.empty(2, len(codes), dtype=torch.int64, device=codes.device)
        self._launch(codes, bank, number, complexity, bank.values, number, values=False)
        return number, complexity

    def finds(self, codes: Tensor, bank: DeviceBank) -> tuple[Tensor, Tensor, Tensor]:
        """Numbers and complexities as `write`, and the values (len(codes), rows) float64."""
        number, complexity = torch.empty(2, len(codes), dtype=torch.int64, device=codes.device)
        values = torch.empty(len(codes), bank.values.shape[1], dtype=torch.float64, device=codes.device)
        forms = torch.empty(len(codes), dtype=torch.int32, device=codes.device)
        self._launch(codes, bank, number, complexity, values, forms, values=True)
        operands = values
        for place, block in enumerate(self.unary):
            applied = strict_function(block.operator)(operands, None)
            values = torch.where((forms == FORMS + place)[:, None], applied, values)
        return number, complexity, values

    def _launch(
        self,
        codes: Tensor,
        bank: DeviceBank,
        number: Tensor,
        complexity: Tensor,
        out: Tensor,
        forms: Tensor,
        *,
        values: bool,
    ) -> None:
        columns, rows = bank.values.shape
        self._kernels.write_candidates[(-(-len(codes) // _SIZE),)](
            codes, len(codes), self._table, self._unary, bank.plus, bank.minus, bank.plus_complexity,
            bank.minus_complexity, bank.values, rows, columns, self._layer.width, number, complexity, out, forms,
            WAYS=self._table.shape[1], SIZE=_SIZE, VALUES=values, BK=32,
        )  # fmt: skip
