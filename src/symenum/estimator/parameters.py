"""The parameters of PSERegressor: one table makes the checks of `fit`, the options of the command line and the docs.

A new parameter needs a row here and an argument of `PSERegressor.__init__`; a test compares the two. Nothing here
imports torch: `symenum fit --help` need not wait for it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import wraps
from inspect import signature
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

from symenum.cluster.words import CLUSTER_WORDS, names_a_cluster
from symenum.run_directory.layout import RunPlace

__all__ = [
    "PARAMETERS",
    "Constraint",
    "OneOf",
    "Option",
    "Parameter",
    "Predicate",
    "WholeNumber",
    "as_callbacks",
    "check_parameters",
    "knows_words_of_pysr",
    "markdown_table",
]

Make = TypeVar("Make", bound=Callable[..., Any])


class Constraint(Protocol):
    """What a value must be: a test, and the words for it that an error message uses."""

    @property
    def words(self) -> str: ...
    def allows(self, value: object) -> bool: ...


@dataclass(frozen=True)
class WholeNumber:
    """A whole number of at least `minimum`; or None, where `or_none`."""

    minimum: int
    or_none: bool = False

    @property
    def words(self) -> str:
        return f"a whole number of at least {self.minimum}{' or None' if self.or_none else ''}"

    def allows(self, value: object) -> bool:
        if value is None:
            return self.or_none
        return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= self.minimum


@dataclass(frozen=True)
class Number:
    """A finite number from `minimum` (excluded, where `open_below`) to `maximum`; or None, where `or_none`."""

    minimum: float
    maximum: float = math.inf
    open_below: bool = False
    or_none: bool = False

    @property
    def words(self) -> str:
        below = "above" if self.open_below else "of at least"
        above = "" if self.maximum == math.inf else f" and at most {self.maximum:g}"
        return f"a number {below} {self.minimum:g}{above}{' or None' if self.or_none else ''}"

    def allows(self, value: object) -> bool:
        if value is None:
            return self.or_none
        if not isinstance(value, Real) or not _is_number(value):
            return False
        number = float(value)
        return (self.minimum < number if self.open_below else self.minimum <= number) and number <= self.maximum


@dataclass(frozen=True)
class OneOf:
    """One of several words."""

    choices: tuple[str, ...]

    @property
    def words(self) -> str:
        return f"one of {', '.join(map(repr, self.choices))}"

    def allows(self, value: object) -> bool:
        return isinstance(value, str) and value in self.choices


@dataclass(frozen=True)
class Predicate:
    """A value that passes a test; `words` say what the test wants."""

    words: str
    test: Callable[[object], bool]

    def allows(self, value: object) -> bool:
        return self.test(value)


@dataclass(frozen=True)
class Option:
    """A parameter on the command line.

    `reads` is a key of the table of readers in `symenum.cli.options`: how text becomes a value. `repeated`: the option
    may be given several times.
    """

    flag: str
    help: str | None = None
    metavar: str | None = None
    reads: str = "text"
    repeated: bool = False


@dataclass(frozen=True)
class Parameter:
    """A parameter of PSERegressor.

    `meaning` is its line in the docstring and in the docs, `page` the page of the docs that this line links to. A
    parameter without a `constraint` is checked by the module that uses it. `fixed`: it decides what the search does, so
    it cannot change when a search goes on. `stored`: a checkpoint holds it.
    """

    name: str
    default: object
    meaning: str
    constraint: Constraint | None = None
    options: tuple[Option, ...] = ()
    page: str | None = None
    fixed: bool = True
    stored: bool = True


def _is_number(value: object) -> bool:
    # By comparison: a whole number beyond the doubles would make math.isfinite raise an error.
    return isinstance(value, Real) and not isinstance(value, bool) and bool(abs(value) <= sys.float_info.max)  # type: ignore[operator]


def _is_range(value: object) -> bool:
    if isinstance(value, str) or not isinstance(value, Iterable):
        return False
    ends = list(value)
    return len(ends) == 2 and all(map(_is_number, ends)) and ends[0] < ends[1]


def _is_callbacks(value: object) -> bool:
    return value is None or callable(value) or (isinstance(value, Iterable) and all(map(callable, value)))


def _is_shares(value: object) -> bool:
    if not isinstance(value, Mapping):
        return value is None
    return all(isinstance(name, str) for name in value) and all(map(_is_number, value.values()))


def _is_units(value: object) -> bool:
    return value is None or value == "names" or isinstance(value, Mapping)


_TRUE_OR_FALSE = Predicate("True or False", lambda value: isinstance(value, bool))

# In the order of `PSERegressor.__init__`.
_ROWS = (
    Parameter(
        "operators",
        "koza",
        'a set\'s name ("koza", "arithmetic", …), or a list of signs, names and Operator records',
        options=(Option("--operators", 'A set\'s name, or a list such as "+,*,sin".'),),
        page="operators.md",
    ),
    Parameter(
        "max_time",
        60.0,
        "seconds after which the search ends, or None for no limit",
        Number(0.0, open_below=True, or_none=True),
        (Option("--max-time", "Seconds to search, or 'none'.", "SECONDS", "seconds"),),
        page="stopping.md",
        fixed=False,
    ),
    Parameter(
        "max_iterations",
        None,
        "steps after which the search ends, or None for no limit; with a seed and only this limit, results repeat "
        "exactly",
        WholeNumber(1, or_none=True),
        (Option("--max-iterations", "Steps to search."),),
        page="stopping.md",
        fixed=False,
    ),
    Parameter(
        "stop_loss",
        None,
        "the loss at which the search ends; None: it ends at a law that equals the data up to rounding",
        Predicate("a finite number or None", lambda value: value is None or _is_number(value)),
        (Option("--stop-loss", "Loss that is good enough to end the search.", "NUMBER", "number"),),
        page="stopping.md",
        fixed=False,
    ),
    Parameter(
        "layers",
        None,
        "number of layers of the network; None: chosen from the data, the operators and the machine",
        WholeNumber(1, or_none=True),
        (Option("--layers", "Layers of the network. [default: chosen]"),),
    ),
    Parameter(
        "inputs",
        None,
        "number of inputs of the network; None: chosen like the layers. `plan_` says what was chosen",
        WholeNumber(1, or_none=True),
        (Option("--inputs", "Inputs of the network. [default: chosen]"),),
    ),
    Parameter(
        "token_generator",
        "gp",
        '"gp", "mcts", "random", or the name of a registered one',
        options=(Option("--token-generator", "gp, mcts, random, or one of a --plugin."),),
        page="../how-it-works.md",
    ),
    Parameter(
        "constants",
        True,
        'whether laws may hold fitted constants; or named constants such as {"g": 9.81}, or names of constants of '
        'nature such as ["c", "k_B"], which laws show by their names (fitted ones are allowed too)',
        Predicate(
            "True or False, a mapping such as {'g': 9.81}, or names such as ['c', 'k_B']",
            lambda value: isinstance(value, (bool, Mapping, list, tuple)),
        ),
        (
            Option("--constants/--no-constants", "Whether laws may hold constants.", reads="switch"),
            Option("--constant", "A constant to appear by its name.", "NAME=NUMBER|NAME", "constants", repeated=True),
        ),
        page="knowledge.md",
    ),
    Parameter(
        "constant_range",
        (-3.0, 3.0),
        "the range (low, high) from which constants inside tokens are drawn",
        Predicate("a pair (low, high) of numbers with low < high", _is_range),
    ),
    Parameter(
        "top_k",
        30,
        "candidates of each pass whose coefficients are fitted",
        WholeNumber(1),
        (Option("--top-k", "Candidates kept of each pass."),),
    ),
    Parameter("discount", 0.99, "η of the reward η^complexity / (1 + √MSE)", Number(0.0, 1.0, open_below=True)),
    Parameter(
        "max_complexity",
        50,
        "largest complexity of a law on the front",
        WholeNumber(1),
        (Option("--max-complexity", "Of a law."),),
    ),
    Parameter(
        "max_depth",
        None,
        "largest depth of a law on the front: how many operators may stand inside one another",
        WholeNumber(1, or_none=True),
        (Option("--max-depth", "Of a law: operators inside one another."),),
        page="knowledge.md",
    ),
    Parameter(
        "nested_constraints",
        None,
        'how often an operator may occur inside another, such as {"sin": {"sin": 0, "cos": 0}}',
        page="knowledge.md",
    ),
    Parameter(
        "constraints",
        None,
        'the largest complexity of what an operator acts on, such as {"pow": (-1, 1), "sin": 5}; -1 for any',
        page="knowledge.md",
    ),
    Parameter(
        "complexity_of_operators",
        None,
        'what operators add to complexity, such as {"sin": 5}; the others keep their own weights',
        options=(Option("--complexity-of-operators", "What operators cost.", "NAME=NUMBER", "weights", repeated=True),),
        page="knowledge.md",
    ),
    Parameter(
        "complexity_of_constants",
        None,
        "what each number adds to complexity; None: nothing",
        WholeNumber(0, or_none=True),
        (Option("--complexity-of-constants", "What each number costs. [default: 0]"),),
        page="knowledge.md",
    ),
    Parameter(
        "complexity_of_variables",
        None,
        'what each variable adds to complexity, a number or a mapping such as {"x1": 2}; None: nothing',
        page="knowledge.md",
    ),
    Parameter(
        "variable_operators",
        None,
        'the only operators that may act on a variable and on what holds it, such as {"angle": ["sin", "cos", "*"]}; '
        "numbers may scale and shift it in any case",
        page="knowledge.md",
    ),
    Parameter(
        "required_variables",
        None,
        "names of variables that every law must hold",
        options=(Option("--require", "Variables that every law must have.", "A,B,…", repeated=True),),
        page="knowledge.md",
    ),
    Parameter("forbidden_variables", None, "names of variables that no law may hold", page="knowledge.md"),
    Parameter(
        "units",
        None,
        'the units of all columns and of the target, such as {"v": "m/s", "m": "kg", "E": "J"}; or "names", where the '
        "columns are called speed [m/s], mass (kg). Only laws of the target's unit are found",
        Predicate("a mapping such as {'v': 'm/s'}, 'names' or None", _is_units),
        (Option("--units", "Of a column or the target; or the word names.", "NAME=UNIT", "units", repeated=True),),
        page="knowledge.md",
    ),
    Parameter(
        "dimensional_constants",
        False,
        "with units: whether fitted constants may have the unit that is missing at their place; else they are plain "
        "numbers",
        _TRUE_OR_FALSE,
        (
            Option(
                "--dimensional-constants/--plain-constants", "With --units: constants may have units.", reads="switch"
            ),
        ),
        page="knowledge.md",
    ),
    Parameter(
        "template",
        None,
        'a law that is known in part, such as "a*f(x1)*g(x2, x3) + h(x1)": functions that no operator is called by are '
        "found, names that are no variables are fitted",
        Predicate("a text such as 'a*f(x1) + g(x2)' or None", lambda value: value is None or isinstance(value, str)),
        (Option("--template", "A law known in part, such as 'f(x1)*g(x2)'.", "FORMULA"),),
        page="knowledge.md",
    ),
    Parameter(
        "shape",
        None,
        'what is known of how laws behave, such as {"x1": "increasing", "x2": "convex", "y": "positive"}, or a list of '
        'conditions such as ["f(0) = 0", "f -> 1 for x1 -> inf"]; `equations_` says of each law whether it is proved',
        options=(Option("--shape", "Such as x1=increasing, y=0..1 or 'f(0) = 0'.", "TEXT", "shape", repeated=True),),
        page="knowledge.md",
    ),
    Parameter(
        "shape_box",
        None,
        'where `shape` must hold, such as {"x1": (0, 10)}; of other variables, where the data are',
        options=(Option("--shape-box", "Where it must hold.", "NAME=LOW..HIGH", "ranges", repeated=True),),
        page="knowledge.md",
    ),
    Parameter(
        "groups",
        None,
        "the name of a column that says which group a row is of: one form for all groups, and constants of their own "
        "where groups differ; `constants_` has them",
        Predicate("a column's name or None", lambda value: value is None or isinstance(value, str)),
        (Option("--group", "A column of groups, each with constants of its own.", "COLUMN"),),
        page="knowledge.md",
    ),
    Parameter(
        "select_k_features",
        None,
        "the number of variables to search with, those that matter most to a random forest; None: all",
        WholeNumber(1, or_none=True),
        (Option("--select-k-features", "Search with the variables that matter most only."),),
        page="knowledge.md",
    ),
    Parameter(
        "denoise",
        False,
        "whether y is smoothed by a Gaussian process before the search; losses are then those of the smooth y",
        _TRUE_OR_FALSE,
        (Option("--denoise/--no-denoise", "Smooth the target before the search.", reads="switch"),),
        page="knowledge.md",
    ),
    Parameter(
        "guesses",
        None,
        'formulas to begin with, such as "a*x1**2 + b"; names that are no variables are constants to be fitted',
        options=(Option("--guess", 'A law to begin with, such as "a*x**2 + b".', "FORMULA", repeated=True),),
        page="knowledge.md",
    ),
    Parameter(
        "loss",
        "mse",
        'what laws are fitted and ranked by: "mse", "mae", "huber", "log_cosh", "relative" (the mean square of '
        "(prediction - y)/y), a callable (y, prediction) or (y, prediction, weights) that returns one number, or Huber "
        "or LogCosh of symenum.fitting.losses with a scale of its own. Scans are least squares, whatever the loss is",
        options=(Option("--loss", "mse, mae, huber, log_cosh or relative."),),
        page="knowledge.md",
    ),
    Parameter(
        "model_selection",
        "evidence",
        '"evidence" (the most probable law; with validation data, "validation"), "best" (PySR\'s rule; the same), '
        '"accuracy", "reward", "mdl", "validation" (the simplest of the laws that do best on validation data) or '
        '"kfold" (the same by cross-validation)',
        OneOf(("evidence", "best", "accuracy", "reward", "mdl", "validation", "kfold")),
        (Option("--model-selection", "How the law is chosen from the front."),),
        page="choosing.md",
        fixed=False,
    ),
    Parameter(
        "device",
        "auto",
        '"auto", "cpu", "cuda" or "cuda:1"; "auto" takes a GPU for large passes, where there is one',
        options=(Option("--device", "auto, cpu, cuda or cuda:1; see symenum devices."),),
        page="machines.md",
        fixed=False,
    ),
    Parameter(
        "random_state",
        None,
        "a seed, a RandomState, or None",
        options=(Option("--seed", "For results that repeat; also set --max-iterations.", reads="seed"),),
        stored=False,
    ),
    Parameter(
        "verbose",
        False,
        "show the search: a live table on a terminal, an output in a notebook, lines elsewhere",
        Predicate("True, False or a whole number", lambda value: isinstance(value, (bool, Integral))),
        page="watching.md",
        fixed=False,
    ),
    Parameter(
        "callbacks",
        None,
        "a callable, or several, that get a StepReport after each step; one that returns True ends the search",
        Predicate("a callable, a sequence of callables, or None", _is_callbacks),
        page="watching.md",
        fixed=False,
        stored=False,
    ),
    Parameter(
        "checkpoint",
        None,
        "a file that is kept up to date while the search runs; `resume` goes on from it",
        Predicate("a file's path or None", lambda value: value is None or isinstance(value, (str, Path))),
        (Option("--checkpoint", "File to keep the search in, for symenum resume. [default: in --out]", reads="file"),),
        page="stopping.md",
        fixed=False,
        stored=False,
    ),
    Parameter(
        "run_dir",
        None,
        "a folder that holds the whole run, alive and afterwards: problem, steps, laws, checkpoint and results; "
        "`resume` goes on from it, and `symenum studio` shows it",
        Predicate("a folder's path or None", lambda value: value is None or isinstance(value, (str, Path, RunPlace))),
        page="run-folder.md",
        fixed=False,
        stored=False,
    ),
    Parameter(
        "warm_start",
        False,
        "whether another `fit` starts from the front of the last one, and on the same data from where it ended",
        _TRUE_OR_FALSE,
        page="stopping.md",
        fixed=False,
        stored=False,
    ),
    Parameter(
        "max_memory",
        None,
        'bytes that the search may take, a number or a text such as "2GB"; None: chosen from the machine\'s memory',
        options=(Option("--max-memory", "Such as 2GB. [default: from the machine]", "SIZE", "size"),),
        page="machines.md",
        fixed=False,
    ),
    Parameter(
        "missing",
        "auto",
        'rows with missing cells: "drop" leaves them out, and a warning counts them; "impute" puts the median of its '
        'column in place of a missing cell of X; "error" refuses them; "auto" is "drop" for a DataFrame and "error" '
        "for an array",
        OneOf(("auto", "error", "drop", "impute")),
        page="table.md",
        fixed=False,
    ),
    Parameter(
        "shares",
        None,
        'how the search divides its time, such as {"network": 0.5, "reductions": 0}: of the network the least part, of '
        "any other move the factor that it counts with (1 for most); 0 leaves a move out. `schedule_` has the names",
        Predicate("a mapping from names of moves to numbers, or None", _is_shares),
        (Option("--share", "Of a move, see --explain.", "MOVE=NUMBER", "shares", repeated=True),),
        page="../how-it-works.md",
    ),
    Parameter(
        "sanity",
        "on",
        'whether laws that no scientist would print stay off the front: "on", "allow_poles" (poles and undefined '
        'points among the data are allowed), or "off" (everything is); `refused_` counts those kept off',
        OneOf(("on", "allow_poles", "off")),
        (Option("--sanity", "Whether absurd laws stay off the front."),),
        page="choosing.md",
    ),
    Parameter(
        "cluster",
        None,
        'where the search runs: an address such as "tcp://host:8786" (Dask) or "ray://host:10001", a number of '
        "processes on this machine, a Dask client or cluster, or an executor of concurrent.futures; None: in this "
        "process",
        Predicate(CLUSTER_WORDS, names_a_cluster),
        (Option("--cluster", "Address such as tcp://host:8786, or a number of processes here.", "ADDRESS"),),
        page="cluster.md",
        fixed=False,
        stored=False,
    ),
)

PARAMETERS: Mapping[str, Parameter] = {parameter.name: parameter for parameter in _ROWS}
"""By name, in the order of `PSERegressor.__init__`."""


_ONE_LIST = 'operators holds them all, such as operators=["+", "*", "sin"]'
_NOT_BRED = "nothing takes its place, since laws are enumerated and not bred"
# PySR's words that are others here, by our parameter.
_RENAMED_OF_PYSR = {
    "niterations": "max_iterations",
    "timeout_in_seconds": "max_time",
    "early_stop_condition": "stop_loss",
    "maxsize": "max_complexity",
    "maxdepth": "max_depth",
    "elementwise_loss": "loss",
    "loss_function": "loss",
    "verbosity": "verbose",
    "heap_size_hint_in_bytes": "max_memory",
}
# Those that have no counterpart, or another form, and what to know instead.
_OTHERS_OF_PYSR = {
    "binary_operators": _ONE_LIST,
    "unary_operators": _ONE_LIST,
    "extra_sympy_mappings": "operators of your own are made with make_operator",
    "populations": _NOT_BRED,
    "population_size": _NOT_BRED,
    "parsimony": _NOT_BRED,
    "ncycles_per_iteration": _NOT_BRED,
}


def knows_words_of_pysr(make: Make) -> Make:
    """An `__init__` with the same signature, whose TypeError for a word of PySR's says the word for it here.

    A word that is a parameter of PSERegressor, and none of this estimator, is answered with where it is to be found.
    """
    own = frozenset(signature(make).parameters)

    @wraps(make)
    def checked(self: object, *values: object, **named: object) -> None:
        for name in named:
            answer = None if name in own else _answer_to_pysr(name, own)
            if answer is not None:
                raise TypeError(f"{type(self).__name__} has no parameter {name!r}: {answer}")
        make(self, *values, **named)

    return cast(Make, checked)


def _answer_to_pysr(name: str, own: Collection[str]) -> str | None:
    """What to say to a parameter that an estimator with its `own` parameters does not have; None: nothing is known."""
    ours = _RENAMED_OF_PYSR.get(name, name)
    if ours in own:
        return f"it is {ours}"
    if ours in PARAMETERS:
        return f"it is {'one' if ours == name else ours} of PSERegressor, and nothing takes its place here"
    return _OTHERS_OF_PYSR.get(name)


def as_callbacks(value: Callable[..., object] | Iterable[Callable[..., object]] | None) -> list[Callable[..., object]]:
    """The callables of the parameter `callbacks`, which may be one, several or none."""
    return [value] if callable(value) else list(value or ())


def check_parameters(values: Mapping[str, object]) -> None:
    """Raise an error for the first value that its row of the table does not allow; names without a row are ignored."""
    for name, parameter in PARAMETERS.items():
        constraint = parameter.constraint
        if name in values and constraint is not None and not constraint.allows(values[name]):
            raise ValueError(f"{name} must be {constraint.words}, not {values[name]!r}")
    limits = (values["max_time"], values["max_iterations"])
    if limits == (None, None) and not as_callbacks(values["callbacks"]):  # type: ignore[arg-type]
        raise ValueError("max_time and max_iterations are both None: the search would not end; give one of them")


def markdown_table() -> str:
    """The table of docs/guide/table.md: name with default, and meaning."""
    lines = ["| parameter | meaning |", "| --- | --- |"]
    for parameter in PARAMETERS.values():
        default = f'"{parameter.default}"' if isinstance(parameter.default, str) else f"{parameter.default}"
        more = "" if parameter.page is None else f" ([more]({parameter.page}))"
        lines.append(f"| `{parameter.name}={default}` | {parameter.meaning}{more} |")
    return "\n".join(lines)
