"""A law that is known in part: an expression with calls of unknown functions, as in a*f(x1)*g(x2, x3) + h(x1).

A template is a value. Each call stands in its skeleton as a variable of a name of its own, so that whatever is known of
expressions (values, derivatives, printing) is known of templates. Which functions take the places of the unknown ones
is found in `symenum.search.template_search`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from symenum.expressions.tree import Expression, Variable, substitute

__all__ = ["Call", "Template", "formal_names", "place_of"]

_FORMAL = "arg"  # what the arguments of an unknown function are called in the expressions that take its place


def formal_names(arity: int) -> tuple[str, ...]:
    """The names of a function's arguments in the expressions that take its place.

    >>> formal_names(2)
    ('arg1', 'arg2')
    """
    return tuple(f"{_FORMAL}{at + 1}" for at in range(arity))


@dataclass(frozen=True)
class Call:
    """One place where an unknown function is called: the variable that stands for it, and its arguments."""

    place: str
    function: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True)
class Template:
    """`skeleton`: over the columns, the places of the calls, and the `constants` that are fitted, all as variables.

    `text`: as the user wrote it.
    """

    text: str
    skeleton: Expression
    calls: tuple[Call, ...]
    constants: tuple[str, ...] = ()

    @property
    def functions(self) -> tuple[str, ...]:
        """The names of the unknown functions, each once, in the order of their first calls."""
        return tuple(dict.fromkeys(call.function for call in self.calls))

    def arity(self, function: str) -> int:
        """How many arguments an unknown function has."""
        return len(self.calls_of(function)[0].arguments)

    def calls_of(self, function: str) -> tuple[Call, ...]:
        """The places where it is called; several share one function."""
        return tuple(call for call in self.calls if call.function == function)

    def with_functions(self, known: Mapping[str, Expression]) -> Expression:
        """The skeleton with expressions of `formal_names` in the places of some unknown functions, or of all.

        >>> from symenum.expressions import parse
        >>> square = Template("f(x) - f(y)", parse("a - b"), tuple(
        ...     Call(place, "f", (parse(argument),)) for place, argument in (("a", "x"), ("b", "y"))))
        >>> print(square.with_functions({"f": parse("arg1**2")}))
        x**2 - y**2
        """
        places = {}
        for call in self.calls:
            if call.function in known:
                arguments = dict(zip(formal_names(len(call.arguments)), call.arguments, strict=True))
                places[call.place] = substitute(known[call.function], arguments)
        return substitute(self.skeleton, places)

    def __str__(self) -> str:
        return self.text


def place_of(function: str, number: int) -> Variable:
    """The variable that stands for a call."""
    return Variable(f"{function}_call{number}")
