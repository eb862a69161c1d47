"""One form for several groups of rows: which form, and which of its constants each group has for itself.

Forms come from searches of single groups. Each is fitted to every group alone, all of its constants free; only those
that still do well go on to the next groups. Then constants that do not differ between groups by more than their errors
become shared, one after another, the most alike first. What a form costs is the length of a description of all rows:
rows·log(loss), and log(rows) for each fitted number and half of that for each operator.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from symenum.core.budget import NO_LIMIT, Budget
from symenum.core.target import Training
from symenum.expressions import (
    Apply,
    Constant,
    Expression,
    Variable,
    apply,
    evaluate,
    fold,
    simplify,
    substitute,
    variables,
)
from symenum.expressions.algebra import number_constant
from symenum.expressions.candidate import Candidate
from symenum.fitting import refine, standard_errors
from symenum.fitting.free_constants import form_of, free_constants, freed, with_leaves
from symenum.fitting.recognise import nice_number
from symenum.heads.features import build_features
from symenum.heads.response import law_limit
from symenum.operators import Operator

__all__ = [
    "GroupedLaw",
    "GroupedRows",
    "best_forms",
    "fit_form_to_groups",
    "forms_of",
    "in_turn_of_groups",
    "linear_forms",
    "values_by_group",
]

Array = npt.NDArray[np.float64]

# Set so that 10 groups of 20 rows (benchmarks/groups.py) take seconds; no other values were compared.
_FEATURES = 500  # whose pairs are judged by one regression per group
_LINEAR_FORMS = 40  # such forms of one feature, and of two, that are fitted
_ALIKE = 1e-9  # 1 - |cosine| up to which two features are one direction
_STARTS = 3  # random starts of each fit, beside the constants that the form has
_LAST_STARTS = 16  # the same for the last forms, in groups where they fit far worse than in the others
_FAR_ABOVE = 10.0  # times the middle loss of all groups: such a group is fitted again,
_OTHERS = 5  # from the constants of so many others
_STEPS = 30  # of Levenberg-Marquardt
_FIRST_FORMS = 240  # forms that are fitted to the first groups, those that promise most
_LEFT = 3  # times fewer forms after each stage
_LEAST_FORMS = 12  # that go on to all groups
_FIRST_GROUPS = 2  # groups of the first stage; each stage has twice as many
_SPREAD = 3.0  # standard errors of a constant: a nice number within them takes its place
_HELD = "shared_constant"  # the name of constants that are not fitted any more
_ROUNDS = 3  # of sharing: what is shared changes the errors of the others


@dataclass(frozen=True)
class GroupedRows:
    """The rows of all groups: `training` with every row, and `groups`, the numbers of the rows of each (int64)."""

    training: Training
    groups: tuple[Tensor, ...]

    @property
    def rows(self) -> int:
        return self.training.target.rows

    def of(self, group: int) -> Training:
        """The rows of one group."""
        return self.training.at(self.groups[group])

    @property
    def shares(self) -> list[float]:
        """The weight of each group in the loss of all rows."""
        return [float(self.training.target.weight[rows].sum()) for rows in self.groups]


@dataclass(frozen=True)
class GroupedLaw:
    """A form whose constants of each group are variables with the names `names`; `values` (groups, names) are theirs.

    `loss`: the weighted mean square error on all rows. `numbers`: how many numbers were fitted, shared ones once.
    """

    form: Expression
    names: tuple[str, ...]
    values: Array
    loss: float
    numbers: int

    @property
    def complexity(self) -> int:
        return self.form.complexity

    def cost(self, rows: int, floor: float) -> float:
        """The description of form and rows, in nats; losses up to `floor` are alike."""
        size = self.numbers + 0.5 * self.complexity
        return 0.5 * rows * math.log(max(self.loss, floor, 1e-300)) + 0.5 * size * math.log(max(2, rows))


def forms_of(laws: Iterable[Expression]) -> list[Expression]:
    """The laws with all their numbers free, each form once, in the order of the laws; without those of no variable."""
    found: dict[Expression, Expression] = {}
    for law in laws:
        if variables(law):
            free = freed(law)
            found.setdefault(form_of(law), free)
    return list(found.values())


def in_turn_of_groups(found: Sequence[tuple[Sequence[Candidate], int]]) -> list[Expression]:
    """The laws that were found in each group, with its number of rows; the best of each group first, in turn."""
    ordered = []
    for laws, rows in found:
        price = {law: rows * math.log(max(law.loss, 1e-300)) + law.complexity * math.log(max(2, rows)) for law in laws}
        ordered.append([law.expression for law in sorted(price, key=lambda law: price[law])])
    turns = itertools.zip_longest(*ordered)
    return [law for turn in turns for law in turn if law is not None]


def linear_forms(rows: GroupedRows, operators: Sequence[Operator]) -> list[Expression]:
    """a·v + b and a·v + b·w + c, for features v and w of two layers, with coefficients of each group's own.

    Every pair is judged by one regression per group: the residuals of all groups together tell more under noise than a
    search of any one group.
    """
    training = rows.training
    slots = [Variable(name) for name in training.columns]
    values = torch.stack([training.columns[slot.name] for slot in slots])
    features = build_features(slots, values, operators, 2, extend_unary=True, max_columns=_FEATURES)
    features = features.up_to_affine().simplest(_FEATURES)
    single = torch.zeros(len(features), dtype=torch.float64)
    pairs = torch.zeros(len(features), len(features), dtype=torch.float64)
    for share, group in zip(rows.shares, rows.groups, strict=True):
        y = training.target.y[group] - training.target.y[group].mean()
        V = features.values[:, group] - features.values[:, group].mean(dim=1, keepdim=True)
        V = V / V.norm(dim=1, keepdim=True).clamp_min(torch.finfo(torch.float64).tiny)
        r, g = V @ y, V @ V.T
        explained = share / len(group) * r.square()
        single += explained
        a, b = r[:, None], r[None]
        both = (a.square() + b.square() - 2 * g * a * b) / (1 - g.square()).clamp_min(_ALIKE)
        alike = torch.maximum(a.square(), b.square())
        pairs += share / len(group) * torch.where(g.abs() < 1 - _ALIKE, both, alike)
    one, offset = Constant(1.5), Constant(0.5)
    best = torch.topk(single, min(_LINEAR_FORMS, len(features))).indices.tolist()
    found = [apply("add", apply("mul", one, features.expression(i)), offset) for i in best]
    upper = torch.triu(pairs, diagonal=1).flatten()
    for at in torch.topk(upper, min(_LINEAR_FORMS, len(upper))).indices.tolist():
        terms = (apply("mul", one, features.expression(i)) for i in divmod(at, len(features)))
        found.append(apply("add", apply("add", *terms), offset))
    return found


def best_forms(
    forms: Sequence[Expression], rows: GroupedRows, budget: Budget = NO_LIMIT, seed: int = 0
) -> list[GroupedLaw]:
    """The forms that describe all groups best, the best first, fitted to every group with all constants its own."""
    floor = law_limit(rows.training.target)
    left = list(forms)[:_FIRST_FORMS]
    found: dict[Expression, dict[int, tuple[tuple[float, ...], float]]] = {form: {} for form in left}
    order = sorted(range(len(rows.groups)), key=lambda group: -len(rows.groups[group]))
    done = 0
    while left and done < len(order):
        count = len(order) if len(left) <= _LEAST_FORMS else max(_FIRST_GROUPS, 2 * done)
        for group in order[done:count]:
            for form, fit in _fitted(left, found, rows.of(group), budget, seed):
                found[form][group] = fit
        done = min(count, len(order))
        left = [form for form in left if len(found[form]) == done]
        left.sort(key=lambda form: _cost_so_far(form, found[form], rows, floor))
        left = left[: max(_LEAST_FORMS, len(left) // _LEFT)]
    for form in left:
        _retry(form, found[form], rows, floor, budget, seed)
    laws = [_law(form, [found[form][group] for group in range(len(order))], rows) for form in left]
    return sorted(laws, key=lambda law: law.cost(rows.rows, floor))


def _fitted(
    forms: Sequence[Expression],
    found: Mapping[Expression, Mapping[int, tuple[tuple[float, ...], float]]],
    training: Training,
    budget: Budget,
    seed: int,
) -> list[tuple[Expression, tuple[tuple[float, ...], float]]]:
    """Each form with its constants for one group and their loss; forms without a finite loss are left out.

    The constants of a group that was fitted already are where the fit begins.
    """
    starts = []
    for form in forms:
        known = next(iter(found[form].values()), None)
        leaves = [] if known is None else [Constant(value) for value in known[0]]
        starts.append(with_leaves(form, leaves, integers=False) if leaves else form)
    target = training.target
    results = refine(
        starts, training.columns, target.y, target.weight, starts=_STARTS, steps=_STEPS, integers=False,
        budget=budget, seed=seed,
    )  # fmt: skip
    fits = []
    for form, result in zip(forms, results, strict=True):
        if result.loss < float("inf"):
            fits.append((form, (free_constants(result.expression, integers=False), result.loss)))
    return fits


def _retry(
    form: Expression,
    fits: dict[int, tuple[tuple[float, ...], float]],
    rows: GroupedRows,
    floor: float,
    budget: Budget,
    seed: int,
) -> None:
    """Fit groups again whose loss is far above that of the others, from the constants of these.

    A wave has many minima, and a group may have been caught in one of them.
    """
    middle = float(np.median([loss for _, loss in fits.values()]))
    limit = max(_FAR_ABOVE * middle, floor)
    others = [constants for constants, loss in fits.values() if loss <= limit and constants][:_OTHERS]
    for group, (_, loss) in list(fits.items()):
        if loss <= limit or not others or budget.over():
            continue
        training = rows.of(group)
        target = training.target
        forms = [with_leaves(form, [Constant(value) for value in one], integers=False) for one in others]
        results = refine(
            forms, training.columns, target.y, target.weight, starts=_LAST_STARTS, steps=_STEPS, integers=False,
            budget=budget, seed=seed,
        )  # fmt: skip
        best = min(results, key=lambda result: result.loss)
        if best.loss < loss:
            fits[group] = free_constants(best.expression, integers=False), best.loss


def _cost_so_far(
    form: Expression, fits: Mapping[int, tuple[tuple[float, ...], float]], rows: GroupedRows, floor: float
) -> float:
    """The cost on the groups that were fitted."""
    count = sum(len(rows.groups[group]) for group in fits)
    shares = rows.shares
    loss = sum(shares[group] * fit[1] for group, fit in fits.items()) / sum(shares[group] for group in fits)
    numbers = sum(len(fit[0]) for fit in fits.values())
    return GroupedLaw(form, (), np.zeros((0, 0)), loss, numbers).cost(count, floor)


def _law(form: Expression, fits: Sequence[tuple[tuple[float, ...], float]], rows: GroupedRows) -> GroupedLaw:
    """The form with all constants per group."""
    values = np.array([fit[0] for fit in fits], dtype=np.float64).reshape(len(fits), -1)
    names = _names(values.shape[1], rows.training.columns)
    named = with_leaves(form, [Variable(name) for name in names], integers=False) if names else form
    loss = sum(share * fit[1] for share, fit in zip(rows.shares, fits, strict=True))
    return GroupedLaw(named, names, values, loss, values.size)


def _names(count: int, taken: Mapping[str, Tensor]) -> tuple[str, ...]:
    """Names c1, c2, … that no column has."""
    free = (name for at in range(count + len(taken)) if (name := f"c{at + 1}") not in taken)
    return tuple(name for name, _ in zip(free, range(count), strict=False))


def fit_form_to_groups(
    law: GroupedLaw, rows: GroupedRows, shared: Sequence[str] = (), *, only: bool = False, seed: int = 0
) -> GroupedLaw:
    """The law with those constants shared that do not differ between groups; `shared` are in any case.

    `only`: no others are.
    """
    floor = law_limit(rows.training.target)
    for name in shared:
        law = _share(law, name, rows, seed) or law
    for _ in range(0 if only else _ROUNDS):
        before = law
        for name in _by_likeness(law, rows):
            if name not in law.names:
                continue
            merged = _share(law, name, rows, seed)
            if merged is not None and merged.cost(rows.rows, floor) < law.cost(rows.rows, floor):
                law = merged
        if law is before:
            break
    form = simplify(_plain(law.form))
    gone = [at for at, name in enumerate(law.names) if name not in variables(form)]
    names = tuple(name for name in law.names if name in variables(form))
    return replace(law, form=form, names=names, values=np.delete(law.values, gone, axis=1))


def _by_likeness(law: GroupedLaw, rows: GroupedRows) -> list[str]:
    """The constants of groups, those first that differ least in units of their errors."""
    if not law.names:
        return []
    errors = _errors(law, rows)
    spread = {}
    for at, name in enumerate(law.names):
        weight = 1 / np.maximum(errors[:, at], 1e-12 * np.abs(law.values[:, at]).max() + 1e-300) ** 2
        middle = float(np.average(law.values[:, at], weights=weight))
        spread[name] = float(np.mean((law.values[:, at] - middle) ** 2 * weight))
    return sorted(law.names, key=lambda name: spread[name])


def _errors(law: GroupedLaw, rows: GroupedRows) -> Array:
    """The standard errors (groups, names) of the constants; a large number where the rows do not determine one."""
    found = np.empty_like(law.values)
    for group in range(len(rows.groups)):
        training = rows.of(group)
        own = _of_group(law, group)
        errors = standard_errors(own, training.columns, training.target.y, training.target.weight, integers=False)
        found[group] = errors
    large = 1e3 * (np.abs(law.values).max(initial=0.0) + 1.0)
    return np.where(np.isfinite(found) & (found > 0), found, large)


def _of_group(law: GroupedLaw, group: int) -> Expression:
    """The law of one group, its own constants free and the shared ones fixed."""
    return substitute(law.form, {name: Constant(float(law.values[group, at])) for at, name in enumerate(law.names)})


def _share(law: GroupedLaw, name: str, rows: GroupedRows, seed: int) -> GroupedLaw | None:
    """The law with one constant the same in all groups: the mean by precision, or a nice number near it."""
    at = law.names.index(name)
    errors = _errors(law, rows)[:, at]
    weight = 1 / np.maximum(errors, 1e-12 * np.abs(law.values[:, at]).max() + 1e-300) ** 2
    middle, error = float(np.average(law.values[:, at], weights=weight)), float(weight.sum() ** -0.5)
    nice = nice_number(middle, max(_SPREAD * error, 1e-9 * abs(middle)))
    found = [_fixed(law, name, value, numbers, rows, seed) for value, numbers in _tried(middle, nice)]
    known = [one for one in found if one is not None]
    floor = law_limit(rows.training.target)
    return min(known, key=lambda one: one.cost(rows.rows, floor), default=None)


def _tried(middle: float, nice: object) -> list[tuple[float, int]]:
    """The values of a shared constant that are tried, and how many fitted numbers each is."""
    value = getattr(nice, "value", None)
    return [(middle, 1)] if value is None else [(middle, 1), (float(value), 0)]


def _fixed(law: GroupedLaw, name: str, value: float, numbers: int, rows: GroupedRows, seed: int) -> GroupedLaw | None:
    """The law with this value for a constant in all groups, the others fitted again."""
    at = law.names.index(name)
    # A constant with a name is not fitted; `_plain` takes the name away again in the end.
    held = substitute(law.form, {name: Constant(float(value), _HELD)})
    names = tuple(one for one in law.names if one != name)
    values = np.delete(law.values, at, axis=1)
    fits = []
    for group in range(len(rows.groups)):
        own = substitute(held, {one: Constant(float(values[group, i])) for i, one in enumerate(names)})
        training = rows.of(group)
        target = training.target
        (result,) = refine(
            [own], training.columns, target.y, target.weight, starts=0, steps=_STEPS, integers=False, seed=seed
        )
        if not result.loss < float("inf"):
            return None
        fits.append((free_constants(result.expression, integers=False), result.loss))
    loss = sum(share * fit[1] for share, fit in zip(rows.shares, fits, strict=True))
    new = np.array([fit[0] for fit in fits], dtype=np.float64).reshape(len(fits), len(names))
    gained = law.values.shape[0] - numbers
    return replace(law, form=held, names=names, values=new, loss=loss, numbers=law.numbers - gained)


def _plain(form: Expression) -> Expression:
    """The form with its shared constants as numbers; whole ones as whole numbers."""

    def visit(node: Expression, operands: tuple[Expression, ...]) -> Expression:
        if isinstance(node, Constant) and node.name == _HELD:
            return number_constant(float(node.value))
        return apply(node.operator, *operands) if isinstance(node, Apply) and operands != node.operands else node

    return fold(form, visit)


def values_by_group(law: GroupedLaw, columns: Mapping[str, Array], codes: npt.NDArray[np.int64]) -> Array:
    """The law's values (rows,) for rows of the groups `codes` (rows,) int64."""
    own = {name: np.ascontiguousarray(law.values[codes, at]) for at, name in enumerate(law.names)}
    found: Array = np.broadcast_to(evaluate(law.form, {**columns, **own}), (len(codes),))
    return found
