"""Warnings name the line that called into the package."""

from __future__ import annotations

import numpy as np
import pytest

from symenum import PSERegressor
from symenum.core.user_warnings import warn_user


def test_a_warning_names_the_line_of_its_caller() -> None:
    with pytest.warns(RuntimeWarning, match="so it is") as told:
        warn_user("so it is", RuntimeWarning)
    assert told[0].filename == __file__


def test_a_warning_from_deep_inside_a_fit_names_the_line_that_calls_fit() -> None:
    x = np.linspace(1, 2, 12)
    with pytest.warns(UserWarning, match="will follow this row alone") as told:
        PSERegressor(max_iterations=1, max_time=None).fit(x[:, None], np.where(x > 1.95, 1e20, x))
    assert told[0].filename == __file__
