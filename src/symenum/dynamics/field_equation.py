"""Equations u_t = F(u, u_x, …) as rows: laws are averaged by the weak form, derivatives moved to the windows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import torch
from scipy.signal import savgol_coeffs, savgol_filter

from symenum.core.budget import Budget
from symenum.core.seeds import stream
from symenum.dynamics.discover import Terms, distinct_terms
from symenum.dynamics.equation import Equation
from symenum.dynamics.field_data import FieldData
from symenum.dynamics.field_form import FieldForm, Orders, best_smoothing, make_field_form
from symenum.dynamics.field_terms import FieldNames, Moved, field_library, moved
from symenum.expressions import Constant, Expression, evaluate, variables
from symenum.expressions.derivative import derivative
from symenum.operators import Operator

__all__ = ["FieldColumns", "FieldEquation", "FieldSystem", "make_field_system", "make_field_terms"]

Array = npt.NDArray[np.float64]
ZERO = Constant(0)

_DEGREE = 4  # of the local polynomials that smooth fields, as for states; two more for derivatives from the third on
_MAX_POINTS = 2000  # of the grid that the search on points is given: it takes no more rows
_NUMERICS = 1e-6  # part of the variance that sums in place of integrals, and solvers, may leave without any noise: by
# trial, on coarse grids windows of a fourth derivative leave 1e-7
_MAX_SIZE = 1e100  # largest average of a term: its square must not overflow


class FieldColumns(Mapping[str, Array]):
    """Fields as they were measured and their smoothed derivatives by name, (times, points along each axis).

    `smooth`: the fields themselves are smoothed, too. Derivatives are taken when they are first asked for.
    """

    def __init__(self, data: FieldData, names: FieldNames, smoothing: npt.NDArray[np.int64], *, smooth: bool) -> None:
        self.data, self.names, self.smoothing, self.smooth = data, names, smoothing, smooth
        self._known: dict[str, Array] = {}

    def __getitem__(self, name: str) -> Array:
        if name not in self._known:
            number, orders = self.names.known[name]
            if sum(orders) == 0 and not self.smooth:
                self._known[name] = self.data.values[number]
            else:
                self._known[name] = self.derivative(number, (0, *orders))
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names.known)

    def __len__(self) -> int:
        return len(self.names.known)

    def kernels(self, name: str) -> list[Array]:
        """The weights of samples along time and each axis, away from the edges, whose sums a column is."""
        number, orders = self.names.known[name]
        if sum(orders) == 0 and not self.smooth:
            return [np.ones(1)] * (1 + len(orders))
        kernels = []
        for axis, (order, window) in enumerate(zip((0, *orders), self.smoothing[number], strict=True)):
            length, degree = _window(self.data.shape[axis], int(window), order)
            kernels.append(savgol_coeffs(length, degree, deriv=order, delta=self.data.steps[axis], use="dot"))
        return kernels

    def derivative(self, number: int, orders: Sequence[int]) -> Array:
        """A derivative of a smoothed field; `orders` along time and each axis."""
        values: Array = self.data.values[number]
        for axis, (order, window) in enumerate(zip(orders, self.smoothing[number], strict=True)):
            values = _local(values, int(window), order, self.data.steps[axis], axis)
        return values


def _window(points: int, window: int, order: int) -> tuple[int, int]:
    """The length of a window and the degree of its polynomial, for a derivative of that order."""
    degree = _DEGREE + 2 * max(0, (order - 1) // 2)
    longest = points - (points + 1) % 2  # windows are odd
    length = min(max(window, degree + 3), longest)
    return length, min(degree, length - 1)


def _local(values: Array, window: int, order: int, step: float, axis: int) -> Array:
    """The derivative of that order along an axis, by local polynomials."""
    length, degree = _window(values.shape[axis], window, order)
    found: Array = savgol_filter(values, length, degree, deriv=order, delta=step, axis=axis, mode="interp")
    return found


class FieldAverages:
    """The averages of laws over all windows. Those of each density are kept: laws have terms in common."""

    def __init__(self, form: FieldForm, names: FieldNames, columns: FieldColumns) -> None:
        self.form, self.names, self.columns = form, names, columns
        self._known: dict[tuple[Expression, Orders], Array] = {}
        self._covariances: dict[tuple[str, str], float] = {}

    def of(self, law: Expression) -> Array:
        """The averages (rows,) of a law; not finite where it is not."""
        total = np.zeros(self.form.rows)
        for part in moved(law, self.names):
            total += part.factor * self._of_density(part)
        return total

    def _of_density(self, part: Moved) -> Array:
        key = (part.density, part.orders)
        if key not in self._known:
            values = np.broadcast_to(evaluate(part.density, self.columns), self.form.data.shape)
            self._known[key] = self.form.average_derivative(values - self._bias(part.density), part.orders)
        return self._known[key]

    def _bias(self, density: Expression) -> Array:
        """By how much noise raises the mean of a density, to second order: σ² for u², 3σ²u for u³.

        Windows take the scatter out of an average and not this.
        """
        total = np.zeros(self.form.data.shape)
        used = variables(density)
        for i, first in enumerate(used):
            for second in used[: i + 1]:
                covariance = self._covariance(first, second)
                by_first = derivative(density, first) if covariance else None
                curvature = None if by_first is None else derivative(by_first, second)
                if curvature is not None and curvature != ZERO:
                    share = 0.5 if first == second else 1.0
                    total += share * covariance * evaluate(curvature, self.columns)
        return total

    def _covariance(self, first: str, second: str) -> float:
        """Of the errors of two columns at one point."""
        (number, _), (other, _) = self.names.known[first], self.names.known[second]
        if number != other:
            return 0.0
        if (first, second) not in self._covariances:
            self._covariances[first, second] = self._overlap(first, second) * float(self.form.noise[number]) ** 2
        return self._covariances[first, second]

    def _overlap(self, first: str, second: str) -> float:
        """The sum of the products of the weights that two columns give to samples."""
        product = 1.0
        for one, two in zip(self.columns.kernels(first), self.columns.kernels(second), strict=True):
            # Kernels are centred: the shorter one stands in the middle of the longer one.
            margin = (len(one) - len(two)) // 2
            longer, shorter = (one, two) if margin >= 0 else (two, one)
            product *= float(longer[abs(margin) : abs(margin) + len(shorter)] @ shorter)
        return product

    def slopes(self, law: Expression) -> dict[tuple[int, int], Array]:
        """How the law's density depends on each field, by the derivatives that a sample's error enters through.

        Keys: the field, and which of the form's `orders`. A smoothed derivative counts as the derivative itself.
        """
        found: dict[tuple[int, int], Array] = {}
        for part in moved(law, self.names):
            used = variables(part.density)
            columns = {name: torch.from_numpy(self.columns[name].copy()).requires_grad_() for name in used}
            if not used:
                continue
            value = evaluate(part.density, columns).sum()
            slopes = torch.autograd.grad(value, [columns[name] for name in used], allow_unused=True)
            for name, slope in zip(used, slopes, strict=True):
                number, own = self.names.known[name]
                total = tuple(a + b for a, b in zip(own, part.orders, strict=True))
                if slope is None or total not in self.form.orders:
                    continue
                key = (number, self.form.orders.index(total))
                size = part.factor * np.nan_to_num(slope.numpy(), nan=0.0, posinf=0.0, neginf=0.0)
                found[key] = found[key] + size if key in found else size
        return found


@dataclass(frozen=True, kw_only=True)
class FieldEquation(Equation):
    """The rows of one field. `columns` (points,): smoothed fields and derivatives at some points of the grid."""

    averager: FieldAverages = field(repr=False, compare=False)

    def averages(self, terms: Sequence[Expression]) -> Array:
        """The averages (rows, terms)."""
        with np.errstate(all="ignore"):
            return np.stack([self.averager.of(term) for term in terms], axis=1)

    def _slopes(self, expression: Expression) -> dict[tuple[int, int], Array]:
        """Those of the law's densities: see `FieldAverages.slopes`."""
        return self.averager.slopes(expression)


@dataclass(frozen=True)
class FieldSystem:
    """One equation for each field. `points` (points, fields): smoothed derivatives by time, for a search on points."""

    equations: tuple[FieldEquation, ...]
    points: Array
    columns: FieldColumns


def make_field_system(data: FieldData, names: FieldNames, seed: int = 0) -> FieldSystem:
    """The system of measured fields. `seed`: of the points that are drawn for the search on points."""
    smoothing = best_smoothing(data)
    form = make_field_form(data, smoothing, names.max_order)
    averager = FieldAverages(form, names, FieldColumns(data, names, smoothing, smooth=False))
    smooth = FieldColumns(data, names, smoothing, smooth=True)
    chosen = _inner_points(data, smoothing, seed)
    still = [bool((one == one.flat[0]).all()) for one in data.values]
    columns = {name: smooth[name].ravel()[chosen] for name, (i, _) in names.known.items() if not still[i]}
    first = (1, *(0,) * len(data.axes))
    by_time = [smooth.derivative(i, first).ravel()[chosen] for i in range(len(data.values))]
    columns = columns or {names.fields[0]: data.values[0].ravel()[chosen]}
    equations = [FieldEquation(form, i, columns, {}, _NUMERICS, averager=averager) for i in range(len(data.values))]
    return FieldSystem(tuple(equations), np.stack(by_time, axis=1), smooth)


def _inner_points(data: FieldData, smoothing: npt.NDArray[np.int64], seed: int) -> npt.NDArray[np.int64]:
    """Some points of the flat grid, away from its edges where local polynomials are worse."""
    margins = [min(int(window) // 2, (n - 1) // 3) for window, n in zip(smoothing.max(axis=0), data.shape, strict=True)]
    inside = [np.arange(margin, n - margin) for margin, n in zip(margins, data.shape, strict=True)]
    # The flat number of the first point along each axis, then of all points.
    flat = np.ravel_multi_index(np.ix_(*inside), data.shape).ravel()
    if len(flat) <= _MAX_POINTS:
        return flat
    return np.sort(stream(seed, "points of a grid").choice(flat, _MAX_POINTS, replace=False))


def make_field_terms(
    equation: FieldEquation, names: FieldNames, operators: Sequence[Operator], most: int, budget: Budget
) -> Terms:
    """The terms of the library that are finite and distinct on the rows; `most` of them in a sum.

    Where the budget ends before all are averaged, the most complex ones are left out.
    """
    finite: list[Expression] = []
    averages: list[Array] = []
    for term in field_library(names, operators):
        if budget.over():
            break
        if not set(variables(term)) <= set(equation.columns):  # a field that never changes
            continue
        column = equation.averages([term])[:, 0]
        if bool((np.abs(column) < _MAX_SIZE).all()):  # NaN compares false
            finite.append(term)
            averages.append(column)
    if not finite:
        return Terms((), np.empty((equation.form.rows, 0)))
    return distinct_terms(finite, np.stack(averages, axis=1), most)
