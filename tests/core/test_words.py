"""The hint behind an unknown word."""

from __future__ import annotations

import pytest

from symenum.core.words import did_you_mean, nearest


@pytest.mark.parametrize(("word", "found"), [("sine", "sin"), ("COS", "cos"), ("expp", "exp"), ("zebra", None)])
def test_the_nearest_word_ignores_case_and_is_none_where_nothing_is_near(word: str, found: str | None) -> None:
    assert nearest(word, ["sin", "cos", "exp"]) == found


def test_the_known_word_comes_back_as_it_is_written() -> None:
    assert nearest("temperatur", ["Temperature", "Pressure"]) == "Temperature"


def test_the_hint_names_the_word_or_is_empty() -> None:
    assert did_you_mean("sine", ["sin"]) == " (did you mean 'sin'?)"
    assert did_you_mean("zebra", ["sin"]) == ""
    assert did_you_mean("sine", []) == ""
