"""The operators: one frozen record each, one table, and the paper's sets by name.

A record holds all that the program needs to know of an operator: what it computes (`role`), what holds of its function
(`traits`), and how each library and kernel computes it. Layers, parser, printers and kernels are derived from the
table, so a new operator is one new row. Other code asks for an operator's name only to print or read it. `Abilities`
says what a whole set of operators can write. This module does not know expressions.

No operator is protected: log(-1) is NaN, 1/0 is inf, and what is printed is what is computed.
"""

from __future__ import annotations

import enum
import keyword
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import sympy
import torch
from torch import Tensor

from symenum.core.words import did_you_mean
from symenum.operators.probing import probe, probe_inverse, probe_traits, slopes
from symenum.operators.traits import ADDITIVE, NOTHING_STATED, REALS, DimensionRule, Interval, Role, Traits

__all__ = [
    "OPERATORS",
    "OPERATOR_SETS",
    "Abilities",
    "Kind",
    "Operator",
    "Source",
    "get_operator",
    "get_operators",
    "make_operator",
]


class Kind(enum.Enum):
    """How a symbol layer applies an operator to the ω outputs of the layer below (paper, "Symbol layer")."""

    UNARY = "unary"  # ω outputs: u(h_i)
    SQUARED = "squared"  # ω² outputs: b(h_i, h_j) in both orders
    TRIANGLED = "triangled"  # ω(ω+1)/2 outputs: b(h_i, h_j) for i ≤ j only


@dataclass(frozen=True)
class Source:
    """The function that computes a unary operator in generated source code, in each language.

    A helper is the definition of a function that the language does not have; it goes before the code that calls it.
    """

    python: str  # with `import math`
    numpy: str  # with `import numpy as np`
    c: str  # with <math.h>
    python_helper: str = ""
    c_helper: str = ""

    @property
    def jax(self) -> str:
        """With `import jax.numpy as jnp`, which has NumPy's functions under NumPy's names."""
        return self.numpy.replace("np.", "jnp.", 1)


@dataclass(frozen=True)
class Operator:
    """One operator.

    `function` maps float tensors of one shape to a tensor of that shape, element by element. `sign` is the infix sign;
    None: the operator is written as a function call. `form`, if given, writes the operator with other ones in our own
    grammar, with a and b for the operands. Such an operator is a way to *enumerate*, and expressions hold its form
    instead: semisub(a, b) is a - b, inv(a) is 1/a. `inverse` is a right inverse g of a unary f, by name or record:
    f(g(y)) = y for every value y of f. `source` is how generated code calls the operator; None: by its sign, or not at
    all. `partials` holds one function for each operand, which maps the value and the operands to the derivative by that
    operand: a tensor of their shape, or a number if it is constant. Without `partials`, `partial` asks torch's
    autograd.

    `numpy` is the function on NumPy's numbers and arrays, `mpmath` the name of mpmath's function, and `kernel` the
    number under which `engine.cuda.kernels.apply_code` computes the operator on a GPU. None: it has none. `slope_form`
    writes the derivative of a unary operator in our own grammar, with a for the operand.
    """

    name: str
    arity: int
    function: Callable[..., Tensor]
    kind: Kind
    complexity: int
    sympy: Callable[..., sympy.Expr] | None = None
    latex: str = ""
    sign: str | None = None
    form: str | None = None
    inverse: str | Operator | None = None
    commutative: bool = False
    source: Source | None = None
    partials: tuple[Callable[..., Tensor | float], ...] | None = None
    role: Role = Role.FUNCTION
    traits: Traits = NOTHING_STATED
    numpy: Callable[..., Any] | None = None
    mpmath: str | None = None
    kernel: int | None = None
    slope_form: str | None = None

    @property
    def built_in(self) -> bool:
        """Whether it is a record of the table, not a user's."""
        return OPERATORS.get(self.name) is self

    @property
    def periodic(self) -> bool:
        """Whether it is known to have a period."""
        return self.traits.period is not None

    @property
    def entire(self) -> bool:
        """Whether it is known to be finite on the whole real line."""
        return self.traits.domain == REALS and not self.traits.poles

    @property
    def exponent(self) -> float | None:
        """The p of an operator that computes a**p; 1 for -a; None for all others."""
        return self.traits.degree if self.role in _FIXED_POWERS else None

    @property
    def dimension_rule(self) -> DimensionRule:
        """What it makes of the physical dimensions of its operands.

        f(c·x) = c**d·f(x) is what a change of units asks for, so a function of degree d takes operands of any one
        dimension; a function without a degree takes plain numbers.
        """
        if self.role is Role.PRODUCT:
            return DimensionRule.PRODUCT
        if self.role is Role.QUOTIENT:
            return DimensionRule.QUOTIENT
        if self.role is Role.POWER:
            return DimensionRule.POWER
        return DimensionRule.NUMBER if self.traits.degree is None else DimensionRule.HOMOGENEOUS

    @property
    def dimension_degree(self) -> float:
        """The power of the operands' dimension that a homogeneous operator gives."""
        return self.traits.degree or 0.0

    @property
    def smooth_step(self) -> bool:
        """Whether it rises from -1 to 1 like tanh, so that sign is its limit for a steep argument."""
        return self.traits.monotone > 0 and self.traits.parity < 0 and self.traits.range == _OPEN_UNIT

    def partial(self, by: int, value: Tensor, *operands: Tensor) -> Tensor | float:
        """The derivative by operand number `by`, element by element; `value` is function(*operands)."""
        if self.partials is not None:
            return self.partials[by](value, *operands)
        with torch.enable_grad():
            moving = operands[by].detach().clone().requires_grad_(True)
            result = self.function(*operands[:by], moving, *operands[by + 1 :])
            if not result.requires_grad:  # a step function, such as (a > 0).to(a.dtype)
                return 0.0
            (slope,) = torch.autograd.grad(result.sum(), moving, allow_unused=True)
        return 0.0 if slope is None else slope

    def __repr__(self) -> str:
        return f"Operator({self.name!r})"

    def __eq__(self, other: object) -> bool:
        # Two records of one name are one operator only if they compute the same way: a user may reuse a built-in name.
        return isinstance(other, Operator) and (self.name, self.function) == (other.name, other.function)

    def __hash__(self) -> int:
        return hash(self.name)

    def __reduce__(self) -> tuple[Callable[..., Operator], tuple[object, ...]]:
        # The table's functions are partly lambdas, which pickle refuses: a built-in travels as its name.
        if OPERATORS.get(self.name) is self:
            return get_operator, (self.name,)
        return Operator, tuple(getattr(self, field.name) for field in fields(self))


_FIXED_POWERS = (Role.IDENTITY, Role.NEGATION, Role.RECIPROCAL, Role.SQUARE, Role.CUBE, Role.ROOT)
_OPEN_UNIT = Interval(-1, 1)  # the values of tanh
_Slope: TypeAlias = Callable[[Tensor, Tensor, Tensor], Tensor | float]  # (value, a, b) -> derivative
_Partials: TypeAlias = tuple[_Slope, _Slope]  # by a, by b


def _unary(
    name: str,
    function: Callable[..., Tensor],
    complexity: int,
    sympy_function: Callable[..., sympy.Expr],
    latex: str,
    slope: Callable[[Tensor, Tensor], Tensor | float],
    role: Role,
    traits: Traits,
    *,
    sign: str | None = None,
    form: str | None = None,
    inverse: str | None = None,
    source: Source | None = None,
    numpy: Callable[..., Any] | None = None,
    mpmath: str | None = None,
    kernel: int | None = None,
    slope_form: str | None = None,
) -> Operator:
    if sign is None and form is None:
        # A function has the same name in all libraries, unless its row says another.
        source = source or Source(f"math.{name}", f"np.{name}", name)
        numpy, mpmath = numpy or getattr(np, name), mpmath or name
    return Operator(
        name, 1, function, Kind.UNARY, complexity, sympy_function, latex, sign, form, inverse,
        source=source, partials=(slope,), role=role, traits=traits, numpy=numpy, mpmath=mpmath, kernel=kernel,
        slope_form=slope_form,
    )  # fmt: skip


def _binary(
    name: str,
    function: Callable[..., Tensor],
    kind: Kind,
    complexity: int,
    sympy_function: Callable[..., sympy.Expr],
    latex: str,
    partials: _Partials,
    role: Role,
    traits: Traits,
    *,
    sign: str | None = None,
    form: str | None = None,
    commutative: bool = False,
    numpy: Callable[..., Any] | None = None,
    mpmath: str | None = None,
    kernel: int | None = None,
) -> Operator:
    return Operator(
        name, 2, function, kind, complexity, sympy_function, latex, sign, form, None, commutative,
        partials=partials, role=role, traits=traits, numpy=numpy, mpmath=mpmath, kernel=kernel,
    )  # fmt: skip


def _sign(a: Tensor) -> Tensor:
    # torch.sign(NaN) is 0, and sign(log(-1)) would be a number.
    return torch.where(torch.isnan(a), a, torch.sign(a))


_SIGN_SOURCE = Source(
    "_sign",
    "np.sign",
    "symenum_sign",
    python_helper="def _sign(a):\n    return a if math.isnan(a) else float((a > 0) - (a < 0))",
    # The guard allows the code of two laws in one file.
    c_helper="#ifndef SYMENUM_SIGN\n#define SYMENUM_SIGN\n"
    "static double symenum_sign(double a) { return isnan(a) ? a : (double)((a > 0.0) - (a < 0.0)); }\n#endif",
)


def _pow_by_exponent(v: Tensor, a: Tensor, b: Tensor) -> Tensor:
    # v·log(a) is 0·(-inf) at a = 0, but 0**b is 0 for all b > 0, so the derivative is 0 there.
    return torch.where(v == 0, v, v * torch.log(a))


# Derivatives by a and b of v = a + b, a - b, a·b, a/b, a**b.
_SUM: _Partials = (lambda v, a, b: 1.0, lambda v, a, b: 1.0)
_DIFFERENCE: _Partials = (lambda v, a, b: 1.0, lambda v, a, b: -1.0)
_PRODUCT: _Partials = (lambda v, a, b: b, lambda v, a, b: a)
_QUOTIENT: _Partials = (lambda v, a, b: torch.reciprocal(b), lambda v, a, b: -v / b)
_POWER: _Partials = (lambda v, a, b: b * torch.pow(a, b - 1), _pow_by_exponent)
_LINEAR = Traits(parity=-1, degree=1, strict=True)  # a ± b
_BILINEAR = Traits(parity=1, degree=2, strict=True)  # a·b
_RATIO = Traits(parity=1, degree=0, strict=True)  # a/b
_POSITIVE, _NOT_NEGATIVE = Interval(0, math.inf), Interval.closed(0, math.inf)  # the domains of log and sqrt
_UNIT = Interval.closed(-1, 1)  # the range of sin and cos
_TURN = 2 * math.pi  # the period of sin and cos
# Complexities are the weights of the reference implementation, which counts SymPy's operations: so tables compare.
# `strict` is stated of all operators but pow: NaN**0 and 1**NaN are 1. `kernel` is the operator's number in
# `engine.cuda.kernels.apply_code`.
_TABLE: tuple[Operator, ...] = (
    _binary(
        "add", torch.add, Kind.TRIANGLED, 1, lambda a, b: a + b, "{0} + {1}", _SUM, Role.SUM, _LINEAR,
        sign="+", commutative=True, numpy=np.add, mpmath="fadd", kernel=1,
    ),
    _binary(
        "mul", torch.mul, Kind.TRIANGLED, 1, lambda a, b: a * b, r"{0} \cdot {1}", _PRODUCT, Role.PRODUCT, _BILINEAR,
        sign="*", commutative=True, numpy=np.multiply, mpmath="fmul", kernel=3,
    ),
    _binary(
        "sub", torch.sub, Kind.SQUARED, 1, lambda a, b: a - b, "{0} - {1}", _DIFFERENCE, Role.DIFFERENCE, _LINEAR,
        sign="-", numpy=np.subtract, mpmath="fsub", kernel=2,
    ),
    _binary(
        "div", torch.div, Kind.SQUARED, 2, lambda a, b: a / b, r"\frac{{{0}}}{{{1}}}", _QUOTIENT, Role.QUOTIENT, _RATIO,
        sign="/", numpy=np.divide, mpmath="fdiv", kernel=4,
    ),
    _binary(
        "pow", torch.pow, Kind.SQUARED, 2, lambda a, b: a**b, "{{{0}}}^{{{1}}}", _POWER, Role.POWER, NOTHING_STATED,
        sign="**", numpy=np.power, mpmath="power",
    ),
    _binary(
        "semisub", torch.sub, Kind.TRIANGLED, 1, lambda a, b: a - b, "{0} - {1}", _DIFFERENCE, Role.DIFFERENCE, _LINEAR,
        form="a - b", kernel=2,
    ),
    _binary(
        "semidiv", torch.div, Kind.TRIANGLED, 2, lambda a, b: a / b, r"\frac{{{0}}}{{{1}}}", _QUOTIENT,
        Role.QUOTIENT, _RATIO, form="a/b", kernel=4,
    ),
    _unary(
        "identity", torch.clone, 0, lambda a: a, "{0}", lambda v, a: 1.0, Role.IDENTITY,
        Traits(monotone=1, parity=-1, degree=1, domain=REALS, range=REALS, strict=True),
        form="a", inverse="identity", kernel=0,
        slope_form="1",
    ),
    _unary(
        "neg", torch.neg, 1, lambda a: -a, "-{0}", lambda v, a: -1.0, Role.NEGATION,
        Traits(monotone=-1, parity=-1, degree=1, domain=REALS, range=REALS, strict=True),
        sign="-", inverse="neg", numpy=np.negative, mpmath="fneg", kernel=5,
        slope_form="-1",
    ),
    _unary(
        "inv", torch.reciprocal, 2, lambda a: 1 / a, r"\frac{{1}}{{{0}}}", lambda v, a: -v * v, Role.RECIPROCAL,
        Traits(parity=-1, degree=-1, domain=REALS, poles=(0.0,), range=REALS, strict=True),
        form="1/a", inverse="inv", kernel=6,
        slope_form="-1/a**2",
    ),
    _unary(
        "sin", torch.sin, 3, sympy.sin, r"\sin\left({0}\right)", lambda v, a: torch.cos(a), Role.SINE,
        Traits(period=_TURN, parity=-1, domain=REALS, range=_UNIT, strict=True), kernel=7,
        slope_form="cos(a)",
    ),
    _unary(
        "cos", torch.cos, 3, sympy.cos, r"\cos\left({0}\right)", lambda v, a: -torch.sin(a), Role.COSINE,
        Traits(period=_TURN, parity=1, domain=REALS, range=_UNIT, strict=True), kernel=8,
        slope_form="-sin(a)",
    ),
    _unary(
        "exp", torch.exp, 3, sympy.exp, r"\exp\left({0}\right)", lambda v, a: v, Role.EXPONENTIAL,
        Traits(monotone=1, domain=REALS, range=_POSITIVE, strict=True), inverse="log", kernel=9,
        slope_form="exp(a)",
    ),
    _unary(
        "log", torch.log, 3, sympy.log, r"\log\left({0}\right)", lambda v, a: torch.reciprocal(a), Role.LOGARITHM,
        Traits(monotone=1, domain=_POSITIVE, range=REALS, strict=True), inverse="exp", kernel=10,
        slope_form="1/a",
    ),
    _unary(
        "sqrt", torch.sqrt, 2, sympy.sqrt, r"\sqrt{{{0}}}", lambda v, a: 0.5 / v, Role.ROOT,
        Traits(monotone=1, degree=0.5, domain=_NOT_NEGATIVE, range=_NOT_NEGATIVE, strict=True),
        inverse="pow2", kernel=11,
        slope_form="1/(2*sqrt(a))",
    ),
    _unary(
        "tanh", torch.tanh, 2, sympy.tanh, r"\tanh\left({0}\right)", lambda v, a: 1 - v * v, Role.FUNCTION,
        Traits(monotone=1, parity=-1, domain=REALS, range=_OPEN_UNIT, strict=True),
        slope_form="1 - tanh(a)**2",
    ),
    _unary(
        "cosh", torch.cosh, 2, sympy.cosh, r"\cosh\left({0}\right)", lambda v, a: torch.sinh(a), Role.FUNCTION,
        Traits(parity=1, domain=REALS, range=Interval.closed(1, math.inf), strict=True),
        slope_form="sinh(a)",
    ),
    _unary(
        "sinh", torch.sinh, 3, sympy.sinh, r"\sinh\left({0}\right)", lambda v, a: torch.cosh(a), Role.FUNCTION,
        Traits(monotone=1, parity=-1, domain=REALS, range=REALS, strict=True),
        slope_form="cosh(a)",
    ),
    _unary(
        "abs", torch.abs, 4, sympy.Abs, r"\left|{0}\right|", lambda v, a: torch.sign(a), Role.MAGNITUDE,
        Traits(parity=1, degree=1, domain=REALS, range=_NOT_NEGATIVE, strict=True),
        source=Source("abs", "np.abs", "fabs"), mpmath="fabs", kernel=12,
        slope_form="sign(a)",
    ),
    _unary(
        "sign", _sign, 4, sympy.sign, r"\operatorname{{sign}}\left({0}\right)", lambda v, a: 0.0, Role.STEP,
        Traits(monotone=1, parity=-1, degree=0, domain=REALS, range=_UNIT, strict=True), source=_SIGN_SOURCE,
    ),
    _unary(
        "pow2", torch.square, 2, lambda a: a**2, "{{{0}}}^{{2}}", lambda v, a: 2 * a, Role.SQUARE,
        Traits(parity=1, degree=2, domain=REALS, range=_NOT_NEGATIVE, strict=True),
        form="a**2", inverse="sqrt", kernel=13,
        slope_form="2*a",
    ),
    _unary(
        "pow3", lambda a: a * a * a, 2, lambda a: a**3, "{{{0}}}^{{3}}", lambda v, a: 3 * a * a, Role.CUBE,
        Traits(monotone=1, parity=-1, degree=3, domain=REALS, range=REALS, strict=True), form="a**3",
        slope_form="3*a**2",
    ),
    _unary(
        "sigmoid", torch.sigmoid, 7, lambda a: 1 / (1 + sympy.exp(-a)), r"\sigma\left({0}\right)",
        lambda v, a: v * (1 - v), Role.FUNCTION,
        Traits(monotone=1, domain=REALS, range=Interval(0, 1), strict=True), form="1/(1 + exp(-a))",
    ),
)  # fmt: skip
OPERATORS: dict[str, Operator] = {operator.name: operator for operator in _TABLE}
"""The built-in operators by name."""
# Infix signs and words that users of other packages type.
_ALIASES = {
    "+": "add", "-": "sub", "*": "mul", "×": "mul", "/": "div", "÷": "div", "**": "pow", "^": "pow",
    "id": "identity", "square": "pow2", "cube": "pow3", "ln": "log", "plus": "add", "mult": "mul",
}  # fmt: skip
OPERATOR_SETS: dict[str, tuple[str, ...]] = {
    "koza": ("+", "*", "-", "/", "identity", "sin", "cos", "exp", "log"),
    "semikoza": ("+", "*", "semisub", "semidiv", "identity", "neg", "inv", "sin", "cos", "exp", "log"),
    "basic_koza": ("+", "*", "identity", "neg", "inv", "sin", "cos", "exp", "log"),
    "arithmetic": ("+", "*", "-", "/", "identity"),
}
"""Sets of operators by name: the paper's libraries (koza, semikoza, basic_koza), and arithmetic alone."""
_ARRAY_VARIABLE = re.compile(r"x[0-9]+")  # names of the columns of a plain array


@dataclass(frozen=True)
class Abilities:
    """What a set of operators can write, if numbers may scale and shift each part."""

    operators: tuple[Operator, ...]

    @cached_property
    def roles(self) -> frozenset[Role]:
        """The roles of all operators."""
        return frozenset(operator.role for operator in self.operators)

    @property
    def sums(self) -> bool:
        """a + b of two parts that vary; a difference is a sum whose second coefficient is negative."""
        return not self.roles.isdisjoint(ADDITIVE)

    @property
    def differences(self) -> bool:
        """a - b."""
        return Role.DIFFERENCE in self.roles

    @property
    def products(self) -> bool:
        """a·b."""
        return Role.PRODUCT in self.roles

    @property
    def quotients(self) -> bool:
        """a/b, or 1/a."""
        return not self.roles.isdisjoint((Role.QUOTIENT, Role.RECIPROCAL))

    @property
    def quotients_both_ways(self) -> bool:
        """a/b and b/a for every pair: semidiv enumerates only one of the two."""
        return any(operator.role is Role.QUOTIENT and operator.kind is Kind.SQUARED for operator in self.operators)

    @property
    def exponentials_of_logarithms(self) -> bool:
        """exp(f) and log(f)."""
        return self.roles.issuperset((Role.EXPONENTIAL, Role.LOGARITHM))

    @property
    def powers(self) -> bool:
        """a**p for numbers p; with exp and log as exp(p·log(a))."""
        return not self.roles.isdisjoint((Role.POWER, Role.ROOT)) or self.exponentials_of_logarithms

    @property
    def whole_powers(self) -> bool:
        """a**n for whole numbers n."""
        return self.powers or self.products or not self.roles.isdisjoint((Role.SQUARE, Role.CUBE))

    @property
    def periodic(self) -> tuple[Operator, ...]:
        """The operators that have a period."""
        return tuple(operator for operator in self.operators if operator.periodic)


def get_operator(operator: str | Operator) -> Operator:
    """The operator of that name or sign; a record is returned unchanged."""
    if isinstance(operator, Operator):
        return operator
    if not isinstance(operator, str):
        raise TypeError(f"an operator is a name, a sign or an Operator record, not {type(operator).__name__}")
    word = operator.strip().lower()
    found = OPERATORS.get(_ALIASES.get(word, word))
    if found is None:
        raise ValueError(
            f"unknown operator {operator!r}{did_you_mean(word, [*OPERATORS, *_ALIASES])}; "
            f"known: {', '.join(OPERATORS)}. For one of your own use symenum.make_operator."
        )
    return found


def get_operators(operators: str | Operator | Iterable[str | Operator]) -> tuple[Operator, ...]:
    """The operators of a named set, or of a sequence of names, signs and records."""
    if isinstance(operators, str):
        name = operators.strip().lower().replace("-", "_")
        if name not in OPERATOR_SETS:
            hint = " For a single operator, pass a list." if _ALIASES.get(name, name) in OPERATORS else ""
            raise ValueError(
                f"unknown operator set {operators!r}{did_you_mean(name, list(OPERATOR_SETS))}; "
                f"known: {', '.join(OPERATOR_SETS)}, or a list of operators such as ['+', '*', 'sin'].{hint}"
            )
        operators = OPERATOR_SETS[name]
    elif isinstance(operators, Operator) or not isinstance(operators, Iterable):
        raise TypeError(f"operators must be a set's name or a sequence of operators, not {type(operators).__name__}")
    found = tuple(get_operator(operator) for operator in operators)
    if not found:
        raise ValueError("operators is empty: name at least one operator, or a set such as 'koza'")
    names = [operator.name for operator in found]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(f"operators names {', '.join(repeated)} more than once")
    return found


def make_operator(
    name: str,
    function: Callable[..., Tensor],
    *,
    arity: int = 1,
    complexity: int = 3,
    commutative: bool = False,
    sympy_function: Callable[..., sympy.Expr] | None = None,
    latex: str | None = None,
    traits: Traits = NOTHING_STATED,
    inverse: str | Operator | None = None,
    mpmath: str | None = None,
) -> Operator:
    """An operator of the user's own, from any torch callable that works element by element.

    The callable is tried on small tensors first. Without `sympy_function`, SymPy shows it as an undefined function.
    `traits` and `inverse` (an operator g with f(g(y)) = y for all values y) may be stated; ValueError if the callable
    contradicts them. `mpmath` is the name of mpmath's function, for judges that need more than double precision.

    >>> import math
    >>> import torch
    >>> from symenum import Traits
    >>> make_operator("softplus", torch.nn.functional.softplus)
    Operator('softplus')
    >>> make_operator("tan", torch.tan, traits=Traits(period=math.pi, parity=-1)).periodic
    True
    """
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name) or name in ("pi", "E"):
        raise ValueError(f"name must be an identifier such as 'softplus', not {name!r}")
    if _ALIASES.get(name.lower(), name.lower()) in OPERATORS:
        raise ValueError(f"name {name!r} is a built-in operator: choose another name")
    if _ARRAY_VARIABLE.fullmatch(name):
        raise ValueError(f"name {name!r} is what a column of a plain array is called: choose another name")
    if not callable(function):
        raise TypeError(f"function of operator {name!r} must be callable, not {type(function).__name__}")
    if arity not in (1, 2):
        raise ValueError(f"arity of operator {name!r} must be 1 or 2, not {arity!r}")
    if not isinstance(complexity, int) or complexity < 0:
        raise ValueError(f"complexity of operator {name!r} must be a whole number of at least 0, not {complexity!r}")
    if not isinstance(traits, Traits):
        raise TypeError(f"traits of operator {name!r} must be a Traits(...), not {type(traits).__name__}")
    probe(name, function, arity, commutative)
    probe_traits(name, function, arity, traits)
    if inverse is not None:
        _check_inverse(name, function, arity, inverse)
    kind = Kind.UNARY if arity == 1 else Kind.TRIANGLED if commutative else Kind.SQUARED
    slots = ", ".join("{%d}" % i for i in range(arity))
    if latex is None:
        latex = r"\operatorname{{%s}}\left(%s\right)" % (name.replace("_", r"\_"), slots)
    symbolic = sympy_function or sympy.Function(name)
    return Operator(
        name, arity, function, kind, complexity, symbolic, latex, inverse=inverse, commutative=commutative,
        partials=slopes(function, arity), traits=traits, mpmath=mpmath,
    )  # fmt: skip


def _check_inverse(name: str, function: Callable[..., Tensor], arity: int, inverse: str | Operator) -> None:
    undoing = get_operator(inverse)
    if arity != 1 or undoing.arity != 1:
        raise ValueError(f"inverse of operator {name!r}: only an operator with one operand has one, and is one")
    probe_inverse(name, function, undoing.function)
