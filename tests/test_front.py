"""The front: what stays on it, and which of its entries each rule picks."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from symenum.core.target import Target
from symenum.expressions import parse, same_function, to_text
from symenum.expressions.candidate import Candidate
from symenum.front import Front
from symenum.selection import MODEL_SELECTIONS, reward

TARGET = Target(torch.linspace(1, 2, 50, dtype=torch.float64), torch.full((50,), 0.02, dtype=torch.float64))
EXPRESSIONS = [
    parse(text)
    for text in ("1.5", "x", "x + 1", "x*x", "1 + x", "x/y", "sin(x)", "sin(x) + y", "x*y + x", "exp(sin(x))", "x*x*x")
]
candidates = st.lists(
    st.builds(Candidate, st.sampled_from(EXPRESSIONS), st.floats(1e-9, 1e9, allow_nan=False)), max_size=20
)


def front_of(*pairs: tuple[str, float]) -> Front:
    return Front.of(TARGET).update([Candidate(parse(text), loss) for text, loss in pairs])


@given(candidates)
def test_entries_get_better_as_they_get_more_complex(found: list[Candidate]) -> None:
    front = Front.of(TARGET).update(found)
    for before, after in itertools.pairwise(front):
        assert before.complexity < after.complexity
        assert before.loss > after.loss


@given(candidates)
def test_nothing_that_was_found_beats_the_front(found: list[Candidate]) -> None:
    front = Front.of(TARGET).update(found)
    last = {candidate.expression: candidate for candidate in found}.values()
    for candidate in last:
        assert any(
            entry.complexity <= candidate.complexity and entry.loss <= candidate.loss * (1 + 1e-5) for entry in front
        )


@given(candidates, candidates)
def test_a_front_updated_twice_is_the_front_of_all(first: list[Candidate], second: list[Candidate]) -> None:
    losses: dict[object, Candidate] = {}
    for candidate in (*first, *second):
        losses.setdefault(candidate.expression, candidate)
    first = [losses[candidate.expression] for candidate in first]
    second = [losses[candidate.expression] for candidate in second]
    empty = Front.of(TARGET)
    in_turn = [entry.loss for entry in empty.update(first).update(second)]
    assert in_turn == pytest.approx([entry.loss for entry in empty.update([*first, *second])], rel=1e-5)


def test_a_function_appears_once_in_its_simplest_form() -> None:
    front = front_of(("x*x + x", 1.0), ("x*(x + 1)", 1.0), ("x*x + x + 0*y", 1.0 - 1e-8))
    assert len(front) == 1
    assert same_function(front[0].expression, parse("x*(x + 1)"))


def test_a_product_of_powers_of_one_base_stands_there_as_one_power() -> None:
    front = front_of(("x**1.4998", 2.0), ("1.0005*x**1.4997", 1.1), ("1.0004*x*x**0.4997", 1.0))
    assert [(str(entry.expression), entry.loss) for entry in front] == [("x**1.4998", 2.0), ("1.0004*x**1.4997", 1.0)]


def test_a_power_in_disguise_of_an_exponential_stands_there_as_a_power() -> None:
    front = front_of(("1.5*x**1.51", 2.0), ("exp(1.4997*log(x) + 0.4)", 1.0))
    assert [to_text(entry.expression, 5) for entry in front] == ["1.4918*x**1.4997"]
    assert front[0].complexity == parse("1.5*x**1.51").complexity


def test_of_two_laws_that_print_alike_the_shorter_count_stays_with_the_better_digits() -> None:
    front = front_of(("x", 9.0), ("3*x*x/y", 1.0), ("3.01*x**2/y", 0.9))
    assert [(str(entry.expression), entry.loss) for entry in front] == [("x", 9.0), ("3.01*x*x/y", 0.9)]
    between = front_of(("x", 9.0), ("3*x*x*(y*y + 1)", 2.0), ("x*y*y*y*y*y*y", 1.0), ("2.9*x**2*(y**2 + 1.1)", 0.9))
    assert [str(entry.expression) for entry in between] == ["x", "2.9*x*x*(y*y + 1.1)"]


def test_a_constant_that_the_shorter_law_does_not_have_makes_another_law() -> None:
    front = front_of(("x", 9.0), ("(x + x)*x", 1.0), ("2.3*x**2", 0.1))
    assert [str(entry.expression) for entry in front] == ["x", "(x + x)*x", "2.3*x**2"]


def test_what_is_too_complex_does_not_enter() -> None:
    front = Front.of(TARGET).update([Candidate(parse("x"), 2.0), Candidate(parse("sin(sin(x))"), 1.0)], 5)
    assert [str(entry.expression) for entry in front] == ["x"]


def test_of_exact_laws_the_simplest_ends_the_front() -> None:
    floor = TARGET.floor
    front = front_of(("x", 1.0), ("x + y", 2 * floor), ("x*y + sin(x)", 0.0))
    assert [str(entry.expression) for entry in front] == ["x", "x + y"]


def test_an_exact_fit_with_bent_constants_does_not_hide_the_law() -> None:
    bent = "1.23456789012345*x + 2.3456789012345*y + 3.45678901234567*x*y + 4.5678901234567*x*x + 5.67890123456*y*y"
    front = front_of((bent, 0.0), ("exp(sin(x)) + exp(sin(y)) + x*y + x/y", 0.0))
    assert [entry.loss for entry in front] == [0.0, 0.0]
    assert "exp" in str(front[-1].expression)


def test_reward_is_the_papers() -> None:
    assert reward(4.0, 3, 0.9) == pytest.approx(0.9**3 / 3)
    assert front_of(("x", 1.0)).rewards() == (0.5,)


def test_scores_are_pysrs() -> None:
    front = front_of(("x", 1.0), ("x*x", 0.1), ("sin(x)", 0.05))
    assert front.scores() == pytest.approx((0.0, math.log(10), math.log(2) / 2))


def test_best_is_the_steepest_of_the_nearly_best() -> None:
    front = front_of(("x", 1.0), ("x*x", 0.11), ("sin(x)", 0.1), ("sin(x) + y", 0.09))
    assert front.select("best") == 1
    assert front.select("accuracy") == 3
    # The loss of x*x is now too far from the best.
    assert front_of(("x", 1.0), ("x*x", 0.2), ("sin(x)", 0.1)).select("best") == 2


def test_best_does_not_measure_a_law_by_those_that_fit_the_noise() -> None:
    """Forty rows, 1% of noise: with enough terms anything gets down to half of the loss."""
    forty = Target(torch.linspace(1, 2, 40, dtype=torch.float64), torch.full((40,), 1 / 40, dtype=torch.float64))
    losses = {
        "x": 4.5,
        "6.69*x*y": 0.0064,
        "6.69*(x + 0.0091/(x*x - 13.8))*y": 0.0054,
        "6.71/(y/x + 0.0047*cos(2.11 - 9.14*x*y) + 0.018*sin(x - exp(1.1*x)))": 0.0040,
    }
    front = Front.of(forty).update([Candidate(parse(text), loss) for text, loss in losses.items()])
    assert len(front) == 4
    assert front.select("best") == front.select("mdl") == 1


def test_mdl_prefers_the_law_to_a_slightly_better_fit_with_more_symbols() -> None:
    front = front_of(("x", 1.0), ("x*x", 0.01), ("sin(x)*exp(x)*1.2345 + 2.345*y", 0.0099))
    assert front.select("mdl") == 1


def test_reward_rule_takes_the_highest_reward() -> None:
    front = front_of(("x", 1.0), ("sin(x)", 0.9999))
    assert front.select("reward") == 0


@pytest.mark.parametrize("rule", MODEL_SELECTIONS)
def test_every_rule_picks_an_entry(rule: str) -> None:
    front = front_of(("1.5", 3.0), ("x", 1.0), ("x*x", 0.0))
    assert 0 <= front.select(rule) < len(front)


def test_unknown_rule_and_empty_front_are_refused() -> None:
    with pytest.raises(ValueError, match="model_selection must be one of 'evidence', 'best'"):
        front_of(("x", 1.0)).select("bset")
    with pytest.raises(ValueError, match="the front is empty"):
        Front.of(TARGET).select()


def test_what_has_more_fitted_constants_than_the_rows_can_speak_for_stays_out() -> None:
    few = Target(torch.linspace(1, 2, 8, dtype=torch.float64), torch.full((8,), 0.125, dtype=torch.float64))
    line, curve = parse("1.2345*x + 0.4321"), parse("1.2345*x + 0.4321*sin(x) + 0.333333")
    front = Front.of(few).update([Candidate(line, 1.0), Candidate(curve, 0.5)])
    assert [entry.expression for entry in front] == [line]
    assert len(front_of((str(line), 1.0), (str(curve), 0.5))) == 2


def test_a_number_that_people_write_is_preferred_where_the_data_do_not_mind() -> None:
    fitted, plain = "2.5001159418*x*y", "2.5*x*y"
    assert str(front_of((fitted, 1.0), (plain, 1.01))[0].expression) == plain
    assert str(front_of((fitted, 1.0), (plain, 1.1))[0].expression) == fitted


@given(st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=8), st.sampled_from([-5.0, -3000.0]))
def test_losses_below_zero_are_ordered_as_the_same_losses_above_it(losses: list[float], shift: float) -> None:
    """Minus a log-likelihood is negative where a law fits; the front must not depend on what losses count from."""
    texts = ["2.5", "x", "x + 1.5", "x*x", "x*x + 0.5", "sin(x)", "sin(x)*x", "1.5*sin(x)*x"][: len(losses)]
    plain = Front(floor=0.0, rows=50).update(
        [Candidate(parse(text), loss) for text, loss in zip(texts, losses, strict=True)]
    )
    shifted = Front(floor=shift, rows=50).update(
        [Candidate(parse(text), loss + shift) for text, loss in zip(texts, losses, strict=True)]
    )
    assert [entry.expression for entry in shifted] == [entry.expression for entry in plain]
    assert shifted.scores() == pytest.approx(plain.scores(), rel=1e-4, abs=1e-4)
    assert shifted.rewards() == pytest.approx(plain.rewards(), rel=1e-4)
    assert all(shifted.select(rule) == plain.select(rule) for rule in ("accuracy", "reward", "mdl"))


def test_the_mean_does_not_give_way_to_a_variable_that_is_worse() -> None:
    mean, variable = Candidate(parse("2.5"), 1.0), Candidate(parse("x1"), 1.05)
    assert Front(rows=10).update([mean, variable]).entries == (mean,)
    better = Candidate(parse("x1"), 0.95)
    assert Front(rows=10).update([mean, better]).entries == (better,)


def test_a_law_that_is_to_stand_there_takes_the_places_of_those_that_cannot_stand_beside_it() -> None:
    front = front_of(("3", 5.0), ("x", 4.0), ("x*y", 3.0), ("sin(x)*y", 2.0), ("sin(x)*exp(y)", 1.0))
    law = front.weighed(Candidate(parse("x/y"), 3.5))
    after = front.with_law(law)
    assert law in after.entries
    assert len(after) == len(front)  # instead of x*y, of the same complexity
    worse = front.weighed(Candidate(parse("x/y"), 4.5))  # than x, which is simpler
    assert [entry.loss for entry in front.with_law(worse)] == [4.5, 2.0, 1.0]


def test_a_front_shows_no_noise_where_hardly_anything_is_left() -> None:
    simple = Candidate(parse("x"), 2.0)
    assert Front((simple, Candidate(parse("x + x*x"), 1.9e-6))).shows_no_noise
    assert not Front((simple, Candidate(parse("x + x*x"), 2.1e-6))).shows_no_noise
    assert not Front((simple,)).shows_no_noise
    assert not Front().shows_no_noise
    below_zero = Front((Candidate(parse("x"), -1.0), Candidate(parse("x + x*x"), -4.0)), floor=-5.0)
    assert not below_zero.shows_no_noise
