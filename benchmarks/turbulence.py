"""Pipe flow: Nikuradse's data collapsed onto one curve, the front of laws, and rivals in the same time; one table.

    SYMENUM_DATA=../shared/data python benchmarks/turbulence.py [--max-time 90] [--seeds 1] [--rivals] [--plot FILE]

For each complexity the smallest mean squared error of any seed. `--rivals` adds pyoperon and gplearn where they are
installed, with the same operators as far as they have them and the same time; our complexity is for all.
`--plot` draws the collapsed data with the law over it (needs matplotlib).
"""

from __future__ import annotations

import argparse
import time
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from symenum import PSERegressor
from symenum.bench.problems.experiments import TURBULENCE_OPERATORS, Turbulence, load_turbulence
from symenum.expressions import evaluate, parse, to_text
from symenum.expressions.candidate import Candidate
from symenum.front import Front

Laws = list[Candidate]


def symenum_laws(data: Turbulence, seed: int, max_time: float) -> Laws:
    model = PSERegressor(TURBULENCE_OPERATORS, max_time=max_time, random_state=seed)
    return list(model.fit(data.X, data.y).front_)


def judged(texts: list[str], data: Turbulence) -> Laws:
    """Laws of a rival as text, judged by their own printed numbers."""
    found = []
    for text in texts:
        try:
            law = parse(text)
        except ValueError:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            loss = float(np.mean((evaluate(law, {"x1": data.X[:, 0]}) - data.y) ** 2))
        if loss < np.inf:
            found.append(Candidate(law, loss))
    return found


def operon_laws(data: Turbulence, seed: int, max_time: float) -> Laws:
    from pyoperon.sklearn import SymbolicRegressor

    model = SymbolicRegressor(
        allowed_symbols="add,sub,mul,div,sin,cos,exp,log,tanh,cosh,square,constant,variable",
        objectives=["mse", "length"],
        max_length=30,
        optimizer_iterations=10,
        generations=10**6,
        max_evaluations=10**9,
        max_time=int(max_time),
        n_threads=2,
        random_state=seed,
    )
    model.fit(data.X, data.y)
    return judged(
        [model.get_model_string(row["tree"], 17, ["x1"]).replace("^", "**") for row in model.pareto_front_], data
    )


def gplearn_laws(data: Turbulence, seed: int, max_time: float) -> Laws:
    from gplearn.genetic import SymbolicRegressor

    begin = time.perf_counter()
    texts: list[str] = []
    model = SymbolicRegressor(
        population_size=1000,
        generations=1,
        function_set=("add", "sub", "mul", "div", "sin", "cos", "log"),
        parsimony_coefficient=0.0005,
        const_range=(-3.0, 3.0),
        random_state=seed,
        warm_start=True,
    )
    while time.perf_counter() - begin < max_time:
        model.fit(data.X, data.y)
        texts += [infix(program.program) for program in model._programs[-1] if program is not None][:50]
        texts.append(infix(model._program.program))
        model.set_params(generations=model.generations + 1)
    return judged(list(dict.fromkeys(texts)), data)


def infix(program: list) -> str:
    """A gplearn program, a flat list in prefix order, in our grammar."""
    signs = {"add": "+", "sub": "-", "mul": "*", "div": "/"}

    def read(at: int) -> tuple[str, int]:
        node = program[at]
        if isinstance(node, (int, np.integer)):
            return "x1", at + 1
        if isinstance(node, (float, np.floating)):
            return f"({float(node)!r})", at + 1
        parts = []
        at += 1
        for _ in range(node.arity):
            text, at = read(at)
            parts.append(text)
        if node.name in signs:
            return f"({parts[0]} {signs[node.name]} {parts[1]})", at
        return f"{node.name}({parts[0]})", at

    return read(0)[0]


def draw(path: Path, data: Turbulence, law: Candidate) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axis = figure.subplots()
    for roughness in np.unique(data.roughness):
        rows = data.roughness == roughness
        axis.plot(data.X[rows, 0], data.y[rows], ".", markersize=3, label=f"r/k = {roughness:g}")
    x = np.linspace(data.X.min(), data.X.max(), 500)
    axis.plot(x, evaluate(law.expression, {"x1": x}), "k", linewidth=1, label=f"complexity {law.complexity}")
    axis.set(xlabel="log10(Re sqrt(λ/32) k/r)", ylabel="λ^(-1/2) - 2 log10(r/k)", title=to_text(law.expression, 3))
    axis.title.set_fontsize(8)
    axis.legend(fontsize=7)
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--max-time", type=float, default=90.0, help="seconds per run")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--rivals", action="store_true")
    parser.add_argument("--plot", type=Path, default=None)
    options = parser.parse_args()
    data = load_turbulence()
    runs = {"symenum": symenum_laws}
    if options.rivals:
        runs |= {"pyoperon": operon_laws} if find_spec("pyoperon") else {}
        runs |= {"gplearn": gplearn_laws} if find_spec("gplearn") else {}
    fronts = {}
    for name, run in runs.items():
        laws: Laws = []
        for seed in range(options.seeds):
            laws += run(data, seed, options.max_time)
        fronts[name] = Front(rows=len(data.y)).update(laws, 40)
    print(f"{'complexity':>10s}" + "".join(f"{name:>12s}" for name in fronts) + "  law of symenum")
    for complexity in sorted({entry.complexity for front in fronts.values() for entry in front}):
        best = {
            name: min((entry for entry in front if entry.complexity <= complexity), key=lambda e: e.loss, default=None)
            for name, front in fronts.items()
        }
        cells = [f"{entry.loss:12.6f}" if entry else f"{'-':>12s}" for entry in best.values()]
        own = best["symenum"]
        law = to_text(own.expression, 4) if own is not None and own.complexity == complexity else ""
        print(f"{complexity:10d}" + "".join(cells) + f"  {law}")
    rewards = fronts["symenum"].rewards()
    chosen = fronts["symenum"][int(np.argmax(rewards))]
    print(f"best reward: complexity {chosen.complexity}, MSE {chosen.loss:.6f}: {to_text(chosen.expression, 4)}")
    if options.plot is not None:
        draw(options.plot, data, chosen)


if __name__ == "__main__":
    main()
