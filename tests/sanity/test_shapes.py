"""Verdicts on shapes: what is proved holds wherever it is looked at, and what is false is never proved."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from symenum import make_operator
from symenum.expressions import Expression, Variable, apply, evaluate, parse, variables
from symenum.sanity.shapes import Bounded, Limit, Mirrored, Point, Requirement, Shape, Sloped, Swapped, Verdict

BOX = {"x": (0.5, 3.0), "y": (-1.0, 2.0)}
RISING, CONVEX = Sloped("x rises", "x", 1), Sloped("x convex", "x", 1, order=2)


@pytest.mark.parametrize(
    ("text", "requirement", "verdict"),
    [
        ("x**2 + y", RISING, Verdict.PROVED), ("x*exp(y)", RISING, Verdict.PROVED),
        ("log(x) - 1/x", RISING, Verdict.PROVED),
        ("y", RISING, Verdict.PROVED), ("(x - 0.5)**2", RISING, Verdict.PROVED), ("x**3 - x", RISING, Verdict.BROKEN),
        ("sin(x)", RISING, Verdict.BROKEN), ("x*y", RISING, Verdict.BROKEN), ("x**3 - 0.75*x", RISING, Verdict.PROVED),
        ("1/(x - 1)", Sloped("falls", "x", -1), Verdict.BROKEN), ("1/x", Sloped("falls", "x", -1), Verdict.PROVED),
        ("x**2", CONVEX, Verdict.PROVED), ("exp(x*y)", CONVEX, Verdict.PROVED), ("log(x)", CONVEX, Verdict.BROKEN),
        ("log(x)", Sloped("concave", "x", -1, 2), Verdict.PROVED), ("3*x", CONVEX, Verdict.PROVED),
        ("exp(x)", Bounded("positive", 0.0, open_low=True), Verdict.PROVED),
        ("x + y", Bounded("positive", 0.0), Verdict.BROKEN), ("x**2 + y**2", Bounded("from 0", 0.0), Verdict.PROVED),
        ("tanh(x*y)", Bounded("", -1.0, 1.0), Verdict.PROVED), ("2*tanh(x*y)", Bounded("", -1.0, 1.0), Verdict.BROKEN),
        ("x*y", Point("", (("y", 0.0),), 0.0), Verdict.PROVED),
        ("x*y + 1e-3", Point("", (("y", 0.0),), 0.0), Verdict.BROKEN),
        ("x**2 + y", Point("", (("x", 2.0), ("y", 1.0)), 5.0), Verdict.PROVED),
        ("1 - exp(-x)", Limit("", "x", math.inf, 1.0), Verdict.OPEN),
        ("x", Limit("", "x", math.inf, 1.0), Verdict.BROKEN),
        ("x**2", Limit("", "x", math.inf, math.inf), Verdict.OPEN),
        ("1/x", Limit("", "x", math.inf, math.inf), Verdict.BROKEN),
        ("x*y + x + y", Swapped("", (("x", "y"), ("y", "x"))), Verdict.PROVED),
        ("x - y", Swapped("", (("x", "y"), ("y", "x"))), Verdict.BROKEN),
        ("x**2*y", Mirrored("", ("x",), 1), Verdict.PROVED), ("x**2*y", Mirrored("", ("y",), -1), Verdict.PROVED),
        ("x + y", Mirrored("", ("y",), -1), Verdict.BROKEN),
    ],
)  # fmt: skip
def test_verdicts(text: str, requirement: Requirement, verdict: Verdict) -> None:
    assert requirement.verdict(parse(text), BOX) is verdict


def test_convex_and_concave_at_once_is_a_straight_line() -> None:
    both = [Sloped("", "y", 1, 2), Sloped("", "y", -1, 2)]
    assert Shape((RISING, CONVEX, *both), BOX).straight == ("y",)
    assert Shape((RISING, CONVEX, Sloped("", "x", -1)), BOX).straight == ()


def test_a_jump_is_never_proved_away() -> None:
    """The derivative of sign is zero wherever there is one, and 1/x falls on both sides of its pole."""
    box = {"x": (-1.0, 1.3)}
    assert Sloped("", "x", -1).verdict(parse("sign(x)"), box) is not Verdict.PROVED
    assert Sloped("", "x", -1).verdict(parse("1/x"), box) is not Verdict.PROVED
    assert Sloped("", "x", 1, 2).verdict(parse("-abs(x)"), box) is not Verdict.PROVED


def test_a_function_of_which_bounds_are_samples_is_not_proved() -> None:
    softplus = make_operator("softplus", torch.nn.functional.softplus)
    assert Sloped("", "x", 1).verdict(apply(softplus, Variable("x")), BOX) is Verdict.OPEN
    assert Bounded("", 0.0).verdict(apply(softplus, Variable("x")), BOX) is Verdict.OPEN


def random_laws(count: int) -> list[Expression]:
    rng = np.random.default_rng(5)
    units, pairs = ["sin", "exp", "log", "sqrt", "tanh", "abs", "neg"], ["add", "sub", "mul", "div"]

    def tree(depth: int) -> Expression:
        kind = rng.random()
        if depth == 0 or kind < 0.2:
            return Variable(str(rng.choice(["x", "y"]))) if rng.random() < 0.75 else parse(f"{rng.uniform(0.2, 3):.2f}")
        if kind < 0.5:
            return apply(str(rng.choice(units)), tree(depth - 1))
        return apply(str(rng.choice(pairs)), tree(depth - 1), tree(depth - 1))

    return [tree(4) for _ in range(count)]


def test_no_violation_of_a_proved_shape_is_found_by_looking_closely() -> None:
    """An independent check: finite differences on many more points than the verdict has seen."""
    rng = np.random.default_rng(1)
    proved = 0
    for law in random_laws(250):
        for name, sign, order in (("x", 1, 1), ("x", -1, 1), ("y", 1, 1), ("x", 1, 2)):
            shape = Shape((Sloped("", name, sign, order),), BOX)
            if name not in variables(law) or shape.verdict(law) is not Verdict.PROVED:
                continue
            proved += 1
            points = {one: rng.uniform(*BOX[one], 3000) for one in BOX}
            low, high = BOX[name]
            step = 1e-3 * (high - low)
            middle = np.clip(points[name], low + step, high - step)
            with np.errstate(all="ignore"):
                rows = [evaluate(law, {**points, name: middle + at * step}) for at in (-1, 0, 1)]
            assert all(np.isfinite(row).all() for row in rows), str(law)
            change = rows[2] - rows[0] if order == 1 else rows[2] - 2 * rows[1] + rows[0]
            assert (sign * change >= -1e-9 * max(1.0, np.abs(rows[1]).max())).all(), str(law)
    assert proved > 60


def test_a_shape_is_as_good_as_its_worst_part_and_says_which() -> None:
    shape = Shape((RISING, CONVEX, Limit("f -> 1", "x", math.inf, 1.0)), BOX)
    assert shape.mark(parse("x**2")) == "broken: f -> 1"
    assert shape.mark(parse("1 - exp(-x)")) == "broken: x convex"
    assert Shape((RISING, CONVEX), BOX).mark(parse("exp(x)")) == "proved"
    assert shape.broken(parse("-x")) == ["x rises", "f -> 1"]
    assert Shape((Limit("f -> 1", "x", math.inf, 1.0),), BOX).mark(parse("tanh(x)")) == "not proved: f -> 1"
