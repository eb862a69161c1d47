"""One law in full, for the page: source code, constants with errors and sliders, parts, and other constants tried.

A law is known by its run, its state (laws of motion) and its place on the front. Its text comes from a file, so it is
read by our own parser, and what it computes is what the parser made of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from symenum.core.exactness import overflow_allowed
from symenum.core.threads import single_threaded
from symenum.display.table import short_text
from symenum.expressions import (
    Constant,
    Expression,
    Variable,
    apply,
    evaluate,
    parse,
    simplify,
    to_c,
    to_latex,
    to_numpy_source,
    to_python,
    to_sympy,
    variables,
    written,
)
from symenum.expressions.algebra import Product, as_product, as_sum
from symenum.expressions.render import SHOWN_DIGITS
from symenum.fitting.free_constants import free_constants, free_leaves, with_constants, with_leaves
from symenum.run_directory import LawRecord, Run, TargetFront
from symenum.studio.answers import RequestError
from symenum.studio.law_rows import LawRows

__all__ = ["ChosenLaw", "choose_law", "details", "try_constants"]

_TAKEN_OUT, _HELD = "taken out", "held at its median"
_SLIDER_ERRORS = 5.0  # standard errors to each side that a slider reaches at least


@dataclass(frozen=True)
class ChosenLaw:
    """A law of a run: as the front has it, as people write it, and with which names in formulas."""

    run: Run
    front: TargetFront
    index: int
    record: LawRecord
    expression: Expression

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.run.variables)

    def column(self, name: str) -> str:
        """What the table calls a variable."""
        return next((one.column for one in self.run.variables if one.name == name), name)

    def with_values(self, constants: Sequence[float] | None) -> Expression:
        """The law with other constants, from left to right; None: its own."""
        if constants is None:
            return self.expression
        wanted = len(free_leaves(self.expression))
        if len(constants) != wanted:
            raise RequestError(
                422,
                f"The law has {wanted} constants, and {len(constants)} came: the front has changed, reload the law.",
            )
        return with_constants(self.expression, constants)


def choose_law(run: Run, state: str | None, index: int) -> ChosenLaw:
    """The law at this place of the front; RequestError where there is none, or where it cannot be read."""
    fronts = [one for one in run.fronts if state is None or one.target == state]
    if not fronts:
        raise RequestError(404, f"There is no state {str(state)[:60]!r} in this run: choose one of its states.")
    front = fronts[0]
    if index >= len(front.laws):
        raise RequestError(404, f"There is no law {index} on the front any more: it has {len(front.laws)} laws.")
    record, named = front.laws[index], run.settings.get("constants")
    try:
        law = written(parse(record.equation, constants=named if isinstance(named, dict) else None))
    except (ValueError, TypeError, RecursionError) as error:
        raise RequestError(
            409, f"This law cannot be read here ({error}). If it has operators of your own, look at it in Python."
        ) from error
    unknown = set(variables(law)) - {one.name for one in run.variables}
    if unknown:
        raise RequestError(409, f"front.json is damaged: {sorted(unknown)[0][:60]!r} is no variable of this run.")
    return ChosenLaw(run, front, index, record, law)


@overflow_allowed()
def details(law: ChosenLaw, rows: LawRows) -> dict[str, Any]:
    """All that the page shows of a law besides its plots."""
    with single_threaded():
        return {
            "index": law.index,
            **_words(law.expression),
            "loss": law.record.loss,
            "complexity": law.record.complexity,
            "r2": _r_squared(rows, law.expression),
            "code": _code(law),
            "constants": _constants(law.expression, rows),
            "parts": _parts(law.expression, rows),
        }


@overflow_allowed()
def try_constants(law: ChosenLaw, rows: LawRows, constants: Sequence[float], fit: bool) -> dict[str, Any]:
    """The law with other constants; with `fit` those of least loss near them.

    A whole number that was not moved stays: 2 in x**3/2 was recognised, not fitted.
    """
    with single_threaded():
        tried = law.with_values(constants)
        if fit:
            tried = law.with_values(_fitted(law.expression, rows, constants))
        return {
            "constants": list(free_constants(tried)),
            **_words(tried),
            "loss": rows.loss(tried),
            "r2": _r_squared(rows, tried),
        }


def _fitted(law: Expression, rows: LawRows, constants: Sequence[float]) -> list[float]:
    leaves = free_leaves(law)
    moving = {
        f"constant{i}_": value
        for i, (leaf, value) in enumerate(zip(leaves, constants, strict=True))
        if not isinstance(leaf.value, int) or value != leaf.value
    }
    form = with_leaves(law, [_variable_or(leaf, f"constant{i}_", moving) for i, leaf in enumerate(leaves)])
    found = rows.fit(form, moving) if moving else {}
    return [found.get(f"constant{i}_", value) for i, value in enumerate(constants)]


def _variable_or(leaf: Constant, name: str, moving: Mapping[str, float]) -> Expression:
    return Variable(name) if name in moving else leaf


def _words(law: Expression) -> dict[str, str]:
    return {"text": short_text(law), "latex": to_latex(written(law), SHOWN_DIGITS)}


def _r_squared(rows: LawRows, law: Expression) -> float | None:
    return 1 - rows.mean_square(law) / rows.variance if rows.variance > 0 else None


def _code(law: ChosenLaw) -> dict[str, str]:
    """The law in several languages, with all digits but in LaTeX."""
    expression, names = law.expression, law.names
    return {
        "latex": to_latex(expression, SHOWN_DIGITS),
        "sympy": str(to_sympy(expression)),
        "python": to_python(expression, names),
        "numpy": to_numpy_source(expression, names),
        "c": to_c(expression, names),
    }


def _constants(law: Expression, rows: LawRows) -> list[dict[str, Any]]:
    """The numbers of the law; whole ones have no error, since they were recognised rather than fitted."""
    leaves = free_leaves(law)
    errors = iter(rows.errors(law)) if any(not isinstance(leaf.value, int) for leaf in leaves) else iter(())
    shown = []
    for place, leaf in enumerate(leaves):
        value = float(leaf.value)
        error = None if isinstance(leaf.value, int) else next(errors, None)
        reach = abs(value) or 1.0
        if error is not None and math.isfinite(error):
            reach = max(reach, _SLIDER_ERRORS * error)
        shown.append({"place": place, "value": value, "error": error, "low": value - reach, "high": value + reach})
    return shown


def _parts(law: Expression, rows: LawRows) -> list[dict[str, Any]]:
    """The terms of a sum, or the factors of a product, each with what the law loses without it."""
    whole = rows.mean_square(law)
    explained = rows.variance - whole
    shown = []
    for part, without, how in _each_part(simplify(law), rows):
        left = rows.mean_square(without)
        share = (left - whole) / explained if explained > 0 and math.isfinite(left) else None
        shown.append(
            {
                **_words(part),
                "how": how,
                "loss_without": rows.loss(without),
                "share": None if share is None else min(max(share, 0.0), 1.0),
            }
        )
    return shown


def _each_part(law: Expression, rows: LawRows) -> Iterator[tuple[Expression, Expression, str]]:
    """Each part, the law without it, and what that means; nothing for a law of one part."""
    total = as_sum(law)
    if len(total.terms) + (total.number != 0) > 1:
        for i, (added, term) in enumerate(total.terms):
            rest = replace(total, terms=(*total.terms[:i], *total.terms[i + 1 :]))
            yield term if added else apply("neg", term), rest.close(), _TAKEN_OUT
        if total.number != 0:
            yield Constant(total.number), replace(total, number=0).close(), _TAKEN_OUT
        return
    product = as_product(law)
    factors = [one for one in product.factors if variables(one)]
    divisors = [one for one in product.divisors if variables(one)]
    if len(factors) + len(divisors) < 2:
        return
    for one in factors:
        yield one, replace(product, factors=_held(product.factors, one, rows)).close(), _HELD
    for one in divisors:
        part = Product(1, 1, (), (one,)).close()
        yield part, replace(product, divisors=_held(product.divisors, one, rows)).close(), _HELD


def _held(factors: tuple[Expression, ...], one: Expression, rows: LawRows) -> tuple[Expression, ...]:
    """The factors with one of them as a number, its median on the rows; 1 where it has none."""
    middle = float(np.median(evaluate(one, rows.columns)))
    return tuple(Constant(middle if math.isfinite(middle) else 1.0) if each is one else each for each in factors)
