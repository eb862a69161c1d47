"""The estimator keeps scikit-learn's conventions, as scikit-learn itself checks them."""

from __future__ import annotations

from sklearn.utils.estimator_checks import parametrize_with_checks

from symenum import PSERegressor


# A budget counted in steps, not in seconds: with a clock, a second fit could end elsewhere than the first.
@parametrize_with_checks([PSERegressor(max_time=None, max_iterations=2, random_state=0)])
def test_scikit_learn_check(estimator, check) -> None:
    check(estimator)
