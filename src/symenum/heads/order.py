"""In which order the stages for y itself come: the cheap and the likely first.

What is cheap depends on the data. Deep features on many rows cost seconds for several slots, fitted exponents and sums
of terms hardly more than for two; with two slots it is the other way round.
"""

from __future__ import annotations

__all__ = ["MANY_SLOTS", "ON_REDUCED", "OPENING", "STAGE_NAMES", "TRANSFORMS", "stage_order"]

MANY_SLOTS = 12  # with more, sums of products are cheaper than any features
_FEW_SLOTS = 2
_DEAR_ROWS = 128  # scanned; above, deep features come late

_BEGIN = ("products of powers", "polynomials")
OPENING = len(_BEGIN)  # stages that take milliseconds and come first; registered heads come after them
_SHALLOW = ("powers with a factor", "polynomials of transforms")
_EXPONENTS = ("powers of sums", "sums of powers")
_WITH_FUNCTIONS = ("products of angles", "powers of sums with a function", "sums of powers with a function")
_FEATURES = ("one feature", "ratios of polynomials")
_DEEP = ("powers with two factors", "one variable", "affine", "combine")
_END = ("inner constants", "rational")
_LAST = ("two terms on a polynomial",)
_SUMS, _REDUCTIONS, _TWO_TERMS = ("sums of terms",), ("reductions",), ("two terms",)

# For a problem that was reduced to few slots: transforms of y come early, deep features late.
ON_REDUCED = (
    *(*_BEGIN, "powers with a factor", "one feature", "one variable", "two terms", "powers with two factors"),
    *("outer functions", "ratios of polynomials", "affine", "inner constants"),
)

TRANSFORMS = "transforms"
"""The stages that look for a transform of y, one for each transform."""
STAGE_NAMES = tuple(
    dict.fromkeys(
        (
            *(*_BEGIN, *_SHALLOW, *_EXPONENTS, *_WITH_FUNCTIONS, *_FEATURES, *_TWO_TERMS, *_REDUCTIONS, *_DEEP, *_SUMS),
            *(*_END, *_LAST, *ON_REDUCED, TRANSFORMS),
        )
    )
)
"""All stages: what an ablation may leave out."""


def stage_order(slots: int, scanned_rows: int) -> tuple[str, ...]:
    """The names of the stages, first to last; those that the data or the operators do not allow are skipped later."""
    if slots == 1:
        return (*_BEGIN, *_SHALLOW, *_FEATURES, *_TWO_TERMS, *_DEEP, *_END, *_LAST)
    if slots <= _FEW_SLOTS:
        head = (*_BEGIN, *_SHALLOW, *_FEATURES, *_TWO_TERMS, *_REDUCTIONS, *_DEEP, *_SUMS, *_END)
        return (*head, *_EXPONENTS, *_WITH_FUNCTIONS, *_LAST)
    if slots > MANY_SLOTS:
        return (*_BEGIN, *_SUMS, *_SHALLOW, *_FEATURES, *_TWO_TERMS, *_REDUCTIONS, *_DEEP, *_END, *_LAST)
    if scanned_rows > _DEAR_ROWS:
        cheap = (*_BEGIN, *_EXPONENTS, *_SHALLOW, *_SUMS, *_REDUCTIONS, *_WITH_FUNCTIONS)
        return (*cheap, *_FEATURES, *_TWO_TERMS, *_DEEP, *_END, *_LAST)
    early = (*_BEGIN, *_EXPONENTS, *_SHALLOW, *_FEATURES, *_TWO_TERMS, *_REDUCTIONS, *_WITH_FUNCTIONS)
    return (*early, *_DEEP, *_SUMS, *_END, *_LAST)
