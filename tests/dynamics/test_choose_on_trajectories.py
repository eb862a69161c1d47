"""The choice of laws by fits to the trajectories."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from symenum.core.budget import Budget
from symenum.dynamics.choose_on_trajectories import (
    choose_on_trajectories,
    independent_share,
    make_nodes,
    without_functions,
)
from symenum.dynamics.noise import measure_noise
from symenum.dynamics.system import Names
from symenum.dynamics.trajectory import Piece
from symenum.expressions import parse
from symenum.expressions.candidate import Candidate
from symenum.fitting.free_constants import form_of

T = np.linspace(0, 10, 201)


def pool(*texts: str) -> list[Candidate]:
    return [Candidate(parse(text), 1.0) for text in texts]


def choose(X: np.ndarray, *pools: list[Candidate], t: np.ndarray = T, names: Names | None = None) -> object:
    pieces = [Piece(t, X, np.empty((len(t), 0)))]
    names = names or Names(tuple(f"x{i + 1}" for i in range(X.shape[1])))
    noise = measure_noise(pieces)
    return choose_on_trajectories(pools, make_nodes(pieces, names, noise), noise, names, None, Budget())


def oscillator(noise: float) -> np.ndarray:
    X = np.column_stack([np.cos(2 * T), -2 * np.sin(2 * T)])
    return X + noise * np.random.default_rng(0).normal(size=X.shape)


@pytest.mark.parametrize("noise", [0.0, 0.05, 0.2])
def test_the_true_system_is_chosen_and_its_constants_have_few_digits(noise: float) -> None:
    first = pool("1.2*x2", "x2 + 0.1*x1", "x2 + 0.01*x1**3 - 0.02*x2**2", "sin(x2)", "0.3")
    second = pool("-3*x1 - 0.2*x2", "-3.5*x1", "-4*sin(x1)", "-x1**3", "1/x2")
    chosen = choose(oscillator(noise), first, second)
    assert [str(law) for law in chosen.laws] == ["x2", "-4*x1"]
    assert len(chosen.chi_square) == 2


def test_parts_that_are_not_needed_leave_even_where_no_candidate_lacks_them() -> None:
    first, second = pool("1.1*x2 + 0.2*x1 - 0.1*x1*x2"), pool("-3*x1 - 0.2*x2 + 0.1*x1**2")
    chosen = choose(oscillator(0.05), first, second)
    assert [form_of(law) for law in chosen.laws] == [form_of(parse("x2")), form_of(parse("-4*x1"))]


def test_others_are_ranked_by_their_bits() -> None:
    chosen = choose(oscillator(0.05), pool("x2", "0.3"), pool("-3.5*x1", "-4*sin(x1)"))
    for laws in chosen.others:
        bits = [bits for _, bits in laws]
        assert bits == sorted(bits)
        assert bits[0] == 0


def test_a_law_that_blows_up_beside_the_data_pays_for_it() -> None:
    # On a decay from 1 to 0.7 both laws fit alike, but one of them has a pole among the points of the second state.
    t = np.linspace(0, 1, 60)
    X = np.exp(-0.35 * t)[:, None] * (1 + 0.03 * np.random.default_rng(2).normal(size=(60, 1)))
    chosen = choose(X, pool("-0.3*x1", "0.3*x1/(x1 - 0.9)"), t=t)
    assert form_of(chosen.laws[0]) == form_of(parse("-0.3*x1"))


def test_positions_alone_decide_laws_of_second_order() -> None:
    X = oscillator(0.02)[:, :1]
    chosen = choose(X, pool("-3.5*q", "-3*q - 0.1*q_dot", "-4*q**3"), names=Names(("q",), (), ("q_dot",)))
    assert form_of(chosen.laws[0]) == form_of(parse("-4*q"))
    assert abs(float(str(chosen.laws[0]).split("*")[0]) + 4) < 0.1


def test_none_where_no_law_can_be_followed() -> None:
    assert choose(oscillator(0.05), pool("log(x1 - 10)"), pool("-4*x1")) is None


def test_long_motion_is_cut_into_segments() -> None:
    t = np.linspace(0, 100, 2001)
    pieces = [Piece(t, np.sin(2 * t)[:, None], np.empty((2001, 0)))]
    segments = make_nodes(pieces, Names(("x1",)), measure_noise(pieces)).segments
    assert len(segments) > 5
    assert segments[0].first == 0
    assert segments[-1].end == 2001
    assert all(a.end == b.first for a, b in itertools.pairwise(segments))


@pytest.mark.parametrize("speed", [0.001, 5.0])
def test_very_long_records_take_part_in_parts(speed: float) -> None:
    t = np.linspace(0, 1000, 20_001)
    pieces = [Piece(t, np.exp(-speed * t / 10)[:, None] + np.sin(speed * t)[:, None], np.empty((20_001, 0)))]
    nodes = make_nodes(pieces, Names(("x1",)), measure_noise(pieces))
    assert 1000 < len(nodes.t) <= 4001
    assert sum(one.end - one.first for one in nodes.segments) == len(nodes.t) == len(nodes.samples)
    assert all(np.all(np.diff(nodes.t[one.first : one.end]) > 0) for one in nodes.segments)


def test_samples_that_repeat_each_other_count_once() -> None:
    random = np.random.default_rng(0)
    white = random.normal(size=4000)
    assert independent_share(white) > 0.7
    steps = np.repeat(white[:400], 10)  # ten equal ones in a row: between a tenth and a fifth of all
    assert 0.05 < independent_share(steps) < 0.2
    slow = np.sin(np.linspace(0, 3, 4000))
    assert independent_share(slow) == pytest.approx(20 / 4000)  # never fewer than twenty
    assert independent_share(np.zeros(10)) == 1


def test_what_is_missing_from_all_laws_does_not_speak_for_long_ones() -> None:
    """A decay that something unknown drives a little: no term is worth its place, and errors of constants say so."""
    x = (2 * np.exp(-0.5 * T) + 0.05 * np.sin(1.7 * T))[:, None] + 1e-4 * np.random.default_rng(0).normal(size=(201, 1))
    long = ("-0.5*x1 + 0.01*x1**2 + 0.1*x1**3", "0.1*x1**4 - 0.5*x1 + 0.1*x1**3 + 0.01*x1**2")
    chosen = choose(x, pool("-0.5*x1", "-0.5*x1 + 0.01", *long))
    assert chosen.laws[0].complexity <= parse("-0.5*x1 + 0.01").complexity
    assert chosen.chi_square[0] > 100
    assert chosen.errors[0][0] > 0.005


def test_functions_that_cannot_be_told_from_their_argument_leave() -> None:
    assert list(map(str, without_functions(parse("x*sin(y) - abs(x)")))) == ["x*y - abs(x)", "x*sin(y) - x", "x*y - x"]
    assert without_functions(parse("x**3 + exp(y) + sign(x) + cos(x)")) == []
    X = 0.3 * np.column_stack([np.cos(T), -np.sin(T)])
    chosen = choose(X + 0.02 * np.random.default_rng(0).normal(size=X.shape), pool("tanh(x2)"), pool("-sin(x1)"))
    assert [law.complexity for law in chosen.laws] == [parse("x2").complexity, parse("-x1").complexity]
