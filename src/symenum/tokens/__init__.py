"""Token generators: ways to choose the composite slots of the next pass, behind one protocol."""

from symenum.tokens.generator import ScoredExpression, TokenContext, TokenGenerator, deal
from symenum.tokens.genetic import Genetic
from symenum.tokens.random_tokens import RandomTokens
from symenum.tokens.registry import GENERATORS, STATES, get_generator
from symenum.tokens.tree_search import TreeSearch

__all__ = [
    "GENERATORS",
    "STATES",
    "Genetic",
    "TokenContext",
    "ScoredExpression",
    "RandomTokens",
    "TokenGenerator",
    "TreeSearch",
    "deal",
    "get_generator",
]
