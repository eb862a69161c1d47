"""The table of parameters: the constructor, the docstring, the docs and the command line say what it says."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import click
import numpy as np
import pytest

from symenum import ODERegressor, PSERegressor, SymbolicClassifier, SymbolicTransformer
from symenum.cli.fit import fit_command
from symenum.estimator.parameters import PARAMETERS, check_parameters, markdown_table
from symenum.selection import HELD_OUT, MODEL_SELECTIONS

DOCS = Path(__file__).parents[2] / "docs"
ESTIMATORS = [PSERegressor, SymbolicClassifier, SymbolicTransformer, ODERegressor]


def test_the_constructor_has_these_parameters_with_these_defaults() -> None:
    signature = inspect.signature(PSERegressor).parameters
    assert {name: one.default for name, one in signature.items()} == {
        name: one.default for name, one in PARAMETERS.items()
    }
    assert list(signature) == list(PARAMETERS)


def test_the_docstring_says_what_the_table_says() -> None:
    text = inspect.getdoc(PSERegressor) or ""
    section = text[text.index("Parameters\n") : text.index("Attributes\n")]
    found = re.findall(r"^(\w+) : (.*)\n((?:    .*\n?)+)", section, flags=re.MULTILINE)
    assert {name: " ".join(meaning.split()) for name, _, meaning in found} == {
        name: one.meaning for name, one in PARAMETERS.items()
    }
    # numpydoc: the type and the default stand beside the name, the description below.
    signature = inspect.signature(PSERegressor).parameters
    for name, kind, _ in found:
        default = signature[name].default
        shown = f'"{default}"' if isinstance(default, str) else repr(default)
        assert kind == f"{signature[name].annotation}, default {shown}"


def test_the_docs_hold_the_table() -> None:
    page = (DOCS / "guide" / "table.md").read_text(encoding="utf-8")
    assert markdown_table() in page, f"docs/guide/table.md must hold:\n{markdown_table()}"


def test_the_links_of_the_table_lead_to_pages() -> None:
    assert [one.page for one in PARAMETERS.values() if one.page and not (DOCS / "guide" / one.page).exists()] == []


def test_choices_are_those_of_the_parts_that_make_them() -> None:
    assert PARAMETERS["model_selection"].constraint.choices == (*MODEL_SELECTIONS, *HELD_OUT)


def test_every_default_is_allowed() -> None:
    check_parameters({name: one.default for name, one in PARAMETERS.items()})


def test_the_command_line_offers_every_option_with_the_same_default() -> None:
    offered = {flag: option for option in fit_command.params for flag in option.opts}
    for parameter in PARAMETERS.values():
        for option in parameter.options:
            assert option.flag.split("/")[0] in offered
        if parameter.options and parameter.default is not None:
            shown = offered[parameter.options[0].flag.split("/")[0]]
            context = click.Context(fit_command)
            assert shown.process_value(context, shown.get_default(context)) == parameter.default


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("max_time", 0, "a number above 0 or None"),
        ("max_time", float("nan"), "a number above 0 or None"),
        ("max_iterations", True, "a whole number of at least 1 or None"),
        ("layers", 1.5, "a whole number of at least 1 or None"),
        ("top_k", None, "a whole number of at least 1"),
        ("discount", 1.5, "a number above 0 and at most 1"),
        ("discount", 10**400, "a number above 0 and at most 1"),
        ("constant_range", (3, -3), "a pair"),
        ("callbacks", [1], "a callable"),
        ("checkpoint", 3, "a file's path"),
        ("warm_start", 1, "True or False"),
    ],
)
def test_a_refusal_names_the_parameter_what_is_allowed_and_what_came(name: str, value: object, words: str) -> None:
    model = PSERegressor(**{name: value})
    with pytest.raises(ValueError, match=rf"{name} must be {words}.*, not {re.escape(repr(value))}"):
        model.fit(np.ones((5, 1)), np.arange(5.0))


def test_a_search_without_an_end_is_refused() -> None:
    with pytest.raises(ValueError, match="both None"):
        PSERegressor(max_time=None).fit(np.ones((5, 1)), np.arange(5.0))


@pytest.mark.parametrize(
    ("word", "ours"),
    [
        ("niterations", "max_iterations"),
        ("binary_operators", "operators holds them all"),
        ("unary_operators", "operators holds them all"),
        ("maxsize", "max_complexity"),
        ("populations", "enumerated and not bred"),
    ],
)
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_words_of_pysr_are_answered_with_ours(estimator: type, word: str, ours: str) -> None:
    with pytest.raises(TypeError, match=f"{estimator.__name__} has no parameter '{word}': .*{ours}"):
        estimator(**{word: 3})
    with pytest.raises(TypeError, match="unexpected keyword argument 'nonsense'"):
        estimator(nonsense=3)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_no_estimator_names_a_parameter_that_it_does_not_have(estimator: type) -> None:
    known = set(estimator().get_params())
    for word, ours in (("maxdepth", "max_depth"), ("early_stop_condition", "stop_loss"), ("denoise", "denoise")):
        if word in known:
            continue
        with pytest.raises(TypeError, match=f"has no parameter '{word}': it is ") as raised:
            estimator(**{word: 3})
        assert str(raised.value).endswith(f"it is {ours}") == (ours in known)
        assert ("of PSERegressor" in str(raised.value)) == (ours not in known)
