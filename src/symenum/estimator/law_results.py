"""What a fitted estimator says of its laws: values, formulas, tables, errors, reports, files. Nothing is searched here.

`PSERegressor` is this with a search before it; a model that was loaded from a file has only this.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, cast, overload

import numpy as np
import numpy.typing as npt
import pandas
import sympy
import torch
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from symenum.core.files import write_whole
from symenum.core.seeds import sample_rows
from symenum.core.target import Training
from symenum.display.confidence import confidence_lines, exhausted_line
from symenum.display.figures import summarise_data
from symenum.display.latex import latex_table
from symenum.display.notebook import front_html
from symenum.display.report import ReportContent, report_page, run_facts
from symenum.display.table import LawRow, equations_table, rows_of, short_text, terminal_width, text_table
from symenum.estimator.data import check_rows, make_training
from symenum.estimator.formulas import (
    FittedForm,
    check_constants,
    compare_with_front,
    constant_errors,
    fit_form,
    read_form,
)
from symenum.estimator.grouped_files import group_lines, groups_document, read_groups
from symenum.estimator.grouped_fit import GroupedModel, grouped_equations, not_for_groups
from symenum.estimator.persistence import json_parameters, open_saved
from symenum.estimator.saved_results import Origin, Result, RunSummary, files_of_a_run, stated_confidence, write_results
from symenum.estimator.several_targets import index_of_each, of_each_target, one_target_only
from symenum.estimator.shape_text import read_shape
from symenum.estimator.units import read_units, unit_lines
from symenum.expressions import (
    Expression,
    ExpressionModule,
    evaluate,
    to_c,
    to_jax,
    to_latex,
    to_numpy_source,
    to_python,
    to_sympy,
    to_torch,
    written,
)
from symenum.expressions.candidate import Candidate
from symenum.expressions.render import SHOWN_DIGITS
from symenum.fitting.losses import make_loss
from symenum.front import Front
from symenum.operators import get_operators
from symenum.sanity import Policy
from symenum.search.exhausted import exhaust
from symenum.selection import (
    DEFAULT_RULE,
    Alternative,
    alternatives_by_noise,
    find_alternatives,
    make_band,
    make_verdict,
    noise_around,
    noise_may_grow,
)
from symenum.selection.growing_noise import NoiseAround

__all__ = ["LawResults"]

Array = npt.NDArray[np.float64]

_EXPORTS = ("python", "numpy", "jax", "torch", "c")
_POLICY_ROWS = 20_000  # rows that the policy looks at for alternatives, drawn at random: as many as the evidence does


class _OfASearch:
    """An attribute that a search sets, and no file holds: where a model was loaded, an error says so."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, model: object, owner: type) -> Any:
        if model is None:
            return self
        message = f"'{owner.__name__}' object has no attribute '{self.name}'"
        if hasattr(model, "front_"):
            message += ": it tells how a search went, and this model was loaded from a file, which holds the laws only"
        raise AttributeError(message, name=self.name, obj=model)


class LawResults(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """The part of `PSERegressor` that reads the result of a search; its parameters are those of `PSERegressor`."""

    n_iter_: int
    scored_: int
    elapsed_: float
    interrupted_: bool
    stop_reason_: str
    plan_: str
    training_: Training
    grouped_: GroupedModel
    estimators_: list[Any]
    target_names_: tuple[str, ...]
    variable_names_: tuple[str, ...]
    schedule_: pandas.DataFrame = cast(Any, _OfASearch())
    refused_: dict[str, int] = cast(Any, _OfASearch())
    _noise_is_known = False  # whether the fit was told how large the errors of the rows are
    _confidence: tuple[str, ...] | None = None  # the sentences of `confidence`, once they are known
    _origin = Origin()  # of a model that was loaded: where the table came from, and how it was read
    target_name_ = "y"  # until a fit sets it, and in models that were pickled before it was there

    # Parameters that are looked at here.
    operators: Any
    constants: Any
    loss: Any
    model_selection: str
    random_state: Any
    sanity: str
    shape: Any
    shape_box: Any

    @classmethod
    def load(cls, path: str | Path, **changes: Any) -> Any:
        """The fitted estimator that `save` or `symenum fit --out` has written, or a checkpoint; nothing is searched.

        `path`: the folder, its model.json, or a checkpoint. Operators of your own, and a loss that is a callable, must
        be given again as `changes`, since files hold no code. The rows of the fit come with a checkpoint only; without
        them `uncertainties` and `score_expression` need X and y.
        """
        names = cls._get_param_names()
        unknown = set(changes) - set(names)
        if unknown:
            raise ValueError(f"changes: {cls.__name__} has no parameter {', '.join(sorted(unknown))}")
        saved = open_saved(Path(path), changes, names)
        model = cls(**saved.parameters)
        model.variable_names_ = saved.names
        model.n_features_in_ = len(saved.names)
        model.target_name_ = saved.target
        if saved.columns is not None:
            model.feature_names_in_ = np.array(saved.columns, dtype=object)
        if saved.training is not None:
            model.training_ = saved.training
        model.plan_, model.stop_reason_, model.interrupted_ = saved.run.plan, saved.stop_reason, saved.interrupted
        model.n_iter_, model.scored_, model.elapsed_ = saved.run.steps, saved.run.scored, saved.run.elapsed
        if saved.groups is None:
            model._set_front(saved.front, saved.selected, None)
        else:
            model._set_groups(read_groups(saved.groups, saved.front), saved.selected, saved.front)
        model._confidence = saved.confidence
        model._origin = saved.origin
        return model

    @one_target_only
    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the result to a folder: model.json, which `load` reads, front.csv, law.txt, law.tex and law.py.

        The files are plain data; only law.py is code, for you to use. A folder that holds a run of symenum is an error
        (FileExistsError) unless `overwrite`.
        """
        check_is_fitted(self, "front_")
        folder = Path(path)
        taken = files_of_a_run(folder)
        if taken and not overwrite:
            raise FileExistsError(f"'{folder}' holds {taken[0]} already: name another folder, or give overwrite=True")
        if folder.exists() and not folder.is_dir():
            raise FileExistsError(f"'{folder}' is a file: name a folder")
        folder.mkdir(parents=True, exist_ok=True)
        grouped: GroupedModel | None = getattr(self, "grouped_", None)
        names = self.variable_names_ if grouped is None else grouped.all_names
        columns = getattr(self, "feature_names_in_", [None] * len(names))
        settings = json_parameters(self.get_params(deep=False))
        if isinstance(self.random_state, (int, np.integer)):
            settings["random_state"] = int(self.random_state)
        result = Result(
            self.target_name_,
            names,
            tuple(None if column is None else str(column) for column in columns),
            rows_of(self.front_),
            self.selected_index_,
            settings,
            self.stop_reason_,
            self.interrupted_,
            self.front_.rows,
            self._origin.source,
            RunSummary.of(self),
            self._origin.errors,
            self._stated_confidence(),
            self._origin.encoding,
            None if grouped is None else groups_document(grouped),
        )
        write_results(folder, result)

    @overload
    def predict(
        self, X: object, index: int | Sequence[int] | None = None, *, return_std: Literal[False] = False
    ) -> Array: ...
    @overload
    def predict(
        self, X: object, index: int | Sequence[int] | None = None, *, return_std: bool
    ) -> Array | tuple[Array, Array]: ...

    def predict(
        self, X: object, index: int | Sequence[int] | None = None, *, return_std: bool = False
    ) -> Array | tuple[Array, Array]:
        """The law's values (rows,) for X (rows, features); `index` picks another row of `equations_`.

        With several targets the values are (rows, targets), and `index` may be a list.

        Where the law is not defined, the value is NaN or infinite. With `return_std` also the standard deviations
        (rows,) of these values around the true ones: from the errors of the constants, from `alternatives_`, and from
        what the residuals show that the law has missed. The noise of a new measurement is not in them.
        """
        check_is_fitted(self, "front_")
        if hasattr(self, "grouped_"):
            if return_std:
                raise ValueError("return_std is not for a model with groups")
            self._expression(cast(int | None, index))  # raises an error if there is no such row
            return self.grouped_.predict(X, self.selected_index_ if index is None else cast(int, index))
        if hasattr(self, "estimators_"):
            each = index_of_each(index, len(self.estimators_))
            columns_of = [
                one.predict(X, row, return_std=return_std) for one, row in zip(self.estimators_, each, strict=True)
            ]
            if return_std:
                means, deviations = zip(*columns_of, strict=True)
                return np.column_stack(means), np.column_stack(deviations)
            return np.column_stack(columns_of)
        rows = check_rows(self, X)
        columns = {name: np.ascontiguousarray(rows[:, i]) for i, name in enumerate(self.variable_names_)}
        law = self._expression(cast(int | None, index))
        predicted: Array = evaluate(law, columns)
        if not return_std:
            return predicted
        alternatives = self._alternatives_of_best() if law == self.best_expression_ else self._find_alternatives(law)
        band = make_band(law, alternatives, self.training_, self._noise_around(law))
        return predicted, band.std({name: torch.tensor(column) for name, column in columns.items()})

    @property
    def alternatives_(self) -> pandas.DataFrame:
        """The laws that the data cannot tell from the chosen one, of all that the search has kept; by falling weight.

        A weight is the probability that the law is the right one, if one of these is; a law is its form, whatever the
        digits of its constants and the way to write it. A law is left out if it is 20 times less probable than the
        chosen one, or if `sanity` refuses it.
        """
        check_is_fitted(self, "front_")
        if hasattr(self, "grouped_"):
            raise ValueError("alternatives_ is not for a model with groups: see equations_ and constants_")
        found = self._alternatives_of_best()
        laws = [LawRow(one.law.expression, one.law.complexity, one.law.loss, 0.0, 0.0) for one in found]
        table = equations_table(laws, self.variable_names_).drop(columns=["score", "reward"])
        table.insert(0, "weight", [one.weight for one in found])
        return table

    @one_target_only
    def confidence(self) -> list[str]:
        """How sure the choice is, in sentences, as `symenum fit` prints them.

        They say whether other laws explain the data as well, whether any law is better than the mean and than a
        straight line, and which laws were ruled out for certain: for this all laws a*f + b with f of a few operators
        are tried, which may take a second. A saved result has the sentences with it.
        """
        check_is_fitted(self, "front_")
        if self._confidence is None:
            self._confidence = tuple(self._find_confidence())
        return list(self._confidence)

    def _stated_confidence(self) -> tuple[str, ...] | None:
        """What files say of how sure the choice is; None where the rows of the fit are not there to tell."""
        if self._confidence is None and not hasattr(self, "training_"):
            return None
        return stated_confidence(self, self.model_selection)

    def _find_confidence(self) -> list[str]:
        training = self._training_of_fit("confidence()")
        loss = make_loss(self.loss, training.target)
        law, alternatives = self.best_expression_, self._alternatives_of_best()
        noise = self._noise_around(law)
        rows = training if noise is None else noise.weigh(training)
        verdict = make_verdict(law, alternatives, rows, self.front_.floor, loss, noise_grows=noise is not None)
        lines = confidence_lines(verdict)
        found = exhaust(training, get_operators(self.operators)) if loss.is_squared and not verdict.exact else None
        return lines if found is None else [*lines, exhausted_line(found)]

    @of_each_target
    def shape_lines(self, index: int | None = None) -> list[str]:
        """Whether a law is proved to keep `shape`, in a sentence; empty where nothing is known of it."""
        law = self._expression(index)
        if "shape" not in self.equations_.columns:
            return []
        mark = str(self.equations_["shape"].iloc[self.selected_index_ if index is None else index])
        shown = f"The shape is {mark}" if mark == "proved" else f"The shape of {short_text(law)}: {mark}"
        return [f"{shown}."]

    @of_each_target
    def unit_lines(self, index: int | None = None) -> list[str]:
        """Which units a law is in, in sentences; with `dimensional_constants` also those of its numbers.

        Empty where the model has no `units`.
        """
        law, names = written(self._expression(index)), self.variable_names_
        labels = getattr(self, "feature_names_in_", names)
        if hasattr(self, "grouped_"):  # its constants are numbers like others: those of the first group
            names = labels = self.grouped_.names
            law = written(self.grouped_.of_group(self.selected_index_ if index is None else index, 0))
        units = read_units(self, names, [str(label) for label in labels], self.target_name_, ())
        return [] if units is None else unit_lines(law, units, self.target_name_)

    @of_each_target
    def get_best(self, index: int | None = None) -> pandas.Series:
        """The chosen row of `equations_`, or that of another index."""
        self._expression(index)
        return self.equations_.iloc[self.selected_index_ if index is None else index]

    @of_each_target
    def sympy(self, index: int | None = None) -> sympy.Expr:
        """The law as a SymPy expression."""
        return to_sympy(self._expression(index))

    @of_each_target
    def latex(self, index: int | None = None, precision: int = SHOWN_DIGITS) -> str:
        """The law in LaTeX, constants to so many significant digits."""
        return to_latex(written(self._expression(index)), precision)

    @of_each_target
    def latex_table(
        self,
        indices: Iterable[int] | None = None,
        precision: int = SHOWN_DIGITS,
        columns: Sequence[str] = ("equation", "complexity", "loss", "score"),
    ) -> str:
        """The front, or some rows of it, as a LaTeX table (packages amsmath and booktabs)."""
        check_is_fitted(self, "front_")
        laws = rows_of(self.front_)
        chosen = range(len(laws)) if indices is None else list(indices)
        for i in chosen:
            self._expression(i)  # raises an error if there is no such row
        rows = [laws[i] for i in chosen]
        return latex_table(rows, target=self.target_name_, precision=precision, columns=columns)

    @overload
    def export(self, language: Literal["torch"], index: int | None = None) -> ExpressionModule: ...
    @overload
    def export(self, language: Literal["python", "numpy", "jax", "c"], index: int | None = None) -> str: ...
    @overload
    def export(self, language: str, index: int | None = None) -> str | ExpressionModule: ...

    @of_each_target
    def export(self, language: str, index: int | None = None) -> str | ExpressionModule:
        """The law as source text ("python", "numpy", "jax", "c") or as a torch module ("torch")."""
        expression, names = self._expression(index), self.variable_names_
        if hasattr(self, "grouped_"):
            law = self.grouped_.laws[self.selected_index_ if index is None else index]
            names = (*self.grouped_.names, *law.names)
        if language == "python":
            return to_python(expression, names)
        if language == "numpy":
            return to_numpy_source(expression, names)
        if language == "jax":
            return to_jax(expression, names)
        if language == "c":
            return to_c(expression, names)
        if language == "torch":
            return to_torch(expression, names)
        raise ValueError(f"language must be one of {', '.join(map(repr, _EXPORTS))}, not {language!r}")

    @not_for_groups
    @one_target_only
    def score_expression(
        self,
        formula: str | Expression,
        X: object = None,
        y: object = None,
        sample_weight: object = None,
        *,
        start: Mapping[str, float | None] | None = None,
        fit_numbers: bool = False,
    ) -> FittedForm:
        """Loss, complexity and R² of a formula of your own, on the rows of the search or on X and y.

        Names in it that are neither variables nor named constants are fitted, numbers are not (see
        `symenum.fit_constants`). Without X and y the result also says where the formula would stand on the front.

        >>> import numpy as np
        >>> from symenum import PSERegressor
        >>> x = np.linspace(1, 3, 30)[:, None]
        >>> model = PSERegressor(max_iterations=3, random_state=0).fit(x, 2 * x[:, 0] ** 3)
        >>> guess = model.score_expression("a*x1**2")
        >>> guess.complexity, guess.on_front, round(guess.r2, 3)
        (3, False, 0.929)
        """
        check_is_fitted(self, "front_")
        training = self._training(X, y, sample_weight)
        declared = check_constants(self.constants, training.columns)
        operators = get_operators(self.operators)
        form = read_form(formula, training.columns, declared, operators, start=start, fit_numbers=fit_numbers)
        result = fit_form(form, training, make_loss(self.loss, training.target))
        result = replace(result, complexity=self.front_.complexity_of(result.expression))
        return compare_with_front(result, self.front_) if X is None else result

    @not_for_groups
    @of_each_target
    def uncertainties(
        self, index: int | None = None, X: object = None, y: object = None, sample_weight: object = None
    ) -> pandas.DataFrame:
        """The numbers of a law that are not integers, from left to right, with their standard errors.

        The errors come from the Fisher information of a fit of all these numbers at once, with σ² from the residuals,
        on the rows of the search or on X and y. Where the data do not determine a number, its error is infinite.
        """
        expression = self._expression(index)
        training = self._training(X, y, sample_weight)
        noise = self._noise_around(expression) if X is None else None
        training = training if noise is None else noise.weigh(training)
        return constant_errors(expression, training, make_loss(self.loss, training.target))

    @one_target_only
    def report(self, path: str | Path, X: object = None, y: object = None, *, errors: bool = False) -> None:
        """Write a page for the browser: the law, the front, plots of the fit, the data and how the search went.

        It is one HTML file that loads nothing else. It shows the data of the fit, or X and y if given; with `errors`
        also the standard errors of the law's constants.
        """
        check_is_fitted(self, "front_")
        if not isinstance(path, (str, Path)):
            raise TypeError(f"path must be the name of a file, such as 'report.html', not {type(path).__name__}")
        content = ReportContent(
            self.target_name_,
            rows_of(self.front_),
            self.selected_index_,
            summarise_data(self, X, y),
            run_facts(self.stop_reason_, self.elapsed_, self.n_iter_, self.scored_, self.plan_),
            self.get_params(deep=False),
            squared=self.loss == "mse",
            errors=[tuple(row) for row in self.uncertainties(None, X, y).to_numpy().tolist()] if errors else None,
            confidence=(
                *(self._stated_confidence() or ()),
                *self.shape_lines(),
                *self.unit_lines(),
                *self._group_lines(),
            ),
            weighted_by_errors="chi_square" in self.equations_.columns,
        )
        write_whole(Path(path), report_page(content))

    def __str__(self) -> str:
        if not hasattr(self, "front_"):
            return repr(self)
        if hasattr(self, "estimators_"):
            return "\n\n".join(
                f"{name} =\n{one}" for name, one in zip(self.target_names_, self.estimators_, strict=True)
            )
        return text_table(rows_of(self.front_), self.selected_index_, width=terminal_width())

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """What a notebook shows: the front; before a fit, scikit-learn's diagram of the parameters."""
        if not hasattr(self, "front_"):
            shown: dict[str, str] = super()._repr_mimebundle_(**kwargs)
            return shown
        table = front_html(rows_of(self.front_), self.selected_index_, self.target_name_)
        return {"text/plain": str(self), "text/html": table}

    def _set_front(self, front: Front, selected: int, held_out_losses: Sequence[float] | None) -> None:
        """Set the attributes that show the laws of a front, of which row `selected` is chosen."""
        self.front_: Front = front
        self.selected_index_ = selected
        self.best_expression_ = written(front[selected].expression)
        self.equations_: pandas.DataFrame = equations_table(rows_of(front), self.variable_names_, held_out_losses)
        self._kept: tuple[Candidate, ...] = tuple(front)
        self._alternatives: tuple[Alternative, ...] | None = None  # found when they are asked for,
        self._confidence = None  # and so is this
        self._origin = Origin()

    def _set_groups(self, grouped: GroupedModel, chosen: int, front: Front) -> None:
        """Set the attributes that show the laws of groups."""
        self.grouped_ = grouped
        self.front_, self.selected_index_ = front, chosen
        self.best_expression_ = written(front[chosen].expression)
        self.equations_ = grouped_equations(grouped.laws)
        self.constants_: pandas.DataFrame = grouped.constants(chosen)
        self.variable_names_ = (*grouped.names, *grouped.laws[chosen].names)
        self.n_features_in_ = len(grouped.names) + 1
        self.__dict__.pop("feature_names_in_", None)
        self._kept, self._alternatives, self._confidence, self._origin = tuple(front), (), (), Origin()

    def _group_lines(self) -> list[str]:
        """The constants of the first groups, in lines for a report; empty without groups."""
        if not hasattr(self, "grouped_"):
            return []
        return group_lines(groups_document(self.grouped_), self.selected_index_)

    def _expression(self, index: int | None) -> Expression:
        check_is_fitted(self, "front_")
        if index is None:
            return self.front_[self.selected_index_].expression
        if isinstance(index, bool) or not isinstance(index, (int, np.integer)):
            raise TypeError(f"index must be a row number of equations_, not {type(index).__name__}")
        if not -len(self.front_) <= index < len(self.front_):
            raise IndexError(f"index {index} is out of range: equations_ has {len(self.front_)} rows")
        return self.front_[int(index)].expression

    def _alternatives_of_best(self) -> tuple[Alternative, ...]:
        """Those of the chosen law, found once."""
        if self._alternatives is None:
            self._alternatives = self._find_alternatives(self.best_expression_)
        return self._alternatives

    def _find_alternatives(self, law: Expression) -> tuple[Alternative, ...]:
        """The alternatives of a law; where the noise grows, with constants that suit it."""
        training = self._training_of_fit("alternatives_, or a band of predict,")
        loss = make_loss(self.loss, training.target)
        floor, on_front = self.front_.floor, {entry.expression for entry in self.front_}
        part = training.at(sample_rows(training.target.rows, _POLICY_ROWS, 0, "rows that alternatives are judged on"))
        shape = read_shape(self.shape, self.shape_box, self.variable_names_, self.target_name_, training.columns)
        policy = Policy.of(part.columns, part.target, training.columns, sanity=self.sanity, shape=shape)

        def allowed(one: Candidate) -> bool:
            return one.expression in on_front or policy.reason(one.expression, exact=one.loss <= floor) is None

        noise = self._noise_around(law)
        if noise is None:
            return find_alternatives(law, self._kept, training, floor, loss, allowed)
        return alternatives_by_noise(law, self._kept, training, noise, floor, loss, allowed)

    def _noise_around(self, law: Expression) -> NoiseAround | None:
        """The noise around a law, if the rows of the search say that it grows with the law's values.

        Only the default rule looks for such noise, and only where the user has not said how large it is.
        """
        if self.model_selection != DEFAULT_RULE or self._noise_is_known:
            return None
        training = self.training_
        if self.front_.has_law() or not noise_may_grow(training, make_loss(self.loss, training.target)):
            return None
        laws = [law, *(entry.expression for entry in self.front_)]
        return noise_around(law, laws, training, self.front_.floor)

    def _training(self, X: object, y: object, sample_weight: object) -> Training:
        """The rows of X and y, or without them those of the search."""
        if (X is None) != (y is None):
            raise ValueError("give both X and y, or neither for the rows of the search")
        if X is not None:
            values = validate_data(self, X, dtype=np.float64, reset=False)  # columns of a frame in their order
            return make_training(values, y, sample_weight, self.variable_names_)
        if not hasattr(self, "training_"):
            raise ValueError("this model has come without the rows of its search: give X and y")
        return self.training_

    def _training_of_fit(self, what: str) -> Training:
        """The rows of the search; where a model has come without them, an error says what to do for `what`."""
        if not hasattr(self, "training_"):
            raise ValueError(
                f"{what} needs the rows of the search, which model.json does not hold: fit again, or load the "
                "checkpoint of the search, which has its rows beside it (symenum fit --out results writes one: "
                "load('results/checkpoint.json'))"
            )
        return self.training_
