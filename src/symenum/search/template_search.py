"""The move of a search with a template: which functions take the places of the unknown ones.

1. All unknown functions are fitted together as smooth curves (`symenum.fitting.smooth_functions`). What each would have
   to be in each row follows from y and from the others; so each becomes a table of its own.
2. A turn takes one function and searches its table as any other, for a short time. What comes out are many forms, up to
   a scale and an offset. Each form is put into the template, with curves for the other functions, and fitted to y
   itself: the forms are ranked by the evidence of these fits, and the best stay on a list.
3. Where the best form of a function explains y as well as its curve does, it takes the place of the curve, so that what
   the other functions must be is known better. That is asked anew in each turn, from the lists alone.
4. When every function has a list, laws are composed: the best form of each, then with one of them exchanged, as long as
   this brings anything. All constants of a law are fitted together.

Scales and offsets that no data can tell are left out beforehand: in f(x)*g(y) one of the two scales, in f(x) + g(y) one
offset, in f(x) - f(y) all offsets. Which ones follows from the rank of the template's derivatives by them.

Functions take turns, those first whose form does not yet do as well as a curve; the searches become longer.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from symenum.core.budget import Budget
from symenum.core.exactness import EXACTNESS
from symenum.core.seeds import stream
from symenum.core.target import Target
from symenum.expressions import Constant, Expression, Variable, apply, simplify, substitute, variables
from symenum.expressions.algebra import as_product, as_sum, with_factor, with_one_scale
from symenum.expressions.candidate import Candidate
from symenum.expressions.template import Template, formal_names
from symenum.fitting.form_fit import derivatives, fit_form
from symenum.fitting.free_constants import form_as_printed, free_constants, freed, with_leaves, with_one_less
from symenum.fitting.losses import Squared
from symenum.fitting.smooth_functions import Basis, SmoothFit, argument_values, fit_smooth, make_bases, needed_values
from symenum.search.polish import fitted, tidied
from symenum.search.problem import Task, make_task
from symenum.search.state import State, UnknownForms

__all__ = ["TEMPLATE", "TemplateSearch", "price_of_form", "simplest_of_template"]

Free = tuple[Expression, Mapping[str, float]]  # a form, and where its constants begin, by name
Known = Mapping[str, Free]  # by function

TEMPLATE = "template"
"""The name of the move."""

_FIRST_WORK = 1.0  # work units of one function's search in the first round; each round has twice as many
_LAST_WORK = 8.0  # but no more, so that a turn ends
_FITS_WORK = 1.5  # work units of the fits of a turn, beside its search: some 60 of 20 ms, and the first curves
_COMPLEXITY_SHARE = 0.6  # of the largest complexity of a law, for one function: all have to find room in it
_TRIED = 40  # forms of a search that are put into the template
_SHORTENED = 6  # of these, the best, are tried without each of their parts, too,
_SHORTER = 20  # as which they count: a polynomial has many parts
_LISTED = 12  # forms of a function that stay on its list
_EXCHANGES = 3  # rounds of exchanging one form of the best law,
_EXCHANGED = 6  # and forms of each function, the best, that are tried in its place
_COMPOSED = 40  # laws that are composed in one turn, at most
_FIT_STEPS = 60  # of Levenberg-Marquardt for a composed law: it starts near its minimum,
_RANKING_STEPS = 20  # and for one that is only compared with others
_RANK = EXACTNESS.remainder  # a direction is new if this part of it, or more, is not in the others
_RANK_POINTS = 200  # rows on which directions are compared
_LEVELS = (0.6, 1.6)  # of drawn functions: positive, and not near 1, so that products and roots have values
_DRAWS = 20  # of such functions, until the template has values
_SMALL_SPREAD = 0.01  # part of the mean: below, a function is taken for its offset and what varies
_SMALL_WEIGHT = 1e-12  # part of the largest weight of a row: below, the row says nothing of the function


@dataclass(frozen=True)
class _Gauge:
    """What the data can tell of scales and offsets: by function; and which constants of the template."""

    scaled: frozenset[str]
    offset: frozenset[str]
    constants: tuple[str, ...]


@dataclass(frozen=True)
class TemplateSearch:
    """One function's turn."""

    name: ClassVar[str] = TEMPLATE
    opens: bool = True

    def work(self, state: State) -> float:
        """See `Move`."""
        return _inner_work(state, len(state.unknown_forms)) + _FITS_WORK

    def ready(self, state: State) -> bool:
        """See `Move`."""
        return True

    def run(self, task: Task, state: State, rng: np.random.Generator, budget: Budget) -> tuple[list[Candidate], State]:
        """See `Move`."""
        template = task.settings.template
        assert template is not None  # the move is in the table only where there is one
        record = state.record(TEMPLATE)
        known = {one.function: one.forms for one in state.unknown_forms}
        parts = _Parts.of(task, template, budget)
        if parts is None:
            return [], state.with_record(replace(record, ended=True))
        at = record.turns % len(template.functions)
        in_turn = (*template.functions[at:], *template.functions[:at])
        good = parts.accepted(known, budget)
        function = next((name for name in in_turn if name not in good), in_turn[0])
        accepted = parts.accepted({name: forms for name, forms in known.items() if name != function}, budget)
        table = parts.table(function, accepted, budget)
        found = () if table is None else _searched(task, table, function, state, budget)
        listed = parts.ranked(function, known.get(function, ()), found, accepted, budget)
        if listed:
            known[function] = listed
        composed = parts.composed(known, budget) if len(known) == len(template.functions) else []
        after = replace(
            state,
            unknown_forms=tuple(UnknownForms(name, known[name]) for name in template.functions if name in known),
        )
        return composed, after


def _inner_work(state: State, functions: int) -> float:
    """Work units of the search of a function's table: twice as many each time that all functions had a turn."""
    return min(_LAST_WORK, _FIRST_WORK * 2.0 ** (state.record(TEMPLATE).turns // max(1, functions)))


@dataclass(frozen=True)
class _Table:
    """A function's own table: its arguments (rows,) by `formal_names`, what it would have to be, and weights.

    The function is scale·target + offset: a scale that no data tell may be anything, and where the offset is far larger
    than what varies, a law that misses all but the offset would look exact.
    """

    columns: Mapping[str, Tensor]
    target: Target
    scale: float
    offset: float

    @staticmethod
    def of(columns: Mapping[str, Tensor], value: Tensor, weight: Tensor) -> _Table:
        mean = float((value * weight).sum())
        spread = math.sqrt(float(((value - mean).square() * weight).sum()))
        offset = mean if spread < _SMALL_SPREAD * abs(mean) else 0.0
        scale = math.sqrt(float(((value - offset).square() * weight).sum())) or 1.0
        return _Table(columns, Target((value - offset) / scale, weight), scale, offset)

    def law(self, found: Expression) -> Expression:
        """What is found for the target, as a law of the function."""
        scaled = with_factor(Constant(self.scale), found)
        return simplify(apply("add", scaled, Constant(self.offset)) if self.offset else scaled)


def _searched(task: Task, table: _Table, function: str, state: State, budget: Budget) -> tuple[Expression, ...]:
    """The laws of a search of a function's own table, the best of each complexity and those near them."""
    # A search inside a search: `step` drives the moves, of which this is one.
    from symenum.search.step import start, step

    assert task.settings.template is not None
    work = _inner_work(state, len(task.settings.template.functions))
    seed = int(stream(state.seed, f"template {function} {state.record(TEMPLATE).turns}").integers(1 << 31))
    settings = replace(
        task.settings,
        template=None,
        loss=Squared(),
        prior=replace(task.settings.prior, required=(), variable_operators={}, weights=None, units=None, straight=()),
        guesses=(),
        forbidden=(),
        shape=None,
        declared={},
        shares={},
        weights=None,
        stop_loss=None,
        max_complexity=math.ceil(_COMPLEXITY_SHARE * task.settings.max_complexity),
        probe=None,
        layers=None,
        inputs=None,
        planned_time=work,
        seed=seed,
    )
    names = list(table.columns)
    inner = make_task(names, torch.stack([table.columns[name] for name in names], dim=1), table.target, settings)
    current = start(inner, seed, budget)
    while not budget.over() and not current.front.has_law() and sum(one.work for one in current.records) < work:
        current, move = step(inner, current, budget)
        if move is None:
            break
    laws = sorted((*current.front, *current.runners_up), key=lambda law: price_of_form(law, table.target.rows))
    return tuple(dict.fromkeys(table.law(law.expression) for law in laws))


def price_of_form(law: Candidate, rows: int, floor: float = 1e-300) -> float:
    """What a law costs, in nats times two: an operator counts as half a number; losses up to `floor` are alike."""
    numbers = len(free_constants(law.expression, integers=False))
    return rows * math.log(max(law.loss, floor)) + (numbers + 0.5 * law.complexity) * math.log(max(2, rows))


@dataclass(frozen=True)
class _Parts:
    """A template on the working rows: its smooth fit, its bases, and what the data can tell of it."""

    task: Task
    template: Template
    columns: Mapping[str, Tensor]
    target: Target
    bases: Mapping[str, Basis]
    gauge: _Gauge
    smooth: SmoothFit
    # What was fitted before: turns ask for the same again, and the answer follows from the question.
    fits: dict[Hashable, SmoothFit | None] = field(default_factory=dict)

    @staticmethod
    def of(task: Task, template: Template, budget: Budget) -> _Parts | None:
        """The first fit is kept for the turns of one task."""
        known = task.template_parts
        if template not in known:
            known[template] = _first_fit(task, template, budget)
        return known[template]  # type: ignore[return-value]

    @property
    def rows(self) -> int:
        return self.target.rows

    def curves(
        self,
        known: Known,
        budget: Budget,
        steps: int = _RANKING_STEPS,
    ) -> SmoothFit | None:
        """The template with these forms (and where their constants begin) and curves for all other functions."""
        if not known:
            return self.smooth
        key = frozenset((name, form, tuple(starts.items())) for name, (form, starts) in known.items()), steps
        if key not in self.fits:
            found = self._fitted(known, budget, steps)
            if budget.over():  # it may have been cut short
                return found
            self.fits[key] = found
        return self.fits[key]

    def _fitted(self, known: Known, budget: Budget, steps: int) -> SmoothFit | None:
        form = self.template.with_functions({name: one for name, (one, _) in known.items()})
        calls = [call for call in self.template.calls if call.function not in known]
        starts: dict[str, float | None] = {name: self.smooth.constants.get(name, 1.0) for name in self.gauge.constants}
        starts |= {name: value for _, constants in known.values() for name, value in constants.items()}
        starts = {name: value for name, value in starts.items() if name in variables(form)}
        y, weight = self.target.y, self.target.weight
        if not calls:
            fitted = fit_form(form, starts, self.columns, y, weight, steps=steps, budget=budget)
            loss = max(fitted.loss, self._floor)
            cost = self.rows * math.log(loss) + len(starts) * math.log(self.rows) if loss < math.inf else math.inf
            return SmoothFit({}, {}, np.zeros(0), fitted.loss, len(starts), cost, fitted.constants, {}, 0.0)
        return fit_smooth(form, calls, starts, self.columns, y, weight, self.bases, budget=budget, begin=self.smooth)

    @property
    def _floor(self) -> float:
        return EXACTNESS.scanned**2 * self.target.mean_square

    def accepted(self, lists: Mapping[str, Sequence[Expression]], budget: Budget) -> dict[str, Free]:
        """The functions whose best form explains y as well as their curve, with these forms; the most certain first."""
        taken: dict[str, Free] = {}
        cost = self.smooth.cost
        while not budget.over():
            best: tuple[float, str, Free] | None = None
            for name, forms in lists.items():
                if name in taken or not forms:
                    continue
                form, starts = self.free(name, forms[0])
                found = self.curves({**taken, name: (form, starts)}, budget)
                if found is not None and found.cost < (cost if best is None else best[0]):
                    fitted = {one: found.constants.get(one, start) for one, start in starts.items()}
                    best = found.cost, name, (form, fitted)
            if best is None:
                break
            cost, name, taken[name] = best
        return taken

    def table(self, function: str, known: Known, budget: Budget) -> _Table | None:
        """What the function would have to be, at all places where it is called; None where nothing fits."""
        found = self.curves(known, budget)
        if found is None:
            return None
        form = self.template.with_functions({name: one for name, (one, _) in known.items()})
        calls = self.template.calls_of(function)
        arguments, values, weights = [], [], []
        for call in calls:
            needed, slope = needed_values(found, form, call.place, self.columns, self.target.y)
            arguments.append(torch.stack(argument_values(call, self.columns)))
            values.append(torch.from_numpy(needed))
            weights.append(self.target.weight * torch.from_numpy(slope**2))
        together, value, weight = torch.cat(arguments, dim=1), torch.cat(values), torch.cat(weights)
        counted = torch.isfinite(value) & torch.isfinite(together).all(dim=0) & (weight > _SMALL_WEIGHT * weight.max())
        if int(counted.sum()) < 3:
            return None
        weight = weight[counted] / weight[counted].sum()
        names = formal_names(len(together))
        columns = {name: row[counted].contiguous() for name, row in zip(names, together, strict=True)}
        return _Table.of(columns, value[counted], weight)

    def ranked(
        self,
        function: str,
        listed: Sequence[Expression],
        found: Sequence[Expression],
        known: Known,
        budget: Budget,
    ) -> tuple[Expression, ...]:
        """The forms that are `listed` and those that a search `found`, by the evidence of the template with them."""
        price: dict[Expression, float] = {}
        seen: set[Expression] = set()
        # A table that is not quite right gets a term too many, and the term hides the law.
        shorter = [part for law in found[:_SHORTENED] for part in with_one_less(law)]
        for law in (*listed, *found[:_SHORTENED], *shorter[:_SHORTER], *found[_SHORTENED:]):
            core = _core(law)[0]
            shape = form_as_printed(core)
            if shape in seen or len(seen) >= _LISTED + _TRIED or not variables(core):
                continue
            if seen and budget.over():
                break
            seen.add(shape)
            form, constants = self.free(function, law)
            fit = self.curves({**known, function: (form, constants)}, budget)
            if fit is None or not math.isfinite(fit.cost):
                continue
            values = {name: Constant(float(fit.constants.get(name, start))) for name, start in constants.items()}
            law_of_fit = simplify(substitute(form, values))
            if variables(law_of_fit):
                price[law_of_fit] = fit.cost + 0.5 * core.complexity * math.log(self.rows)
        return tuple(sorted(price, key=lambda one: price[one])[:_LISTED])

    def free(self, function: str, law: Expression, *, offset: bool = True) -> tuple[Expression, dict[str, float]]:
        """The law of a function with names for its constants and where these begin; with its scale and its offset."""
        core, scale, number = _core(law)
        core = freed(core)
        values = free_constants(core, integers=False)
        names = [f"{function}_constant{at + 1}" for at in range(len(values))]
        form = with_leaves(core, [Variable(name) for name in names], integers=False) if names else core
        starts = dict(zip(names, values, strict=True))
        if function in self.gauge.scaled:
            form = apply("mul", Variable(f"{function}_scale"), form)
            starts[f"{function}_scale"] = scale
        elif scale != 1:  # stays as it is, so that the other functions keep their signs and sizes
            form = apply("mul", Constant(scale), form)
        if function in self.gauge.offset:
            form = apply("add", form, Variable(f"{function}_offset")) if offset else form
            starts |= {f"{function}_offset": number} if offset else {}
        elif number != 0:
            form = apply("add", form, Constant(number))
        return form, starts

    def composed(self, lists: Mapping[str, Sequence[Expression]], budget: Budget) -> list[Candidate]:
        """Laws of the best form of each function, and with one form exchanged; with and without offsets."""
        functions = list(lists)
        fits: dict[tuple[int, ...], tuple[float, list[Candidate]]] = {}

        def cost(chosen: tuple[int, ...]) -> float:
            if chosen not in fits:
                forms = {name: lists[name][at] for name, at in zip(functions, chosen, strict=True)}
                fits[chosen] = self._law(forms, (), budget)
            return fits[chosen][0]

        best = tuple(0 for _ in functions)
        cost(best)
        for _ in range(_EXCHANGES):
            before = best
            for place, name in enumerate(functions):
                for at in range(min(_EXCHANGED, len(lists[name]))):
                    if budget.over() or len(fits) >= _COMPOSED:
                        break
                    other = (*best[:place], at, *best[place + 1 :])
                    if cost(other) < cost(best):
                        best = other
            if best == before:
                break
        laws = [law for _, found in fits.values() for law in found]
        # Scales and offsets that no data tell are gone from a law as it is written: it can be fitted to the last digit.
        laws += fitted(self.task, [law.expression for law in fits[best][1]], budget)
        forms = {name: lists[name][at] for name, at in zip(functions, best, strict=True)}
        offsets = [name for name in functions if name in self.gauge.offset]
        for count in range(1, len(offsets) + 1):
            for without in itertools.combinations(offsets, count):
                if not budget.over():
                    laws += self._law(forms, without, budget)[1]
        return [*laws, *tidied(self.task, laws, budget)]

    def _law(
        self, forms: Mapping[str, Expression], without: Sequence[str], budget: Budget
    ) -> tuple[float, list[Candidate]]:
        """The law of these forms, all constants fitted together; and its cost. `without`: functions without offset."""
        known = {name: self.free(name, form, offset=name not in without) for name, form in forms.items()}
        found = self.curves(known, budget, _FIT_STEPS)
        if found is None or not found.loss < math.inf:
            return math.inf, []
        form = self.template.with_functions({name: one for name, (one, _) in known.items()})
        ones = {name: Constant(1) for name in self.template.constants if name not in self.gauge.constants}
        values = {name: Constant(value) for name, value in found.constants.items()}
        law = with_one_scale(substitute(form, {**ones, **values}))  # the forms have brought one each
        candidate = self.task.data.candidate(law)
        size = 0.5 * sum(one.complexity for one in forms.values())
        return found.cost + size * math.log(self.rows), [] if candidate is None else [candidate]


def _first_fit(task: Task, template: Template, budget: Budget) -> _Parts | None:
    """The template on the working rows with curves for all functions; None where it has no values there."""
    columns, target = task.data.columns, task.data.target
    bases = make_bases(template.calls, columns, target.rows)
    gauge = _gauge_of(template, columns, task.settings.seed)
    ones = {name: Constant(1) for name in template.constants if name not in gauge.constants}
    fixed = replace(template, skeleton=substitute(template.skeleton, ones))
    starts: dict[str, float | None] = dict.fromkeys(gauge.constants)
    smooth = fit_smooth(
        fixed.skeleton, template.calls, starts, columns, target.y, target.weight, bases, seed=task.settings.seed,
        budget=budget,
    )  # fmt: skip
    return None if smooth is None else _Parts(task, fixed, columns, target, bases, gauge, smooth)


def _gauge_of(template: Template, columns: Mapping[str, Tensor], seed: int) -> _Gauge:
    """Which scales, offsets and constants the data can tell: those whose derivatives are independent, in this order.

    The functions are drawn: which derivatives depend on one another is the same for all but a few.
    """
    rng = stream(seed, "functions of a template")
    rows = min(_RANK_POINTS, len(next(iter(columns.values()))))
    part = {name: column[:rows] for name, column in columns.items()}
    names = (*template.constants, *(call.place for call in template.calls))
    for _ in range(_DRAWS):
        values = {name: float(rng.uniform(*_LEVELS)) for name in template.constants}
        known = {**part, **{name: torch.full((rows,), value, dtype=torch.float64) for name, value in values.items()}}
        known |= _drawn_functions(template, part, rng)
        value, slopes = derivatives(template.skeleton, names, known)
        if bool(torch.isfinite(value).all() and torch.isfinite(slopes).all()):
            break
    slope = dict(zip(names, slopes.numpy(), strict=True))
    span: list[np.ndarray] = []

    def is_new(direction: np.ndarray) -> bool:
        size = float(np.linalg.norm(direction))
        if not 0 < size < math.inf:
            return False
        left = direction / size
        for _ in range(2):  # twice: once leaves rounding of what was taken out
            for one in span:
                left = left - one * float(one @ left)
        rest = float(np.linalg.norm(left))
        if rest > _RANK:
            span.append(left / rest)
        return rest > _RANK

    scaled, offset = set(), set()
    for function in template.functions:
        if is_new(sum(slope[call.place] * known[call.place].numpy() for call in template.calls_of(function))):
            scaled.add(function)
    for function in template.functions:
        if is_new(sum(slope[call.place] for call in template.calls_of(function))):
            offset.add(function)
    constants = [name for name in template.constants if is_new(slope[name])]
    return _Gauge(frozenset(scaled), frozenset(offset), tuple(constants))


def _drawn_functions(template: Template, columns: Mapping[str, Tensor], rng: np.random.Generator) -> dict[str, Tensor]:
    """Values (rows,) of smooth random functions at all places."""
    found: dict[str, Tensor] = {}
    for function in template.functions:
        waves = rng.normal(0, 1, (3, template.arity(function)))
        phases, level = rng.uniform(0, 2 * math.pi, 3), float(rng.uniform(*_LEVELS))
        for call in template.calls_of(function):
            arguments = np.stack([argument.numpy() for argument in argument_values(call, columns)])
            spread = np.maximum(np.abs(arguments).max(axis=1, keepdims=True), 1e-300)
            wave = np.sin(2 * waves @ (arguments / spread) + phases[:, None]).sum(axis=0)
            found[call.place] = torch.from_numpy(level * (1 + 0.2 * wave))
    return found


@lru_cache(maxsize=4096)  # the same forms are composed in every turn
def _core(law: Expression) -> tuple[Expression, float, float]:
    """core, scale and number with law = scale·core + number; the core has no number outside, and a first term of 1."""
    total = as_sum(simplify(law))
    number = float(total.number)
    terms = [(1.0 if added else -1.0, as_product(term)) for added, term in total.terms]
    if not terms:
        return Constant(number), 1.0, 0.0
    scale = terms[0][0] * terms[0][1].number
    core: Expression | None = None
    for sign, product in terms:
        body = replace(product, numerator=1, denominator=1).close()
        factor = sign * product.number / scale
        piece = body if core is None else with_factor(Constant(factor), body)
        core = piece if core is None else apply("add", core, piece)
    assert core is not None  # there is a term
    return core, float(scale), number


def simplest_of_template(task: Task, template: Template, budget: Budget) -> list[Candidate]:
    """The laws with which a search begins: all unknown functions constant, and all of them linear."""
    found = []
    columns, target = task.data.columns, task.data.target
    gauge = _gauge_of(template, columns, task.settings.seed)
    for linear in (False, True):
        forms: dict[str, Expression] = {}
        starts: dict[str, float | None] = dict.fromkeys(gauge.constants)
        for function in template.functions:
            level = f"{function}_offset"
            form: Expression = Variable(level)
            starts[level] = None
            if linear:
                for at, name in enumerate(formal_names(template.arity(function))):
                    slope = f"{function}_slope{at + 1}"
                    starts[slope] = None
                    form = apply("add", apply("mul", Variable(slope), Variable(name)), form)
            forms[function] = form
        ones = {name: Constant(1) for name in template.constants if name not in gauge.constants}
        form = substitute(template.with_functions(forms), ones)
        fitted = fit_form(
            form, starts, columns, target.y, target.weight, steps=_FIT_STEPS, seed=task.settings.seed, budget=budget
        )
        law = substitute(form, {name: Constant(value) for name, value in fitted.constants.items()})
        candidate = task.data.candidate(simplify(law)) if fitted.loss < math.inf else None
        found += [] if candidate is None else [candidate]
    return found
