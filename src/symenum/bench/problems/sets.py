"""All problem sets by name, each with its protocol. A new set is a line of `SETS`, or comes by `register_set`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from symenum.bench.problems.engineering import engineering
from symenum.bench.problems.external import (
    fifty_dim,
    srbench,
    srbench_130,
    srbench_133,
    srbench_feynman,
    srbench_strogatz,
)
from symenum.bench.problems.measured import pmlb, real
from symenum.bench.problems.motion import MotionProblem, odebench
from symenum.bench.problems.problem import Dataset, MissingDataError, NoiseKind
from symenum.bench.problems.random_laws import EVERY_OPERATOR, LAW_SETS, LawSet
from symenum.bench.problems.tables import PROBLEM_SETS, reference_problems
from symenum.core.registration import check_attributes, check_methods, check_name
from symenum.core.words import did_you_mean
from symenum.operators import OPERATOR_SETS

__all__ = ["SETS", "ProblemSet", "Protocol", "Rule", "get_set", "register_set"]

Rule = Literal["equal", "srbench", "structure", "clean error", "held out", "motion"]


@dataclass(frozen=True)
class Protocol:
    """How a set is run, and when a problem of it counts as solved.

    `rule` says what a law must equal: "equal", the true law; "srbench", the true law up to one added or multiplied
    constant; "structure", the true law up to all its constants and a bias. A law also counts after its constants are
    rounded to `decimals`. "clean error" asks for a small error instead (`judge.errors`), and "held out" judges by R² on
    rows that were held out, where nobody knows the law: no problem counts as solved then. "motion" is for laws of
    motion, solved where all have the true structure (`judge.motion`). `judged`: whether any law of
    the front counts, as in the paper, or only the selected one, as in SRBench. `noise` is the kind of noise on the
    target, at the levels `noise_levels`; with noise `noisy_rule`, if there is one, takes the place of `rule`.
    `operators` are the names of the operators that systems may use. `seeds` is how many seeds are run where nobody says
    how many.
    """

    rule: Rule = "equal"
    decimals: int = 3
    judged: Literal["front", "selected"] = "front"
    noise: NoiseKind = "std"
    noise_levels: tuple[float, ...] = (0.0,)
    operators: tuple[str, ...] = OPERATOR_SETS["koza"]
    noisy_rule: Rule | None = None
    seeds: int = 1

    def at(self, noise: float) -> Protocol:
        """The protocol for data with that level of noise."""
        return replace(self, rule=self.noisy_rule) if noise and self.noisy_rule is not None else self


@dataclass(frozen=True)
class ProblemSet:
    """A name, a title for people, a function that makes the problems (it may need external files), and a protocol.

    Where making all problems takes long, `names` are the names of them all, and `load_one` makes the one of a name.
    """

    name: str
    title: str
    load: Callable[[], tuple[Dataset, ...]]
    protocol: Protocol = Protocol()
    names: tuple[str, ...] = ()
    load_one: Callable[[str], Dataset] | None = None

    def problem_names(self) -> tuple[str, ...]:
        """The names of the problems, or MissingDataError with what is needed."""
        return self.names or tuple(problem.name for problem in self.problems())

    def problems(self) -> tuple[Dataset, ...]:
        """The problems, or MissingDataError with what is needed."""
        return self.load()

    def problem(self, name: str) -> Dataset:
        """The problem of that name."""
        by_name = {problem.name: problem for problem in self.problems()} if self.load_one is None else {}
        known = self.names or tuple(by_name)
        if name not in known:
            raise ValueError(f"unknown problem {name!r} of the set {self.name}{did_you_mean(name, known)}")
        return by_name[name] if self.load_one is None else self.load_one(name)


_EQUAL = Protocol()
# SRBench: three decimals, the selected law, and noise of 0, 0.001, 0.01 and 0.1 of the root mean square of y.
_SRBENCH = Protocol("srbench", 3, "selected", "rms", (0.0, 0.001, 0.01, 0.1))
# The paper on Nguyen-c: "the constants are trimmed to two decimal places before comparison".
_NGUYEN_C = Protocol(decimals=2)
# The constants of random laws have two decimals.
_RANDOM = Protocol(decimals=2, noise_levels=(0.0, 0.01, 0.1), operators=EVERY_OPERATOR, noisy_rule="structure")
# Three splits of a measured table. The operators are those that PSERegressor takes by default.
_HELD_OUT = Protocol("held out", judged="selected", seeds=3)
_ENGINEERING = Protocol("clean error", judged="selected")
# ODEFormer's levels of multiplicative noise on all samples.
_MOTION = Protocol("motion", judged="selected", noise_levels=(0.0, 0.05, 0.1))


def _table(name: str) -> tuple[Dataset, ...]:
    return PROBLEM_SETS[name]


def _paper(name: str, title: str, protocol: Protocol = _EQUAL) -> ProblemSet:
    return ProblemSet(name, title, partial(_table, name), protocol)


def _random(laws: LawSet) -> ProblemSet:
    return ProblemSet(laws.name, f"{laws.title} (our own)", laws.laws, _RANDOM, laws.names(), laws.law)


def _reference(name: str, title: str, protocol: Protocol = _EQUAL) -> ProblemSet:
    title = f"{title}, points and ranges of the reference's files"
    return ProblemSet(f"{name}_reference", title, partial(reference_problems, name), protocol)


_ALL = (
    _paper("nguyen", "Nguyen (paper, Table S.1)"),
    _paper("nguyen_c", "Nguyen-c, with constants (Table S.1)", _NGUYEN_C),
    _paper("r", "R, rational functions on [-1, 1] (Table S.1)"),
    _paper("r_star", "R*, rational functions on [-10, 10] (Table S.1)"),
    _paper("livermore", "Livermore (Table S.2)"),
    _paper("feynman", "Feynman, few points (Table S.2)"),
    _reference("nguyen", "Nguyen"),
    _reference("nguyen_c", "Nguyen-c", _NGUYEN_C),
    _reference("livermore", "Livermore"),
    _reference("feynman", "Feynman"),
    ProblemSet("fifty_dim", "20 laws of 12 of 50 variables (paper, Supplementary Note 7)", fifty_dim),
    ProblemSet("srbench", "SRBench: 120 Feynman and 14 Strogatz equations", srbench, _SRBENCH),
    ProblemSet("srbench_130", "SRBench, the 130 of most published tables", srbench_130, _SRBENCH),
    ProblemSet("srbench_133", "SRBench, the 133 of PMLB", srbench_133, _SRBENCH),
    ProblemSet("srbench_feynman", "SRBench, the 120 Feynman equations", srbench_feynman, _SRBENCH),
    ProblemSet("srbench_strogatz", "SRBench, the 14 Strogatz equations", srbench_strogatz, _SRBENCH),
    *map(_random, LAW_SETS.values()),
    ProblemSet("pmlb", "Measured tables of PMLB, a quarter of the rows held out", pmlb, _HELD_OUT),
    ProblemSet("real", "Tables of public data, a quarter of the rows held out", real, _HELD_OUT),
    ProblemSet("engineering", "Noisy laws of engineering, judged by their error (our own)", engineering, _ENGINEERING),
    ProblemSet("odebench", "Laws of motion, odd half of ODEBench: one short run each", odebench, _MOTION),
    _paper("deep", "Laws that no pass from the raw variables reaches (our own)"),
)

SETS: dict[str, ProblemSet] = {one.name: one for one in _ALL}
"""The sets by name."""


def register_set(problem_set: ProblemSet) -> None:
    """Add a set to `symenum bench`. Its problems are made once to check them, unless their files are missing."""
    if not isinstance(problem_set, ProblemSet):
        raise TypeError(f"a problem set must be a ProblemSet(name, title, load, protocol), not {problem_set!r:.80}")
    name = problem_set.name
    check_name("problem set", name, SETS)
    if name != _key(name):
        raise ValueError(f"name {name!r} of a problem set must be written {_key(name)!r}: so it is looked up")
    try:
        problems = problem_set.problems()
    except MissingDataError:
        problems = ()
    if not isinstance(problems, tuple):
        raise TypeError(f"load of the problem set {name!r} must return a tuple of problems, not {problems!r:.80}")
    for problem in problems:
        what = f"a problem of the set {name!r}"
        if problem_set.protocol.rule == "motion":
            if not isinstance(problem, MotionProblem):
                raise TypeError(f"{what} with the rule 'motion' must be a MotionProblem, not {problem!r:.80}")
            continue
        measured = problem_set.protocol.rule == "held out"
        methods = ("sample", "test") if measured else ("sample", "test", "fresh")
        check_methods(what, problem, dict.fromkeys(methods, ("seed",)))
        attributes = ("name", "variables") if measured else ("name", "variables", "expression", "positive")
        check_attributes(what, problem, attributes)
    names = [problem.name for problem in problems]
    if len(set(names)) < len(names):
        raise ValueError(f"the problem set {name!r} has two problems of one name")
    SETS[name] = problem_set


def get_set(name: str) -> ProblemSet:
    """The set of that name; - is the same as _, and capitals are the same as small letters.

    >>> get_set("Nguyen-c").name
    'nguyen_c'
    """
    word = _key(name)
    if word not in SETS:
        raise ValueError(f"unknown problem set {name!r}{did_you_mean(word, SETS)}; known: {', '.join(SETS)}")
    return SETS[word]


def _key(name: str) -> str:
    return name.strip().lower().replace("-", "_")
