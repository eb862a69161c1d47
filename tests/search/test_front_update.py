"""Runners-up nearly stand on the front; rows far from a law weigh less."""

from __future__ import annotations

import pytest
import torch

from symenum.core.target import Target
from symenum.expressions import parse
from symenum.expressions.candidate import Candidate
from symenum.front import Front
from symenum.search.front_update import admitted, near, outlier_weights, runners_up


def candidates(*pairs: tuple[str, float]) -> list[Candidate]:
    return [Candidate(parse(text), loss) for text, loss in pairs]


def test_the_best_of_each_complexity_are_kept_and_a_function_once() -> None:
    found = candidates(("x + y", 2.0), ("y + x", 2.0), ("x*y", 1.0), ("sin(x) + y", 0.5), ("x - y", 3.0))
    kept = runners_up(found)
    assert [str(each.expression) for each in kept] == ["x*y", "x + y", "x - y", "sin(x) + y"]
    many = [Candidate(parse(f"x + z{i}"), float(i)) for i in range(1, 50)]
    assert runners_up(many) == tuple(many[: len(runners_up(many))])
    assert len(runners_up(many)) < len(many)


def test_other_digits_of_its_constants_take_no_place_of_a_runner_up() -> None:
    found = candidates(("1.25*x", 1.0), ("1.2*x", 2.0), ("1.3*x", 3.0), ("x/y", 4.0), ("2*x", 5.0))
    assert [str(each.expression) for each in runners_up(found)] == ["1.25*x", "x/y"]


def test_near_is_what_the_front_does_not_leave_far_behind(make) -> None:
    front = make(lambda a, b: a * b).empty_front.update(candidates(("x1", 4.0), ("x1*x2", 1.0)))
    assert isinstance(front, Front)
    assert len(front) == 2
    found = candidates(("x1*x2", 1.0), ("x1 + x2", 1.5), ("x1 - x2", 1e3), ("sin(x1)", 4.5))
    assert [str(each.expression) for each in near(front, found)] == ["x1 + x2", "sin(x1)"]


def test_rows_far_from_the_law_weigh_less() -> None:
    x = torch.linspace(1, 2, 30, dtype=torch.float64)
    y = 2 * x + 0.01 * torch.sin(40 * x)
    y[3] += 10.0
    weight = torch.full((30,), 1 / 30, dtype=torch.float64)
    target = outlier_weights(parse("2*x"), {"x": x}, Target(y, weight))
    assert float(target.weight.sum()) == pytest.approx(1.0)
    assert float(target.weight[3]) < 1e-4 * float(target.weight.median())
    assert float(target.weight.min()) == float(target.weight[3])


def test_a_law_that_is_refused_does_not_come_back_in_the_digits_of_one_that_prints_alike() -> None:
    class NoDigits:
        """Refuses laws with the constant 3.01."""

        def reason(self, law, *, exact=False):
            return "refused" if "3.01" in str(law) else None

    found = candidates(("x", 9.0), ("3*x*x/y", 1.0), ("3.01*x**2/y", 0.5))
    result = admitted(Front(rows=50), found, NoDigits(), lambda law: None, 30)
    assert [str(entry.expression) for entry in result.front] == ["x", "3*x*x/y"]
    assert result.reasons == ("refused",)
    assert [str(one.expression) for one in result.found] == ["x", "3*x*x/y"]
