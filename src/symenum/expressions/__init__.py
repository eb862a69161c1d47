"""Expressions: immutable trees, and what can be done with one.

Trees are built (`apply`, `parse`, `from_sympy`), put as people write them (`written`), printed (`to_text`, `to_latex`,
`to_mathml`, `to_sympy`, and as source code `to_python`, `to_numpy_source`, `to_jax`, `to_c`), made into objects that
compute (`to_callable`, `to_torch`), evaluated on data, put in order (`canonical`), simplified (`simplify`) and
compared as functions (`same_function`). Nothing here knows of data sets, search or enumeration.
"""

from symenum.expressions.algebra import canonical, fingerprint, same_function, sample_points, simplify, sort_key
from symenum.expressions.derivative import derivative
from symenum.expressions.dimensions import DimensionError, Units
from symenum.expressions.evaluate import evaluate
from symenum.expressions.export import (
    ExpressionFunction,
    ExpressionModule,
    to_c,
    to_callable,
    to_jax,
    to_numpy_source,
    to_python,
    to_torch,
)
from symenum.expressions.parse import formula_names, parse
from symenum.expressions.render import mathml_equation, to_latex, to_mathml, to_text
from symenum.expressions.sympy_bridge import from_sympy, to_sympy
from symenum.expressions.tree import (
    NAMED_CONSTANTS,
    Apply,
    Constant,
    Expression,
    Variable,
    apply,
    fold,
    natural_key,
    substitute,
    variables,
    walk,
)
from symenum.expressions.written import written

__all__ = [
    "NAMED_CONSTANTS",
    "Apply",
    "Constant",
    "DimensionError",
    "Expression",
    "ExpressionFunction",
    "ExpressionModule",
    "Units",
    "Variable",
    "apply",
    "canonical",
    "derivative",
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
    "to_jax",
    "to_latex",
    "to_mathml",
    "to_numpy_source",
    "to_python",
    "to_sympy",
    "to_text",
    "to_torch",
    "variables",
    "walk",
    "written",
]
