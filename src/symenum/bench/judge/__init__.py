"""Whether a run has found the law: two verdicts that know nothing of each other, a third for noise, and the rule.

Numeric: agreement on fresh points (`numeric`). Symbolic: what SymPy says within its time (`symbolic`). Structure: the
same terms up to constants and a bias (`structure`). All that were asked are reported; the protocol says which count.
What two laws being the same means is decided in this folder and nowhere else.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from symenum.bench.judge.numeric import agree, constant_apart, recovered, rounded, undefined
from symenum.bench.judge.structure import multiplied_out, same_structure
from symenum.bench.judge.symbolic import Answer, Judge
from symenum.bench.problems import Case, Protocol
from symenum.expressions import Expression, to_text

__all__ = ["Answer", "Judge", "Verdict", "judge_front", "recovered", "same_structure", "verdict"]

_SECONDS = 10.0  # for SymPy on one law; it answers most questions within one
_POINTS = 4  # of the data, on which SymPy may tell the two apart
_LEAST_SECONDS = 1.0  # for a later pair, when an earlier one took all


@dataclass(frozen=True)
class Verdict:
    """`solved` follows from the others by the protocol's rule. `numeric` and `symbolic` never see each other."""

    numeric: bool
    symbolic: Answer | None
    structure: bool
    solved: bool

    @property
    def disagree(self) -> bool:
        """Whether one verdict says yes and the other no."""
        return (self.symbolic == "yes" and not self.numeric) or (self.symbolic == "no" and self.numeric)


def verdict(
    found: Expression, case: Case, protocol: Protocol, judge: Judge | None, seconds: float = _SECONDS
) -> Verdict:
    """All verdicts on one expression; without a judge SymPy is not asked.

    The expression counts as it is, with its constants rounded as the protocol says, or multiplied out and then rounded;
    SRBench rounds the law too.
    """
    law = case.expression
    short = rounded(law, protocol.decimals) if protocol.rule == "srbench" else law
    pairs = [(found, law)]
    if not undefined(found, case):  # sqrt(x)**2 has no value at -1 and must not become x
        other = (rounded(found, protocol.decimals), multiplied_out(found, protocol.decimals))
        pairs = list(dict.fromkeys([*pairs, *((form, short) for form in other if form is not None)]))
    test = constant_apart if protocol.rule == "srbench" else agree
    numeric = any(test(a, b, case) for a, b in pairs)
    structure = same_structure(found, law)
    symbolic = None if judge is None else _symbolic(pairs, case, protocol, judge, seconds)
    return Verdict(numeric, symbolic, structure, _solved(protocol, numeric, symbolic, structure))


def judge_front(
    front: Sequence[Expression], selected: int, case: Case, protocol: Protocol, judge: Judge, seconds: float = _SECONDS
) -> tuple[int, Verdict]:
    """The entry that the verdict is about, and the verdict.

    That is the selected one where the protocol judges it alone. Elsewhere it is the first, from simple to accurate,
    that numbers or structure speak for; and where there is none, the most accurate and then the selected one.
    """
    if protocol.judged == "selected":
        return selected, verdict(front[selected], case, protocol, judge, seconds)
    for i, expression in enumerate(front):
        plain = verdict(expression, case, protocol, None)
        if plain.structure if protocol.rule == "structure" else plain.numeric:
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
    """The best of SymPy's answers on the pairs; `seconds` are for all of them, a new process not counted."""
    question = "srbench" if protocol.rule == "srbench" else "equal"
    answers: list[Answer] = []
    end = time.monotonic() + seconds
    rows = case.test()[0][:_POINTS]
    points = [dict(zip(case.variables, map(float, row), strict=True)) for row in rows]
    for found, law in pairs:
        left = max(_LEAST_SECONDS, end - time.monotonic())
        texts = to_text(found), to_text(law)
        answers.append(judge.ask(question, *texts, left, positive=case.positive, points=points))
        if answers[-1] == "yes":
            return "yes"
    doubts = [answer for answer in answers if answer != "no"]
    return doubts[0] if doubts else "no"


def _solved(protocol: Protocol, numeric: bool, symbolic: Answer | None, structure: bool) -> bool:
    if protocol.rule == "structure":
        return structure
    if protocol.rule == "srbench":  # SRBench asks SymPy alone; numbers speak only where it has no answer
        return symbolic == "yes" or (symbolic != "no" and numeric)
    return numeric and symbolic != "no"
