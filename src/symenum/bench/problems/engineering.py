"""Noisy laws of engineering, our own choice: chemistry, heat, flow, electronics, structures and biology.

Each has one to four inputs in units of the field, 40 to 150 rows and a noise of 1 to 10%. A law is written as a form
with named constants and their true values. So the same form can be fitted to the same noisy rows, which is the best
that anybody can do who knows the law: a found law is judged by its error against the clean truth beside the error of
that fit (`reference_error`).

The list was made once, before any of its laws was tried. It is for judging; settings are not chosen on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Literal

import numpy as np

from symenum.bench.problems.problem import Array, defined_points, law_values, rename
from symenum.estimator.formulas import fit_constants
from symenum.expressions import Constant, Expression, parse, substitute

__all__ = ["ENGINEERING", "EngineeringLaw", "engineering", "reference_error", "root_mean_square"]

_TEST_POINTS = 1000  # clean points of the range on which errors are taken
# The seed s draws its rows, its noise and its test points from the streams [s, one of these].
_ROWS_STREAM, _NOISE_STREAM, _TEST_STREAM = 23, 29, 31


@dataclass(frozen=True)
class EngineeringLaw:
    """A law with constants, the ranges of its inputs, and how it is measured.

    `form` is text of our grammar in the names of `constants` (with true values) and of `inputs` (with low and high
    ends; units stand in comments). `noise` is the standard deviation of the noise: "relative", as part of each value;
    "spread", as part of the standard deviation of all clean values.
    """

    name: str
    form: str
    constants: Mapping[str, float]
    inputs: Mapping[str, tuple[float, float]]
    rows: int
    noise: float
    kind: Literal["relative", "spread"] = "relative"

    @property
    def variables(self) -> tuple[str, ...]:
        return tuple(f"x{i + 1}" for i in range(len(self.inputs)))

    @property
    def text(self) -> str:
        """The form with the inputs called x1, x2, …"""
        return rename(self.form, dict(zip(self.inputs, self.variables, strict=True)))

    @cached_property
    def expression(self) -> Expression:
        """The law with its true constants, in x1, x2, …"""
        return substitute(parse(self.text), {name: Constant(value) for name, value in self.constants.items()})

    @property
    def positive(self) -> bool:
        return bool((self._bounds[0] >= 0).all())

    def sample(self, seed: int = 0) -> tuple[Array, Array]:
        """The noisy rows."""
        X, clean = self._points(seed, _ROWS_STREAM, self.rows)
        size = np.abs(clean) if self.kind == "relative" else np.full(self.rows, clean.std())
        return X, clean + self.noise * size * np.random.default_rng([seed, _NOISE_STREAM]).standard_normal(self.rows)

    def test(self, seed: int = 0) -> tuple[Array, Array]:
        """1,000 other points of the range, without noise."""
        return self._points(seed, _TEST_STREAM, _TEST_POINTS)

    def fresh(self, seed: int = 0) -> tuple[Array, Array]:
        """Points of a range twice as wide, without noise."""
        return defined_points(self, *self._bounds, seed)

    @property
    def _bounds(self) -> tuple[Array, Array]:
        low, high = zip(*self.inputs.values(), strict=True)
        return np.array(low, dtype=np.float64), np.array(high, dtype=np.float64)

    def _points(self, seed: int, stream: int, rows: int) -> tuple[Array, Array]:
        X = np.random.default_rng([seed, stream]).uniform(*self._bounds, (rows, len(self.inputs)))
        return X, law_values(self.expression, self.variables, X)


def root_mean_square(values: Array) -> float:
    """The root mean square of values (rows,); infinite where one of them is not finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        size = float(np.sqrt(np.mean(np.square(values))))
    return size if np.isfinite(size) else float("inf")


@cache
def _reference_error(name: str, seed: int) -> float:
    law = next(one for one in ENGINEERING if one.name == name)
    X, y = law.sample(seed)
    fitted = fit_constants(law.text, X, y, start=law.constants)
    X, clean = law.test(seed)
    return root_mean_square(law_values(fitted.expression, law.variables, X) - clean)


def reference_error(law: EngineeringLaw, seed: int) -> float:
    """The root mean square error, against clean test points, of the true form fitted to the noisy rows of a seed."""
    return _reference_error(law.name, seed)


ENGINEERING = (
    # Chemistry
    EngineeringLaw("Arrhenius", "A*exp(-B/T)", {"A": 2e6, "B": 5500.0}, {"T": (280, 400)}, 40, 0.05),  # K
    EngineeringLaw(
        "Reaction rate",  # K, mol/l, mol/l
        "A*exp(-B/T)*a*b",
        {"A": 3e7, "B": 6100.0},
        {"T": (290, 350), "a": (0.1, 2), "b": (0.1, 2)},
        100,
        0.05,
    ),
    EngineeringLaw("Michaelis-Menten", "V*S/(K + S)", {"V": 120.0, "K": 3.2}, {"S": (0.1, 20)}, 60, 0.05),  # mmol/l
    EngineeringLaw("Langmuir isotherm", "q*K*p/(1 + K*p)", {"q": 4.2, "K": 0.15}, {"p": (1, 60)}, 50, 0.03),  # kPa
    EngineeringLaw("Freundlich isotherm", "K*c**n", {"K": 2.3, "n": 0.42}, {"c": (0.5, 50)}, 50, 0.05),  # mg/l
    EngineeringLaw("First-order decay", "c0*exp(-k*t)", {"k": 0.11}, {"c0": (0.5, 2), "t": (0, 30)}, 80, 0.03),  # min
    EngineeringLaw(
        "Nernst potential",  # K, mol/l, mol/l
        "p + s*T*log(a/b)",
        {"p": 0.34, "s": 4.308e-5},
        {"T": (280, 340), "a": (0.01, 1), "b": (0.01, 1)},
        80,
        0.02,
        "spread",
    ),
    EngineeringLaw(
        "Antoine", "A - B/(C + T)", {"A": 8.07, "B": 1730.6, "C": 233.4}, {"T": (5, 95)}, 60, 0.01, "spread"
    ),
    EngineeringLaw(
        "Buffer pH", "p + s*log(a/h)", {"p": 4.76, "s": 0.4343}, {"a": (0.02, 1), "h": (0.02, 1)}, 60, 0.02, "spread"
    ),
    # Heat
    EngineeringLaw(
        "Cooling body",  # °C, °C, min
        "Ta + (T0 - Ta)*exp(-k*t)",
        {"k": 0.07},
        {"Ta": (10, 30), "T0": (60, 95), "t": (0, 60)},
        100,
        0.01,
    ),
    EngineeringLaw(
        "Radiating plate",  # m², K, K
        "c*F*(T**4 - S**4)",
        {"c": 4.82e-8},
        {"F": (0.1, 2), "T": (400, 900), "S": (280, 320)},
        80,
        0.03,
    ),
    EngineeringLaw(
        "Heat through a wall",  # m², K, K, m
        "k*F*(T - S)/d",
        {"k": 0.6},
        {"F": (0.5, 5), "T": (290, 310), "S": (260, 285), "d": (0.1, 0.4)},
        80,
        0.03,
    ),
    EngineeringLaw(
        "Dittus-Boelter",
        "c*Re**m*Pr**n",
        {"c": 0.023, "m": 0.8, "n": 0.4},
        {"Re": (1e4, 1e5), "Pr": (0.7, 10)},
        90,
        0.05,
    ),
    EngineeringLaw("Free convection", "a + b*Ra**(1/4)", {"a": 0.68, "b": 0.515}, {"Ra": (1e4, 1e7)}, 60, 0.03),
    EngineeringLaw(
        "Heat exchanger",
        "U*(a - b)/log(a/b)",
        {"U": 350.0},
        {"a": (30, 60), "b": (5, 25)},
        80,
        0.03,  # K, K
    ),
    EngineeringLaw(
        "Cooling fin",  # K, m, W/(m² K)
        "T0*exp(-x*sqrt(c*h))",
        {"c": 8.0},
        {"T0": (20, 80), "x": (0, 0.1), "h": (10, 100)},
        100,
        0.02,
    ),
    EngineeringLaw(
        "Heat capacity",
        "a + b*T - c/T**2",
        {"a": 44.2, "b": 0.0088, "c": 8.6e5},
        {"T": (298, 1200)},
        70,
        0.01,  # K
    ),
    # Flow
    EngineeringLaw(
        "Orifice",  # m, Pa, kg/m³
        "k*d**2*sqrt(p/r)",
        {"k": 0.69},
        {"d": (0.01, 0.05), "p": (1e3, 5e4), "r": (700, 1200)},
        80,
        0.03,
    ),
    EngineeringLaw(
        "Pipe friction",  # m, m, kg/m³, m/s
        "f*L/D*r*v**2/2",
        {"f": 0.02},
        {"L": (1, 50), "D": (0.02, 0.2), "r": (700, 1200), "v": (0.5, 5)},
        100,
        0.05,
    ),
    EngineeringLaw(
        "Hagen-Poiseuille",  # Pa, m, Pa s, m
        "c*p*r**4/(m*L)",
        {"c": 0.3927},
        {"p": (100, 5000), "r": (0.001, 0.005), "m": (5e-4, 5e-3), "L": (0.2, 2)},
        120,
        0.05,
    ),
    EngineeringLaw(
        "Settling grain",  # kg/m³, kg/m³, m, Pa s
        "c*(g - f)*d**2/m",
        {"c": 0.545},
        {"g": (2000, 3000), "f": (800, 1200), "d": (1e-5, 1e-4), "m": (5e-4, 2e-3)},
        120,
        0.05,
    ),
    EngineeringLaw(
        "Manning",
        "c*R**(2/3)*sqrt(S)",
        {"c": 33.3},
        {"R": (0.2, 3), "S": (1e-4, 1e-2)},
        60,
        0.05,  # m, m/m
    ),
    EngineeringLaw("Pump", "H - a*Q**2", {"H": 42.0, "a": 0.018}, {"Q": (0, 40)}, 40, 0.02, "spread"),  # l/s
    EngineeringLaw(
        "Drag of a sphere", "a/Re + b/(1 + sqrt(Re)) + c", {"a": 24.0, "b": 6.0, "c": 0.4}, {"Re": (1, 1000)}, 80, 0.03
    ),
    EngineeringLaw(
        "Packed bed",  # m/s, m
        "a*v/d**2 + b*v**2/d",
        {"a": 0.0152, "b": 19.7},
        {"v": (0.05, 1), "d": (0.002, 0.01)},
        90,
        0.05,
    ),
    # Electronics
    EngineeringLaw("Diode", "J*(exp(V/a) - 1)", {"J": 1e-6, "a": 0.045}, {"V": (0.3, 0.65)}, 60, 0.05),  # V
    EngineeringLaw(
        "Charging capacitor",
        "V*(1 - exp(-t/a))",
        {"a": 2.2},
        {"V": (3, 12), "t": (0, 8)},
        80,
        0.02,
        "spread",  # V, ms
    ),
    EngineeringLaw("Thermistor", "R*exp(B/T - B/298.15)", {"R": 10.0, "B": 3950.0}, {"T": (273, 373)}, 50, 0.03),  # K
    EngineeringLaw(
        "Impedance",  # Ω, 1/s
        "sqrt(R**2 + (L*w - c/w)**2)",
        {"L": 0.02, "c": 1e5},
        {"R": (10, 100), "w": (500, 5000)},
        120,
        0.02,
    ),
    EngineeringLaw("Low-pass filter", "1/sqrt(1 + (f/c)**2)", {"c": 1200.0}, {"f": (50, 8000)}, 60, 0.02),  # Hz
    EngineeringLaw(
        "Ringing",
        "A*exp(-t/a)*cos(w*t)",
        {"A": 5.0, "a": 3.0, "w": 4.2},
        {"t": (0, 8)},
        150,
        0.05,
        "spread",  # ms
    ),
    EngineeringLaw(
        "Transistor",  # V, V
        "k*(G - V)**2*(1 + l*D)",
        {"k": 0.8, "V": 1.1, "l": 0.03},
        {"G": (1.5, 5), "D": (4, 12)},
        90,
        0.03,
    ),
    EngineeringLaw("Power transfer", "V**2*R/(R + r)**2", {"r": 8.0}, {"V": (5, 20), "R": (1, 50)}, 80, 0.03),  # V, Ω
    EngineeringLaw(
        "Solar cell",
        "L - J*(exp(V/a) - 1)",
        {"L": 3.2, "J": 1e-5, "a": 0.05},
        {"V": (0, 0.6)},
        60,
        0.01,
        "spread",  # V
    ),
    # Structures
    EngineeringLaw(
        "Bending beam",  # N, m, m, m
        "c*F*L**3/(b*h**3)",
        {"c": 1.905e-11},
        {"F": (10, 200), "L": (0.2, 1), "b": (0.01, 0.05), "h": (0.005, 0.02)},
        100,
        0.04,
    ),
    EngineeringLaw("Resonance", "c*sqrt(k/m)", {"c": 0.15915}, {"k": (100, 5000), "m": (0.1, 5)}, 60, 0.03),  # N/m, kg
    EngineeringLaw("Fatigue", "a*N**b", {"a": 900.0, "b": -0.09}, {"N": (1e3, 1e6)}, 60, 0.03),  # cycles
    # Biology
    EngineeringLaw(
        "Logistic growth",
        "K/(1 + A*exp(-r*t))",
        {"K": 650.0, "A": 40.0, "r": 0.55},
        {"t": (0, 15)},
        60,
        0.04,  # days
    ),
    EngineeringLaw(
        "Gompertz growth",
        "K*exp(-b*exp(-c*t))",
        {"K": 12.0, "b": 4.5, "c": 0.4},
        {"t": (0, 12)},
        60,
        0.03,  # days
    ),
    EngineeringLaw(
        "Hill curve",
        "V*x**n/(K**n + x**n)",
        {"V": 80.0, "K": 3.0, "n": 2.4},
        {"x": (0.1, 10)},
        80,
        0.04,  # µmol/l
    ),
    EngineeringLaw("Metabolic rate", "a*M**b", {"a": 3.4, "b": 0.75}, {"M": (0.02, 600)}, 60, 0.1),  # kg
    EngineeringLaw(
        "Substrate inhibition", "m*S/(K + S + S**2/i)", {"m": 0.9, "K": 1.5, "i": 30.0}, {"S": (0.1, 100)}, 100, 0.04
    ),
    EngineeringLaw(
        "Oral dose",  # mg, h
        "a*D*(exp(-k*t) - exp(-m*t))",
        {"a": 0.04, "k": 0.15, "m": 1.2},
        {"D": (50, 500), "t": (0.1, 24)},
        120,
        0.05,
    ),
    EngineeringLaw("Predation", "a*N/(1 + b*N)", {"a": 0.4, "b": 0.048}, {"N": (1, 80)}, 50, 0.08),  # animals per m²
    EngineeringLaw(
        "Light response",  # µmol/(m² s)
        "P*(1 - exp(-a*I)) - R",
        {"P": 24.0, "a": 0.0025, "R": 1.5},
        {"I": (0, 1500)},
        60,
        0.04,
        "spread",
    ),
    EngineeringLaw("Respiration", "R*q**((T - 20)/10)", {"R": 1.8, "q": 2.1}, {"T": (5, 35)}, 50, 0.08),  # °C
    EngineeringLaw(
        "Vapour pressure",
        "a*exp(b*T/(c + T))",
        {"a": 0.611, "b": 17.3, "c": 237.0},
        {"T": (0, 45)},
        60,
        0.02,  # °C
    ),
)
"""The laws."""


def engineering() -> tuple[EngineeringLaw, ...]:
    """All laws."""
    return ENGINEERING
