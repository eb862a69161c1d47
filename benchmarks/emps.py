"""EMPS: the law of a positioning system from its measurements, by the paper's protocol and by ours; one table.

    SYMENUM_DATA=../shared/data python benchmarks/emps.py [--protocol paper general ours] [--seeds 20] [--max-time 60]

paper: the acceleration of the file is the target, operators of the paper, trained on the first half, and the row of
the front with the best reward on the second half is the law; general: the same with PSERegressor, which knows nothing
of time. ours: positions and forces alone, q'' = f(q, q', tau) by the weak form of second order, and the law that the
model itself selects. A law counts if it is a·tau + b·qdot + c·sign(qdot) + d (`symenum.bench.judge.structure`). Its
loss on the second half is divided by that of this law with coefficients fitted by least squares to the first half.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np
import pandas

from symenum import PSERegressor
from symenum.bench.judge import same_structure
from symenum.bench.problems.experiments import EMPS_LAW, EMPS_OPERATORS, EMPS_VARIABLES, Emps, load_emps
from symenum.dynamics import ODERegressor
from symenum.expressions import Expression, Variable, substitute, to_text
from symenum.front import Front


def paper_front(data: Emps, seed: int, max_time: float) -> Front:
    """Velocity and acceleration as measured: the front of the second state."""
    states = pandas.DataFrame(data.X[:, :2], columns=["q", "qdot"])
    tau = pandas.DataFrame({"tau": data.X[:, 2]})
    rates = np.column_stack([data.X[:, 1], data.y])
    model = ODERegressor(EMPS_OPERATORS, max_time=max_time, random_state=seed)
    model.fit(states, np.arange(len(states)) * data.step, tau, rates)
    return model.fronts_["qdot"]


def paper(data: Emps, seed: int, max_time: float) -> Expression:
    """The law of the second state that has the best reward on the second half."""
    front = paper_front(data, seed, max_time)
    return front[data.select(front)].expression


def general(data: Emps, seed: int, max_time: float) -> Expression:
    """The same by PSERegressor, which knows nothing of time."""
    model = PSERegressor(EMPS_OPERATORS, max_time=max_time, random_state=seed)
    model.fit(pandas.DataFrame(data.X, columns=list(EMPS_VARIABLES)), data.y)
    return model.front_[data.select(model.front_)].expression


def ours(data: Emps, seed: int, max_time: float) -> Expression:
    """Positions and forces alone: the law of second order that the model selects."""
    q, tau = pandas.DataFrame({"q": data.X[:, 0]}), pandas.DataFrame({"tau": data.X[:, 2]})
    model = ODERegressor(EMPS_OPERATORS, order=2, max_time=max_time, random_state=seed)
    model.fit(q, np.arange(len(q)) * data.step, tau)
    return substitute(model.best_expressions_["q"], {"q_dot": Variable("qdot")})


PROTOCOLS = {"paper": paper, "general": general, "ours": ours}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--protocol", nargs="*", default=["paper"], choices=list(PROTOCOLS))
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--max-time", type=float, default=60.0)
    options = parser.parse_args()
    data = load_emps()
    reference = data.reference_loss()
    print(f"reference law: test MSE {reference:.6g}")
    for name in options.protocol:
        print(f"{'protocol':9s} {'seed':>4s} {'form':5s} {'MSE':>8s} {'seconds':>8s}  law")
        right, ratios, times = 0, [], []
        for seed in range(options.seeds):
            start = time.perf_counter()
            law = PROTOCOLS[name](data, seed, options.max_time)
            times.append(time.perf_counter() - start)
            ratios.append(data.test_loss(law) / reference)
            same = same_structure(law, EMPS_LAW)
            right += same
            mark = "yes" if same else "NO"
            print(f"{name:9s} {seed:4d} {mark:5s} {ratios[-1]:8.4f} {times[-1]:8.1f}  {to_text(law, 4)}", flush=True)
        print(
            f"{name}: the form in {right} of {len(times)} seeds, MSE at most {max(ratios):.4f} of the reference's, "
            f"median {statistics.median(times):.1f} s"
        )


if __name__ == "__main__":
    main()
