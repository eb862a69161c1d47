"""Reductions: what the data alone say about how variables enter, so that a law is looked for in fewer of them."""

from symenum.heads.reductions.find import reductions
from symenum.heads.reductions.search import search_reduced

__all__ = ["reductions", "search_reduced"]
