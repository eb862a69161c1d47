"""psrn: the public package of the paper's authors, as its documentation drives it. Made for a large GPU."""

from __future__ import annotations

import contextlib
import io
import random
from collections.abc import Sequence

from symenum.bench.problems.problem import Array, rename
from symenum.bench.systems.base import Found, NotInstalledError, as_laws
from symenum.expressions import Expression, parse

__all__ = ["Psrn"]

_NAMES = {
    "+": "Add",
    "*": "Mul",
    "-": "Sub",
    "/": "Div",
    "semisub": "SemiSub",
    "semidiv": "SemiDiv",
    "identity": "Identity",
}
_GPU_INPUTS, _CPU_INPUTS = 5, 3  # koza on 5 inputs needs 46 GB there, and minutes for one pass on a CPU
_ROWS = 100  # its `n_down_sample` in the authors' examples


class Psrn:
    """Its defaults with constants on; on a CPU with three inputs, since more would not get through one pass."""

    def fit(self, X: Array, y: Array, *, operators: Sequence[str], seed: int, max_time: float, cores: int) -> Found:
        try:
            import numpy
            import torch
            from psrn import PSRN_Regressor
        except ImportError as error:
            raise NotInstalledError("psrn is not installed: pip install psrn") from error
        random.seed(seed)
        numpy.random.seed(seed)  # it has no seed of its own
        torch.manual_seed(seed)
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        words = [_NAMES.get(sign, sign.capitalize()) for sign in operators]
        wide = X.shape[1]
        stage = {
            "operators": words,
            "time_limit": max_time,
            "n_psrn_inputs": _GPU_INPUTS if device.type == "cuda" else _CPU_INPUTS,
            "n_sample_variables": min(wide, 2),
        }
        with contextlib.redirect_stdout(io.StringIO()):  # it prints every candidate
            model = PSRN_Regressor(
                variables=[f"x{i}" for i in range(wide)],
                use_const=True,
                device=device,
                token_generator_config={"base": {"has_const": True, "tokens": words}},
                stage_config={"default": stage, "stages": [{}]},
            )
            exact, front = model.fit(X, y[:, None], n_down_sample=_ROWS)
        names = {f"x{i}": f"x{i + 1}" for i in range(wide)}
        laws = as_laws((_read(str(entry[0]), names) for entry in front), X, y)
        return Found(laws, len(laws) - 1, "a law within its threshold was found" if exact else "its time was over")


def _read(text: str, names: dict[str, str]) -> Expression:
    return parse(rename(text, {**names, "Abs": "abs"}))
