"""An independent float64 brute force in plain NumPy: every candidate stored, nothing shared with the engine's code."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# name: (NumPy function, complexity, kind); written anew here on purpose.
UNARY = {
    "identity": (lambda a: a, 0),
    "neg": (lambda a: -a, 1),
    "inv": (lambda a: 1 / a, 2),
    "sin": (np.sin, 3),
    "cos": (np.cos, 3),
    "exp": (np.exp, 3),
    "log": (np.log, 3),
    "sqrt": (np.sqrt, 2),
    "tanh": (np.tanh, 2),
    "cosh": (np.cosh, 2),
    "sinh": (np.sinh, 3),
    "abs": (np.abs, 4),
    "sign": (np.sign, 4),
    "pow2": (np.square, 2),
    "pow3": (lambda a: a**3, 2),
    "sigmoid": (lambda a: 1 / (1 + np.exp(-a)), 7),
}
BINARY = {
    "add": (np.add, 1, "triangled"),
    "mul": (np.multiply, 1, "triangled"),
    "semisub": (np.subtract, 1, "triangled"),
    "semidiv": (np.divide, 2, "triangled"),
    "sub": (np.subtract, 1, "squared"),
    "div": (np.divide, 2, "squared"),
    "pow": (np.power, 2, "squared"),
    "hypot": (np.hypot, 3, "triangled"),
}


@dataclass
class Layer:
    values: np.ndarray  # (outputs, rows), NaN where poisoned
    complexity: np.ndarray


def enumerate_all(names: list[str], data: np.ndarray, layers: int) -> Layer:
    """All outputs of the last layer for `data` (rows, inputs)."""
    # The paper's order of outputs; it decides which half of semisub and semidiv there is.
    kinds = {name: 0 if name in UNARY else 1 if BINARY[name][2] == "squared" else 2 for name in names}
    names = sorted(names, key=kinds.__getitem__)
    layer = Layer(data.T.copy(), np.zeros(data.shape[1], dtype=int))
    for depth in range(layers):
        if depth == layers - 1:
            layer = _without_duplicates(layer)
        layer = _apply(names, layer)
    return layer


def _without_duplicates(layer: Layer) -> Layer:
    """The simplest of each function, the first among equally simple ones, in the order of their numbers."""
    alive = np.flatnonzero(np.isfinite(layer.values).all(axis=1))
    kept: list[int] = []
    for index in alive[np.argsort(layer.complexity[alive], kind="stable")]:
        value = layer.values[index]
        others = layer.values[kept] if kept else np.empty((0, len(value)))
        scale = np.maximum(np.maximum(np.abs(others).max(axis=1, initial=0), np.abs(value).max()), 1e-300)
        if not (np.linalg.norm((others - value) / scale[:, None], axis=1) <= 1e-13).any():
            kept.append(int(index))
    kept.sort()
    return Layer(layer.values[kept], layer.complexity[kept])


def _apply(names: list[str], below: Layer) -> Layer:
    values, complexity = [], []
    count = len(below.values)
    with np.errstate(all="ignore"):
        for name in names:
            if name in UNARY:
                function, weight = UNARY[name]
                values.append(_poison(function(below.values), below.values))
                complexity.append(weight + below.complexity)
                continue
            function, weight, kind = BINARY[name]
            pairs = [(i, j) for i in range(count) for j in range(i if kind == "triangled" else 0, count)]
            i, j = np.array(pairs, dtype=int).reshape(-1, 2).T
            a, b = below.values[i], below.values[j]
            values.append(_poison(function(a, b), a, b))
            complexity.append(weight + below.complexity[i] + below.complexity[j])
    return Layer(np.concatenate(values), np.concatenate(complexity))


def _poison(result: np.ndarray, *operands: np.ndarray) -> np.ndarray:
    bad = ~np.isfinite(result)
    for operand in operands:
        bad |= ~np.isfinite(operand)
    return np.where(bad, np.nan, result)


@dataclass
class Best:
    loss: float
    complexity: int
    values: np.ndarray


def best_distinct(layer: Layer, y: np.ndarray, weight: np.ndarray, k: int) -> list[Best]:
    """The k best functions on the data, loss ascending; of equal ones the simplest. The weights sum to 1."""
    values = layer.values
    with np.errstate(all="ignore"):
        loss = ((values - y) ** 2) @ weight
    alive = np.flatnonzero(np.isfinite(loss))
    order = alive[np.argsort(loss[alive], kind="stable")]
    found: list[Best] = []
    last = np.inf
    for index in order:
        if len(found) >= k and loss[index] > last * (1 + 1e-8) + 1e-24 * (weight @ y**2):
            break  # ties with the last place were looked at, for simpler twins
        value = values[index]
        twin = next((b for b in found if _same(b.values, value)), None)
        if twin is None:
            found.append(Best(float(loss[index]), int(layer.complexity[index]), value))
            if len(found) <= k:
                last = float(loss[index])
        elif layer.complexity[index] < twin.complexity:
            twin.complexity = int(layer.complexity[index])
    return found[:k]


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    scale = max(np.abs(a).max(), np.abs(b).max(), 1e-300)
    return bool(np.linalg.norm((a - b) / scale) <= 1e-10 * np.sqrt(len(a)))
