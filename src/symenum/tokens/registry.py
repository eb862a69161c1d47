"""The generators by name. `symenum.plugins.register_generator` adds those from outside the package."""

from __future__ import annotations

from typing import Any

from symenum.core.words import did_you_mean
from symenum.tokens.generator import TokenGenerator
from symenum.tokens.genetic import Genetic, GeneticState
from symenum.tokens.random_tokens import RandomState, RandomTokens
from symenum.tokens.tree_search import TreeSearch, TreeSearchState

__all__ = ["GENERATORS", "STATES", "get_generator"]

GENERATORS: dict[str, TokenGenerator[Any]] = {
    generator.name: generator for generator in (Genetic(), TreeSearch(), RandomTokens())
}
STATES: dict[str, type] = {"gp": GeneticState, "mcts": TreeSearchState, "random": RandomState}
"""The type of each generator's state, by its name: a checkpoint reads the state back as this type."""


def get_generator(name: str) -> TokenGenerator[Any]:
    """The generator of that name, with its default settings.

    >>> get_generator("gp").name
    'gp'
    """
    word = name.strip().lower() if isinstance(name, str) else ""
    if word not in GENERATORS:
        hint = did_you_mean(word, GENERATORS, likeness=0.0) if word else ""
        raise ValueError(f"token_generator must be one of {', '.join(map(repr, GENERATORS))}, not {name!r}{hint}")
    return GENERATORS[word]
