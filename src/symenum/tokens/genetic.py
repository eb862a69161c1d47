"""Genetic programming as token generator (the paper's Algorithm 3): trees evolve towards explaining y.

An individual's fitness is what a pass of one layer could explain with it (`explain`), so an individual need not look
like y, and one that explains what the front leaves counts as much. Individuals *and their sub-trees* become tokens,
drawn by how much of y they explain, by what they did in earlier passes, and by how often good laws are made of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import torch

from symenum.core.budget import NO_LIMIT, Budget
from symenum.core.threads import torch_threads
from symenum.expressions import Apply, Constant, Expression, sort_key, walk
from symenum.tokens.explain import PRICE, Explainer, Scouted, promising_features, scout, simple_partners
from symenum.tokens.generator import ScoredExpression, TokenContext, check_count, check_front
from symenum.tokens.pool import MAX_COMPLEXITY, Memory, cross_variable, front_parts
from symenum.tokens.trees import Evaluator, composite_parts, crossover, mutate, pick_distinct, random_tree, random_trees

__all__ = ["Genetic", "GeneticState"]

Array = npt.NDArray[np.float64]

_START_DEPTH = 2
_FROM_FRONT = 0.4  # of a population that starts anew come from the front
_FROM_SEEDS = 0.4  # and so many are seeds
_IMMIGRANTS = 0.2  # of the population are replaced by fresh trees before each run
_STALE = 8  # passes without improvement after which all but the front is forgotten
_FRONT_PARTNERS = 8
_TOKEN_SEEDS = 100  # of the seeds, so many may be tokens at once
_PLANTED_SEEDS = 20  # of the seeds, so many are planted by mutations
_JOINS = 0.1  # how often a join of variables goes before a drawn token
_FRONT_TOKENS = 0.3  # how often a part of the front does
_GREEDY = 0.5  # of the tokens are the best there are, the others are drawn
_CONSTANT_PRICE = 3  # a constant is worth so much complexity: most are just another scale or offset


@dataclass(frozen=True)
class GeneticState:
    """Population and hall of fame of the last run, partners, seeds and scouted tokens, and the memory of all passes."""

    population: tuple[Expression, ...]
    hall: tuple[Expression, ...]
    partners: tuple[Expression, ...]
    seeds: tuple[Expression, ...]
    scouted: tuple[Scouted, ...] = ()
    memory: Memory = field(default_factory=Memory)


@dataclass(frozen=True)
class Genetic:
    """See `TokenGenerator`; defaults are the paper's. `parsimony`: decades of 1 - R² that one complexity costs."""

    population: int = 50
    generations: int = 20
    tournament: int = 10
    max_height: int = 10
    crossover: float = 0.1
    mutation: float = 0.5
    hall_of_fame: int = 20
    parsimony: float = PRICE
    scouts: int = 600
    name: str = "gp"

    def start(self, context: TokenContext) -> GeneticState:
        partners = simple_partners(context)
        return GeneticState((), (), partners, promising_features(context, partners))

    def propose(
        self,
        context: TokenContext,
        state: GeneticState,
        count: int,
        rng: np.random.Generator,
        budget: Budget = NO_LIMIT,
    ) -> tuple[tuple[Expression, ...], GeneticState]:
        check_count(count)
        if not context.working:
            return (), replace(state, memory=state.memory.with_proposal(()))
        with torch_threads(1):
            run = _Run(self, context, state, rng)
            population, hall = run.evolve(budget)
            tokens = run.tokens(population, hall, count)
        memory = state.memory.with_proposal(tokens)
        return tokens, replace(state, population=population, hall=hall, scouted=run.scouted, memory=memory)

    def learn(
        self, context: TokenContext, state: GeneticState, reward: float, front: Sequence[ScoredExpression]
    ) -> GeneticState:
        check_front(reward, front, context)
        memory = state.memory.after_pass(reward, front)
        if memory.stale and memory.stale % _STALE == 0:  # a population that leads nowhere makes room for another
            return replace(state, population=(), hall=(), memory=memory)
        return replace(state, memory=memory)


class _Run:
    """One proposal: what is computed once for it, and its random numbers."""

    def __init__(
        self, settings: Genetic, context: TokenContext, state: GeneticState, rng: np.random.Generator
    ) -> None:
        self.settings = settings
        self.context = context
        self.state = state
        self.rng = rng
        self.evaluator = Evaluator(context)
        parts = front_parts(state.memory.front)
        self.parts = {part: weight for part, weight in parts.items() if self.evaluator.usable(part)}
        best = sorted(state.memory.front, key=lambda member: -member.reward)[:_FRONT_PARTNERS]
        partners = [*state.partners, *(member.expression for member in best)]
        self.explainer = Explainer(context, self.evaluator, partners)
        start = state.memory.steps * (settings.scouts // 2)
        self.scouted = scout(
            context, self.evaluator, self.explainer, state.seeds, state.scouted, settings.scouts, start, rng
        )
        self.seeds = (*(one.token for one in self.scouted), *state.seeds)
        self._one: dict[Expression, Expression] = {}
        self._unexplained: dict[Expression, float] = {}

    def evolve(self, budget: Budget) -> tuple[tuple[Expression, ...], tuple[Expression, ...]]:
        """The population after all generations, and the hall of fame, best first."""
        settings, rng = self.settings, self.rng
        population = self._first_population()
        hall: dict[Expression, float] = {}
        pool = [*self.parts, *self.seeds[:_PLANTED_SEEDS]]
        for generation in range(settings.generations + 1):
            budget.check()
            fitness = self._judge(population)
            hall.update(zip(population, fitness, strict=True))
            hall = dict(sorted(hall.items(), key=lambda item: item[1])[: settings.hall_of_fame])
            if generation == settings.generations:
                break
            population = self._selected(population, np.array(fitness))
            for i in range(1, len(population), 2):
                if rng.random() < settings.crossover:
                    population[i - 1], population[i] = crossover(
                        population[i - 1], population[i], rng, settings.max_height
                    )
            for i in range(len(population)):
                if rng.random() < settings.mutation:
                    population[i] = mutate(population[i], self.context, rng, settings.max_height, pool)
                # One object for equal trees: whatever is looked up later is found without comparing trees.
                population[i] = self._one.setdefault(population[i], population[i])
        return tuple(population), tuple(hall)

    def tokens(
        self, population: Sequence[Expression], hall: Sequence[Expression], count: int
    ) -> tuple[Expression, ...]:
        """The best sub-trees of the evolved, seeds and parts of the front, and others drawn by how good they are."""
        often: dict[Expression, float] = {}
        for tree in dict.fromkeys((*hall, *population)):
            for part in composite_parts(tree):
                often[part] = often.get(part, 0.0) + 1.0
        top, front_top = max(often.values(), default=1.0), max(self.parts.values(), default=1.0)
        share = {part: number / top for part, number in often.items()}
        share.update((seed, share.get(seed, 0.0)) for seed in self.seeds[:_TOKEN_SEEDS])
        for part, weight in self.parts.items():
            share[part] = share.get(part, 0.0) + weight / front_top
        able = [token for token in share if token.complexity <= MAX_COMPLEXITY and self.evaluator.usable(token)]
        able.sort(key=sort_key)
        score = [(1.0 + share[token]) * merit for token, merit in zip(able, self._merits(able), strict=True)]
        stream = self._stream(able, np.array(score), math.ceil(_GREEDY * count))
        return tuple(pick_distinct(self.evaluator, self.context, stream, count))

    def _merits(self, tokens: Sequence[Expression]) -> list[float]:
        """Decades of y explained, less the price of complexity, at least a little, times what earlier passes say."""
        memory = self.state.memory
        return [
            max(-fitness, 0.05) * memory.merit(token)
            for token, fitness in zip(tokens, self._judge(tokens), strict=True)
        ]

    def _stream(self, able: list[Expression], score: Array, greedy: int) -> Iterator[Expression]:
        """The best few first, then all in a random order that favours the good, joins of variables in between."""
        if able:
            yield from (able[int(i)] for i in np.argsort(-score, kind="stable")[:greedy])
            p = score**2
            for i in self.rng.choice(len(able), size=len(able), replace=False, p=p / p.sum()):
                other = self._other_source()
                yield from [able[int(i)]] if other is None else [other, able[int(i)]]
        yield from random_trees(self.context, self.rng, 16, 3)

    def _other_source(self) -> Expression | None:
        """Now and then a join of variables, or a part of the front by its weight and merit."""
        chance = self.rng.random()
        if chance < _JOINS:
            return cross_variable(self.context, self.rng)
        if chance > _JOINS + _FRONT_TOKENS or not self.parts:
            return None
        parts = list(self.parts)
        weight = np.array([self.parts[part] * self.state.memory.merit(part) for part in parts]) + 1e-9
        return parts[int(self.rng.choice(len(parts), p=weight / weight.sum()))]

    def _first_population(self) -> list[Expression]:
        """The last population with some fresh blood; at the very start, trees from the front and random ones."""
        settings, rng = self.settings, self.rng
        old = list(self.state.population)
        fresh: list[Expression] = []
        parts = list(self.parts)
        wanted = settings.population if not old else math.ceil(_IMMIGRANTS * settings.population)
        if parts:
            p = np.array([self.parts[part] for part in parts])
            size = min(len(parts), math.ceil(_FROM_FRONT * wanted))
            picked = rng.choice(len(parts), size=size, replace=False, p=(p + 1e-9) / (p + 1e-9).sum())
            fresh += [parts[int(i)] for i in picked]
        if self.seeds:
            seeds = self.seeds[:_TOKEN_SEEDS]
            size = min(len(seeds), math.ceil(_FROM_SEEDS * wanted))
            fresh += [seeds[int(i)] for i in rng.choice(len(seeds), size=size, replace=False)]
        while len(fresh) < wanted:
            fresh.append(random_tree(self.context, rng, int(rng.integers(1, _START_DEPTH + 1))))
        if old:
            keep = self._judge(old)
            order = sorted(range(len(old)), key=lambda i: keep[i])[: settings.population - len(fresh)]
            fresh += [old[i] for i in order]
        members = [member.expression for member in self.state.memory.front if isinstance(member.expression, Apply)]
        members = [m for m in members if m.depth <= settings.max_height]
        return (members[:_FRONT_PARTNERS] + fresh)[: settings.population]

    def _selected(self, population: list[Expression], fitness: Array) -> list[Expression]:
        """As many winners of tournaments as there are trees."""
        drawn = self.rng.integers(len(population), size=(len(population), self.settings.tournament))
        winners = drawn[np.arange(len(population)), fitness[drawn].argmin(axis=1)]
        return [population[int(i)] for i in winners]

    def _judge(self, trees: Sequence[Expression]) -> list[float]:
        """Decades of y explained, counted downwards, and the price of complexity."""
        left = self._left(trees)
        price = self.settings.parsimony
        return [
            math.log10(rest) + price * (tree.complexity + _CONSTANT_PRICE * _constants(tree))
            if self.evaluator.usable(tree)
            else math.inf
            for tree, rest in zip(trees, left, strict=True)
        ]

    def _left(self, trees: Sequence[Expression]) -> list[float]:
        new = list(dict.fromkeys(tree for tree in trees if tree not in self._unexplained))
        if new:
            rest: torch.Tensor = self.explainer.unexplained(self.evaluator.matrix(new))
            self._unexplained.update(zip(new, rest.tolist(), strict=True))
        return [self._unexplained[tree] for tree in trees]


def _constants(tree: Expression) -> int:
    return sum(isinstance(node, Constant) for node in walk(tree))
