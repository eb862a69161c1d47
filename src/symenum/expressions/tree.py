"""The tree of an expression: immutable nodes, walks over them, and building by operator names.

A node is a variable, a constant or an operator applied to operands. A tree is a value: equal trees compare equal, hash
alike and print alike, and nothing changes one after it is made. Nothing is simplified or put in order here; evaluating,
printing, parsing and ordering are the work of the other modules of this package. They walk a tree with `fold`, which
does not recurse: a sum of ten thousand terms is a tree ten thousand levels deep.
"""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import TypeAlias, TypeVar

from symenum.core.memory import LAWS_REMEMBERED
from symenum.operators import Operator, get_operator

__all__ = [
    "NAMED_CONSTANTS",
    "Apply",
    "Constant",
    "Expression",
    "Variable",
    "apply",
    "fold",
    "natural_key",
    "substitute",
    "variables",
    "walk",
]

T = TypeVar("T")
_FORM_VARIABLES = ("a", "b")  # what `Operator.form` calls its operands
# Constants that the grammar knows by name; SymPy reads the same names.
NAMED_CONSTANTS: Mapping[str, float] = {"pi": math.pi, "E": math.e}


class _Node:
    """What all three kinds of node share."""

    def __str__(self) -> str:
        from symenum.expressions.render import to_text

        return to_text(self)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self}>"

    def _repr_latex_(self) -> str:
        """What a notebook shows: the formula as people write it."""
        from symenum.expressions.render import SHOWN_DIGITS, to_latex
        from symenum.expressions.written import written

        return f"$\\displaystyle {to_latex(written(self), SHOWN_DIGITS)}$"


@dataclass(frozen=True, repr=False)
class Variable(_Node):
    """An input, by its name; a name is an identifier that is not a named constant."""

    name: str

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise TypeError(f"a variable's name must be a string, not {type(self.name).__name__}")
        if not self.name.isidentifier() or keyword.iskeyword(self.name) or self.name in NAMED_CONSTANTS:
            raise ValueError(
                f"{self.name!r} cannot name a variable: use a Python identifier other than a keyword, "
                f"{' or '.join(NAMED_CONSTANTS)}"
            )

    complexity = 0
    depth = 0


@dataclass(frozen=True, repr=False, eq=False)
class Constant(_Node):
    """A number; with a name ("pi", "E", or one that the user has declared, as g) it prints as that name.

    2 and 2.0 are different constants (they print differently), and so are 0.0 and -0.0 (1/x tells them apart).
    """

    value: float  # an int is kept as an int, so that 2 does not print as 2.0
    name: str | None = None
    _hash: int = field(init=False)

    def __post_init__(self) -> None:
        if isinstance(self.value, bool) or not isinstance(self.value, (int, float)):
            raise TypeError(f"a constant must be an int or a float, not {type(self.value).__name__}")
        # Subclasses (numpy.float64 is one) have a repr of their own, which would end up in the text.
        object.__setattr__(self, "value", int(self.value) if isinstance(self.value, int) else float(self.value))
        try:
            finite = math.isfinite(self.value)
        except OverflowError:
            raise ValueError("a constant must fit into a double: the whole number is beyond 1.8e308") from None
        if not finite:
            raise ValueError(f"a constant must be finite, not {self.value}")
        if self.name is not None and NAMED_CONSTANTS.get(self.name, self.value) != self.value:
            raise ValueError(f"the constant {self.name} is {NAMED_CONSTANTS[self.name]!r}, not {self.value!r}")
        if self.name is not None and self.name not in NAMED_CONSTANTS:
            Variable(self.name)  # raises ValueError unless the name could be a variable's
        object.__setattr__(self, "_hash", hash(self._identity()))

    complexity = 0
    depth = 0

    def _identity(self) -> tuple[float, bool, float, str | None]:
        return self.value, isinstance(self.value, int), math.copysign(1.0, self.value), self.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constant) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type[Constant], tuple[float, str | None]]:
        # Made anew where it is unpickled: a hash of strings is good in one process only.
        return Constant, (self.value, self.name)


@dataclass(frozen=True, repr=False, eq=False)
class Apply(_Node):
    """An operator applied to its operands."""

    operator: Operator
    operands: tuple[Expression, ...]
    complexity: int = field(init=False)
    """The weighted number of operators; leaves count nothing."""
    depth: int = field(init=False)
    """The number of operators on the longest path from the root to a leaf."""
    _hash: int = field(init=False)

    def __post_init__(self) -> None:
        operator, operands = self.operator, self.operands
        # Computed now, from the operands' own: later it would take a recursion as deep as the tree.
        total, depth, valid = operator.complexity, 0, isinstance(operands, tuple)
        for operand in operands if valid else ():  # plain loops: trees are made by the thousand
            if not isinstance(operand, _Node):
                valid = False
                break
            total += operand.complexity
            if operand.depth > depth:
                depth = operand.depth
        if not valid:
            raise TypeError(f"the operands of {operator.name} must be a tuple of expressions, not {operands!r}")
        if len(operands) != operator.arity:
            raise ValueError(f"{operator.name} takes {operator.arity} operands, not {len(operands)}")
        if operator.form is not None:
            raise ValueError(f"{operator.name} is written as {operator.form}: build it with symenum.expressions.apply")
        object.__setattr__(self, "complexity", total)
        object.__setattr__(self, "depth", 1 + depth)
        object.__setattr__(self, "_hash", hash((operator.name, operands)))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Apply):
            return False
        # Each pair of nodes is compared once: shared sub-trees would cost 2^depth otherwise.
        pairs: list[tuple[Expression, Expression]] = [(self, other)]
        seen: set[tuple[int, int]] = set()
        while pairs:
            a, b = pairs.pop()
            if a is b or (id(a), id(b)) in seen:
                continue
            if isinstance(a, Apply) and isinstance(b, Apply):
                if a._hash != b._hash or a.operator != b.operator:
                    return False
                seen.add((id(a), id(b)))
                pairs.extend(zip(a.operands, b.operands, strict=True))
            elif a != b:
                return False
        return True

    def __reduce__(self) -> tuple[type[Apply], tuple[Operator, tuple[Expression, ...]]]:
        # Made anew where it is unpickled: a hash of strings is good in one process only.
        return Apply, (self.operator, self.operands)


Expression: TypeAlias = Variable | Constant | Apply


def fold(expression: Expression, visit: Callable[[Expression, tuple[T, ...]], T]) -> T:
    """The value of `visit(node, values of its operands)` at the root; equal sub-trees are visited once."""
    done: dict[Expression, T] = {}
    stack: list[Expression] = [expression]
    while stack:
        node = stack[-1]
        if node in done:
            stack.pop()
            continue
        if not isinstance(node, Apply):
            done[node] = visit(node, ())
            stack.pop()
            continue
        missing = [operand for operand in node.operands if operand not in done]
        if missing:
            missing.reverse()
            stack += missing
            continue
        done[node] = visit(node, tuple([done[operand] for operand in node.operands]))
        stack.pop()
    return done[expression]


def walk(expression: Expression) -> Iterator[Expression]:
    """All nodes, children before their parent, shared sub-trees as often as they occur."""
    stack: list[tuple[Expression, bool]] = [(expression, False)]
    while stack:
        node, opened = stack.pop()
        if opened or not isinstance(node, Apply):
            yield node
        else:
            stack.append((node, True))
            stack.extend((operand, False) for operand in reversed(node.operands))


def natural_key(name: str) -> tuple[tuple[str | int, ...], str]:
    """Orders names as people do: x2 before x10."""
    parts = re.split("([0-9]+)", name)
    return tuple(int(part) if i % 2 else part for i, part in enumerate(parts)), name


@lru_cache(LAWS_REMEMBERED)  # the same laws are evaluated again and again; a search has some thousands at hand
def variables(expression: Expression) -> tuple[str, ...]:
    """The names of the variables that occur, each once, in natural order."""
    names: set[str] = set()
    seen: set[int] = set()  # nodes that occur in several places are opened once
    stack = [expression]
    while stack:
        node = stack.pop()
        if isinstance(node, Variable):
            names.add(node.name)
        elif isinstance(node, Apply) and id(node) not in seen:
            seen.add(id(node))
            stack += node.operands
    return tuple(sorted(names, key=natural_key))


def apply(operator: Operator | str, *operands: Expression) -> Expression:
    """The operator on its operands; one that has a form is written out: inv(a) becomes 1/a.

    Operators with a `form` are ways to enumerate. No tree holds one, and this is the only place that knows of them.

    >>> from symenum.expressions import Variable
    >>> print(apply("sin", Variable("x")), apply("inv", Variable("x")))
    sin(x) 1/x
    """
    record = get_operator(operator)
    for operand in operands:
        if not isinstance(operand, (Variable, Constant, Apply)):
            raise TypeError(f"an operand of {record.name} must be an Expression, not {type(operand).__name__}")
    if record.form is None:
        return Apply(record, operands)
    if len(operands) != record.arity:
        raise ValueError(f"{record.name} takes {record.arity} operands, not {len(operands)}")
    return substitute(_form(record.form), dict(zip(_FORM_VARIABLES, operands, strict=False)))


def substitute(expression: Expression, replacements: Mapping[str, Expression]) -> Expression:
    """The expression with the named variables replaced, all at once; the others stay.

    >>> from symenum.expressions import parse
    >>> print(substitute(parse("x - y"), {"x": parse("y"), "y": parse("x + 1")}))
    y - (x + 1)
    """

    def visit(node: Expression, operands: tuple[Expression, ...]) -> Expression:
        if isinstance(node, Variable):
            return replacements.get(node.name, node)
        if isinstance(node, Apply):
            unchanged = all(new is old for new, old in zip(operands, node.operands, strict=True))
            return node if unchanged else Apply(node.operator, operands)
        return node

    return fold(expression, visit)


@cache
def _form(text: str) -> Expression:
    # Imported late: the parser itself applies operators.
    from symenum.expressions.parse import parse

    return parse(text)
