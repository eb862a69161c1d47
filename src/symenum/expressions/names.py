"""Names that formulas and programming languages accept, for variables whose own names they do not.

`formula_names` is for whoever reads data; inside the package a variable then keeps its name. The rest is for generated
source code.
"""

from __future__ import annotations

import builtins
import keyword
import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence

from symenum.expressions.tree import NAMED_CONSTANTS
from symenum.operators import OPERATORS

__all__ = [
    "C_FUNCTIONS",
    "C_RESERVED",
    "FORMULA_RESERVED",
    "PYTHON_RESERVED",
    "check_names",
    "formula_names",
    "safe_names",
]

# A variable called sin would print as sin*x: legal, but nobody reads it rightly.
# The others are letters and words that mean something else to SymPy, which shall read what we print.
_SYMPY_WORDS = ("I", "N", "O", "Q", "S", "oo", "zoo", "nan", "ln", "tan", "gamma", "beta", "zeta", "Abs", "re", "im")
FORMULA_RESERVED = frozenset({*OPERATORS, *NAMED_CONSTANTS, *keyword.kwlist, *_SYMPY_WORDS})

# "lambda" and the like cannot be assigned; a parameter called "abs" would hide the function that the code calls.
PYTHON_RESERVED = frozenset({*keyword.kwlist, *dir(builtins), "math", "np", "numpy"})

# Keywords of C23 and of C++ (headers are shared), and the macros of <math.h>. Functions that the code calls are added
# by their operators.
_C_WORDS = """
alignas alignof auto bool break case char const constexpr continue default do double else enum extern false float for
goto if inline int long nullptr register restrict return short signed sizeof static static_assert struct switch
thread_local true typedef typeof typeof_unqual union unsigned void volatile while _Alignas _Alignof _Atomic _BitInt
_Bool _Complex _Decimal128 _Decimal32 _Decimal64 _Generic _Imaginary _Noreturn _Static_assert _Thread_local
and asm catch class co_await co_return co_yield compl concept const_cast decltype delete dynamic_cast explicit export
friend mutable namespace new noexcept not operator or private protected public reinterpret_cast requires static_cast
template this throw try typeid typename using virtual wchar_t xor
fpclassify isfinite isinf isnan isnormal signbit isgreater isless isunordered math_errhandling
HUGE_VAL HUGE_VALF HUGE_VALL INFINITY NAN FP_INFINITE FP_NAN FP_NORMAL FP_SUBNORMAL FP_ZERO FP_ILOGB0 FP_ILOGBNAN
MATH_ERRNO MATH_ERREXCEPT M_E M_LOG2E M_LOG10E M_LN2 M_LN10 M_PI M_PI_2 M_PI_4 M_1_PI M_2_PI M_2_SQRTPI M_SQRT2
M_SQRT1_2 DOMAIN SING OVERFLOW UNDERFLOW PLOSS TLOSS EDOM ERANGE linux unix
"""
C_RESERVED = frozenset(_C_WORDS.split())

# What <math.h> declares: a parameter may hide these, but a function of that name would be a second declaration.
_C_DECLARED = """
main acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 exp10 expm1 fabs fdim floor
fma fmax fmin fmod frexp gamma hypot ilogb j0 j1 jn ldexp lgamma llrint llround log log10 log1p log2 logb lrint lround
modf nan nearbyint nextafter nexttoward pow pow10 remainder remquo rint round scalb scalbln scalbn significand sin
sincos sinh sqrt tan tanh tgamma trunc y0 y1 yn
"""
C_FUNCTIONS = frozenset(_C_DECLARED.split())


def check_names(names: Sequence[str], used: Collection[str]) -> tuple[str, ...]:
    """The names as a tuple, once it is sure that each occurs once and that every variable in use is among them."""
    if isinstance(names, str):
        raise TypeError(f"names must be a sequence of names, such as [{names!r}], not one string")
    listed = tuple(names)
    for name in listed:
        if not isinstance(name, str):
            raise TypeError(f"names must hold strings, not {type(name).__name__}")
    repeated = sorted({name for name in listed if listed.count(name) > 1})
    if repeated:
        raise ValueError(f"names holds {', '.join(map(repr, repeated))} more than once")
    missing = [name for name in used if name not in listed]
    if missing:
        raise ValueError(
            f"the expression uses {', '.join(missing)}, which names does not hold; "
            f"names: {', '.join(listed) or 'nothing'}"
        )
    return listed


def formula_names(names: Sequence[str]) -> Mapping[str, str]:
    """What the columns of a table are called in formulas: their own names wherever these are free identifiers.

    >>> formula_names(["mass", "sin", "distance (AU)"])
    {'mass': 'mass', 'sin': 'sin_', 'distance (AU)': 'distance_AU'}
    """
    return safe_names(names, FORMULA_RESERVED)


def safe_names(names: Sequence[str], reserved: Collection[str], *, ascii_only: bool = False) -> Mapping[str, str]:
    """What each name is called in the code: itself where that works, else a likeness with underscores at its end.

    >>> safe_names(["x1", "lambda", "distance (AU)"], {"lambda"})
    {'x1': 'x1', 'lambda': 'lambda_', 'distance (AU)': 'distance_AU'}
    """
    likenesses = {name: _identifier(name, ascii_only) for name in names}
    # Names that can stay have the first claim: a variable called sin_ is never the one that has to give way to sin.
    chosen = {name: name for name, likeness in likenesses.items() if likeness == name and name not in reserved}
    taken = set(chosen)
    for name, likeness in likenesses.items():
        if name in chosen:
            continue
        while likeness in taken or likeness in reserved:
            likeness += "_"
        chosen[name] = likeness
        taken.add(likeness)
    return {name: chosen[name] for name in names}


def _identifier(name: str, ascii_only: bool) -> str:
    # Python reads identifiers in this normal form, so two names that differ before it may be one after it.
    name = unicodedata.normalize("NFKC", name)
    if ascii_only:
        name = "".join(character if character.isascii() else f"u{ord(character):04x}" for character in name)
        # Names that begin with an underscore are for the compiler.
        name = re.sub("^_+", "", name) if re.match("_[_A-Z]", name) else name
    if name.isidentifier():
        return name
    words = re.sub(r"\W+", "_", name).strip("_")
    return words if words.isidentifier() else f"x_{words}".rstrip("_")
