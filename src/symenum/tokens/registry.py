"""The generators by name."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from symenum.tokens.generator import TokenGenerator
from symenum.tokens.genetic import Genetic, GeneticState
from symenum.tokens.random_tokens import RandomState, RandomTokens
from symenum.tokens.tree_search import TreeSearch, TreeSearchState

__all__ = ["GENERATORS", "STATES", "get_generator"]

GENERATORS: Mapping[str, TokenGenerator[Any]] = {
    generator.name: generator for generator in (Genetic(), TreeSearch(), RandomTokens())
}
STATES: Mapping[str, type] = {"gp": GeneticState, "mcts": TreeSearchState, "random": RandomState}
"""What each of them remembers, by its name."""


def get_generator(name: str) -> TokenGenerator[Any]:
    """The generator of that name, with its default settings.

    >>> get_generator("gp").name
    'gp'
    """
    if not isinstance(name, str):
        raise TypeError(f"the token generator must be named by a string, not {type(name).__name__}")
    found = GENERATORS.get(name.strip().lower())
    if found is None:
        close = difflib.get_close_matches(name.strip().lower(), GENERATORS, n=1, cutoff=0.0)
        raise ValueError(
            f"unknown token generator {name!r} (did you mean {close[0]!r}?); known: {', '.join(GENERATORS)}"
        )
    return found
