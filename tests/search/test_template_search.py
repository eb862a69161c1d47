"""The move of a template: what of scales and offsets the data can tell, and laws that are put together."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from symenum.core.target import check_target
from symenum.estimator.template_text import read_template
from symenum.expressions import evaluate, parse
from symenum.search import Settings, make_task, template_search
from symenum.search.run import run
from symenum.search.template_search import _core, _gauge_of

NAMES = ("x1", "x2", "x3", "x4")
RNG = np.random.default_rng(0)
X = RNG.uniform(0.5, 3, (100, 4))
COLUMNS = {name: torch.from_numpy(np.ascontiguousarray(X[:, at])) for at, name in enumerate(NAMES)}


@pytest.mark.parametrize(
    ("text", "scaled", "offset", "constants"),
    [
        ("f(x1) + g(x2)", "fg", "f", ""),
        ("f(x1)*g(x2)", "f", "fg", ""),
        ("a*f(x1)*g(x2, x3) + h(x4)", "fh", "fgh", ""),
        ("f(x1) - f(x2)", "f", "", ""),
        ("exp(f(x1))*g(x2)", "fg", "g", ""),
        ("f(x1)/g(x2)", "f", "fg", ""),
        ("x1*f(x2) + c", "f", "f", "c"),
        ("f(x1) + g(x2) + c", "fg", "f", ""),
        ("x1*f(x2) + b*x1 + c*x3", "f", "f", "c"),
    ],
)
def test_scales_and_offsets_that_no_data_can_tell_are_left_out(
    text: str, scaled: str, offset: str, constants: str
) -> None:
    template = read_template(text, NAMES, {})
    assert template is not None
    found = _gauge_of(template, COLUMNS, seed=0)
    if text == "exp(f(x1))*g(x2)":  # the offset of f is the scale of g
        assert len(found.scaled) + len(found.offset) == 3
        return
    assert found.scaled == set(scaled)
    assert found.offset == set(offset)
    assert found.constants == tuple(constants)


@given(st.sampled_from(["2*sin(x) + 3", "-x**2 + 0.5*x", "x", "1/x - 4", "3*x*exp(x)/7", "2 - x", "exp(x)"]))
def test_a_core_with_its_scale_and_number_is_the_law(text: str) -> None:
    law = parse(text)
    core, scale, number = _core(law)
    x = {"x": np.linspace(0.5, 2, 7)}
    assert scale * evaluate(core, x) + number == pytest.approx(evaluate(law, x))


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(template_search, "_FIRST_WORK", 0.3)  # simple laws stand in the first heads
    monkeypatch.setattr(template_search, "_TRIED", 8)


def searched(text: str, y: np.ndarray, steps: int, **settings: object):  # type: ignore[no-untyped-def]
    target, _ = check_target(y, None, len(y))
    template = read_template(text, NAMES, {})
    options = {"planned_time": 10.0, "threads": 1, "template": template, **settings}
    task = make_task(NAMES, torch.from_numpy(X), target, Settings(**options))  # type: ignore[arg-type]
    return run(task, 0, max_iterations=steps)


def test_a_shared_function_is_found_and_every_law_of_the_front_shares_it() -> None:
    y = np.log(X[:, 0]) - np.log(X[:, 1])
    outcome = searched("f(x1) - f(x2)", y, 1)
    assert outcome.front.has_law()
    swapped = {**COLUMNS, "x1": COLUMNS["x2"], "x2": COLUMNS["x1"]}
    for entry in outcome.front:
        assert evaluate(entry.expression, swapped).numpy() == pytest.approx(
            -evaluate(entry.expression, COLUMNS).numpy(), abs=1e-9
        )


def test_no_other_move_runs_and_what_was_found_stands_in_the_state() -> None:
    outcome = searched("f(x1)*g(x2)", np.sin(2 * X[:, 0]) * (1 + X[:, 1] ** 2), 2)
    assert {record.move for record in outcome.state.records} == {"template"}
    assert [one.function for one in outcome.state.unknown_forms] == ["f", "g"]
    assert all(one.forms for one in outcome.state.unknown_forms)
