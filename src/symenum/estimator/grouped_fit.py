"""One form for groups of rows (`groups`): a column says which group a row is of; some constants are each group's own.

Forms come from searches of single groups, with PSERegressor itself. Which form describes all groups best, and which of
its constants are shared, is decided in `symenum.search.one_form`. Here are the checks of groups, and what a fitted
model knows of them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pandas
import torch

from symenum.core.budget import Budget
from symenum.core.target import Training, check_target
from symenum.core.words import did_you_mean
from symenum.estimator.data import column_names
from symenum.estimator.unit_text import FROM_NAMES, without_unit
from symenum.expressions import Constant, Expression, Units, substitute, written
from symenum.expressions.candidate import Candidate
from symenum.front import Front
from symenum.operators import Operator
from symenum.sanity.shapes import Shape, Verdict
from symenum.search.one_form import (
    GroupedLaw,
    GroupedRows,
    best_forms,
    fit_form_to_groups,
    forms_of,
    in_turn_of_groups,
    linear_forms,
    values_by_group,
)

__all__ = [
    "GroupedKnowledge",
    "GroupedModel",
    "GroupedTable",
    "check_groups",
    "choose_form",
    "grouped_equations",
    "not_for_groups",
    "searched_groups",
]

Method = TypeVar("Method", bound=Callable[..., Any])
_MIN_ROWS = 3  # of a group: with fewer, nothing is left over to judge a constant by
_MAX_GROUPS = 500  # each with constants of its own: more take minutes to fit, and a sample of them tells the form
_SEARCHED = 4  # groups that are searched, those with the most rows
_SHARED_IN_ANY_CASE = 3  # of these, even where the time is over
_SHARED_FORMS = 12  # of the best forms, for which it is asked what groups share


@dataclass(frozen=True)
class GroupedTable:
    """X without the column of groups, y and weights; `labels` of the groups and the group of each row, `codes`."""

    X: Any
    y: Any
    weight: Any
    column: str
    labels: tuple[Any, ...]
    codes: npt.NDArray[np.int64]
    names: tuple[str, ...]
    place: int  # of the column of groups among all columns

    @property
    def labels_of_columns(self) -> list[str]:
        """The names of the columns as the user wrote them."""
        return list(map(str, self.X.columns)) if isinstance(self.X, pandas.DataFrame) else list(self.names)

    @property
    def box(self) -> dict[str, tuple[float, float]]:
        """The least and the largest value of each column in all groups."""
        values = np.asarray(self.X, dtype=np.float64)
        return {name: (float(values[:, i].min()), float(values[:, i].max())) for i, name in enumerate(self.names)}

    @property
    def codes_of_counted(self) -> npt.NDArray[np.int64]:
        """The groups of the rows of weight above zero, which `rows` has."""
        return self.codes if self.weight is None else self.codes[np.asarray(self.weight, dtype=np.float64) > 0]

    def part(self, group: int) -> tuple[Any, Any, Any]:
        """X, y and weights of one group."""
        rows = np.flatnonzero(self.codes == group)
        weight = None if self.weight is None else np.asarray(self.weight)[rows]
        y = self.y.iloc[rows] if isinstance(self.y, pandas.Series) else np.asarray(self.y)[rows]
        return _rows_of(self.X, rows), y, weight

    def rows(self) -> GroupedRows:
        """All rows as the fits take them; those of weight zero are left out."""
        values = np.ascontiguousarray(np.asarray(self.X, dtype=np.float64))
        target, counted = check_target(self.y, self.weight, len(values))
        training = Training.of(torch.tensor(values)[counted], self.names, target)
        codes = self.codes[counted.numpy()]
        groups = tuple(torch.from_numpy(np.flatnonzero(codes == group)) for group in range(len(self.labels)))
        return GroupedRows(training, groups)


@dataclass(frozen=True)
class GroupedModel:
    """What a fitted model knows of groups: the laws of its front, and which group has which constants."""

    laws: tuple[GroupedLaw, ...]
    column: str
    labels: tuple[Any, ...]
    names: tuple[str, ...]
    place: int = 0  # of the column of groups among all columns

    @property
    def all_names(self) -> tuple[str, ...]:
        """The names of the columns, and of the constants of any law."""
        return (*self.names, *dict.fromkeys(name for law in self.laws for name in law.names))

    def constants(self, index: int) -> pandas.DataFrame:
        """The constants of a law by group."""
        law = self.laws[index]
        return pandas.DataFrame(law.values, index=pandas.Index(self.labels, name=self.column), columns=list(law.names))

    def of_group(self, index: int, group: int) -> Expression:
        """A law with the constants of one group, given by its number."""
        return law_of_group(self.laws[index], group)

    def in_rows(self, index: int, codes: npt.NDArray[np.int64]) -> dict[str, torch.Tensor]:
        """The constants of a law as columns (rows,), for rows of the groups `codes`."""
        law = self.laws[index]
        return {name: torch.from_numpy(law.values[codes, at].copy()) for at, name in enumerate(law.names)}

    def predict(self, X: Any, index: int) -> npt.NDArray[np.float64]:
        """The law's values (rows,) for X with the column of groups."""
        column, rest = _split(X, self.column, len(self.names))
        known = {label: code for code, label in enumerate(self.labels)}
        unknown = [label for label in column if label not in known]
        if unknown:
            raise ValueError(
                f"X has the group {unknown[0]!r}, which was not in the fit: its constants are not known; the groups "
                f"are {', '.join(map(repr, self.labels[:20]))}"
            )
        values = np.asarray(rest, dtype=np.float64)
        columns = {name: np.ascontiguousarray(values[:, i]) for i, name in enumerate(self.names)}
        codes = np.array([known[label] for label in column], dtype=np.int64)
        return values_by_group(self.laws[index], columns, codes)


def law_of_group(law: GroupedLaw, group: int) -> Expression:
    """The law with the constants of a group."""
    return substitute(law.form, {name: Constant(float(law.values[group, at])) for at, name in enumerate(law.names)})


@dataclass(frozen=True)
class GroupedKnowledge:
    """What the user knows of laws of groups, each with the constants of a group."""

    units: Units | None = None
    shape: Shape | None = None

    def repaired(self, forms: Sequence[Expression]) -> list[Expression]:
        """Those of the forms that may be laws, numbers that are added to something with a unit taken away."""
        if self.units is None:
            return list(forms)
        units = self.units
        return [one for form in forms if units.allows(one := units.repaired(form))]

    def allowed(self, laws: Sequence[GroupedLaw]) -> list[GroupedLaw]:
        """The laws of the right unit; of these the ones that break no shape in any group, if there are such."""
        units = self.units
        right = [law for law in laws if units is None or units.allows(law_of_group(law, 0))]
        return [law for law in right if not self.mark(law).startswith(Verdict.BROKEN.value)] or right

    def mark(self, law: GroupedLaw, labels: Sequence[Any] = ()) -> str:
        """The worst verdict on the shape in any group, in words, with the label of the group; "" without a shape."""
        if self.shape is None:
            return ""
        order = [verdict.value for verdict in Verdict]
        worst = ""
        for group in range(len(law.values)):
            found = self.shape.mark(law_of_group(law, group))
            if not worst or order.index(found.partition(":")[0]) > order.index(worst.partition(":")[0]):
                worst = found if not labels or found == Verdict.PROVED.value else f"{found} ({labels[group]})"
        return worst


def not_for_groups(method: Method) -> Method:
    """Makes a method refuse a model with groups, and say what there is instead."""

    @functools.wraps(method)
    def wrapped(self: Any, *arguments: Any, **options: Any) -> Any:
        if getattr(self, "grouped_", None) is not None:
            raise ValueError(
                f"{method.__name__} is not for a model with groups, whose law has other constants in each group: see "
                "constants_, and fit a group alone for more"
            )
        return method(self, *arguments, **options)

    return wrapped  # type: ignore[return-value]


def check_groups(model: Any, X: Any, y: Any, weight: Any, variable_names: Sequence[str] | None) -> GroupedTable:
    """The table without its column of groups, and the groups; ValueError for groups that cannot be."""
    for name in ("template", "select_k_features"):
        if getattr(model, name) is not None:
            raise ValueError(f"{name} is not for groups yet: leave it out, or fit each group alone")
    if variable_names is not None:
        raise ValueError("variable_names is not for groups yet: give X as a DataFrame")
    if not isinstance(model.groups, str):
        raise ValueError(f"groups must be the name of a column, not {model.groups!r:.60}")
    if not isinstance(X, pandas.DataFrame):
        X = np.asarray(X)
        if X.ndim != 2:
            raise ValueError(f"X must have shape (rows, columns), not {X.shape}")
    labels, rest = _split(X, model.groups, None)
    if pandas.isna(labels).any():
        raise ValueError(f"groups: the column {model.groups!r} has missing cells: leave those rows out")
    if all(isinstance(label, float) and label.is_integer() for label in labels):
        labels = [int(label) for label in labels]  # a file's whole numbers were read as floats
    found = list(dict.fromkeys(labels))
    sizes = pandas.Series(labels).value_counts()
    if len(found) < 2:
        raise ValueError(f"groups: the column {model.groups!r} has one group only: leave groups out")
    if len(found) > _MAX_GROUPS:
        raise ValueError(
            f"groups: the column {model.groups!r} has {len(found):,} groups, and at most {_MAX_GROUPS} can be fitted: "
            "take a sample of them, or another column"
        )
    small = [label for label in found if sizes[label] < _MIN_ROWS]
    if small:
        rows = int(sizes[small[0]])
        raise ValueError(
            f"groups: the group {small[0]!r} has {rows} row{'' if rows == 1 else 's'}, and at least "
            f"{_MIN_ROWS} are needed: leave out such groups ({len(small)} of {len(found)}), or join them with others"
        )
    codes = pandas.Series(labels).map({label: code for code, label in enumerate(found)}).to_numpy(dtype=np.int64)
    columns = list(map(str, rest.columns)) if isinstance(rest, pandas.DataFrame) else None
    if columns is not None and model.units == FROM_NAMES:  # a column "speed [m/s]" is called speed in laws
        columns = [without_unit(label) for label in columns]
    every = list(map(str, X.columns)) if isinstance(X, pandas.DataFrame) else [f"x{i + 1}" for i in range(X.shape[1])]
    names = column_names(columns if columns is not None else _array_names(X, model.groups), rest.shape[1])
    return GroupedTable(rest, y, weight, model.groups, tuple(found), codes, names, every.index(model.groups))


def searched_groups(table: GroupedTable) -> list[int]:
    """The groups that are searched for forms: a few, those with the most rows."""
    sizes = np.bincount(table.codes, minlength=len(table.labels))
    return [int(group) for group in np.argsort(-sizes, kind="stable")[:_SEARCHED]]


def choose_form(
    laws: Sequence[tuple[Sequence[Candidate], int]],
    table: GroupedTable,
    operators: Sequence[Operator],
    budget: Budget,
    seed: int,
    known: GroupedKnowledge,
) -> tuple[tuple[GroupedLaw, ...], int, Front]:
    """The front of forms, which of them is chosen, and the front as that of any search.

    `laws`: what was found in each group that was searched, and its number of rows.
    """
    rows = table.rows()
    linear = known.repaired(linear_forms(rows, operators))
    forms = best_forms(forms_of([*linear, *in_turn_of_groups(laws)]), rows, budget, seed)
    found = list(forms)
    for place, law in enumerate(forms[:_SHARED_FORMS]):
        if place >= _SHARED_IN_ANY_CASE and budget.over():
            break
        found.append(fit_form_to_groups(law, rows, seed=seed))
    found = known.allowed(found)
    if not found:
        raise ValueError(
            "no form was found that has a finite value on all rows"
            f"{'' if known.units is None else ' and the unit of the target'}: search longer, or change operators"
        )
    empty = Front.of(rows.training.target)
    chosen = min(found, key=lambda law: law.cost(rows.rows, empty.floor))
    kept: list[GroupedLaw] = []
    for law in sorted(found, key=lambda law: (law.complexity, law.cost(rows.rows, empty.floor))):
        better = not kept or law.loss < kept[-1].loss
        if law is chosen or (better and (not kept or law.complexity > kept[-1].complexity)):
            kept = [one for one in kept if one.complexity < law.complexity]
            kept.append(law)
    if chosen not in kept:  # a law of its complexity stood there that costs as much
        others = [one for one in kept if one.complexity != chosen.complexity]
        kept = sorted([*others, chosen], key=lambda one: one.complexity)
    entries = tuple(Candidate(law.form, law.loss) for law in kept)
    return tuple(kept), kept.index(chosen), Front(entries, empty.floor, empty.rows, empty.discount)


def grouped_equations(laws: Sequence[GroupedLaw]) -> pandas.DataFrame:
    """`equations_` of a model with groups."""
    return pandas.DataFrame(
        {
            "complexity": [law.complexity for law in laws],
            "loss": [law.loss for law in laws],
            "numbers": [law.numbers for law in laws],
            "equation": [str(written(law.form)) for law in laws],
            "group_constants": [", ".join(law.names) for law in laws],
        }
    )


def _split(X: Any, column: str, width: int | None) -> tuple[Any, Any]:
    """The column of groups as a list of labels, and the other columns."""
    if isinstance(X, pandas.DataFrame):
        if column not in X.columns:
            meant = did_you_mean(column, list(map(str, X.columns)))
            there = ", ".join(map(str, X.columns[:20]))
            raise ValueError(f"groups names {column!r}, which is no column{meant}; there are {there}")
        return X[column].tolist(), X.drop(columns=column)
    table = np.asarray(X)
    names = [f"x{i + 1}" for i in range(table.shape[1])]
    if column not in names or (width is not None and table.shape[1] != width + 1):
        raise ValueError(f"groups names {column!r}, which is no column; there are {', '.join(names[:20])}")
    at = names.index(column)
    return table[:, at].tolist(), np.delete(table, at, axis=1)


def _array_names(X: Any, column: str) -> list[str]:
    """The names of the other columns of an array, which keep their numbers."""
    return [name for i in range(X.shape[1]) if (name := f"x{i + 1}") != column]


def _rows_of(X: Any, rows: npt.NDArray[np.int64]) -> Any:
    return X.iloc[rows] if isinstance(X, pandas.DataFrame) else X[rows]
