"""How the set `deep` was made: random laws that no pass from the raw variables reaches, printed as a table.

    python benchmarks/make_deep_problems.py [--count 16] [--seed 0] [--depth 5 6]

A law is drawn as a random tree of the given depth in the koza operators over one to three variables (functions not
directly inside functions, every sub-tree different from all simpler ones on the data). It is kept if neither
`first_pass` with 10 s nor a full three-layer koza pass, both from the raw variables, recovers it, and if at most
5 - variables of its own sub-trees, as tokens, bring it within the reach of such a pass. Nothing here knows of the token
generators.
"""

from __future__ import annotations

import argparse
import itertools

import numpy as np
import torch

from symenum.bench.judge import recovered
from symenum.bench.problems import Problem
from symenum.engine import PSRN
from symenum.engine.distinct import canonical_signs, representatives
from symenum.expressions import Apply, Constant, Expression, Variable, evaluate, variables, walk
from symenum.heads import first_pass
from symenum.operators import get_operators

LOW, HIGH, ROWS = 0.5, 3.0, 100
SLOTS, LAYERS = 5, 3
MAX_COMPLEXITY = 16
MIN_SPREAD = 0.05  # of y, relative to its size: a nearly constant law says nothing
MAX_RATIO = 1e3  # of the largest to the median |y|: nor does one that is a single pole


def draw(rng: np.random.Generator, inputs: int, depth: int, *, full: bool, inside_function: bool = False) -> Expression:
    """A random tree; with `full` one of its branches has exactly that depth."""
    if depth == 0 or (not full and rng.random() < 0.4):
        return Variable(f"x{rng.integers(inputs) + 1}")
    operators = [
        operator
        for operator in get_operators("koza")
        if operator.name != "identity" and not (inside_function and operator.arity == 1)
    ]
    operator = operators[int(rng.integers(len(operators)))]
    deep = int(rng.integers(operator.arity))
    operands = tuple(
        draw(rng, inputs, depth - 1, full=full and place == deep, inside_function=operator.arity == 1)
        for place in range(operator.arity)
    )
    return Apply(operator, operands)


def is_plain(law: Expression, inputs: int) -> bool:
    """Whether all variables occur, the values are tame, and no sub-tree equals another that is written otherwise."""
    if len(variables(law)) != inputs or law.complexity > MAX_COMPLEXITY:
        return False
    generator = np.random.default_rng(5)
    columns = {f"x{i + 1}": torch.from_numpy(generator.uniform(LOW, HIGH, 400)) for i in range(inputs)}
    one = torch.ones(400, dtype=torch.float64)
    parts = [Constant(1), *dict.fromkeys(walk(law))]
    values = torch.stack([one if isinstance(part, Constant) else evaluate(part, columns) for part in parts])
    if not bool(torch.isfinite(values).all()) or float(values.abs().max()) > 1e6:
        return False
    if float((values.amax(1) - values.amin(1))[1:].min()) < 1e-6:  # a sub-tree that is constant
        return False
    values = values * canonical_signs(values)[:, None]
    if not torch.equal(representatives(values, torch.arange(len(parts)), 1e-9), torch.arange(len(parts))):
        return False
    y = values[-1]
    size = float(y.square().mean().sqrt())
    return float(y.std()) > MIN_SPREAD * size and float(y.abs().max()) < MAX_RATIO * float(y.abs().median())


def depth_above(law: Expression, tokens: frozenset[Expression]) -> int:
    """The depth that is left if the tokens are leaves."""
    if law in tokens or not isinstance(law, Apply):
        return 0
    return 1 + max(depth_above(operand, tokens) for operand in law.operands)


def right_tokens(law: Expression, inputs: int) -> tuple[Expression, ...] | None:
    """The fewest and simplest sub-trees that bring the law within reach of one pass."""
    parts = sorted({part for part in walk(law) if isinstance(part, Apply)} - {law}, key=lambda part: part.complexity)
    for count in range(1, SLOTS - inputs + 1):
        for tokens in itertools.combinations(parts, count):
            if depth_above(law, frozenset(tokens)) <= LAYERS:
                return tokens
    return None


def found_from_variables(problem: Problem) -> bool:
    X, y = problem.sample(0)
    names = list(problem.variables)
    found = [*first_pass(X, y, slots=names, time_limit=10.0)]
    found += PSRN(len(names), "koza", LAYERS).search(X, y, slots=names, k=5)
    return any(recovered(candidate.expression, problem) for candidate in found)


def found_with(problem: Problem, tokens: tuple[Expression, ...]) -> bool:
    X, y = problem.sample(0)
    slots = [*map(Variable, problem.variables), *tokens]
    values = np.stack([problem.values(X, slot) for slot in slots], axis=1)
    found = PSRN(len(slots), "koza", LAYERS).search(values, y, slots=slots, k=5)
    return any(recovered(candidate.expression, problem) for candidate in found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=16)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--depth", type=int, nargs=2, default=(5, 6), help="from, to")
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    kept = drawn = 0
    while kept < options.count:
        inputs = 1 + kept % 3
        law = draw(rng, inputs, int(rng.integers(options.depth[0], options.depth[1] + 1)), full=True)
        if not is_plain(law, inputs):
            continue
        tokens = right_tokens(law, inputs)
        if tokens is None:
            continue
        drawn += 1
        names = tuple(f"x{i + 1}" for i in range(inputs))
        problem = Problem(f"Deep-{kept + 1}", str(law), names, LOW, HIGH, ROWS)
        if len(problem.fresh()[1]) < 1000 or found_from_variables(problem) or not found_with(problem, tokens):
            continue
        kept += 1
        print(f"{problem.name} {inputs} {law.complexity} {law}    # {', '.join(map(str, tokens))}", flush=True)
    print(f"{kept} of {drawn} drawn")


if __name__ == "__main__":
    main()
