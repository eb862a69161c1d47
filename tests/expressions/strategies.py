"""Hypothesis strategies for expression trees, shared by the tests of this package."""

from __future__ import annotations

import math

from hypothesis import strategies as st

from symenum.expressions import NAMED_CONSTANTS, Apply, Constant, Variable
from symenum.operators import OPERATORS

HELD = [operator for operator in OPERATORS.values() if operator.form is None]

names = st.sampled_from(["x1", "x2", "x10", "theta", "mass_ratio", "e", "_", "sin"])
named_constants = st.sampled_from([Constant(value, name) for name, value in NAMED_CONSTANTS.items()])
ugly_constants = st.one_of(
    st.integers(-(10**40), 10**40),
    st.integers(-3, 3),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0.0, -0.0, 1e-300, 5e-324, -1e300, 1e16, 123456789012345680.0, 1e22, 1e-5, math.pi]),
).map(Constant)
tame_constants = st.one_of(
    st.integers(-4, 4), st.floats(-4, 4).map(lambda value: round(value, 3)), st.sampled_from([0.5, 2.0])
).map(Constant)


def trees(leaves, operators=HELD, max_leaves=12):
    """Trees over the leaves and operators."""

    def grow(children):
        return st.sampled_from(operators).flatmap(
            lambda operator: st.tuples(*[children] * operator.arity).map(lambda operands: Apply(operator, operands))
        )

    return st.recursive(leaves, grow, max_leaves=max_leaves)


any_tree = trees(st.one_of(names.map(Variable), ugly_constants, named_constants))
tame_tree = trees(
    st.one_of(st.sampled_from(["x1", "x2", "x10"]).map(Variable), tame_constants, named_constants), max_leaves=7
)
