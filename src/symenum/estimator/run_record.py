"""A fit of PSERegressor in the folder of a run: who writes the folder, what it says, and what it holds at the end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from symenum.core.target import Training
from symenum.estimator.data import FitData
from symenum.estimator.persistence import Start, json_parameters, run_place
from symenum.run_directory import RUN, NoRunWriter, RunFacts, RunPlace, RunWriter
from symenum.run_directory.writer import finite_or_none
from symenum.search import Outcome

__all__ = ["end_run", "open_run"]

_REPORT = "report.html"


class FittedModel(Protocol):
    """PSERegressor, as far as the end of its run is told."""

    front_: Any
    selected_index_: int
    best_expression_: Any
    refused_: dict[str, int]

    def save(self, path: str | Path, *, overwrite: bool = False) -> None: ...
    def report(self, path: str | Path) -> None: ...
    def _stated_confidence(self) -> tuple[str, ...] | None: ...
    def _alternatives_of_best(self) -> tuple[Any, ...]: ...


def open_run(
    model: Any, data: FitData, training: Training, target: str, start: Start, rule: str, stop: Callable[[], object]
) -> RunWriter | NoRunWriter:
    """Who writes the folder of the fit: nobody without `run_dir`. An error where the folder holds another run."""
    place = run_place(model.run_dir)
    if place is None:
        return NoRunWriter()
    if place.results and (place.path / RUN).exists() and start.state is None:
        raise ValueError(
            f"run_dir: '{place.path}' holds a run already: name another folder, or go on with that run by "
            f"{type(model).__name__}.resume('{place.path}')"
        )
    return RunWriter(place.path, _facts(model, data, training, place.target or target, start, place), rule, stop)


def _facts(model: Any, data: FitData, training: Training, target: str, start: Start, place: RunPlace) -> RunFacts:
    names = data.variables
    columns = place.columns if len(place.columns) == len(names) else (data.columns or names)
    settings = json_parameters(model.get_params(deep=False))
    if isinstance(model.random_state, (int, np.integer)):
        settings["random_state"] = int(model.random_state)
    squared = model.loss == "mse"
    return RunFacts(
        kind="law",
        targets=(target,),
        variables=tuple(zip(names, columns, strict=True)),
        rows=len(data.X),
        settings=settings,
        variances=(training.variance if squared else None,),
        source=place.source,
        data_hash=start.signature or "",
        max_time=model.max_time,
        elapsed_before=0.0 if start.state is None else start.state.elapsed,
    )


def end_run(writer: RunWriter | NoRunWriter, model: FittedModel, outcome: Outcome, place: RunPlace | None) -> None:
    """Write the results where the folder is the estimator's own, and say how the search ended."""
    if place is None:
        return
    told: dict[str, Any] = {"refused": model.refused_}
    if outcome.error is None:
        told["confidence"] = list(model._stated_confidence() or ())
        told["alternatives"] = [
            {"equation": str(one.law.expression), "weight": one.weight, "loss": finite_or_none(one.law.loss)}
            for one in model._alternatives_of_best()
            if one.law.expression != model.best_expression_
        ]
        if place.results:
            model.save(place.path, overwrite=True)
            model.report(place.path / _REPORT)
    # The fronts of a run have one name each: the target's, which the writer has been given.
    writer.finish(
        model.front_,
        model.selected_index_,
        reason=outcome.reason,
        interrupted=outcome.interrupted,
        elapsed=outcome.state.elapsed,
        error=outcome.error,
        **told,
    )
