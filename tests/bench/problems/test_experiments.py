"""The experiments of the paper: trajectories, protocols, and measured data where they are at hand."""

from __future__ import annotations

import os

import numpy as np
import pytest

from symenum.bench.problems.experiments import (
    CHAOTIC,
    CHAOTIC_OPERATORS,
    EMPS_OPERATORS,
    OURS,
    PAPER,
    TURBULENCE_OPERATORS,
    ChaoticSystem,
    ReferenceDerivative,
    collapse,
    load_emps,
    load_turbulence,
    sample,
)
from symenum.bench.problems.problem import data_file
from symenum.expressions import variables
from symenum.operators import get_operators

each_system = pytest.mark.parametrize("system", CHAOTIC, ids=lambda system: system.name)
measured = pytest.mark.skipif("SYMENUM_DATA" not in os.environ, reason="measured data are not shipped")


def test_there_are_sixteen_systems_of_fifty_one_equations() -> None:
    assert len(CHAOTIC) == 16
    assert sum(len(system.laws) for system in CHAOTIC) == 51


@each_system
def test_equations_are_closed(system: ChaoticSystem) -> None:
    assert len(system.laws) == len(system.variables) == len(system.start)
    for law in system.laws:
        assert set(variables(law)) <= set(system.variables)


@pytest.mark.parametrize("name", ["Duffing", "HyperLorenz"])
def test_trajectories_obey_their_equations(name: str) -> None:
    (system,) = [system for system in CHAOTIC if system.name == name]
    _, X = system.trajectory(accurate=True)
    assert X.shape == (1000, len(system.variables))
    np.testing.assert_allclose(X[0], system.start)
    rough = system.trajectory(accurate=False)[1]
    assert np.abs(rough - X).max() > 0
    np.testing.assert_allclose(rough[:20], X[:20], atol=0.05 * X.std())


def test_noise_is_independent_in_ours_and_one_sequence_in_the_papers() -> None:
    system = CHAOTIC[7]
    for protocol, one in ((OURS, False), (PAPER, True)):
        _, clean = system.trajectory(protocol.accurate)
        errors = (sample(system, protocol, 0.1, 3)[1] - clean) / clean.std(axis=0)
        assert np.std(errors) == pytest.approx(0.1, rel=0.1)
        assert (abs(np.corrcoef(errors.T)[0, 1]) > 0.99) == one
        np.testing.assert_array_equal(sample(system, protocol, 0.1, 3)[1], sample(system, protocol, 0.1, 3)[1])


def test_the_reference_derivative_leaves_states_as_they_are() -> None:
    t = np.linspace(0, 3, 200)
    X = np.sin(t)[:, None]
    motion = ReferenceDerivative()(t, X)
    np.testing.assert_array_equal(motion.states, X)
    np.testing.assert_allclose(motion.first[:, 0], np.cos(t), atol=1e-3)


def test_the_collapse_is_the_papers() -> None:
    x, y = collapse(np.array([5.0]), np.array([0.4]), np.array([30.6]))
    friction = 10**0.4 / 100
    assert x[0] == pytest.approx(np.log10(1e5 * np.sqrt(friction / 32) / 30.6))
    assert y[0] == pytest.approx(friction**-0.5 - 2 * np.log10(30.6))


def test_data_that_are_not_there_are_said_so(monkeypatch, tmp_path) -> None:
    monkeypatch.delenv("SYMENUM_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match="set SYMENUM_DATA"):
        data_file("emps.csv", "emps", "elsewhere")
    monkeypatch.setenv("SYMENUM_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"emps\.csv, which does not exist"):
        data_file("emps.csv", "emps", "elsewhere")


@measured
def test_emps_is_cut_in_halves_and_judged_on_the_second() -> None:
    data = load_emps()
    assert data.X.shape == (5000, 3)
    assert len(data.y_test) == 5001
    assert 0 < data.reference_loss() < np.var(data.y_test)


@measured
def test_turbulence_has_all_rows() -> None:
    data = load_turbulence()
    assert data.X.shape == (362, 1)
    assert sorted(set(data.roughness)) == [15, 30.6, 60, 126, 252, 507]


@pytest.mark.parametrize("name", ["chaotic", "emps", "turbulence"])
def test_the_operators_of_an_experiment_are_no_public_set(name: str) -> None:
    with pytest.raises(ValueError, match=f"unknown operator set '{name}'.*known: koza.*a list of operators"):
        get_operators(name)


@pytest.mark.parametrize("names", [CHAOTIC_OPERATORS, EMPS_OPERATORS, TURBULENCE_OPERATORS])
def test_the_operators_of_an_experiment_are_thirteen_of_ours(names: tuple[str, ...]) -> None:
    assert len(get_operators(names)) == 13
