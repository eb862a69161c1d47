"""The paper's ablations: those that compare variants of symenum are benches with variants for systems.

Those that measure the engine are in `engine_ablation`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from symenum.heads.all_heads import AllHeads
from symenum.problems import get_problem

__all__ = ["VARIANTS", "Variants", "head_stages"]

_SIX = ("nguyen", "nguyen_c", "r", "r_star", "livermore", "feynman")


@dataclass(frozen=True)
class Variants:
    """What is compared on which sets, in words and as systems; `deep` are our own problems that need tokens."""

    title: str
    sets: tuple[str, ...]
    systems: tuple[str, ...]


def head_stages() -> tuple[str, ...]:
    """The names of the heads' stages on the raw variables, the same for all problems of few variables."""
    import torch

    from symenum.enumeration.target import check_target
    from symenum.search import Settings, make_task

    problem = get_problem("Nguyen-9")
    X, y = problem.sample()
    target, _ = check_target(y, None, len(X))
    heads: AllHeads = make_task(problem.variables, torch.tensor(X), target, Settings()).heads
    return tuple(stage.name for stage in heads.on_target())


def _generators() -> Variants:
    return Variants(
        "token generators: GP, MCTS, random, none",
        (*_SIX, "deep"),
        tuple(f"symenum:generator={name}" for name in ("gp", "mcts", "random", "none")),
    )


def _constants() -> Variants:
    return Variants(
        "the range of token constants",
        ("nguyen_c",),
        tuple(f"symenum:range={span}" for span in ("-1..1", "-3..3", "-10..10")),
    )


def _heads() -> Variants:
    return Variants(
        "each head left out on the raw variables",
        _SIX,
        ("symenum", *(f"symenum:without={name}" for name in head_stages())),
    )


VARIANTS: Mapping[str, Callable[[], Variants]] = {"generators": _generators, "constants": _constants, "heads": _heads}
"""The ablations that are benches, by name."""
