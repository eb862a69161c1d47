"""The paper's experiments beyond formulas: sixteen chaotic systems, the EMPS positioning system, Nikuradse's pipes.

Chaotic systems: equations, parameters, initial conditions and periods are those of the public collection dysts, with
forcing set to zero as in the paper. The protocol `PAPER` is the paper's in every step, the smoothing of the reference
code included; `OURS` has accurate trajectories, independent noise for each state, and the weak form.

EMPS: a model is trained on the first half of the rows, its target is the acceleration, and the law is selected by the
reward on the second half. $SYMENUM_DATA/emps.csv, not shipped, has four columns without names: position, velocity,
acceleration and motor force; its rows are 1 ms apart.

Pipes: $SYMENUM_DATA/nikuradse.csv, not shipped, has three columns without names: log10 Re, log10(100 λ), and the
roughness k = r/k_s. The collapse onto one curve is that of the paper's code: x = log10(Re √(λ/32) / k),
y = λ^(-1/2) + 2 log10(1/k).

These are data and laws only: `benchmarks/chaotic.py`, `emps.py` and `turbulence.py` run them. They are not sets of
`symenum bench`, because their models are not plain regressions on samples of a law.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.integrate import solve_ivp
from scipy.signal import savgol_filter

from symenum.bench.problems.problem import Array, data_file
from symenum.dynamics import Differentiator, Motion
from symenum.dynamics.simulate import right_side
from symenum.expressions import Constant, Expression, evaluate, parse, simplify, substitute
from symenum.fitting import least_squares, linear_combination, plain_number
from symenum.front import Front
from symenum.selection import reward

__all__ = [
    "CHAOTIC",
    "CHAOTIC_OPERATORS",
    "EMPS_LAW",
    "EMPS_OPERATORS",
    "EMPS_VARIABLES",
    "OURS",
    "PAPER",
    "TURBULENCE_OPERATORS",
    "ChaoticSystem",
    "Emps",
    "MotionProtocol",
    "ReferenceDerivative",
    "Turbulence",
    "collapse",
    "load_emps",
    "load_turbulence",
    "sample",
]

# Chaotic systems

CHAOTIC_OPERATORS = (
    *("+", "*", "-", "semidiv", "identity"),
    *("sin", "cos", "exp", "log", "tanh", "cosh", "abs", "sign"),
)
"""The paper's operators for the chaotic systems."""
_PERIODS = 10  # length of a trajectory in periods of its system, as in the paper
_POINTS = 1000  # points of a trajectory, as in the paper


@dataclass(frozen=True)
class ChaoticSystem:
    """x' = f(x): `texts` holds f of each variable, in the variables and parameters.

    `period` and `first_step` (of the reference's solver) are in the time units of the equations.
    """

    name: str
    variables: tuple[str, ...]
    texts: tuple[str, ...]
    start: tuple[float, ...]
    period: float
    first_step: float
    parameters: Mapping[str, float] = field(default_factory=dict)
    _trajectories: dict[bool, Array] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def laws(self) -> tuple[Expression, ...]:
        """The equations with the parameters' values in them."""
        values = {name: Constant(value) for name, value in self.parameters.items()}
        return tuple(simplify(substitute(parse(text), values)) for text in self.texts)

    def trajectory(self, accurate: bool) -> tuple[Array, Array]:
        """Times (1000,) over ten periods and states (1000, states), float64, without noise.

        `accurate`: at tolerances of 1e-10. Otherwise by the solver and at the tolerances of the paper's code; these
        trajectories differ visibly from the accurate ones.
        """
        t = np.linspace(0, _PERIODS * self.period, _POINTS)
        if accurate not in self._trajectories:
            options = (
                {"method": "DOP853", "rtol": 1e-10, "atol": 1e-10}
                if accurate
                else {"method": "Radau", "first_step": self.first_step}
            )
            right = right_side(self.laws, self.variables, None, 1)
            self._trajectories[accurate] = solve_ivp(right, (0.0, float(t[-1])), self.start, t_eval=t, **options).y.T
        return t, self._trajectories[accurate]


@dataclass(frozen=True)
class ReferenceDerivative:
    """The reference's derivative: differences of states that a Savitzky–Golay filter (window 5, order 3) has smoothed.

    The states themselves stay as measured.
    """

    def __call__(self, t: Array, X: Array) -> Motion:
        first = np.gradient(savgol_filter(X, 5, 3, axis=0), t, axis=0, edge_order=2)
        return Motion(X.copy(), first, np.gradient(first, t, axis=0, edge_order=2))


@dataclass(frozen=True)
class MotionProtocol:
    """How trajectories are made and differentiated; `same_noise`: all states get one sequence of noise."""

    name: str
    accurate: bool
    same_noise: bool
    derivative: str | Differentiator


PAPER = MotionProtocol("paper", accurate=False, same_noise=True, derivative=ReferenceDerivative())
OURS = MotionProtocol("ours", accurate=True, same_noise=False, derivative="weak")


def sample(system: ChaoticSystem, protocol: MotionProtocol, noise: float, seed: int) -> tuple[Array, Array]:
    """Times (1000,) and noisy states (1000, states); `noise` is in standard deviations of each state."""
    t, X = system.trajectory(protocol.accurate)
    random = np.random.RandomState(seed)
    errors = random.normal(size=len(t))[:, None] if protocol.same_noise else random.normal(size=X.shape)
    return t, X + noise * X.std(axis=0) * errors


CHAOTIC = (
    ChaoticSystem(
        "NewtonLiepnik",
        ("x", "y", "z"),
        ("-a*x + y + 10*y*z", "-x - 0.4*y + 5*x*z", "b*z - 5*x*y"),
        (0.29430753, 0.10649486, 0.29081125),
        8.5095,
        0.0017021836972827486,
        {"a": 0.4, "b": 0.175},
    ),
    ChaoticSystem(
        "HyperLorenz",
        ("x", "y", "z", "w"),
        ("a*(y - x) + w", "-x*z + c*x - y", "-b*z + x*y", "d*w - x*z"),
        (-9.186073735061425, -0.6744570634419695, 16.440536886214517, -145.0243848950473),
        1.277546730110058,
        0.00025555193801167774,
        {"a": 10, "b": 2.667, "c": 28, "d": 1.1},
    ),
    ChaoticSystem(
        "HyperJha",
        ("x", "y", "z", "w"),
        ("a*(y - x) + w", "-x*z + b*x - y", "x*y - c*z", "-x*z + d*w"),
        (13.76544888070825, 20.203791990082554, 32.08179795423583, -51.189321449994914),
        0.8564467295817622,
        0.00017131789889951677,
        {"a": 10, "b": 28, "c": 2.667, "d": 1.3},
    ),
    ChaoticSystem(
        "HyperPang",
        ("x", "y", "z", "w"),
        ("a*(y - x)", "-x*z + c*y + w", "x*y - b*z", "-d*(x + y)"),
        (8.40863585, 4.67210241, 27.91032548, -1.26300886),
        0.8439374360017028,
        0.0001688156231375615,
        {"a": 36, "b": 3, "c": 20, "d": 2},
    ),
    ChaoticSystem(
        "ShimizuMorioka",
        ("x", "y", "z"),
        ("y", "x - a*y - x*z", "-b*z + x**2"),
        (0.016838697, 0.03489384, 0.35346848),
        12.038,
        0.002408001333556058,
        {"a": 0.85, "b": 0.5},
    ),
    ChaoticSystem(
        "GenesioTesi",
        ("x", "y", "z"),
        ("y", "z", "-c*x - b*y - a*z + x**2"),
        (-0.053772565, -0.26162564, 0.33501557),
        5.9431,
        0.0011888181363559625,
        {"a": 0.44, "b": 1.1, "c": 1},
    ),
    ChaoticSystem(
        "Laser",
        ("x", "y", "z"),
        ("a*(y - x) + b*y*z**2", "c*x + d*x*z**2", "h*z + k*x**2"),
        (-2.540801356216252, -1.940570579119389, -2.9680975444071955),
        0.94667,
        0.00018936556092683077,
        {"a": 10.0, "b": 1.0, "c": 5.0, "d": -1.0, "h": -5.0, "k": -6.0},
    ),
    ChaoticSystem(
        "Duffing",
        ("x", "y", "z"),
        ("y", "-delta*y - beta*x - alpha*x**3", "omega"),
        (-1.1635382, -0.5092374, 0.0),
        7.4496,
        0.0014901683613936711,
        {"alpha": 1.0, "beta": -1.0, "delta": 0.1, "omega": 1.4},
    ),
    ChaoticSystem(
        "Brusselator",
        ("x", "y", "z"),
        ("a + x**2*y - (b + 1)*x", "b*x - x**2*y", "w"),
        (0.40635464, 1.8192295, 6381.6484),
        20.411,
        0.004082880480079893,
        {"a": 0.4, "b": 1.2, "w": 0.81},
    ),
    ChaoticSystem(
        "KawczynskiStrizhak",
        ("x", "y", "z"),
        ("gamma*(y - x**3 + 3*mu*x)", "-2*mu*x - y - z + beta", "kappa*(x - z)"),
        (-1.160501, 5.8636902, -1.2031947),
        10.991666666666667,
        0.0015985997666280128,
        {"beta": -0.4, "gamma": 0.49, "kappa": 0.2, "mu": 2.1},
    ),
    ChaoticSystem(
        "Rucklidge",
        ("x", "y", "z"),
        ("-a*x + b*y - y*z", "x", "-z + y**2"),
        (1.9257158, 3.1923835, 5.7829655),
        6.0721,
        0.0012146224370729896,
        {"a": 2.0, "b": 6.7},
    ),
    ChaoticSystem(
        "FitzHughNagumo",
        ("x", "y", "z"),
        ("x - x**3/3 - y + curr", "gamma*(x + a - b*y)", "omega"),
        (-1.2155252, -0.046470891, 0.0),
        42.12235294117647,
        0.008425874900717644,
        {"a": 0.7, "b": 0.8, "curr": 0.965, "gamma": 0.08, "omega": 0.04365},
    ),
    ChaoticSystem(
        "Finance",
        ("x", "y", "z"),
        ("(1/b - a)*x + z + x*y", "-b*y - x**2", "-x - c*z"),
        (-0.51664739, -3.9568707, 0.0012893581),
        9.8932,
        0.001978969828304571,
        {"a": 0.001, "b": 0.2, "c": 1.1},
    ),
    ChaoticSystem(
        "DequanLi",
        ("x", "y", "z"),
        ("a*(y - x) + d*x*z", "k*x + f*y - x*z", "c*z + x*y - eps*x**2"),
        (-11.395722, -104.12614, 202.46173),
        0.083806,
        1.6763993998996084e-05,
        {"a": 40, "c": 1.833, "d": 0.16, "eps": 0.65, "f": 20, "k": 55},
    ),
    ChaoticSystem(
        "Hadley",
        ("x", "y", "z"),
        ("-y**2 - z**2 - a*x + a*f", "x*y - b*x*z - y + g", "b*x*y + x*z - z"),
        (1.3664423, 0.9309146, 0.64283417),
        1.4541,
        0.00029086847807974437,
        {"a": 0.2, "b": 4, "f": 9, "g": 1},
    ),
    ChaoticSystem(
        "SprottJerk",
        ("x", "y", "z"),
        ("y", "z", "-x + y**2 - mu*z"),
        (-0.54106056, 0.59383201, 0.45127217),
        11.921,
        0.0023845974329054797,
        {"mu": 2.017},
    ),
)
"""The sixteen systems, with the values of dysts."""


# The EMPS positioning system

EMPS_OPERATORS = (
    *("+", "*", "semisub", "semidiv", "identity"),
    *("sin", "cos", "exp", "log", "cosh", "tanh", "abs", "sign"),
)
"""The paper's operators for EMPS."""
EMPS_VARIABLES = ("q", "qdot", "tau")
EMPS_LAW = parse("tau + qdot + sign(qdot) + 1")
"""The structure of the reference law: a·tau + b·qdot + c·sign(qdot) + d."""
_EMPS_TRAIN_ROWS = 5000  # the first half of the file, as in the paper


@dataclass(frozen=True)
class Emps:
    """X (rows, 3), columns `EMPS_VARIABLES`, and the acceleration y (rows,) of both halves; `step` is in seconds."""

    X: Array
    y: Array
    X_test: Array
    y_test: Array
    step: float = 1e-3

    def test_loss(self, law: Expression) -> float:
        """The mean squared error on the second half."""
        return float(np.mean((_values(law, self.X_test) - self.y_test) ** 2))

    def select(self, front: Front) -> int:
        """The row with the best reward on the second half."""
        rewards = [reward(self.test_loss(entry.expression), entry.complexity) for entry in front]
        return int(np.argmax(np.nan_to_num(rewards, nan=-1.0)))

    def reference_law(self) -> Expression:
        """The reference law with coefficients of least squares on the first half."""
        columns = [parse(text) for text in ("tau", "qdot", "sign(qdot)", "1")]
        fit = least_squares(np.stack([_values(c, self.X) for c in columns], axis=1), self.y)
        return linear_combination([plain_number(float(value)) for value in fit.coefficients], columns)

    def reference_loss(self) -> float:
        """The loss of that law on the second half."""
        return self.test_loss(self.reference_law())


def load_emps() -> Emps:
    """The measurements in two halves, as in the paper."""
    table = np.loadtxt(data_file("emps.csv", "emps", "the EMPS benchmark of A. Janot et al."), delimiter=",")
    X, y = table[:, [0, 1, 3]], table[:, 2]
    first, second = slice(None, _EMPS_TRAIN_ROWS), slice(_EMPS_TRAIN_ROWS, None)
    return Emps(X[first], y[first], X[second], y[second])


def _values(law: Expression, X: Array) -> Array:
    """The law's values (rows,) on X (rows, 3)."""
    columns = {name: np.ascontiguousarray(X[:, i]) for i, name in enumerate(EMPS_VARIABLES)}
    return np.asarray(evaluate(law, columns), dtype=np.float64)


# Nikuradse's pipes

TURBULENCE_OPERATORS = (
    *("+", "*", "-", "semidiv", "identity", "pow2", "pow3"),
    *("sin", "cos", "exp", "log", "tanh", "cosh"),
)
"""The paper's operators for the pipes."""


@dataclass(frozen=True)
class Turbulence:
    """The collapsed data, X (rows, 1) and y (rows,), and the roughness k (rows,)."""

    X: Array
    y: Array
    roughness: Array


def collapse(log_reynolds: Array, log_friction: Array, roughness: Array) -> tuple[Array, Array]:
    """x and y (rows,) of the universal curve, from log10 Re, log10(100 λ) and k, (rows,) each."""
    friction = 10**log_friction / 100
    x = np.log10(10**log_reynolds * np.sqrt(friction / 32) / roughness)
    return x, friction**-0.5 + 2 * np.log10(1 / roughness)


def load_turbulence() -> Turbulence:
    """All 362 rows."""
    table = np.loadtxt(data_file("nikuradse.csv", "turbulence", "the pipe data of J. Nikuradse (1933)"), delimiter=",")
    x, y = collapse(table[:, 0], table[:, 1], table[:, 2])
    return Turbulence(x[:, None], y, table[:, 2])
