"""How sure a choice is, in words: what `symenum fit` prints below the law."""

from __future__ import annotations

from typing import TYPE_CHECKING

from symenum.display.table import short_text

if TYPE_CHECKING:
    from symenum.search.exhausted import Exhausted
    from symenum.selection import Verdict

__all__ = ["confidence_lines", "exhausted_line"]

_NAMED = 2  # alternatives that are written out; `alternatives_` has all


def confidence_lines(verdict: Verdict) -> list[str]:
    """Sentences on the chosen law: no law at all, no more than a line, or how probable it is beside others."""
    if verdict.exact:
        return ["It equals the data up to rounding."]
    if not verdict.beats_mean:
        return ["No law here: nothing that was found explains the data better than their mean, beyond chance."]
    lines = []
    if not verdict.beats_line:
        lines.append("Nothing that was found explains the data better than a straight line, beyond chance.")
    if verdict.noise_grows:
        lines.append(
            "The errors grow with the values: the law was chosen, and its constants fitted, with rows weighed by the "
            "size of their errors, so that small values count as much as large ones."
        )
    if not verdict.others:
        lines.append("Of all that the search has kept, every other law is at least 20 times less probable.")
        return lines
    count = len(verdict.others)
    named = [f"{short_text(one.law.expression)} ({one.weight:.0%})" for one in verdict.others[:_NAMED]]
    sure = "Probably right" if verdict.weight >= 0.5 else "Far from sure"
    others = "one other law" if count == 1 else f"{count} other laws"
    more = " and others" if count > _NAMED else ""
    lines.append(f"{sure}: the data cannot tell it ({verdict.weight:.0%}) from {others}: {'; '.join(named)}{more}.")
    return lines


def exhausted_line(found: Exhausted) -> str:
    """What was ruled out for certain."""
    some = "one operator" if found.operators == 1 else f"{found.operators} operators"
    return (
        f"Exhausted: no expression of up to {some} of this set on these columns, with a fitted factor and offset, "
        f"has a mean squared error below {found.loss:.4g} ({found.tried:,} were tried)."
    )
