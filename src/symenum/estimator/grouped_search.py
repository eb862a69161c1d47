"""The fit of a model with groups: some groups are searched one by one, and what was found is fitted to all of them."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from symenum.core.budget import Budget
from symenum.core.target import Training
from symenum.core.user_warnings import warn_user
from symenum.estimator.data import FitData, target_name
from symenum.estimator.grouped_files import check_labels, file_of_group, groups_document, numbers_of
from symenum.estimator.grouped_fit import (
    GroupedKnowledge,
    GroupedModel,
    GroupedTable,
    check_groups,
    choose_form,
    searched_groups,
)
from symenum.estimator.parameters import as_callbacks, check_parameters
from symenum.estimator.persistence import Start, checkpoint_path, make_keeper, open_checkpoint, run_place, signature_of
from symenum.estimator.run_record import end_run, open_run
from symenum.estimator.several_targets import split_targets
from symenum.estimator.shape_text import read_shape
from symenum.estimator.units import read_units
from symenum.front import Front
from symenum.operators import get_operators
from symenum.search import Outcome, StepReport
from symenum.search.checkpoint import Checkpoint
from symenum.search.state import State
from symenum.selection import rule_while_searching

if TYPE_CHECKING:
    from symenum.estimator.regressor import FitSession, PSERegressor

__all__ = ["fit_groups"]

_SEARCH_SHARE = 0.6  # of max_time, for the searches of single groups; the rest is for fits to all of them


def fit_groups(
    model: PSERegressor,
    X: object,
    y: object,
    sample_weight: object,
    others: tuple[object, ...],
    variable_names: Sequence[str] | None,
) -> None:
    """Fit a model that has `groups`. `others`: arguments of `fit` that are not for groups."""
    check_parameters(model.get_params(deep=False))
    if any(one is not None for one in others):
        raise ValueError("validation, y_error and x_error are not for groups yet: leave them out")
    if split_targets(y, None) is not None:
        raise ValueError("groups is for one target: fit each column of y with groups of its own")
    table = check_groups(model, X, y, sample_weight, variable_names)
    target, seed, before = target_name(y), model._seed(), model._checkpoint
    training = table.rows().training
    known = GroupedKnowledge(
        read_units(model, table.names, table.labels_of_columns, target, ()),
        read_shape(model.shape, model.shape_box, table.names, target, training.columns),
    )
    facts = numbers_of(table, target)
    empty = GroupedModel((), table.column, table.labels, table.names, table.place)
    file = _open_file(model, table, facts, before)
    if file is not None:
        front = Front.of(training.target)
        file.write(State(seed, 0, front), front, empty, 0)
    start = Start(signature="" if file is None else file.signature, state=None if before is None else before.state)
    rule, earlier = rule_while_searching(model.model_selection), 0.0 if before is None else before.state.elapsed
    with (
        model._running() as session,
        open_run(model, facts, training, target, start, rule, session.stopping.end) as writer,
    ):
        path = None if file is None else file.path
        models = _search_some(model, table, session, seed, path, going_on=before is not None, writer=writer)
        laws = [(one._kept, one.front_.rows) for one in models]
        elapsed = time.monotonic() - session.began
        budget = Budget(None if model.max_time is None else max(1.0, model.max_time - elapsed))
        found, chosen, front = choose_form(laws, table, get_operators(model.operators), budget, seed, known)
        model.target_name_ = target
        model._set_groups(replace(empty, laws=found), chosen, front)
        own = model.grouped_.in_rows(chosen, table.codes_of_counted)
        model.training_ = Training({**training.columns, **own}, training.target)
        model.n_iter_, model.scored_ = sum(one.n_iter_ for one in models), sum(one.scored_ for one in models)
        model.elapsed_ = earlier + time.monotonic() - session.began
        model.interrupted_ = any(one.interrupted_ for one in models)
        model.stop_reason_ = f"{len(models)} of {len(table.labels)} groups were searched, and all were fitted"
        model.plan_, model.schedule_, model.refused_ = models[0].plan_, models[0].schedule_, models[0].refused_
        if known.shape is not None:
            _mark_shape(model, known)
        state = State(seed, model.n_iter_, front, scored=model.scored_, elapsed=model.elapsed_)
        if file is not None:
            file.write(state, front, model.grouped_, chosen)
        outcome = Outcome(state, front, model.stop_reason_, state, model.interrupted_)
        end_run(writer, model, outcome, run_place(model.run_dir))


@dataclass(frozen=True)
class _File:
    """The checkpoint of the whole fit, and what it holds beside the state."""

    path: Path
    data: FitData
    parameters: dict[str, Any]
    signature: str

    def write(self, state: State, front: Front, grouped: GroupedModel, selected: int) -> None:
        about = {"groups": groups_document(grouped), "selected": selected}
        make_keeper(self.path, self.data, self.parameters, self.signature, about).write(state, front)


def _open_file(model: PSERegressor, table: GroupedTable, data: FitData, before: Checkpoint | None) -> _File | None:
    """The checkpoint that the fit writes, if it writes one; an error if `before` was made with other data."""
    path = checkpoint_path(model)
    if path is None:
        return None
    check_labels(table)
    parameters = model.get_params(deep=False)
    signature = signature_of(data, parameters)
    if before is not None and before.signature != signature:
        raise ValueError(
            "X, y and sample_weight are not those of the checkpoint (or its settings were changed): give the "
            "data that the search began with, or start anew with fit"
        )
    return _File(path, data, parameters, signature)


def _search_some(
    model: PSERegressor,
    table: GroupedTable,
    session: FitSession,
    seed: int,
    path: Path | None,
    *,
    going_on: bool,
    writer: Callable[[StepReport], object],
) -> list[PSERegressor]:
    """The searches of single groups, each with a checkpoint of its own beside that of the whole, if it has one."""
    searched = searched_groups(table)
    seconds = None if model.max_time is None else _SEARCH_SHARE * model.max_time / len(searched)
    box = {} if model.shape is None else {**table.box, **(model.shape_box or {})}
    models: list[PSERegressor] = []
    for number, group in enumerate(searched):
        if models and (session.stopping.over() or models[-1].interrupted_):
            break
        file = None if path is None else file_of_group(path, number)
        steps, began = sum(one.n_iter_ for one in models), time.monotonic() - session.began

        def told(report: StepReport, steps: int = steps, began: float = began) -> list[object]:
            whole = replace(report, iteration=steps + report.iteration, elapsed=began + report.elapsed)
            return [tell(whole) for tell in (writer, *as_callbacks(model.callbacks))]

        settings: dict[str, Any] = {
            **{"groups": None, "max_time": seconds, "random_state": seed, "warm_start": False, "run_dir": None},
            **{"callbacks": lambda report, told=told: any(told(report)), "checkpoint": file},
            **({"shape_box": box} if box else {}),
        }
        column = type(model)(**{**model.get_params(deep=False), **settings})
        model._column = column
        if going_on and file is not None and file.exists():
            names = model._get_param_names()
            column._checkpoint = open_checkpoint(file, {}, names, with_data=False).checkpoint
        try:
            with warnings.catch_warnings():
                # Whether the law of all groups keeps the shape is told in the end.
                warnings.filterwarnings("ignore", message="no law that was found keeps the shape")
                models.append(column.fit(*table.part(group)))
        finally:
            model._column = None
    return models


def _mark_shape(model: PSERegressor, known: GroupedKnowledge) -> None:
    """Put into `equations_` whether each law keeps the shape in all groups, and warn where none does."""
    grouped = model.grouped_
    model.equations_["shape"] = [known.mark(law, grouped.labels) for law in grouped.laws]
    mark = str(model.equations_["shape"].iloc[model.selected_index_])
    if mark.startswith("broken"):
        warn_user(
            f"no law that was found keeps the shape in all groups ({mark}): search longer, or ask for less",
            UserWarning,
        )
