"""One step of a search: a turn of the move that the schedule chooses; then the front.

A state and a report are plain values: a search can be stopped, written down and taken up again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from symenum.core.budget import NO_LIMIT, Budget, CutShortError
from symenum.core.devices import DeviceLostError
from symenum.core.dimensions import DIMENSIONLESS, solve_exponents
from symenum.core.memory import return_freed_memory
from symenum.core.threads import single_threaded
from symenum.core.user_warnings import warn_user
from symenum.expressions import Constant, Expression, Variable, apply, same_function, simplify
from symenum.expressions.algebra import number_constant
from symenum.expressions.candidate import Candidate
from symenum.fitting import refine, with_coefficients
from symenum.front import Front
from symenum.heads.head import LAST_FITS
from symenum.search.front_update import Admitted, admitted, best_under, runners_up
from symenum.search.moves import Move
from symenum.search.named_constants import with_names
from symenum.search.passes import reward_of
from symenum.search.polish import limit_in_disguise, rounded, simplest_exact
from symenum.search.problem import Task
from symenum.search.schedule import Schedule, front_decades
from symenum.search.state import State
from symenum.search.template_search import simplest_of_template

__all__ = ["start", "step", "stop_reason"]

# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
_MAX_LINEAR = 30  # variables; with more, lines and the linear regression are left to the sums of terms


def start(task: Task, seed: int, budget: Budget = NO_LIMIT) -> State:
    """The state before the first step, whose front is that of the simplest laws: the mean of y, each variable, lines in
    one variable, the linear regression, and the user's guesses.
    """
    if task.settings.template is not None:
        update = _updated(task, task.empty_front, simplest_of_template(task, task.settings.template, budget), budget)
        return State(seed, 0, update.front).with_refused(update.reasons)
    found = [*task.heads.constant(), *_of_required(task), *_of_units(task)]
    found += [guess for law in task.settings.guesses if (guess := task.data.candidate(law)) is not None]
    slots = task.data.stand_ins
    if task.squared:
        found += [one for slot in slots if (one := task.data.candidate(slot)) is not None]
    if task.settings.constants and len(slots) <= min(_MAX_LINEAR, task.data.target.rows - 2):
        lines = [terms for slot in slots for terms in ([slot], [Constant(1), slot])] if task.squared else []
        fits = [task.heads.response.fit(terms) for terms in (*lines, [Constant(1), *slots])]
        found += [linear for linear in fits if linear is not None]
    update = _updated(task, task.empty_front, found, budget)
    return State(seed, 0, update.front).with_refused(update.reasons)


def step(task: Task, state: State, budget: Budget) -> tuple[State, str | None]:
    """The state after one more step, and the name of the move that had its turn; None: no move has anything to do.

    A move that raises an error gets no further turn: its record holds the error, a warning names it, and the search
    goes on with the others. Where a GPU is lost, the search goes on on the CPU.
    """
    return_freed_memory(task.settings.max_memory)
    task = (task.on_cpu if state.on_cpu else task).reweighted(state.front)
    move = Schedule.of(task).next_move(state)
    if move is None:
        return state, None
    work = move.work(state)
    with single_threaded():  # thousands of small operations; the scans have threads of their own
        found, after = _turn(task, move, state, budget)
        if task.settings.constants:
            found = [*found, *rounded(task, found, budget)]
        update = _updated(task, state.front, found, budget)
        front, judged, reasons = update.front, update.found, update.reasons
        if task.settings.constants and front.has_law() and not state.front.has_law():
            # The search ends with this law, so it loses now what it does not need.
            laws = [entry for entry in front if entry.loss <= front.floor]
            last = _updated(task, front, simplest_exact(task, laws, budget), budget)
            front, reasons = last.front, (*reasons, *last.reasons)
    gain = _decades(task, front) - _decades(task, state.front)
    record = after.record(move.name)
    record = replace(record, turns=record.turns + 1, work=record.work + work, gain=record.gain + max(0.0, gain))
    opening = state.opening_work if state.opened else state.opening_work + work * (not after.opened)
    after = replace(
        after.with_record(record).with_refused(reasons),
        iteration=state.iteration + 1,
        front=front,
        reward=max(after.reward, _best_reward(task, judged)),
        runners_up=_runners_up(task, after.runners_up, judged),
        opening_work=opening,
    )
    return after, move.name


def _turn(task: Task, move: Move, state: State, budget: Budget) -> tuple[list[Candidate], State]:
    """What the move finds, and the state after its turn; errors of the move end in its record."""
    rng = np.random.default_rng([state.seed, state.iteration])
    try:
        return move.run(task, state, rng, budget)
    except CutShortError:
        return [], state
    except DeviceLostError as error:
        warn_user(f"{error}; the search goes on on the CPU", RuntimeWarning)
        return [], replace(state, on_cpu=True)
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        warn_user(f"the move {move.name!r} failed ({why}); the search goes on without it", RuntimeWarning)
        return [], state.with_record(replace(state.record(move.name), ended=True, error=why))


def _runners_up(task: Task, known: tuple[Candidate, ...], found: list[Candidate]) -> tuple[Candidate, ...]:
    """The best laws of each complexity; where a shape is known, of those that keep it, as far as a quick look tells."""
    best = runners_up([*known, *found])
    if task.settings.shape is None:
        return best
    before = {candidate.expression for candidate in known}
    new = [one for one in best if one.expression not in before and task.policy.breach(one.expression) is None]
    return runners_up([*known, *new])


def _decades(task: Task, front: Front) -> float:
    return front_decades(front, task.scale, task.settings.max_complexity)


def stop_reason(task: Task, front: Front) -> str | None:
    """Why the search is at its end, if it is: the probe, the loss that was asked for, or the law was found."""
    settings = task.settings
    if settings.probe is not None and any(same_function(entry.expression, settings.probe) for entry in front):
        return "the probe expression was found"
    if settings.stop_loss is not None and front and front[-1].loss <= settings.stop_loss:
        return f"the loss is at most {settings.stop_loss:g}"
    if front.has_law():
        return "a law that equals the data up to rounding was found"
    return None


def _updated(task: Task, front: Front, found: list[Candidate], budget: Budget) -> Admitted:
    """The front with the finds, by their losses on all rows; and the finds, with their losses on the working rows."""
    settings = task.settings
    columns, max_complexity = task.data.columns, settings.max_complexity
    found = [candidate for candidate in found if task.allows(candidate.expression)]
    if settings.declared:
        target = task.data.target
        found = with_names(found, settings.declared, columns, target, Front.of(target), task.allows, settings.seed)
        found = _with_units(task, found)
    if not task.squared:
        fit = settings.constants
        working, empty, seed = task.working, task.working_front, settings.seed
        found = best_under(settings.loss, found, columns, working, empty, max_complexity, budget, fit=fit, seed=seed)
    forms = [(candidate, front.in_its_form(candidate)) for candidate in found]
    found = [form for one, form in forms if form.expression is one.expression or task.allows(form.expression)]
    base = task.working_front if task.partial else front
    # Without the shape: laws that break it are on the way to those that keep it. `keeping_shape` chooses in the end.
    policy = replace(task.policy, shape=None)
    sane = admitted(base, found, policy, lambda law: limit_in_disguise(task, law, budget), max_complexity)
    if not task.partial:
        return sane
    judged: list[Candidate] = []
    # Judging all finds would cost more than finding them: only those that can stand on the front, the best first.
    for at, candidate in enumerate(reversed(sane.front)):
        if at >= LAST_FITS and budget.over():
            break
        on_all_rows = task.judge(candidate)
        judged += [] if on_all_rows is None else [on_all_rows]
    return replace(sane, front=front.update(judged, max_complexity))


def _with_units(task: Task, found: list[Candidate]) -> list[Candidate]:
    """The finds whose numbers have the units that they must have, by means of the named constants; see `Knowledge`."""
    units = task.settings.final_units
    if units is None:
        return found
    right: list[Candidate] = []
    for candidate in found:
        if units.allows(candidate.expression):
            right.append(candidate)
            continue
        law = units.with_constants(candidate.expression, task.settings.declared)
        named = None if law is None else task.data.candidate(simplify(law))
        if named is not None and units.allows(named.expression) and task.allows(named.expression):
            right.append(named)
    return right


def _of_required(task: Task) -> list[Candidate]:
    """The sum and the product of the variables that every law must have, with their coefficients fitted."""
    required = task.prior.must_hold()
    if not required:
        return []
    forms = [_joined(name, required) for name in ("add", "mul")]
    if not task.settings.constants:
        return [candidate for form in forms if (candidate := task.data.candidate(form)) is not None]
    forms = [with_coefficients(form) for form in forms]
    target = task.data.target
    results = refine(forms, task.data.columns, target.y, target.weight, starts=0, seed=task.settings.seed)
    return [Candidate(result.expression, result.loss) for result in results if result.loss < float("inf")]


def _of_units(task: Task) -> list[Candidate]:
    """A product of powers of variables, and of named constants, that has the unit of the target; so there is a law.

    Where the mean of y is none, since it has a unit, the front would else be empty at first.
    """
    units = task.settings.final_units or task.prior.units
    if units is None or units.target.dimensionless:
        return []
    names = [name for name in task.data.columns if name in units.variables]
    parts: list[Expression] = [Variable(name) for name in names]
    parts += [Constant(value, name) for name, value in task.settings.declared.items() if name in units.constants]
    dimensions = [units.of(part) or DIMENSIONLESS for part in parts]
    exponents = solve_exponents(dimensions, units.target)
    if exponents is None:
        return []
    factors: tuple[list[Expression], list[Expression]] = ([], [])
    for part, exponent in zip(parts, exponents, strict=True):
        size = abs(exponent)
        if size:
            power = part if size == 1 else apply("pow", part, number_constant(float(size)))
            factors[exponent < 0].append(power)
    above, below = (_joined("mul", side) if side else Constant(1) for side in factors)
    product = above if not factors[1] else apply("div", above, below)
    fitted = task.heads.response.fit([product]) if task.settings.constants else None
    candidates = [task.data.candidate(product), fitted]
    return [candidate for candidate in candidates if candidate is not None]


def _joined(operator: str, parts: Sequence[Expression]) -> Expression:
    """The parts joined from left to right by a binary operator."""
    result = parts[0]
    for part in parts[1:]:
        result = apply(operator, result, part)
    return result


def _best_reward(task: Task, found: list[Candidate]) -> float:
    """The highest reward of the finds that could stand on a front; 0 where there are none."""
    front = task.working_front.update(found, task.settings.max_complexity)
    return max((reward_of(task, candidate) for candidate in front), default=0.0)
