"""The symbolic verdict: what SymPy says. It may think for hours, so it is only ever asked in a process of its own.

See `judge`, which kills that process when its time is over.
"""

from __future__ import annotations

from decimal import Decimal

import sympy

from symenum.expressions import Apply, Constant, Expression, apply, fold, parse, to_sympy
from symenum.problems.problem import law_operators

__all__ = ["constant_apart_by_sympy", "equal_by_sympy"]


def equal_by_sympy(found: str, law: str, positive: bool) -> bool | None:
    """Whether SymPy takes both for one function of real (or positive) variables; None where it does not know."""
    difference = _exact(found, positive) - _exact(law, positive)
    if difference == 0 or sympy.expand(difference) == 0:
        return True
    answer = difference.equals(0)
    if answer is None and sympy.simplify(difference) == 0:
        return True
    return None if answer is None else bool(answer)


def constant_apart_by_sympy(found: str, law: str, positive: bool) -> bool | None:
    """SRBench's rule: found - law simplifies to a constant, or found/law to one; found itself must not be 0."""
    model, truth = _exact(found, positive), _exact(law, positive)
    if model == 0 or model.has(sympy.nan, sympy.zoo, sympy.oo):
        return False
    unknown = False
    for apart in (model / truth, model - truth):
        verdict = _constant(apart)
        if verdict:
            return True
        unknown = unknown or verdict is None
    return None if unknown else False


def _constant(expr: sympy.Expr) -> bool | None:
    """Whether an expression is a constant; the cheap questions first."""
    if not expr.free_symbols:
        return True
    for simpler in (sympy.expand, sympy.cancel, lambda e: sympy.simplify(e, ratio=1)):
        if not simpler(expr).free_symbols:
            return True
    # None: SymPy is not sure.
    answer: bool | None = expr.is_constant(simplify=False)
    return answer


def _exact(text: str, positive: bool) -> sympy.Expr:
    """With decimals as fractions (0.5 is meant to be 1/2), and symbols that are as the data are."""

    def visit(node: Expression, operands: tuple[Expression, ...]) -> Expression:
        if isinstance(node, Constant) and isinstance(node.value, float) and node.name is None:
            top, bottom = Decimal(repr(node.value)).as_integer_ratio()
            return Constant(top) if bottom == 1 else apply("div", Constant(top), Constant(bottom))
        return Apply(node.operator, operands) if isinstance(node, Apply) else node

    plain = to_sympy(fold(parse(text, law_operators()), visit))
    signs = {symbol: sympy.Symbol(symbol.name, real=True, positive=positive or None) for symbol in plain.free_symbols}
    return plain.subs(signs)
