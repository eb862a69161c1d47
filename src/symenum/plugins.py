"""Registration of heads, token generators and losses from outside the package.

Each part is tried on a table of 16 rows before it is accepted, so that a mistake shows where the part is registered
and not in the middle of a search. A registration holds for this process; `symenum --plugin MODULE` makes one for a
command. Operators need none: `PSERegressor(operators=…)` takes what `make_operator` makes. Rivals and problem sets are
registered with `symenum.bench`.
"""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any, get_args

import numpy as np
import torch

from symenum.core.budget import Budget
from symenum.core.registration import check_attributes, check_methods, check_name
from symenum.core.target import Target
from symenum.expressions import Apply, Constant, Variable, evaluate
from symenum.fitting.losses import LOSSES, Custom, Loss, make_loss
from symenum.heads.head import HEADS, Head, RegisteredHead, WantedFeatures
from symenum.heads.response import Data, make_data
from symenum.heads.stages import AllHeads
from symenum.operators import get_operators
from symenum.search.checkpoint import packed, unpacked
from symenum.search.moves import MOVES
from symenum.tokens import GENERATORS, STATES, ScoredExpression, TokenContext, TokenGenerator

__all__ = ["register_generator", "register_head", "register_loss"]

_ROWS = 16  # rows of the small table: enough for every head, and a scan takes milliseconds
_CANDIDATES = 3  # that a head is asked for: more than one, so that their order matters
_TOKENS = 2  # that a generator is asked for; the operators of the small problem can build many more
_MAX_TRIAL = 5.0  # seconds that a head or generator has for the small table: far more than a step of a search
# Largest relative difference between a candidate's loss and that of the expression it prints. Another order of
# summation changes it by far less, another expression by far more.
_SAME_LOSS = 1e-6


def register_head(head: Head, *, features: WantedFeatures = "slots", late: bool = False) -> None:
    """Make a head a move of its own in every search that begins afterwards, and a stage of `first_pass`.

    `features`: what its `scan` gets as features. "slots": the variables only; "layers": all expressions of two layers;
    "extended": those, and each unary operator on each of them. Its scan is one turn, which counts as 0.05 s of work;
    with `late`, for a head that takes seconds, as 5 s. The cheap moves come first.
    """
    check_attributes("a head", head, ("name",))
    problem = _small_problem()
    heads = AllHeads(problem, get_operators("koza"), _CANDIDATES, registered=())
    check_name("head", head.name, {*heads.stage_names, *MOVES, *HEADS})
    what = f"the head {head.name!r}"
    check_methods(what, head, {"scan": ("features", "response", "k", "budget")})
    if features not in get_args(WantedFeatures):
        raise ValueError(
            f"features of {what} must be one of {', '.join(map(repr, get_args(WantedFeatures)))}, not {features!r}"
        )
    made = RegisteredHead(head, features, bool(late))
    make_features = {"slots": lambda: heads.slot_features, "layers": heads.features, "extended": heads.extended}
    trial_features = make_features[features]()
    for candidate in made.scan(trial_features, heads.response, _CANDIDATES, Budget(_MAX_TRIAL)):
        judged = problem.candidate(candidate.expression)
        if judged is None or not math.isclose(judged.loss, candidate.loss, rel_tol=_SAME_LOSS, abs_tol=_SAME_LOSS):
            loss = "no finite one" if judged is None else f"{judged.loss:g}"
            raise ValueError(
                f"{what} gives {candidate.expression} the loss {candidate.loss:g}, and on the same rows it has {loss}: "
                "make candidates with response.fit or response.candidate"
            )
    HEADS[head.name] = made


def register_generator(generator: TokenGenerator[Any]) -> None:
    """Make a token generator one of the names of `PSERegressor(token_generator=…)`.

    It has a `name` and the methods of `TokenGenerator`. Its state must be a frozen dataclass of numbers, text,
    expressions, tuples and such dataclasses, with annotated types, so that a checkpoint can hold it and read it back.
    """
    check_attributes("a token generator", generator, ("name",))
    name = check_name("token generator", generator.name, GENERATORS)
    what = f"the token generator {name!r}"
    methods = {
        "start": ("context",),
        "propose": ("context", "state", "count", "rng", "budget"),
        "learn": ("context", "state", "reward", "front"),
    }
    check_methods(what, generator, methods)
    problem = _small_problem()
    target = problem.target
    context = TokenContext(get_operators("koza"), problem.columns, target.y, target.weight, (-3.0, 3.0))
    try:
        first = generator.start(context)
        proposed = generator.propose(context, first, _TOKENS, np.random.default_rng(0), Budget(_MAX_TRIAL))
        again = generator.propose(context, first, _TOKENS, np.random.default_rng(0), Budget(_MAX_TRIAL))
    except Exception as error:
        raise ValueError(f"{what} failed on a small table: {type(error).__name__}: {error}") from error
    if not isinstance(proposed, tuple) or len(proposed) != 2 or not isinstance(proposed[0], tuple):
        raise TypeError(f"propose of {what} must return (tuple of expressions, state), not {proposed!r:.80}")
    tokens, state = proposed
    _check_tokens(what, tokens, context)
    if proposed != again:
        raise ValueError(f"{what} proposes other tokens for the same state and seed: take all random numbers from rng")
    front = (ScoredExpression(Variable("x1"), 0.5),)
    try:
        learned = generator.learn(context, state, 0.5, front)
    except Exception as error:
        raise ValueError(f"learn of {what} failed on a small table: {type(error).__name__}: {error}") from error
    for method, one in (("start", first), ("propose", state), ("learn", learned)):
        _check_state(f"{method} of {what}", one, type(first))
    GENERATORS[name] = generator
    STATES[name] = type(first)


def register_loss(name: str, loss: object) -> None:
    """Make a loss one of the names of `PSERegressor(loss=…)` and `symenum fit --loss`.

    `loss`: an object with the methods of `symenum.fitting.losses.Loss` (derive its class from `RowLoss`), or a callable
    of (y, prediction) or (y, prediction, weights) that gives one number.
    """
    check_name("loss", name, LOSSES)
    if isinstance(loss, str):
        raise TypeError(f"loss {name!r} must be an object or a callable, not the text {loss!r}")
    try:
        made = make_loss(loss, _small_problem().target)
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"loss {name!r}: {error}") from error
    except Exception as error:  # what a callable of the user's raises
        raise ValueError(f"loss {name!r} failed on a small table: {type(error).__name__}: {error}") from error
    renamed: Loss = dataclasses.replace(made, name=name) if isinstance(made, Custom) else made
    LOSSES[name] = lambda target: renamed


def _small_problem() -> Data:
    """Two variables, 16 rows of equal weight, and y = 2·x1 + x2², which is neither zero nor constant."""
    generator = torch.Generator().manual_seed(0)  # fixed: whether a plug-in is accepted must not depend on chance
    values = torch.rand(2, _ROWS, generator=generator, dtype=torch.float64) + 0.5
    y = 2 * values[0] + values[1].square()
    target = Target(y, torch.full_like(y, 1 / _ROWS))
    return make_data([Variable("x1"), Variable("x2")], values, target, _ROWS)


def _is_frozen(kind: Any) -> bool:
    return bool(kind.__dataclass_params__.frozen)


def _check_tokens(what: str, tokens: tuple[Any, ...], context: TokenContext) -> None:
    for token in tokens:
        if not isinstance(token, (Variable, Constant, Apply)):
            raise TypeError(f"propose of {what} must give expressions, not {token!r:.80}")
        if not isinstance(token, Apply) or not bool(torch.isfinite(evaluate(token, context.columns)).all()):
            raise ValueError(f"{what} proposes {token}: a token has an operator, and is finite on every row")
    if len(tokens) > _TOKENS or len(set(tokens)) < len(tokens):
        raise ValueError(f"{what} was asked for {_TOKENS} different tokens and proposes {', '.join(map(str, tokens))}")


def _check_state(where: str, state: object, kind: type) -> None:
    """Refuse a state that no checkpoint could hold, or that does not equal what is read back."""
    if type(state) is not kind:
        raise TypeError(f"{where} returned a state of type {type(state).__name__}, and start one of {kind.__name__}")
    if not dataclasses.is_dataclass(kind) or not _is_frozen(kind):
        raise TypeError(f"{where} must return a state that is a frozen dataclass, not {kind.__name__}")
    try:
        back = unpacked(kind, json.loads(json.dumps(packed(state), allow_nan=False)))
    except (TypeError, ValueError, NameError) as error:
        raise TypeError(f"the state that {where} returned cannot be kept in a checkpoint: {error}") from error
    if back != state:
        raise ValueError(f"the state that {where} returned is read back from a checkpoint as another: {back!r:.80}")
