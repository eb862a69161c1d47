"""Products of powers, fitted on logarithms."""

from __future__ import annotations

import pytest
import torch

from symenum.heads.product_of_powers import damped


@pytest.mark.parametrize("unit", [1e-300, 1e-90, 1.0, 1e304])
def test_the_weights_of_rows_do_not_depend_on_the_unit_of_y(unit: float) -> None:
    t = torch.tensor([0.001, -0.5, 1.0, 2.0, 1000.0], dtype=torch.float64)
    assert damped(t * unit).tolist() == pytest.approx([1e-3, 0.25, 1.0, 4.0, 1e3])
