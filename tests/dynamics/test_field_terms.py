"""Terms of laws of fields: derivatives move to the windows without changing what a term is."""

from __future__ import annotations

import numpy as np
import pytest

from symenum.dynamics.field_data import FieldData
from symenum.dynamics.field_equation import FieldAverages, FieldColumns
from symenum.dynamics.field_form import FieldForm, multi_indices
from symenum.dynamics.field_terms import FieldNames, field_library, moved
from symenum.expressions import evaluate, parse
from symenum.operators import get_operators

ONE_FIELD = FieldNames(("u",), ("x",), 4)
TWO_FIELDS = FieldNames(("u", "v"), ("x", "y"), 3)
ARITHMETIC = get_operators("arithmetic")


def parts(law: str, names: FieldNames = ONE_FIELD) -> list[tuple[float, str, tuple[int, ...]]]:
    return [(one.factor, str(one.density), one.orders) for one in moved(parse(law), names)]


def test_derivatives_and_conservation_laws_move_as_a_whole() -> None:
    assert parts("0.5*u_xxx") == [(0.5, "u", (3,))]
    assert parts("-6*u*u_x + 2") == [(2.0, "1", (0,)), (-3.0, "u**2", (1,))]
    assert parts("u_x*u**2") == [(pytest.approx(1 / 3), "u**3", (1,))]
    assert parts("u**2 - sin(u)") == [(1.0, "u**2", (0,)), (-1.0, "sin(u)", (0,))]
    assert parts("3*(u_xx + u_yy)", TWO_FIELDS) == [(3.0, "u", (2, 0)), (3.0, "u", (0, 2))]
    assert parts("u_x*u_xx") == [(0.5, "u_x**2", (1,))]


def test_what_cannot_move_as_a_whole_keeps_derivatives_of_a_lower_order() -> None:
    assert [order for *_, order in parts("u*u_xx")] == [(2,), (0,)]
    assert all("u_xx" not in density for _, density, _ in parts("u*u_xx"))
    assert all("u_xxx" not in density for _, density, _ in parts("u*u_xxx"))
    assert parts("v*u_x", TWO_FIELDS) == [(1.0, "v*u_x", (0, 0))]
    assert parts("u_x**2") == [(1.0, "u_x**2", (0,))]


LAWS = ("u*u_x", "u*u_xx", "u**2*u_xx", "u*u_xxx", "u*u_xxxx", "sin(u)*u_xx", "u_x*u_xx", "u/(u + 3)*u_xx", "u_xx/u_x")
LAWS_OF_TWO = ("v*u_x", "v*u_xx", "u*v*u_xy", "u*u_xyy", "u*(u_xx + u_yy) - v**2*v_y", "u_x*u_xy", "u_x*v_y")


@pytest.mark.parametrize(
    ("law", "names"), [(law, ONE_FIELD) for law in LAWS] + [(law, TWO_FIELDS) for law in LAWS_OF_TWO]
)
def test_the_average_of_a_moved_term_is_that_of_the_term(law: str, names: FieldNames) -> None:
    t, x, y = np.linspace(0, 1, 20), np.linspace(0, 2, 60), np.linspace(0, 2, 50)
    if len(names.axes) == 1:
        values, axes = np.exp(0.5 * x + 0.3 * t[:, None])[None] + 0.1 * np.sin(2 * x), (x,)
    else:
        first = np.exp(0.4 * x[:, None] + 0.3 * y) * (1 + t[:, None, None]) + np.sin(x[:, None] - y)
        values, axes = np.stack([first, np.cos(x[:, None] + 2 * y - t[:, None, None])]), (x, y)
    data = FieldData(names.fields, np.ascontiguousarray(values), t, axes)
    form = FieldForm(
        data,
        (6, *(10,) * len(axes)),
        (4, *(8,) * len(axes)),
        np.zeros(len(values)),
        tuple(multi_indices(len(axes), names.max_order)),
    )
    columns = FieldColumns(data, names, np.full((len(values), 1 + len(axes)), 9), smooth=False)
    plain = form.average_derivative(evaluate(parse(law), columns), (0,) * len(axes))
    assert FieldAverages(form, names, columns).of(parse(law)) == pytest.approx(plain, rel=1e-3, abs=1e-3 * plain.std())


def test_noise_does_not_shift_averages_of_powers_and_products() -> None:
    t, x = np.linspace(0, 1, 40), np.linspace(0, 6, 80)
    clean = (np.sin(x) + 0.5 * np.cos(2 * x - t[:, None]))[None]
    random, sigma = np.random.default_rng(0), 0.2
    found: dict[str, list[np.ndarray]] = {}
    true: dict[str, np.ndarray] = {}
    smoothing = np.array([[15, 21]])
    for draw in range(60):
        values = clean + (sigma * random.normal(size=clean.shape) if draw else 0)
        data = FieldData(("u",), values, t, (x,))
        form = FieldForm(data, (8, 12), (4, 8), np.array([sigma if draw else 0.0]), ((0,), (1,), (2,), (3,), (4,)))
        averages = FieldAverages(form, ONE_FIELD, FieldColumns(data, ONE_FIELD, smoothing, smooth=False))
        for law in ("u**2", "u**3", "u_x**2", "u*u_x**2"):
            if draw:
                found.setdefault(law, []).append(averages.of(parse(law)))
            else:
                true[law] = averages.of(parse(law))
    for law, draws in found.items():
        error = np.std(draws, axis=0) / np.sqrt(len(draws))
        z = (np.mean(draws, axis=0) - true[law]) / error
        assert np.sqrt(np.mean(z**2)) < 1.5, law  # without the correction it is 3.5 to 18


def test_the_library_holds_the_usual_terms_and_what_operators_allow() -> None:
    one = {str(term) for term in field_library(ONE_FIELD, ARITHMETIC)}
    assert {"u", "u**3", "u_xxxx", "u*u_x", "u**2*u_x", "u_x**2", "u*u_xx"} <= one
    two = {str(term) for term in field_library(FieldNames(("u", "v"), ("x", "y"), 2), ARITHMETIC)}
    assert {"u_xx + u_yy", "u*v**2", "v*u_x", "u_x**2 + u_y**2", "v_xy", "u_x*v_y"} <= two
    assert "sin(u)" in {str(term) for term in field_library(ONE_FIELD, get_operators("koza"))}
    sums_only = field_library(ONE_FIELD, get_operators(["+", "-"]))
    assert {str(term) for term in sums_only} == {"u", "u_x", "u_xx", "u_xxx", "u_xxxx"}


def test_sixty_fields_have_a_bounded_library() -> None:
    names = FieldNames(tuple(f"u{i}" for i in range(60)), ("x",), 4)
    library = field_library(names, ARITHMETIC)
    assert len(library) <= 500
    assert {"u0", "u59", "u59_xxxx"} <= {str(term) for term in library}
