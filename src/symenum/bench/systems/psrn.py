"""psrn: the public package of the paper's authors, used as in its documentation. It is made for a large GPU."""

from __future__ import annotations

import contextlib
import io
import random
from collections.abc import Sequence

from symenum.bench.problems.problem import Array, rename
from symenum.bench.systems.base import Found, NotInstalledError, as_laws
from symenum.expressions import parse

__all__ = ["Psrn"]

_OPERATOR_NAMES = {
    "+": "Add",
    "*": "Mul",
    "-": "Sub",
    "/": "Div",
    "semisub": "SemiSub",
    "semidiv": "SemiDiv",
    "identity": "Identity",
}
_GPU_INPUTS = 5  # slots of its network: koza on 5 takes 46 GB of GPU memory
_CPU_INPUTS = 3  # with more, one pass takes minutes on a CPU
_ROWS = 100  # rows that it uses: `n_down_sample` of the authors' examples


class Psrn:
    """Its defaults with constants on; on a CPU with three slots instead of five, so that a pass ends in time."""

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
        names = [_OPERATOR_NAMES.get(sign, sign.capitalize()) for sign in operators]
        inputs = X.shape[1]
        stage = {
            "operators": names,
            "time_limit": max_time,
            "n_psrn_inputs": _GPU_INPUTS if device.type == "cuda" else _CPU_INPUTS,
            "n_sample_variables": min(inputs, 2),
        }
        with contextlib.redirect_stdout(io.StringIO()):  # it prints every candidate
            model = PSRN_Regressor(
                variables=[f"x{i}" for i in range(inputs)],
                use_const=True,
                device=device,
                token_generator_config={"base": {"has_const": True, "tokens": names}},
                stage_config={"default": stage, "stages": [{}]},
            )
            exact, front = model.fit(X, y[:, None], n_down_sample=_ROWS)
        renamed = {**{f"x{i}": f"x{i + 1}" for i in range(inputs)}, "Abs": "abs"}
        laws = as_laws((parse(rename(str(entry[0]), renamed)) for entry in front), X, y)
        return Found(laws, len(laws) - 1, "a law within its threshold was found" if exact else "its time was over")
