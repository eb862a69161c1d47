"""Expressions: immutable trees, and what can be done with one.

Trees are built (`apply`, `parse`, `from_sympy`), written (`to_text`, `to_latex`, `to_sympy`, and as source code
`to_python`, `to_numpy_source`, `to_c`), made into objects that compute (`to_callable`, `to_torch`), evaluated on data,
put in order (`canonical`) and compared as functions (`same_function`). Nothing here knows of data sets, search or
enumeration.
"""

from symenum.expressions.build import apply, substitute
from symenum.expressions.callables import ExpressionFunction, ExpressionModule, to_callable, to_torch
from symenum.expressions.canonical import canonical, sort_key
from symenum.expressions.code import to_c, to_numpy_source, to_python
from symenum.expressions.convert import from_sympy, to_sympy
from symenum.expressions.evaluate import evaluate
from symenum.expressions.fingerprint import fingerprint, same_function, sample_points
from symenum.expressions.names import formula_names
from symenum.expressions.parse import parse
from symenum.expressions.render import mathml_equation, to_latex, to_mathml, to_text
from symenum.expressions.simplify import simplify
from symenum.expressions.tree import (
    NAMED_CONSTANTS,
    Apply,
    Constant,
    Expression,
    Variable,
    fold,
    natural_key,
    variables,
    walk,
)

__all__ = [
    "NAMED_CONSTANTS",
    "Apply",
    "Constant",
    "Expression",
    "ExpressionFunction",
    "ExpressionModule",
    "Variable",
    "apply",
    "canonical",
    "evaluate",
    "fingerprint",
    "fold",
    "formula_names",
    "from_sympy",
    "mathml_equation",
    "natural_key",
    "parse",
    "same_function",
    "sample_points",
    "simplify",
    "sort_key",
    "substitute",
    "to_c",
    "to_callable",
    "to_latex",
    "to_mathml",
    "to_numpy_source",
    "to_python",
    "to_sympy",
    "to_text",
    "to_torch",
    "variables",
    "walk",
]
