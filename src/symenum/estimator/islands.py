"""A fit on a cluster: the problem as bytes, the turns that an island takes on a worker, and the islands' checkpoint.

A worker makes the task from parameters and data, as `PSERegressor.fit` does. What cannot be written as plain values
(callables, operators of your own) cannot be sent, and an error says so before anything is searched.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from symenum.core.budget import Budget
from symenum.core.exactness import overflow_allowed
from symenum.core.files import write_whole
from symenum.core.memory import large_blocks_returned
from symenum.core.threads import single_threaded
from symenum.core.user_warnings import warn_user
from symenum.estimator.data import FitData
from symenum.estimator.formulas import check_constants
from symenum.estimator.persistence import Start, json_parameters, parameters_from_json
from symenum.expressions import parse
from symenum.front import Front
from symenum.operators import get_operators
from symenum.search import State, Task, step, stop_reason
from symenum.search.checkpoint import ReadExpression
from symenum.search.run import EASY
from symenum.search.state import Turn

if TYPE_CHECKING:
    from symenum.cluster.islands import IslandSearch
    from symenum.cluster.messages import Message
    from symenum.cluster.worker import Request
    from symenum.estimator.regressor import PreparedFit, PSERegressor

__all__ = ["CLUSTER_MEMORY", "IslandFit", "on_cluster", "take_turns"]

CLUSTER_MEMORY = 2 << 30
"""Bytes that an island may take where max_memory is None: what a worker of a batch system usually has for each core."""
_JOINING = 60.0  # seconds for the first worker to say what it is: it imports torch, maybe from a disk of the network
_ALL_JOINING = 5.0  # seconds more for the others, so that the first round has all of them
_ARRAYS = ("X", "y", "weight", "y_error", "x_error")  # of FitData
_FORMAT = "symenum islands"


@contextmanager
def on_cluster(
    model: PSERegressor, fit: PreparedFit, max_iterations: int | None, began: float
) -> Iterator[IslandFit | None]:
    """What takes the search of a fit on, if it runs on a cluster; None: it runs in this process."""
    if model.cluster is None:
        yield None
        return
    # Here and not above: a fit in this process needs none of it.
    from symenum.cluster import Crew, connected
    from symenum.cluster.islands import IslandSearch
    from symenum.cluster.messages import Message, encode

    document, arrays = _problem(model, fit)
    data = encode(Message(document, arrays))
    with connected(model.cluster) as executor:
        crew = Crew(executor, memory=model._memory_limit(), note=_warn)
        if not crew.gathered(1, _JOINING):
            _no_workers(crew)
        crew.gathered(len(executor.places()), _ALL_JOINING)
        search = IslandSearch(
            fit.task,
            crew,
            data,
            _reader(model),
            max_time=model.max_time,
            max_iterations=max_iterations,
            began=began,
            warn=_warn,
        )
        islands = IslandFit(search, fit.start)
        islands.restore()
        try:
            yield islands
        finally:
            crew.drop()


def _warn(line: str) -> None:
    warn_user(f"cluster: {line}", RuntimeWarning)


def _no_workers(crew: Any) -> None:
    from symenum.cluster import NoWorkersError

    refused = "; ".join(f"{name} does not take part: {why}" for name, why in crew.refused.items())
    raise NoWorkersError(
        f"cluster: {crew.executor.name} has no worker that can be used"
        + (f" ({refused})" if refused else f": none came within {_JOINING:.0f} s; start some, and try again")
    )


def _problem(model: PSERegressor, fit: PreparedFit) -> tuple[dict[str, Any], dict[str, Any]]:
    """The problem of a fit as plain values and arrays; ClusterError for what cannot be sent."""
    from symenum.cluster import ClusterError

    own = [operator.name for operator in get_operators(model.operators) if not operator.built_in]
    stored = json_parameters(model.get_params(deep=False))
    code = [name for name, value in stored.items() if isinstance(value, dict) and "not kept" in value]
    if own or code:
        what = f"operators of your own ({', '.join(own)})" if own else f"the value of {code[0]}"
        raise ClusterError(
            f"cluster: {what} is code, which is not sent to workers: leave it out, or search without cluster"
        )
    data = fit.data
    document = {
        "parameters": {**stored, "max_memory": model._memory_limit()},
        "seed": fit.task.settings.seed,
        "columns": None if data.columns is None else list(data.columns),
        "names": None if data.names is None else list(data.names),
        "target": data.target,
        "units_in_names": data.units_in_names,
    }
    return document, {name: getattr(data, name) for name in _ARRAYS if getattr(data, name) is not None}


def _reader(model: PSERegressor) -> ReadExpression:
    """What makes expressions of text, with the constants that the user has named."""
    return partial(parse, constants=check_constants(model.constants, ()) or None)


@dataclass
class IslandFit:
    """The islands of a fit, an `Advance` of the run; their states stand beside the checkpoint."""

    search: IslandSearch
    start: Start

    def __call__(self, state: State, budget: Budget) -> State | None:
        return self.search(state, budget)

    def said(self) -> str:
        return self.search.said()

    @property
    def _file(self) -> Path | None:
        keeper = self.start.keeper
        return None if keeper is None else keeper.path.with_name(f"{keeper.path.name}.islands")

    def keep(self, state: State, front: Front) -> None:
        """Write the checkpoint, and the islands beside it; where the disk refuses, the checkpoint has warned."""
        from symenum.cluster.islands import state_document

        if self.start.keeper is None or self._file is None:
            return
        generator = self.search.task.settings.token_generator
        document = {
            "format": _FORMAT,
            "signature": self.start.signature,
            "iteration": state.iteration,
            "rounds": self.search.rounds,
            "islands": [state_document(one, generator) for one in self.search.islands],
        }
        try:
            write_whole(self._file, json.dumps(document, allow_nan=False))
        except OSError as error:
            _warn(f"'{self._file}' could not be written ({error.strerror or error}); the search goes on")
        self.start.keeper.write(state, front)

    def restore(self) -> None:
        """Go on with the islands of the checkpoint; where they are another step's, all begin from its front."""
        from symenum.cluster import ClusterError
        from symenum.cluster.islands import state_from

        state, file = self.start.state, self._file
        if state is None or file is None or not file.exists():
            return
        try:
            document = json.loads(file.read_text(encoding="utf-8"))
            right = (document["format"], document["signature"], document["iteration"])
            if right == (_FORMAT, self.start.signature, state.iteration):
                self.search.islands = [state_from(one, self.search.read) for one in document["islands"]]
                self.search.rounds = int(document["rounds"])
        except (OSError, ValueError, KeyError, TypeError, ClusterError) as error:
            _warn(f"the islands in '{file}' cannot be read ({error}): all begin from the front of the checkpoint")


# On a worker


@dataclass(frozen=True)
class _Island:
    """The problem as a worker has made it."""

    task: Task
    read: ReadExpression


def take_turns(request: Request) -> Message:
    """Some turns of an island: until its work, its steps or its seconds are done, or its front ends the search."""
    from symenum.cluster.islands import state_document, state_from
    from symenum.cluster.messages import Message

    document, device = request.document, str(request.document["device"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the driver has warned of the data; a move that fails stands in its record
        island: _Island = request.made(f"island on {device}", lambda message: _made(message, device))
        task, state = island.task, state_from(document["state"], island.read)
        with large_blocks_returned(task.settings.max_memory), single_threaded(), overflow_allowed():
            state, more = _turns(task, state, _ends(document), request.budget)
    return Message({"state": state_document(state, task.settings.token_generator), "more": more})


def _made(message: Message, device: str) -> _Island:
    from symenum.estimator.regressor import PSERegressor

    document, arrays = message.document, message.arrays
    model: PSERegressor = PSERegressor(**{**parameters_from_json(document["parameters"]), "device": device})
    columns, names = (None if document[key] is None else tuple(document[key]) for key in ("columns", "names"))
    given: dict[str, Any] = {name: np.ascontiguousarray(arrays[name]) if name in arrays else None for name in _ARRAYS}
    data = FitData(
        **given,
        columns=columns,
        names=names,
        target=document["target"],
        units_in_names=document["units_in_names"],
    )
    return _Island(model._problem(data, int(document["seed"]), Budget()).task(), _reader(model))


def _ends(document: Any) -> Callable[[State, State, float], bool]:
    """Whether an island has done its part: from the state that it came with, the present one, and seconds."""
    steps, work, seconds = document["steps"], document["work"], document["seconds"]

    def ended(came: State, state: State, taken: float) -> bool:
        if steps is not None and state.iteration - came.iteration >= steps:
            return True
        if work is not None and _work(state) - _work(came) >= work:
            return True
        return seconds is not None and taken >= seconds

    return ended


def _work(state: State) -> float:
    return sum(record.work for record in state.records)


def _turns(
    task: Task, state: State, ended: Callable[[State, State, float], bool], budget: Budget
) -> tuple[State, bool]:
    """The state after its turns, and whether any move has something left to do."""
    came, began = state, time.monotonic()
    while not budget.over() and stop_reason(task, state.front) is None:
        if state.passes == 0 and _work(state) >= EASY:
            task.warm_up()
        before = time.monotonic()
        after, move = step(task, state, budget)
        if move is None:
            return state, False
        gain = after.record(move).gain - state.record(move).gain
        now = time.monotonic()
        state = after.timed(Turn(after.iteration, move, state.elapsed, now - before, gain))
        if ended(came, state, now - began):
            break
    return state, True
