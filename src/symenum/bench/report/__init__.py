"""Reports of a bench: figures with their uncertainty, as Markdown and as one HTML page with its plots inside."""

from symenum.bench.report.page import html_report, markdown_report
from symenum.bench.report.summary import Group, by_problem, by_set

__all__ = ["Group", "by_problem", "by_set", "html_report", "markdown_report"]
