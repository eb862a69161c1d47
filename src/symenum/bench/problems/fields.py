"""Fields that obey a known partial differential equation, on a periodic grid of one or two axes.

A problem is its laws as text; the solver reads them. Terms that are a number times a derivative of the law's own field
are followed exactly in Fourier space, the others by the exponential Runge-Kutta scheme of fourth order (Cox and
Matthews, with the contour integrals of Kassam and Trefethen). Nothing wraps around in what is learned from the result:
an estimator is not told that the grid is periodic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from symenum.expressions import Expression, Variable, evaluate, parse, variables
from symenum.expressions.algebra import as_product, as_sum, simplify

__all__ = ["FIELD_PROBLEMS", "MARKED_PROBLEMS", "FieldProblem", "FieldSamples", "random_problem", "solve_fields"]

Array = npt.NDArray[np.float64]
Spectrum = npt.NDArray[np.complex128]
Start = Callable[[Sequence[Array], np.random.Generator], Mapping[str, Array]]

_AXES = "xy"
_CONTOUR = 32  # points of the circle that the coefficients of a step are averaged over: 16 digits
_KEPT = 2 / 3  # part of the wave numbers that products may hold; the others would fold back


@dataclass(frozen=True)
class FieldProblem:
    """u_t = F of each field on [0, length) along each axis, followed for `time` and kept at `times` times.

    `start`: from the coordinates of all points and random numbers to the fields at time 0. `steps`: of the solver
    between two of the times that are kept. `skip`: time before the first of them. `operators`: those that its laws
    need beyond derivatives.
    """

    name: str
    laws: Mapping[str, str]
    lengths: tuple[float, ...]
    points: tuple[int, ...]
    time: float
    times: int
    start: Start
    steps: int = 10
    skip: float = 0.0
    operators: str = "arithmetic"

    @property
    def trees(self) -> dict[str, Expression]:
        """The laws as expressions, by field."""
        return {field: parse(law) for field, law in self.laws.items()}


@dataclass(frozen=True)
class FieldSamples:
    """Samples of the fields (times, points along each axis), the times, and the coordinates along each axis."""

    fields: dict[str, Array]
    t: Array
    axes: tuple[Array, ...]

    def noisy(self, part: float, seed: int) -> FieldSamples:
        """The samples with independent normal errors of `part` of each field's standard deviation."""
        random = np.random.default_rng(seed)
        fields = {name: u + part * u.std() * random.normal(size=u.shape) for name, u in self.fields.items()}
        return replace(self, fields=fields)


def solve_fields(problem: FieldProblem, seed: int = 0) -> FieldSamples:
    """Follow the fields of a problem. `seed`: of what is random in the start."""
    solver = _Solver.make(problem)
    axes: tuple[Array, ...] = tuple(
        np.linspace(0, length, n, endpoint=False) for n, length in zip(problem.points, problem.lengths, strict=True)
    )
    coordinates = np.meshgrid(*axes, indexing="ij")
    start = problem.start(coordinates, np.random.default_rng(seed))
    state = np.stack([np.fft.rfftn(start[name]) for name in problem.laws])
    between = problem.time / (problem.times - 1)
    step = solver.stepper(between / problem.steps)
    for _ in range(round(problem.skip / between * problem.steps)):
        state = step(state)
    kept = [state]
    for _ in range(problem.times - 1):
        for _ in range(problem.steps):
            state = step(state)
        kept.append(state)
    along = tuple(range(-len(axes), 0))
    fields = {
        name: np.stack([np.fft.irfftn(one[i], s=problem.points, axes=along) for one in kept])
        for i, name in enumerate(problem.laws)
    }
    if not all(np.isfinite(u).all() for u in fields.values()):
        raise ValueError(f"{problem.name}: the solver blew up; take more steps")
    return FieldSamples(fields, np.linspace(0, problem.time, problem.times), axes)


@dataclass(frozen=True)
class _Solver:
    """`linear` (fields, wave numbers): growth of each wave; `rest`: what remains of each law; `waves`: i·k by axis."""

    linear: Spectrum
    rest: tuple[Expression, ...]
    names: tuple[str, ...]
    waves: tuple[Spectrum, ...]
    kept: npt.NDArray[np.bool_]
    points: tuple[int, ...]

    @staticmethod
    def make(problem: FieldProblem) -> _Solver:
        numbers = []
        for axis, (n, length) in enumerate(zip(problem.points, problem.lengths, strict=True)):
            last = axis == len(problem.points) - 1
            numbers.append((np.fft.rfftfreq if last else np.fft.fftfreq)(n, length / n) * 2 * np.pi)
        grids = np.meshgrid(*numbers, indexing="ij")
        kept = np.ones(grids[0].shape, dtype=bool)
        for grid, n, length in zip(grids, problem.points, problem.lengths, strict=True):
            kept &= np.abs(grid) < _KEPT * np.pi * n / length
        waves = tuple(1j * grid for grid in grids)
        names = tuple(problem.laws)
        linear, rest = [], []
        for field, law in problem.trees.items():
            growth, left = _split(field, law, waves)
            linear.append(growth)
            rest.append(left)
        return _Solver(np.stack(linear), tuple(rest), names, waves, kept, problem.points)

    def right(self, state: Spectrum) -> Spectrum:
        """What remains of the laws, in Fourier space, for fields in Fourier space."""
        along = tuple(range(-len(self.points), 0))
        wanted = {name for law in self.rest for name in variables(law)}
        columns = {}
        for name in wanted:
            field, _, orders = name.partition("_")
            spectrum = state[self.names.index(field)] * _multiplier(orders, self.waves)
            columns[name] = np.fft.irfftn(spectrum, s=self.points, axes=along).ravel()
        values = [np.broadcast_to(evaluate(law, columns), int(np.prod(self.points))) for law in self.rest]
        return np.stack([np.fft.rfftn(one.reshape(self.points)) * self.kept for one in values])

    def stepper(self, h: float) -> Callable[[Spectrum], Spectrum]:
        """A step of length h."""
        circle = np.exp(1j * np.pi * (np.arange(1, _CONTOUR + 1) - 0.5) / _CONTOUR)
        z = h * self.linear[..., None] + np.concatenate([circle, circle.conj()])

        def mean(values: Spectrum) -> Spectrum:
            return np.asarray(values.mean(axis=-1))

        whole, half = np.exp(h * self.linear), np.exp(h * self.linear / 2)
        q = h * mean((np.exp(z / 2) - 1) / z)
        f1 = h * mean((-4 - z + np.exp(z) * (4 - 3 * z + z**2)) / z**3)
        f2 = h * mean((2 + z + np.exp(z) * (z - 2)) / z**3)
        f3 = h * mean((-4 - 3 * z - z**2 + np.exp(z) * (4 - z)) / z**3)

        def step(state: Spectrum) -> Spectrum:
            first = self.right(state)
            a = half * state + q * first
            second = self.right(a)
            b = half * state + q * second
            third = self.right(b)
            c = half * a + q * (2 * third - first)
            return whole * state + f1 * first + 2 * f2 * (second + third) + f3 * self.right(c)

        return step


def _multiplier(orders: str, waves: Sequence[Spectrum]) -> Spectrum:
    """What takes the derivative "xxy" in Fourier space."""
    result = np.ones_like(waves[0])
    for axis in orders:
        result = result * waves[_AXES.index(axis)]
    return result


def _split(field: str, law: Expression, waves: Sequence[Spectrum]) -> tuple[Spectrum, Expression]:
    """The linear part of a law in its own field as a multiplier, and the rest of the law."""
    growth = np.zeros_like(waves[0])
    terms = as_sum(simplify(law))
    left = []
    for added, term in terms.terms:
        product = as_product(term)
        alone = len(product.factors) == 1 and not product.divisors
        only = product.factors[0] if alone else None
        if isinstance(only, Variable) and only.name.partition("_")[0] == field:
            size = product.number if added else -product.number
            growth = growth + size * _multiplier(only.name.partition("_")[2], waves)
        else:
            left.append((added, term))
    return growth, replace(terms, terms=tuple(left)).close()


# Starts


def _waves(names: Sequence[str], count: int, size: float, mean: float = 0.0) -> Start:
    """Each field a sum of the `count` longest waves of each axis, random, of standard deviation `size`."""

    def start(axes: Sequence[Array], random: np.random.Generator) -> dict[str, Array]:
        found = {}
        for name in names:
            shape = axes[0].shape
            spectrum = np.fft.rfftn(random.normal(size=shape))
            for axis, n in enumerate(shape):
                last = axis == len(shape) - 1
                number = np.abs(np.fft.rfftfreq(n) if last else np.fft.fftfreq(n)) * n
                spectrum *= (number <= count).reshape([-1 if i == axis else 1 for i in range(len(shape))])
            u = np.fft.irfftn(spectrum, s=shape, axes=range(len(shape)))
            found[name] = mean + size * (u - u.mean()) / u.std()
        return found

    return start


def _bump(axes: Sequence[Array], random: np.random.Generator) -> dict[str, Array]:
    return {"u": np.exp(-((axes[0] - 6.0) ** 2))}


def _two_solitons(axes: Sequence[Array], random: np.random.Generator) -> dict[str, Array]:
    x = axes[0]
    return {"u": sum(c / 2 / np.cosh(np.sqrt(c) / 2 * (x - at)) ** 2 for c, at in ((5.0, 12.0), (1.5, 28.0)))}


def _ripple(axes: Sequence[Array], random: np.random.Generator) -> dict[str, Array]:
    x = axes[0] * (2 * np.pi / (axes[0][-1] + axes[0][1]))
    return {"u": np.cos(2 * x) * (1 + np.sin(2 * x))}


def _spiral(axes: Sequence[Array], random: np.random.Generator) -> dict[str, Array]:
    x, y = axes[0] - axes[0].mean(), axes[1] - axes[1].mean()
    distance, angle = np.hypot(x, y), np.arctan2(y, x)
    return {"u": np.tanh(distance) * np.cos(angle - distance), "v": np.tanh(distance) * np.sin(angle - distance)}


MARKED_PROBLEMS = (
    FieldProblem("Burgers", {"u": "-u*u_x + 0.1*u_xx"}, (16.0,), (256,), 10.0, 101, _bump),
    FieldProblem("Korteweg-de Vries", {"u": "-6*u*u_x - u_xxx"}, (60.0,), (512,), 10.0, 201, _two_solitons, 40),
    FieldProblem(
        "Kuramoto-Sivashinsky", {"u": "-u*u_x - u_xx - u_xxxx"}, (32 * np.pi,), (512,), 100.0, 251, _ripple, 8, 20.0
    ),
    FieldProblem(
        "FitzHugh-Nagumo",
        {"u": "u_xx + u_yy + u - u**3 - v + 0.02", "v": "0.5*v_xx + 0.5*v_yy + 0.25*u - 0.25*v"},
        (50.0, 50.0),
        (64, 64),
        20.0,
        81,
        _waves("uv", 5, 0.6),
        2,
    ),
    FieldProblem(
        "lambda-omega",
        {
            "u": "0.1*u_xx + 0.1*u_yy + u - u**3 - u*v**2 + u**2*v + v**3",
            "v": "0.1*v_xx + 0.1*v_yy + v - u**2*v - v**3 - u**3 - u*v**2",
        },
        (20.0, 20.0),
        (96, 96),
        8.0,
        81,
        _spiral,
        4,
    ),
)
"""The equations by which methods are compared, in the sizes that are usual for them."""

FIELD_PROBLEMS = (
    FieldProblem("heat", {"u": "0.37*u_xx"}, (10.0,), (128,), 4.0, 81, _waves("u", 6, 1.0)),
    FieldProblem("advection-diffusion", {"u": "-1.3*u_x + 0.08*u_xx"}, (12.0,), (128,), 5.0, 101, _waves("u", 8, 0.7)),
    FieldProblem(
        "Fisher-KPP", {"u": "0.2*u_xx + 1.4*u - 1.4*u**2"}, (20.0,), (200,), 4.0, 101, _waves("u", 8, 0.1, 0.35)
    ),
    FieldProblem("Allen-Cahn", {"u": "0.05*u_xx + u - u**3"}, (12.0,), (200,), 5.0, 101, _waves("u", 10, 0.3)),
    FieldProblem(
        "Swift-Hohenberg",
        {"u": "-0.7*u - 2*u_xx - u_xxxx + 0.8*u**2 - u**3"},
        (60.0,),
        (256,),
        10.0,
        151,
        _waves("u", 16, 0.5),
    ),
    FieldProblem("wave equation", {"u": "v", "v": "2.25*u_xx"}, (10.0,), (128,), 6.0, 151, _waves("uv", 5, 1.0), 20),
    FieldProblem(
        "sine-Gordon",
        {"u": "v", "v": "u_xx - sin(u)"},
        (20.0,),
        (200,),
        10.0,
        151,
        _waves("uv", 5, 1.5),
        20,
        operators="koza",
    ),
    FieldProblem("modified KdV", {"u": "-3*u**2*u_x - u_xxx"}, (30.0,), (256,), 3.0, 151, _waves("u", 5, 0.8), 40),
    FieldProblem("Kardar-Parisi-Zhang", {"u": "0.3*u_xx + 0.5*u_x**2"}, (15.0,), (128,), 3.0, 101, _waves("u", 5, 1.0)),
    FieldProblem("porous medium", {"u": "u*u_xx + u_x**2"}, (15.0,), (128,), 1.5, 101, _waves("u", 5, 0.3, 1.2), 80),
    FieldProblem(
        "Gray-Scott",
        {"u": "0.2*u_xx - u*v**2 + 0.04 - 0.04*u", "v": "0.1*v_xx + u*v**2 - 0.1*v"},
        (40.0,),
        (200,),
        30.0,
        151,
        _waves("uv", 10, 0.2, 0.6),
    ),
    FieldProblem(
        "flow around in 2D",
        {"u": "0.7*u_x - 0.4*u_y + 0.06*u_xx + 0.06*u_yy"},
        (8.0, 8.0),
        (48, 48),
        3.0,
        61,
        _waves("u", 5, 1.0),
        2,
    ),
)
"""Other equations: settings were looked at on these and on random ones."""

_RANDOM_TERMS = ("u_x", "u_xx", "u*u_x", "u", "u**2", "u**3", "u_xxx", "u**2*u_x")
_WELL_POSED = ("u_xx", "u_xxxx")


def random_problem(seed: int) -> FieldProblem:
    """An equation of one field with two to four random terms and coefficients, damped so that it can be followed."""
    random = np.random.default_rng(seed)
    damping = _WELL_POSED[int(random.random() < 1 / 3)]
    law = f"{random.uniform(0.05, 0.4):.3g}*u_xx" if damping == "u_xx" else f"-{random.uniform(0.02, 0.2):.3g}*u_xxxx"
    chosen = random.permutation([term for term in _RANDOM_TERMS if term not in (damping, "u_xx")])
    for term in chosen[: random.integers(1, 4)]:
        size = random.uniform(0.3, 1.5) * random.choice([-1, 1])
        if term in ("u", "u**2", "u**3"):
            size = -abs(size)  # none of them grows
        law += f" {'-' if size < 0 else '+'} {abs(size):.3g}*{term}"
    length, points = random.uniform(8, 20), int(random.choice([96, 128, 200, 256]))
    start = _waves("u", int(random.integers(4, 9)), random.uniform(0.3, 0.9), random.uniform(0, 0.5))
    time = random.uniform(2, 5)
    return FieldProblem(f"random {seed}", {"u": law}, (length,), (points,), time, 101, start, 20)
