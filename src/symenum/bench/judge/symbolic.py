"""The symbolic verdict: what SymPy answers within a time limit.

SymPy may simplify for hours, so it runs in a process of its own, which is killed when the time of a question is over.
The process answers many questions, since importing SymPy takes seconds; after a kill the next question starts another.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from types import TracebackType
from typing import Literal

import sympy

from symenum.bench.problems.problem import Case, law_operators
from symenum.expressions import Apply, Constant, Expression, apply, fold, parse, to_sympy

__all__ = ["SYMPY_SECONDS", "Answer", "Judge", "data_points"]

Points = Sequence[Mapping[str, float]]
"""Values of the variables."""

Answer = Literal["yes", "no", "unknown", "out of time", "failed"]

SYMPY_SECONDS = 10.0
"""Seconds for SymPy on one law; it answers most questions within one second."""

_DATA_POINTS = 4  # rows of the data on which the values of two laws are compared before anything is simplified
_MEMORY = 4 << 30  # bytes that SymPy's process may take; a question that needs more is answered "failed"
_START_SECONDS = 120.0  # to import SymPy and torch: some seconds, and much more beside many other processes
_DIGITS = 40  # of the values at the points: well above the 17 of the doubles in the laws
# Values of two laws are equal within _RELATIVE·(|value| + _SMALL). Their constants are doubles: sqrt(1.23) is
# 1.1090536506409416 in one law and exact in the other, which is a relative difference of up to about 1e-16 each.
_RELATIVE = sympy.Float("1e-12")
_SMALL = sympy.Float("1e-5")


def data_points(case: Case) -> list[dict[str, float]]:
    """The first rows of the test data of a case: where SymPy compares the values of two laws."""
    return [dict(zip(case.variables, map(float, row), strict=True)) for row in case.test()[0][:_DATA_POINTS]]


class Judge:
    """SymPy in a process of its own. Used as a context manager, it ends the process."""

    def __init__(self) -> None:
        self._process: SpawnProcess | None = None
        self._pipe: Connection | None = None

    def __enter__(self) -> Judge:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def ask(
        self, question: str, found: str, law: str, seconds: float, *, positive: bool = False, points: Points = ()
    ) -> Answer:
        """SymPy's answer within so many seconds on whether `found` is `law`, both as text of our grammar.

        `question` is "equal", or "srbench" for equality up to one added or multiplied constant. `positive`: whether
        all variables are positive; `points`: rows of the data, at which different laws have different values.
        """
        pipe = self._pipe or self._start()
        try:
            pipe.send((question, found, law, positive, [dict(point) for point in points]))
            if not pipe.poll(seconds):
                self.close()
                return "out of time"
            answer: Answer = pipe.recv()
        except (EOFError, OSError):  # the process has died, most likely of its memory limit
            self.close()
            return "failed"
        return answer

    def close(self) -> None:
        """End the process, whatever it is doing."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
        if self._pipe is not None:
            self._pipe.close()
        self._process = self._pipe = None

    def _start(self) -> Connection:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs,), daemon=True)
        process.start()
        theirs.close()
        self._process, self._pipe = process, ours
        if not ours.poll(_START_SECONDS):  # importing does not count against the question
            self.close()
            raise TimeoutError(f"the process that asks SymPy did not start within {_START_SECONDS:g} s")
        ours.recv()
        return ours


def _serve(pipe: Connection) -> None:
    """Answer questions until the other end is closed."""
    _limit_memory()
    pipe.send("ready")
    while True:
        try:
            question, found, law, positive, points = pipe.recv()
        except EOFError:
            return
        try:
            answer = _ANSWERS[_QUESTIONS[question](found, law, positive, points)]
        except Exception:  # SymPy raises exceptions of many kinds; all of them mean that there is no answer
            answer = "failed"
        pipe.send(answer)


def _limit_memory() -> None:
    try:
        import resource
    except ImportError:  # Windows
        return
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, resource.getrlimit(resource.RLIMIT_DATA)[1]))


def equal_by_sympy(found: str, law: str, positive: bool, points: Points) -> bool | None:
    """Whether both are one function of real (or positive) variables; None where SymPy cannot tell.

    False only where their values differ at one of the points. These are points of the data: elsewhere both laws may be
    complex numbers, on different branches.
    """
    model, truth = _exact(found, positive), _exact(law, positive)
    difference = model - truth
    if difference == 0 or sympy.expand(difference) == 0:
        return True
    if not all(abs(a - b) <= _RELATIVE * (abs(b) + _SMALL) for a, b in _values(model, truth, points)):
        return False
    return True if sympy.simplify(difference) == 0 or difference.equals(0) else None


def constant_apart_by_sympy(found: str, law: str, positive: bool, points: Points) -> bool | None:
    """SRBench's rule: found - law or found/law is a constant, and found is not 0; None where SymPy cannot tell."""
    model, truth = _exact(found, positive), _exact(law, positive)
    if model == 0 or model.has(sympy.nan, sympy.zoo, sympy.oo):
        return False
    values = _values(model, truth, points)
    ratios, differences = [a / b for a, b in values if b], [a - b for a, b in values]
    scale = max((abs(b) for _, b in values), default=sympy.Float(0))
    possible = [
        *([model / truth] if _may_be_constant(ratios, max(map(abs, ratios), default=scale)) else []),
        *([model - truth] if _may_be_constant(differences, scale) else []),
    ]
    if not possible:
        return False
    return True if any(_is_constant(apart) for apart in possible) else None


def _may_be_constant(values: list[sympy.Float], scale: sympy.Float) -> bool:
    """Whether all values are equal up to the rounding of numbers of size `scale`."""
    return not values or max(values) - min(values) <= _RELATIVE * scale


def _is_constant(expr: sympy.Expr) -> bool:
    """Whether SymPy can show an expression to be a constant, by the cheap ways first."""
    if not expr.free_symbols:
        return True
    ways = (sympy.expand, sympy.cancel, lambda e: sympy.simplify(e, ratio=1))
    return any(not simpler(expr).free_symbols for simpler in ways)


def _values(model: sympy.Expr, truth: sympy.Expr, points: Points) -> list[tuple[sympy.Float, sympy.Float]]:
    """The values of both at the points, to 40 digits: they answer most questions before anything is simplified.

    Points where one of the two is not a real number are left out.
    """
    symbols = {symbol.name: symbol for symbol in model.free_symbols | truth.free_symbols}
    values = []
    for point in points:
        # Floats, not fractions: SymPy would look for exact roots of these.
        at = {symbols[name]: sympy.Float(value, _DIGITS) for name, value in point.items() if name in symbols}
        both = [expr.evalf(_DIGITS, subs=at) for expr in (model, truth)]
        if all(value.is_Float or value.is_Rational for value in both):
            values.append((sympy.Float(both[0], _DIGITS), sympy.Float(both[1], _DIGITS)))
    return values


def _exact(text: str, positive: bool) -> sympy.Expr:
    """The expression with decimals as fractions (0.5 is 1/2), and with real, or positive, symbols."""

    def visit(node: Expression, operands: tuple[Expression, ...]) -> Expression:
        if isinstance(node, Constant) and isinstance(node.value, float) and node.name is None:
            top, bottom = Decimal(repr(node.value)).as_integer_ratio()
            return Constant(top) if bottom == 1 else apply("div", Constant(top), Constant(bottom))
        return Apply(node.operator, operands) if isinstance(node, Apply) else node

    plain = to_sympy(fold(parse(text, law_operators()), visit))
    signs = {symbol: sympy.Symbol(symbol.name, real=True, positive=positive or None) for symbol in plain.free_symbols}
    return plain.subs(signs)


_QUESTIONS: Mapping[str, Callable[[str, str, bool, Points], bool | None]] = {
    "equal": equal_by_sympy,
    "srbench": constant_apart_by_sympy,
}
_ANSWERS: Mapping[bool | None, Answer] = {True: "yes", False: "no", None: "unknown"}
