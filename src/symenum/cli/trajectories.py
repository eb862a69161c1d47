"""A file to trajectories: times, states and inputs, or a message that says what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from symenum.cli.errors import InputError, did_you_mean
from symenum.cli.options import split_list

if TYPE_CHECKING:
    import numpy
    import pandas

__all__ = ["Columns", "Trajectories", "choose_trajectories"]


@dataclass(frozen=True)
class Columns:
    """What of a file is wanted; without `states`, all columns that are nothing else."""

    time: str
    states: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    trajectory: str | None = None


@dataclass(frozen=True)
class Trajectories:
    """One entry for each trajectory; missing values stay, as gaps. `inputs` is None where there are none."""

    times: list[numpy.ndarray]
    states: list[pandas.DataFrame]
    inputs: list[pandas.DataFrame] | None

    @property
    def points(self) -> int:
        return sum(len(t) for t in self.times)


def choose_trajectories(
    frame: pandas.DataFrame, columns: Columns, note: Callable[[str], None], where: str
) -> Trajectories:
    """Times, states and inputs out of a frame; `where` names the file in messages."""
    from symenum.expressions import formula_names

    names = [str(name) for name in frame.columns]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise InputError(f"{where} has more than one column called {', '.join(repeated)}: give each its own name.")
    time = _found(columns.time, names, "--time")
    inputs = [_found(name, names, "--inputs") for name in split_list(columns.inputs)]
    drop = [_found(name, names, "--drop") for name in split_list(columns.drop)]
    mark = None if columns.trajectory is None else _found(columns.trajectory, names, "--trajectory")
    states = [_found(name, names, "--states") for name in split_list(columns.states)]
    if not states:
        states = [name for name in names if name not in (time, mark, *inputs, *drop)]
    if not states:
        raise InputError(f"There is no column left for a state in {where}: the time is '{time}'.")
    numbers = _numbers(frame, [time, *states, *inputs], where)
    called = formula_names([*states, *inputs])
    changed = {name: new for name, new in called.items() if new != name}
    if changed:
        pairs = ", ".join(f"'{name}' is {new}" for name, new in changed.items())
        note(f"Names that formulas cannot use are changed: {pairs}.")
    groups = [numbers] if mark is None else [numbers.loc[part.index] for _, part in frame.groupby(mark, sort=False)]
    return Trajectories(
        [group[time].to_numpy() for group in groups],
        [group[states].rename(columns=called) for group in groups],
        [group[inputs].rename(columns=called) for group in groups] if inputs else None,
    )


def _found(name: str, names: Sequence[str], option: str) -> str:
    if name in names:
        return name
    raise InputError(
        f"{option}: there is no column '{name}'.{did_you_mean(name, names)} The columns are: {', '.join(names)}."
    )


def _numbers(frame: pandas.DataFrame, columns: Sequence[str], where: str) -> pandas.DataFrame:
    import pandas

    found = {}
    for name in columns:
        column = frame[name]
        values = pandas.to_numeric(column, errors="coerce")
        wrong = (values.isna() & column.notna()).to_numpy()
        if wrong.any():
            first = int(wrong.argmax())
            raise InputError(
                f"Column '{name}' of {where} holds {str(column.iloc[first])[:40]!r} in row {first + 1}, which is no "
                "number. Leave the column out with --drop, or name the states with --states."
            )
        found[name] = values.astype("float64")
    return pandas.DataFrame(found, index=frame.index)
