"""The symbolic verdict: what SymPy says, asked in a process that is killed when its time is over: never a hang.

SymPy may think for hours, so it is only ever asked in a process of its own. The process is kept between questions,
since importing takes seconds, and made anew after it had to be killed.
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

from symenum.bench.problems.problem import law_operators
from symenum.expressions import Apply, Constant, Expression, apply, fold, parse, to_sympy

__all__ = ["Answer", "Judge"]

Points = Sequence[Mapping[str, float]]
"""Values of the variables."""

Answer = Literal["yes", "no", "unknown", "out of time", "failed"]

_MEMORY = 4 << 30  # bytes of the process that asks SymPy
_START_SECONDS = 120.0  # to import SymPy and torch on a machine with many other processes
_DIGITS = 40  # of values that tell two laws apart: well above those of the doubles in them
_SMALL = sympy.Float("1e-5")  # below it a law is zero, if anything
_NOTHING = sympy.Float("1e-12")  # relative: constants of laws are doubles, sqrt(1.23) is 1.1090536506409416 there


class Judge:
    """`ask` never takes longer than it is told. Use as a context, so that the process ends."""

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
        """Whether `found` is `law` (both as text of our grammar): "equal", or "srbench" for up to a constant.

        `positive`: whether the variables are; `points`: some of the data, where the two can be told apart.
        """
        pipe = self._pipe or self._start()
        try:
            pipe.send((question, found, law, positive, [dict(point) for point in points]))
            if not pipe.poll(seconds):
                self.close()
                return "out of time"
            answer: Answer = pipe.recv()
        except (EOFError, OSError):  # it has died, of memory most likely
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
        except Exception:  # SymPy raises all sorts of things; a question without an answer is one
            answer = "failed"
        pipe.send(answer)


def _limit_memory() -> None:
    try:
        import resource
    except ImportError:  # Windows
        return
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, resource.getrlimit(resource.RLIMIT_DATA)[1]))


def equal_by_sympy(found: str, law: str, positive: bool, points: Points) -> bool | None:
    """Whether SymPy takes both for one function of real (or positive) variables; None where it does not know.

    "No" it says only where they differ at one of the points, which are those of the data: elsewhere both may be
    complex, and on different branches.
    """
    model, truth = _exact(found, positive), _exact(law, positive)
    difference = model - truth
    if difference == 0 or sympy.expand(difference) == 0:
        return True
    if not all(abs(a - b) <= _NOTHING * (abs(b) + _SMALL) for a, b in _values(model, truth, points)):
        return False
    return True if sympy.simplify(difference) == 0 or difference.equals(0) else None


def constant_apart_by_sympy(found: str, law: str, positive: bool, points: Points) -> bool | None:
    """SRBench's rule: found - law simplifies to a constant, or found/law to one; found itself must not be 0."""
    model, truth = _exact(found, positive), _exact(law, positive)
    if model == 0 or model.has(sympy.nan, sympy.zoo, sympy.oo):
        return False
    values = _values(model, truth, points)
    ratios, differences = [a / b for a, b in values if b], [a - b for a, b in values]
    scale = max((abs(b) for _, b in values), default=sympy.Float(0))
    possible = [
        *([model / truth] if _one(ratios, max(map(abs, ratios), default=scale)) else []),
        *([model - truth] if _one(differences, scale) else []),
    ]
    if not possible:
        return False
    return True if any(_constant(apart) for apart in possible) else None


def _one(values: list[sympy.Float], scale: sympy.Float) -> bool:
    """Whether all values may be one constant."""
    return not values or max(values) - min(values) <= _NOTHING * scale


def _constant(expr: sympy.Expr) -> bool:
    """Whether SymPy can show an expression to be a constant; the cheap ways first."""
    if not expr.free_symbols:
        return True
    ways = (sympy.expand, sympy.cancel, lambda e: sympy.simplify(e, ratio=1))
    return any(not simpler(expr).free_symbols for simpler in ways)


def _values(model: sympy.Expr, truth: sympy.Expr, points: Points) -> list[tuple[sympy.Float, sympy.Float]]:
    """Both at the points, to 40 digits: it settles most questions long before anything is simplified.

    Points where one of them is not a real number say nothing.
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
    """With decimals as fractions (0.5 is meant to be 1/2), and symbols that are as the data are."""

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
