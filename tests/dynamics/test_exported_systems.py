"""Source code of systems: C that a compiler takes without a warning, and that computes what `predict` computes."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas
import pytest
from dynamics.motions import motion, noisy, predator_and_prey

from symenum import ODERegressor
from symenum.dynamics.display import MAP, system_source
from symenum.expressions import evaluate, parse

COMPILER = shutil.which("cc") or shutil.which("gcc")
pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C compiler (cc, gcc) on this machine")

T = np.linspace(0, 12, 300)
DOUBLES = ctypes.POINTER(ctypes.c_double)


def quick(**parameters) -> ODERegressor:
    settings = {"operators": "arithmetic", "max_iterations": 1, "max_time": None, "random_state": 0}
    return ODERegressor(**{**settings, "model_selection": "mdl", **parameters})


class Compiled:
    """The function of a system in C: of a motion (t, state, u) -> derivative, of a map (state, u) -> next state."""

    def __init__(self, source: str, folder: Path, *, is_map: bool = False) -> None:
        file, library = folder / "system.c", folder / "system.so"
        file.write_text(source, encoding="utf-8")
        flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
        done = subprocess.run(
            [COMPILER, *flags, "-o", library, file, "-lm"], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        loaded = ctypes.CDLL(str(library))
        self.function = loaded.next_state if is_map else loaded.system_derivative
        self.function.restype = None
        self.function.argtypes = [*([] if is_map else [ctypes.c_double]), DOUBLES, DOUBLES, DOUBLES]
        self.before = () if is_map else (0.0,)

    def __call__(self, states: np.ndarray, inputs: np.ndarray | None = None) -> np.ndarray:
        """Values (points, states) for states (points, states) and inputs (points, inputs)."""
        rows = []
        for i, state in enumerate(np.ascontiguousarray(states, dtype=np.float64)):
            given = np.empty(0) if inputs is None else np.ascontiguousarray(inputs[i], dtype=np.float64)
            out = np.full_like(state, np.nan)
            self.function(*self.before, *(one.ctypes.data_as(DOUBLES) for one in (state, given, out)))
            rows.append(out)
        return np.array(rows)


def test_c_of_a_system_of_first_order_is_what_predict_gives(tmp_path: Path) -> None:
    hunt = predator_and_prey(T)
    model = quick().fit(pandas.DataFrame(noisy(hunt, 0.02), columns=["double", "y0"]), T)  # C has both names already
    assert len(set(map(str, model.best_expressions_.values()))) == 2
    in_c = Compiled(model.export("c"), tmp_path)
    np.testing.assert_allclose(in_c(hunt), model.predict(hunt), rtol=1e-12)


def test_c_of_another_row_is_that_of_the_row(tmp_path: Path) -> None:
    hunt = predator_and_prey(T)
    model = quick().fit(noisy(hunt, 0.02), T)
    longest = [len(front) - 1 for front in model.fronts_.values()]
    in_c = Compiled(model.export("c", longest), tmp_path)
    np.testing.assert_allclose(in_c(hunt), model.predict(hunt, index=longest), rtol=1e-9)
    assert not np.allclose(in_c(hunt), model.predict(hunt, index=0))


def test_c_of_second_order_with_an_input_gives_velocities_and_accelerations(tmp_path: Path) -> None:
    u = np.sin(0.9 * T)
    X = motion(["-2*sin(x1) - 0.3*x1_dot"], (1.0, 0.0), T, order=2)
    model = quick(operators=["+", "-", "*", "sin"], order=2).fit(noisy(X, 0.002), T, u)
    state = np.random.default_rng(0).normal(size=(50, 2))
    inputs = np.random.default_rng(1).normal(size=(50, 1))
    in_c = Compiled(model.export("c"), tmp_path)(state, inputs)
    np.testing.assert_array_equal(in_c[:, 0], state[:, 1])
    np.testing.assert_allclose(in_c[:, 1], model.predict(state, inputs)[:, 0], rtol=1e-12)


def test_c_of_a_map_gives_the_next_state(tmp_path: Path) -> None:
    inputs = np.random.default_rng(0).normal(size=(150, 1))
    x = [0.2]
    for one in inputs[:-1, 0]:
        x.append(0.5 * x[-1] + one - 0.1 * x[-1] ** 3)
    states = np.array(x)[:, None]
    model = quick(step="map").fit(states, None, inputs)
    in_c = Compiled(model.export("c"), tmp_path, is_map=True)(states, inputs)
    np.testing.assert_allclose(in_c, model.predict(states, inputs), rtol=1e-12)
    np.testing.assert_allclose(in_c[:-1], states[1:], rtol=1e-6)


@pytest.mark.parametrize("order", [1, MAP])
def test_c_of_laws_that_need_the_same_helpers_compiles(tmp_path: Path, order: int) -> None:
    """Helpers of laws, such as that of the sign, stand once; laws without variables take none."""
    names = ["a", "θ", "u"]
    texts = ["sign(a)*abs(θ)**1.5 + exp(-u)", "sign(θ - a)/(1 + θ**2) - tanh(a*u)", "-0.25"]
    laws = {name: parse(text) for name, text in zip(("a", "θ", "b"), texts, strict=True)}
    names.insert(2, "b")
    source = system_source(laws, names, "c", order, {})
    values = np.random.default_rng(0).normal(size=(40, 4))
    columns = {name: values[:, i] for i, name in enumerate(names)}
    expected = np.column_stack([np.broadcast_to(evaluate(law, columns), 40) for law in laws.values()])
    in_c = Compiled(source, tmp_path, is_map=order == MAP)(values[:, :3], values[:, 3:])
    np.testing.assert_allclose(in_c, expected, rtol=1e-12)
    assert definitions(source) == sorted(set(definitions(source)))


def definitions(source: str) -> Sequence[str]:
    """The first lines of all functions of a source in C, in order of the alphabet."""
    return sorted(line for line in source.splitlines() if line.endswith("{") and not line.startswith(" "))
