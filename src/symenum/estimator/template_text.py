"""The parameter `template`: a formula with unknown functions, such as "a*f(x1)*g(x2, x3) + h(x1)", read from text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from symenum.core.words import looks_like
from symenum.estimator.formulas import UndeclaredNameError, read_form
from symenum.expressions import Expression, parse, variables
from symenum.expressions.template import Call, Template, place_of
from symenum.operators import Operator, get_operator

__all__ = ["read_template"]

_EXAMPLE = "such as 'a*f(x1)*g(x2, x3) + h(x1)'"
_CALL = re.compile(r"([^\W\d]\w*)\s*\(")  # a name and its opening bracket
_MAX_FUNCTIONS = 6  # unknown ones: each has some 15 numbers in the first fit, and a table has hundreds of rows


def read_template(
    text: object, names: Sequence[str], constants: Mapping[str, float], operators: Iterable[Operator] = ()
) -> Template | None:
    """The template of a text in these variables; None where the user gives none.

    A function that no operator is called by is unknown; a name that is neither a variable nor in `constants` is a
    number to be fitted.
    """
    if text is None:
        return None
    if not isinstance(text, str):
        raise ValueError(f"template must be a text {_EXAMPLE}, not {text!r:.60}")
    own = [operator for operator in operators if operator.form is None]
    known = {operator.name for operator in own}
    calls: list[Call] = []
    skeleton, at = "", 0
    while (found := _CALL.search(text, at)) is not None:
        name = found.group(1)
        if name in known or _is_operator(name):
            skeleton, at = skeleton + text[at : found.end()], found.end()
            continue
        _check_name(name, names, constants)
        inside, end = _inside(text, found.end())
        arguments = tuple(_argument(part, name, names, constants, own) for part in _split(inside, name))
        place = place_of(name, len(calls) + 1).name
        while place in names or place in constants:
            place += "_"
        calls.append(Call(place, name, arguments))
        skeleton, at = f"{skeleton}{text[at : found.start()]} {place} ", end
    skeleton += text[at:]
    if not calls:
        raise ValueError(
            f"template {text!r} has no unknown function: write one {_EXAMPLE}; for a formula whose numbers alone are "
            "not known there are guesses and fit_constants"
        )
    template = Template(text, _skeleton(skeleton, calls, names, constants, own), tuple(calls))
    template = Template(text, template.skeleton, template.calls, _constants(template, names))
    _check_functions(template)
    return template


def _is_operator(name: str) -> bool:
    try:
        get_operator(name)
    except ValueError:
        return False
    return True


def _check_name(name: str, names: Sequence[str], constants: Mapping[str, float]) -> None:
    """Refuse a name of an unknown function that is taken, or looks like an operator with a typo."""
    what = "a variable" if name in names else "a named constant" if name in constants or name in ("pi", "E") else None
    if what is not None:
        raise ValueError(
            f"template calls {name!r} as a function, and it is {what}: give the function another name, or write "
            f"{name}*(…) for a product"
        )
    try:
        get_operator(name)
    except ValueError as error:
        meant = re.search(r"did you mean '(\w+)'", str(error))
        if meant is not None and len(name) > 2 and looks_like(name, [meant.group(1)]):
            raise ValueError(
                f"template calls {name!r}, which is no operator: did you mean {meant.group(1)!r}? An unknown function "
                "has a name of one letter, or one unlike any operator"
            ) from None


def _inside(text: str, start: int) -> tuple[str, int]:
    """What stands between a bracket that has opened before `start` and its closing one, and where it ends."""
    depth = 1
    for at in range(start, len(text)):
        depth += (text[at] == "(") - (text[at] == ")")
        if depth == 0:
            return text[start:at], at + 1
    raise ValueError(f"template {text!r} has a bracket that is not closed")


def _split(inside: str, function: str) -> list[str]:
    """The arguments of a call, cut at the commas that stand in no bracket."""
    parts, depth = [""], 0
    for character in inside:
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    if not any(part.strip() for part in parts):
        raise ValueError(
            f"template has the unknown function {function}() without an argument: a number that is not known is "
            f"written as a name, such as {function}; a function says what it depends on, as in {function}(x1)"
        )
    return parts


def _argument(
    text: str, function: str, names: Sequence[str], constants: Mapping[str, float], own: Sequence[Operator]
) -> Expression:
    """An argument of an unknown function: an expression of variables."""
    for found in _CALL.finditer(text):
        if not _is_operator(found.group(1)) and found.group(1) not in {operator.name for operator in own}:
            raise ValueError(
                f"template has the unknown function {found.group(1)!r} inside {function!r}: what stands inside an "
                "unknown function must be known; a known function may hold unknown ones, as in exp(f(x1) + g(x2))"
            )
    try:
        argument = parse(text.strip(), own, constants)
    except ValueError as error:
        raise ValueError(f"template: an argument of {function!r} cannot be read: {error}") from error
    if not variables(argument):
        raise ValueError(f"template: {function}({text.strip()}) depends on no variable: write a name for a number")
    for name in variables(argument):
        if name not in names:
            raise ValueError(
                f"template: {name!r} in {function}({text.strip()}) is no variable; there are {', '.join(names[:20])}. "
                "Numbers to be fitted stand outside of unknown functions, which find what they need inside"
            )
    return argument


def _skeleton(
    text: str,
    calls: Sequence[Call],
    names: Sequence[str],
    constants: Mapping[str, float],
    own: Sequence[Operator],
) -> Expression:
    """The template with a variable in the place of each call."""
    try:
        form = read_form(text, [*names, *(call.place for call in calls)], constants, own)
    except UndeclaredNameError as error:
        raise ValueError(
            f"template: {error.name!r} is no variable: did you mean {error.meant!r}? A constant to be fitted has a "
            "name of one letter, or one unlike any variable"
        ) from error
    except ValueError as error:
        raise ValueError(f"template cannot be read: {error}") from error
    return form.expression


def _constants(template: Template, names: Sequence[str]) -> tuple[str, ...]:
    """The names in the skeleton that are to be fitted."""
    places = {call.place for call in template.calls}
    return tuple(name for name in variables(template.skeleton) if name not in names and name not in places)


def _check_functions(template: Template) -> None:
    """Refuse a function that is called with different numbers of arguments or is a constant too, and too many."""
    if len(template.functions) > _MAX_FUNCTIONS:
        raise ValueError(
            f"template has {len(template.functions)} unknown functions, and at most {_MAX_FUNCTIONS} can be told apart"
        )
    for function in template.functions:
        counts = sorted({len(call.arguments) for call in template.calls_of(function)})
        if len(counts) > 1:
            raise ValueError(
                f"template calls {function!r} with {counts[0]} and with {counts[1]} arguments: a function has one "
                "number of them; give the second function another name"
            )
        if function in template.constants:
            raise ValueError(f"template has {function!r} as a function and as a constant: give one another name")
