"""Constants of random expressions fitted by `refine` and by SciPy's Powell: how many are found, how fast.

    python benchmarks/fitting.py [--problems 200] [--rows 1000] [--starts 24] [--seed 0] [--poles] [--failures]

The problems: random trees of + - * / sin cos exp log over two variables and constants, as many with 1, 2, ... 6
constants. Variables are uniform in (-3, 3) or in (0.3, 3), by turns; constants uniform in (-3, 3), the paper's range. A
tree must be finite on the box that the data are from (300 points of their own), no denominator may change its sign
there (with --poles it may), no operator may act on constants alone, and the constants must be identifiable: the
Jacobian at the truth, its columns scaled to length one, has a ratio of smallest to largest singular value above 1e-6.
All of this is asked of the truth; no problem is left out for what a method makes of it. The data are exact. The
start is the truth with each constant times a factor log-uniform in [1/3, 3], for both methods; it may be not finite.

`refine` gets the whole list in one call. Powell runs with SciPy's default tolerances on a compiled NumPy function of
the whole expression. Seconds are of the processor: both use one thread, and the machine is shared, so `refine` is
called ten times, each time before a tenth of Powell's problems, and its seconds are the mean. What was made before the
clock starts is taken out of Python's garbage collection, for both.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.optimize
import torch

from symenum.core.threads import torch_threads
from symenum.expressions import Apply, Constant, Expression, Variable, evaluate
from symenum.fitting import free_constants, refine, with_constants
from symenum.fitting.batch_evaluation import Machine
from symenum.fitting.batch_program import compile_program
from symenum.fitting.free_constants import postfix
from symenum.operators import get_operator

BINARY, UNARY = ("add", "sub", "mul", "div"), ("sin", "cos", "exp", "log")
NUMPY: dict[str, Callable[..., np.ndarray]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
    "sin": np.sin, "cos": np.cos, "exp": np.exp, "log": np.log,
}  # fmt: skip
SOLVED = 1e-20  # MSE below this part of the variance of y
IDENTIFIED = 1e-6
TURNS = 10


@dataclass(frozen=True)
class Task:
    """A truth, its data, and where the fit starts."""

    truth: Expression
    start: Expression
    y: torch.Tensor

    @property
    def size(self) -> int:
        return len(free_constants(self.truth))

    def solved(self, mse: float) -> bool:
        return mse < SOLVED * float(self.y.var(correction=0))


def random_columns(random: np.random.Generator, rows: int) -> dict[str, torch.Tensor]:
    """x1 and x2 in (-3, 3), x3 and x4 in (0.3, 3)."""
    return {f"x{i}": torch.from_numpy(random.uniform(-3.0 if i < 3 else 0.3, 3.0, rows)) for i in (1, 2, 3, 4)}


Grown = tuple[Expression, "np.ndarray | float"]


def grow(random: np.random.Generator, box: list[tuple[str, np.ndarray]], poles: bool, depth: int = 0) -> Grown:
    """A random tree with its values on the box; operands are drawn anew until the operator has values on them."""
    if depth > 0 and (depth >= 5 or random.random() < 0.15 * depth):
        if random.random() < 0.5:
            value = float(random.uniform(-3, 3))
            return Constant(value), value
        name, column = box[random.integers(2)]
        return Variable(name), column
    while True:  # the operator is drawn anew too: none of the variables may have a logarithm
        name = BINARY[random.integers(4)] if random.random() < 0.67 else UNARY[random.integers(4)]
        operator = get_operator(name)
        operands = [grow(random, box, poles, depth + 1) for _ in range(operator.arity)]
        values = [value for _, value in operands]
        if all(isinstance(value, float) for value in values):
            continue  # constants alone are one constant
        if name == "div" and not poles and np.min(values[1]) <= 0 <= np.max(values[1]):
            continue
        value = NUMPY[name](*values)
        if np.isfinite(value).all():
            return Apply(operator, tuple(operand for operand, _ in operands)), value


def random_tasks(count: int, rows: int, seed: int, poles: bool) -> tuple[list[Task], dict[str, torch.Tensor]]:
    """As many tasks of each number of constants from 1 to 6."""
    random = np.random.default_rng(seed)
    columns = random_columns(random, rows)
    dense = {name: column.numpy() for name, column in random_columns(random, 300).items()}
    tasks: list[list[Task]] = [[] for _ in range(6)]
    wanted = [len(range(i, count, 6)) for i in range(6)]
    turn = 0
    while any(len(found) < size for found, size in zip(tasks, wanted, strict=True)):
        turn += 1
        names = (("x1", "x2"), ("x3", "x4"))[turn % 2]
        with np.errstate(all="ignore"):
            truth, _ = grow(random, [(name, dense[name]) for name in names], poles)
        constants = free_constants(truth)
        if not 1 <= len(constants) <= 6 or len(tasks[len(constants) - 1]) == wanted[len(constants) - 1]:
            continue
        y = evaluate(truth, columns)
        if (
            bool(torch.isfinite(y).all())
            and float(y.std()) > 1e-6 * float(y.abs().max())
            and identified(truth, columns)
        ):
            factors = 3.0 ** random.uniform(-1, 1, len(constants))
            start = with_constants(truth, [c * f for c, f in zip(constants, factors, strict=True)])
            tasks[len(constants) - 1].append(Task(truth, start, y))
    return [task for found in tasks for task in found], columns


def identified(truth: Expression, columns: dict[str, torch.Tensor]) -> bool:
    program = compile_program([postfix(truth)], columns)
    machine = Machine(program, np.array([0]), len(columns["x1"]))
    machine.load(program.data)
    machine.seeds[:] = 1.0
    with np.errstate(all="ignore"):
        machine.values(program.starts[:, :, None])
        J = torch.from_numpy(machine.derivatives()[:, :, 0])
    norms = J[0].norm(dim=1, keepdim=True)
    if not bool(torch.isfinite(norms).all()) or float(norms.min()) == 0:
        return False
    singular = torch.linalg.svdvals(J[0] / norms)
    return bool(singular[-1] > IDENTIFIED * singular[0])


def numpy_function(expression: Expression) -> Callable[..., np.ndarray]:
    """A compiled function of the constants c and the columns, calling NumPy and nothing else."""
    count = 0

    def write(node: Expression) -> str:
        nonlocal count
        if isinstance(node, Constant):
            count += 1
            return f"c[{count - 1}]"
        if isinstance(node, Variable):
            return node.name
        operands = [write(operand) for operand in node.operands]
        if node.operator.sign is not None and len(operands) == 2:
            return f"({operands[0]} {node.operator.sign} {operands[1]})"
        return f"{node.operator.name}({', '.join(operands)})"

    source = f"lambda c, x1, x2, x3, x4: {write(expression)}"
    return eval(source, NUMPY)


def powell(task: Task, columns: dict[str, np.ndarray]) -> tuple[float, int]:
    """Its mean square error, and how often it asked for it."""
    function, y = numpy_function(task.start), task.y.numpy()
    arrays = [columns[name] for name in ("x1", "x2", "x3", "x4")]
    worst = 1e30 * float(np.mean(y**2))

    def loss(c: np.ndarray) -> float:
        error = function(c.tolist(), *arrays) - y
        value = float(error @ error) / len(y)
        return value if value < worst else worst  # Powell knows no values that are not finite

    found = scipy.optimize.minimize(loss, np.array(free_constants(task.start)), method="Powell")
    return float(found.fun), int(found.nfev)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=200)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--starts", type=int, default=24)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--poles", action="store_true")
    parser.add_argument("--failures", action="store_true", help="print what was not solved")
    arguments = parser.parse_args()
    with torch_threads(1):
        tasks, columns = random_tasks(arguments.problems, arguments.rows, arguments.seed, arguments.poles)
        y = torch.stack([task.y for task in tasks])
        starts = [task.start for task in tasks]
        refine(starts[:2], columns, y[:2])  # the first call of anything in torch is slow
        arrays = {name: column.numpy() for name, column in columns.items()}
        together, theirs, seconds, calls = [], [], [], 0
        gc.collect()
        gc.freeze()
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            for part in range(TURNS):
                clock = time.process_time()
                found = refine(starts, columns, y, starts=arguments.starts)
                together.append(time.process_time() - clock)
                for task in tasks[part::TURNS]:
                    clock = time.process_time()
                    mse, evaluations = powell(task, arrays)
                    seconds.append(time.process_time() - clock)
                    theirs.append(task.solved(mse))
                    calls += evaluations
    ours = [task.solved(result.loss) for task, result in zip(tasks, found, strict=True)]
    count = len(tasks)
    print(
        f"{count} problems, {arguments.rows} rows, seed {arguments.seed}, {arguments.starts} further starts, ", end=""
    )
    print(f"poles {'allowed' if arguments.poles else 'excluded'}\n")
    print("| method | solved | seconds | ratio |")
    print("|---|---|---|---|")
    total, mean = sum(seconds), statistics.mean(together)
    print(f"| Powell ({calls:,} evaluations) | {sum(theirs)} ({sum(theirs) / count:.1%}) | {total:.2f} | 1.0 |")
    print(f"| refine | {sum(ours)} ({sum(ours) / count:.1%}) | {mean:.3f} | {total / mean:.1f} |\n")
    print("solved by the number of constants, of refine:", end=" ")
    for size in range(1, 7):
        mine = [ok for ok, task in zip(ours, tasks, strict=True) if task.size == size]
        print(f"{size}: {sum(mine)}/{len(mine)}", end="  ")
    print()
    if not arguments.failures:
        return
    print("not solved:")
    for task, result, ok in zip(tasks, found, ours, strict=True):
        if not ok:
            print(f"  {result.loss / float(task.y.var(correction=0)):.1e}  {task.truth}")


if __name__ == "__main__":
    main()
