"""What the page may ask for: each field of a request is checked here, before anything is written or started."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from symenum.studio.answers import RequestError
from symenum.studio.worker import motion_parameters, search_parameters

__all__ = ["checked_request", "checked_time", "number_list"]

_MAX_TIME = 30 * 24 * 3600.0  # seconds, a month: more is a slip of the finger
_MAX_TEXT = 20_000  # characters of a name: tables may have absurd ones, and they are only compared
_LARGEST_SEED = 2**32 - 1  # what NumPy takes


def checked_time(value: object) -> float:
    """Seconds of a search."""
    fine = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= _MAX_TIME
    if not fine:
        raise RequestError(422, f"max_time must be seconds above 0 and at most {_MAX_TIME:.0f}, not {value!r:.40}.")
    return float(value)  # type: ignore[arg-type]


def checked_request(body: object, path: Path, source: str) -> dict[str, Any]:
    """The request for a new search as its folder keeps it; RequestError says what is wrong with it."""
    if not isinstance(body, Mapping):
        raise RequestError(422, "The request must be a JSON object with table, kind, target, inputs and max_time.")
    kind = body.get("kind", "law")
    if kind not in ("law", "motion"):
        raise RequestError(422, f"kind must be 'law' or 'motion', not {kind!r:.40}.")
    parameters = {} if body.get("parameters") is None else body["parameters"]
    if not isinstance(parameters, Mapping):
        raise RequestError(422, "parameters must be an object of names and values.")
    seed = body.get("random_state")
    if seed is not None and not (isinstance(seed, int) and not isinstance(seed, bool) and 0 <= seed <= _LARGEST_SEED):
        raise RequestError(422, f"random_state must be a whole number from 0 to {_LARGEST_SEED}, not {seed!r:.40}.")
    checked: dict[str, Any] = {
        "path": str(path),
        "source": source,
        "name": _text(body.get("name") or source.rsplit(".", 1)[0] or "run", "name"),
        "kind": kind,
        "inputs": _texts(body.get("inputs") or [], "inputs"),
        "operators": _operators(body.get("operators", "koza")),
        "max_time": checked_time(body.get("max_time", 60.0)),
        "random_state": seed,
        "parameters": dict(parameters),
    }
    try:
        search_parameters(parameters) if kind == "law" else motion_parameters(parameters)
    except ValueError as error:
        raise RequestError(422, f"{error}.") from error
    if kind == "motion":
        targets = _texts(body.get("targets") or [], "targets")
        if not targets:
            raise RequestError(422, "targets must name the columns that move, such as ['x', 'v'].")
        return {**checked, "targets": targets, "time": _text(body.get("time"), "time")}
    target = _text(body.get("target"), "target")
    if target in checked["inputs"]:
        raise RequestError(422, f"The target {target[:60]!r} cannot be one of the inputs: take it out of them.")
    return {**checked, "target": target}


def _operators(value: object) -> str | list[str]:
    from symenum.operators import get_operators

    chosen = value if isinstance(value, str) else _texts(value, "operators")
    try:
        get_operators(chosen)
    except (ValueError, TypeError) as error:
        raise RequestError(422, f"operators: {error}.") from error
    return chosen


def _text(value: object, name: str) -> str:
    if not isinstance(value, str) or not value or len(value) > _MAX_TEXT:
        raise RequestError(422, f"{name} must be a name, not {value!r:.40}.")
    return value


def _texts(value: object, name: str) -> list[str]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise RequestError(422, f"{name} must be a list of names, not {value!r:.40}.")
    return [_text(one, name) for one in value]


def number_list(value: object, name: str) -> list[float]:
    """Finite numbers."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise RequestError(422, f"{name} must be a list of numbers, not {value!r:.40}.")
    fine = all(isinstance(one, (int, float)) and not isinstance(one, bool) and abs(one) < float("inf") for one in value)
    if not fine:
        raise RequestError(422, f"{name} must be finite numbers.")
    return [float(one) for one in value]
