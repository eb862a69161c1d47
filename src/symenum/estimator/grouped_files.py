"""Groups in files: what model.json says of them, and the checkpoint of a search with groups.

Such a checkpoint is one like any other, whose laws hold the names of the groups' constants. Beside it stand the
checkpoints of the searches of single groups, `checkpoint.group1.json` and so on, from which these go on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas

from symenum.estimator.data import FitData
from symenum.estimator.grouped_fit import GroupedModel, GroupedTable
from symenum.expressions import variables
from symenum.expressions.candidate import Candidate
from symenum.front import Front
from symenum.search.one_form import GroupedLaw

__all__ = [
    "check_labels",
    "constants_csv",
    "file_of_group",
    "group_lines",
    "groups_document",
    "numbers_of",
    "read_groups",
    "with_labels",
]

_GROUPS_IN_A_REPORT = 50  # groups whose constants a report shows: more would be no page to read
_KINDS = (str, bool, int, float)  # of labels: what JSON holds as it is


def check_labels(table: GroupedTable) -> None:
    """Refuse labels that a file cannot hold."""
    wrong = [label for label in table.labels if not isinstance(_plain(label), _KINDS)]
    if wrong:
        raise ValueError(
            f"groups: the column {table.column!r} holds {wrong[0]!r:.40}, a {type(wrong[0]).__name__}, which a file "
            "cannot hold: use texts or numbers for the groups, or leave checkpoint and run_dir out"
        )


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label


def numbers_of(table: GroupedTable, target: str) -> FitData:
    """The rows as a checkpoint holds them: in the place of each label its number."""
    values = np.asarray(table.X, dtype=np.float64)
    X = np.insert(values, table.place, table.codes, axis=1)
    weight = None if table.weight is None else np.asarray(table.weight, dtype=np.float64)
    columns = None
    if isinstance(table.X, pandas.DataFrame):
        labels = [str(column) for column in table.X.columns]
        columns = (*labels[: table.place], table.column, *labels[table.place :])
    return FitData(
        np.ascontiguousarray(X), np.asarray(table.y, dtype=np.float64).reshape(-1), weight, columns, target=target
    )


def with_labels(X: Any, document: Mapping[str, Any]) -> Any:
    """The rows of a checkpoint with the labels of their groups. `document`: that of `groups_document`."""
    labels, column, place = document.get("labels"), document.get("column"), document.get("place")
    if not isinstance(labels, list) or not isinstance(column, str) or not isinstance(place, int):
        raise ValueError("the checkpoint is damaged: it does not say which groups there are")
    codes = (X.iloc[:, place] if isinstance(X, pandas.DataFrame) else X[:, place]).astype(int)
    if len(codes) and not 0 <= min(codes) <= max(codes) < len(labels):
        raise ValueError("the checkpoint is damaged: it has rows of groups that are not there")
    if isinstance(X, pandas.DataFrame):
        return X.assign(**{column: [labels[code] for code in codes]})
    if all(isinstance(label, (int, float)) for label in labels):
        return np.column_stack([*X.T[:place], [float(labels[code]) for code in codes], *X.T[place + 1 :]])
    table = X.astype(object)
    table[:, place] = [labels[code] for code in codes]
    return table


def file_of_group(checkpoint: Path, number: int) -> Path:
    """The checkpoint of the search of a single group, counted from 0, beside that of the whole."""
    return checkpoint.with_name(f"{checkpoint.stem}.group{number + 1}{checkpoint.suffix}")


def groups_document(grouped: GroupedModel) -> dict[str, Any]:
    """All that a file needs beside the forms of the laws, as JSON's values."""
    return {
        "column": grouped.column,
        "place": grouped.place,
        "labels": [_plain(label) for label in grouped.labels],
        "names": list(grouped.names),
        "laws": [
            {"names": list(law.names), "values": law.values.tolist(), "numbers": law.numbers} for law in grouped.laws
        ],
    }


def group_lines(document: Mapping[str, Any], index: int) -> list[str]:
    """The constants of a law by group, in lines for a report: those of the first groups."""
    law, labels = document["laws"][index], document["labels"]
    if not law["names"]:
        return []
    lines = []
    for label, values in zip(labels[:_GROUPS_IN_A_REPORT], law["values"], strict=False):
        row = ", ".join(f"{name} = {value:.5g}" for name, value in zip(law["names"], values, strict=True))
        lines.append(f"{document['column']} {label}: {row}.")
    more = len(labels) - len(lines)
    return [*lines, f"{more} more groups are in constants.csv of a saved result."] if more > 0 else lines


def read_groups(document: Mapping[str, Any], front: Front) -> GroupedModel:
    """The groups of a document, whose laws have the forms of the front; ValueError where it is damaged."""
    labels, names, records = document.get("labels"), document.get("names"), document.get("laws")
    column = document.get("column")
    fine = isinstance(labels, list) and isinstance(names, list) and isinstance(records, list)
    if not fine or not isinstance(column, str) or not all(isinstance(one, _KINDS) for one in labels or ()):
        raise ValueError("its groups have no column, labels, names and laws")
    labels, names, records = list(labels or ()), list(names or ()), list(records or ())
    if len(records) != len(front):
        raise ValueError(f"its groups have constants for {len(records)} laws and not for {len(front)}")
    return GroupedModel(
        tuple(_law(record, entry, labels, names) for record, entry in zip(records, front, strict=True)),
        column,
        tuple(labels),
        tuple(map(str, names)),
        int(document["place"]) if isinstance(document.get("place"), int) else 0,
    )


def _law(record: Any, entry: Candidate, labels: Sequence[Any], columns: Sequence[str]) -> GroupedLaw:
    form = entry.expression
    try:
        names = tuple(map(str, record["names"]))
        values = np.array(record["values"], dtype=np.float64).reshape(len(labels), len(names))
        numbers = int(record["numbers"])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"the constants of its groups cannot be read: {error}") from error
    unknown = set(variables(form)) - {*names, *columns}
    if unknown or not np.isfinite(values).all():
        raise ValueError("the constants of its groups are not those of its laws")
    return GroupedLaw(form, names, values, entry.loss, numbers)


def constants_csv(document: Mapping[str, Any], selected: int) -> str:
    """The constants of a law by group, as CSV with every digit."""
    law = document["laws"][selected]
    table = pandas.DataFrame(law["values"], index=pandas.Index(document["labels"], name=document["column"]))
    table.columns = pandas.Index(law["names"])
    text: str = table.to_csv(lineterminator="\n")
    return text
