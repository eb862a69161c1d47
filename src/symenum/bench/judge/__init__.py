"""Whether a run has found the law: three verdicts that do not depend on each other, and the protocol's rule on them.

Numeric: agreement on fresh points (`numeric`). Symbolic: what SymPy answers within its time (`symbolic`). Structure:
the same terms up to constants and a bias (`structure`). A row reports all three; the protocol says which of them count.
What "the same law" means is decided in this folder and nowhere else.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from symenum.bench.judge.numeric import agree, constant_apart, recovered, rounded, undefined
from symenum.bench.judge.structure import multiplied_out, same_structure
from symenum.bench.judge.symbolic import SYMPY_SECONDS, Answer, Judge, data_points
from symenum.bench.problems import Case, Protocol
from symenum.expressions import Expression, to_text

__all__ = [
    "SYMPY_SECONDS",
    "Answer",
    "Judge",
    "Verdict",
    "agrees",
    "data_points",
    "judge_front",
    "recovered",
    "same_structure",
    "verdict",
]

_MIN_SECONDS = 1.0  # for SymPy on each further form of a law, where an earlier one took all the time; most need less


@dataclass(frozen=True)
class Verdict:
    """The verdicts on one expression. `solved` follows from the other three by the protocol's rule.

    `symbolic` is None where SymPy was not asked.
    """

    numeric: bool
    symbolic: Answer | None
    structure: bool
    solved: bool


def verdict(
    found: Expression, case: Case, protocol: Protocol, judge: Judge | None, seconds: float = SYMPY_SECONDS
) -> Verdict:
    """All verdicts on one expression; without a judge SymPy is not asked.

    Three forms of the expression are compared with the law, and one that agrees is enough: the expression as it is,
    with its constants rounded as the protocol says, and multiplied out with its constants rounded then. Under SRBench's
    rule the constants of the law are rounded too, for the last two forms.
    """
    law = case.expression
    rounded_law = rounded(law, protocol.decimals) if protocol.rule == "srbench" else law
    pairs = [(found, law)]
    if not undefined(found, case):  # sqrt(x)**2 has no value at -1 and must not become x
        forms = (rounded(found, protocol.decimals), multiplied_out(found, protocol.decimals))
        pairs = list(dict.fromkeys([*pairs, *((form, rounded_law) for form in forms if form is not None)]))
    test = constant_apart if protocol.rule == "srbench" else agree
    numeric = any(test(a, b, case) for a, b in pairs)
    structure = same_structure(found, law)
    symbolic = None if judge is None else _symbolic(pairs, case, protocol, judge, seconds)
    return Verdict(numeric, symbolic, structure, _solved(protocol, numeric, symbolic, structure))


def agrees(found: Expression, case: Case, protocol: Protocol) -> bool:
    """Whether an expression is the law without asking SymPy: by numbers, or under the rule "structure" by structure."""
    without_sympy = verdict(found, case, protocol, None)
    return without_sympy.structure if protocol.rule == "structure" else without_sympy.numeric


def judge_front(
    front: Sequence[Expression],
    selected: int,
    case: Case,
    protocol: Protocol,
    judge: Judge,
    seconds: float = SYMPY_SECONDS,
) -> tuple[int, Verdict]:
    """The index of the entry of the front that is judged, and the verdict on it.

    Where the protocol judges the selected entry alone, it is that one. Elsewhere it is the first entry, from simple to
    accurate, whose numeric verdict (under the rule "structure": whose structure) is yes. Where there is none, it is the
    most accurate entry, or the selected one if SymPy says yes to that one only.
    """
    if protocol.judged == "selected":
        return selected, verdict(front[selected], case, protocol, judge, seconds)
    for i, expression in enumerate(front):
        if agrees(expression, case, protocol):
            return i, verdict(expression, case, protocol, judge, seconds)
    last = len(front) - 1
    best = verdict(front[last], case, protocol, judge, seconds)
    if best.solved or selected == last:
        return last, best
    second = verdict(front[selected], case, protocol, judge, seconds)
    return (selected, second) if second.solved or second.symbolic == "yes" else (last, best)


def _symbolic(
    pairs: Sequence[tuple[Expression, Expression]], case: Case, protocol: Protocol, judge: Judge, seconds: float
) -> Answer:
    """SymPy's answer: "yes" if it is yes for one pair, "no" if it is no for all of them, else its first other answer.

    `seconds` are for all pairs together; starting SymPy's process does not count.
    """
    question = "srbench" if protocol.rule == "srbench" else "equal"
    answers: list[Answer] = []
    end = time.monotonic() + seconds
    points = data_points(case)
    for found, law in pairs:
        remaining = max(_MIN_SECONDS, end - time.monotonic())
        texts = to_text(found), to_text(law)
        answers.append(judge.ask(question, *texts, remaining, positive=case.positive, points=points))
        if answers[-1] == "yes":
            return "yes"
    return next((answer for answer in answers if answer != "no"), "no")


def _solved(protocol: Protocol, numeric: bool, symbolic: Answer | None, structure: bool) -> bool:
    if protocol.rule == "structure":
        return structure
    if protocol.rule == "srbench":  # SRBench asks SymPy alone; numbers count only where SymPy has no answer
        return symbolic == "yes" or (symbolic != "no" and numeric)
    return numeric and symbolic != "no"
