"""The report of a fit: one page with the data, the front, the law, how it fits and how it was found.

Pure functions of plain values; whoever has a model, or a command's result, fills in `Content`. The numbers behind the
plots (`Evidence`, `Fitted`) serve other pictures too.
"""

from symenum.report.evidence import Evidence
from symenum.report.facts import installed_version, run_facts
from symenum.report.fit_page import Content, LawRow, report_page
from symenum.report.fitted import Fitted, front_points, make_fitted

__all__ = [
    "Content",
    "Evidence",
    "Fitted",
    "LawRow",
    "front_points",
    "installed_version",
    "make_fitted",
    "report_page",
    "run_facts",
]
