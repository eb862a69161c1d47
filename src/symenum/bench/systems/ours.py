"""symenum itself, with its defaults, or with parts of it changed or left out for ablations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from symenum.bench.problems.problem import Array
from symenum.bench.systems.base import Found, Law, variable_names
from symenum.core.budget import NO_LIMIT, Budget
from symenum.core.target import check_target
from symenum.expressions import Expression
from symenum.heads.stages import STAGE_NAMES
from symenum.operators import get_operators
from symenum.search import Settings, make_task, run
from symenum.tokens import ScoredExpression, TokenContext

__all__ = ["Symenum"]


@dataclass(frozen=True)
class Symenum:
    """A configuration of symenum: `generator` is "gp", "mcts", "random" or "none" (no tokens).

    `constant_range` is that of token constants, `without` the stage of the heads that is left out everywhere ("" for
    none), `selection` the rule by which a law of the front is chosen.
    """

    generator: str = "gp"
    constant_range: tuple[float, float] = (-3.0, 3.0)
    without: str = ""
    selection: str = "best"

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Symenum:
        """The configuration of options such as generator=mcts, range=-1..1, without=two terms, selection=mdl."""
        known = {"generator", "range", "without", "selection"}
        unknown = sorted(set(options) - known)
        if unknown:
            raise ValueError(f"symenum has no option {unknown[0]!r}; known: {', '.join(sorted(known))}")
        span = options.get("range", "-3..3").split("..")
        if len(span) != 2:
            raise ValueError(f"range must be two numbers such as -3..3, not {options['range']!r}")
        without = options.get("without", "")
        if without and without not in STAGE_NAMES:
            names = ", ".join(STAGE_NAMES)
            raise ValueError(f"without must be a stage of the heads, one of {names}; not {without!r}")
        return cls(
            options.get("generator", cls.generator),
            (float(span[0]), float(span[1])),
            without,
            options.get("selection", cls.selection),
        )

    def fit(self, X: Array, y: Array, *, operators: Sequence[str], seed: int, max_time: float, cores: int) -> Found:
        """See `System`; the search is that of `PSERegressor`."""
        settings = Settings(
            operators=get_operators(operators),
            token_generator=self.generator if self.generator != "none" else "random",
            constant_range=self.constant_range,
            threads=cores,
            leave_out=(self.without,) if self.without else (),
        )
        target, rows = check_target(np.asarray(y, dtype=np.float64), None, len(X))
        task = make_task(variable_names(X.shape[1]), torch.tensor(X)[rows], target, settings)
        if self.generator == "none":
            task = replace(task, generator=_NoTokens())
        outcome = run(task, seed, max_time=max_time)
        front = outcome.front
        laws = tuple(Law(str(entry.expression), entry.complexity, entry.loss) for entry in front)
        return Found(laws, front.select(self.selection), outcome.reason)


class _NoTokens:
    """The token generator that proposes no tokens: slots hold variables and constants only."""

    name = "none"

    def start(self, context: TokenContext) -> None:
        return None

    def propose(
        self, context: TokenContext, state: None, count: int, rng: np.random.Generator, budget: Budget = NO_LIMIT
    ) -> tuple[tuple[Expression, ...], None]:
        return (), None

    def learn(self, context: TokenContext, state: None, reward: float, front: Sequence[ScoredExpression]) -> None:
        return None
