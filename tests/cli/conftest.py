"""Commands run in this process, with an estimator that finds what it is told to."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pandas
import pytest
from click.testing import CliRunner, Result

from symenum.cli import main
from symenum.display.schedule import schedule_table
from symenum.engine import Candidate
from symenum.expressions import parse
from symenum.front import Front
from symenum.search.state import Record, State


@dataclass
class FakeModels:
    """Makes models, and keeps what they were asked."""

    laws: tuple[tuple[str, float], ...] = (("1", 4.0), ("2.123456789*{x}", 0.5), ("{x}*{x} + sin({x})", 1e-9))
    error: BaseException | None = None
    error_before_any_step: BaseException | None = None
    between_steps: Any = None
    interrupted: bool = False
    selected_by: str = "best"
    uncertainties: Any = None
    settings: dict[str, Any] = field(default_factory=dict)
    X: Any = None
    y: Any = None
    sample_weight: Any = None
    validation: Any = None
    errors: dict[str, Any] = field(default_factory=dict)

    def __call__(self, **settings: Any) -> FakeModel:
        self.settings = settings
        return FakeModel(self)


class FakeModel:
    """Finds one law with each step."""

    def __init__(self, models: FakeModels) -> None:
        self.models = models

    def fit(self, X: Any, y: Any, sample_weight: Any = None, validation: Any = None, **errors: Any) -> FakeModel:
        models = self.models
        models.errors = errors
        models.validation = validation
        models.X, models.y, models.sample_weight = X, y, sample_weight
        if models.error_before_any_step is not None:
            raise models.error_before_any_step
        begin = time.monotonic()
        entries: tuple[Candidate, ...] = ()
        for i, (text, loss) in enumerate(models.laws):
            entries = (*entries, Candidate(parse(text.format(x=X.columns[0])), loss))
            front = Front(entries, 0.0, len(y))
            elapsed = time.monotonic() - begin
            report = SimpleNamespace(
                iteration=i + 1, stage="tokens", seconds=0.1, elapsed=elapsed, time_left=60 - elapsed,
                scored=10**9 * (i + 1), rate=2.5e8, front=front, message="3 layers on 5 inputs",
            )  # fmt: skip
            for callback in models.settings["callbacks"]:
                callback(report)
            if models.between_steps is not None:
                models.between_steps()
        if models.error is not None:
            raise models.error
        self.front_ = front
        self.elapsed_, self.n_iter_, self.scored_ = report.elapsed, report.iteration, report.scored
        self.plan_ = report.message
        record = Record("the only move", turns=len(models.laws), seconds=0.3)
        self.schedule_ = schedule_table(State(0, len(models.laws), front, records=(record,)))
        self.selected_index_ = front.select(models.selected_by)
        if errors:
            numbers = {"chi_square": 19.0, "reduced_chi_square": 0.5}
            self.equations_ = pandas.DataFrame([numbers] * len(entries))
        self.interrupted_ = models.interrupted
        self.stop_reason_ = "interrupted" if models.interrupted else "the time limit of 60 s is over"
        return self

    def confidence(self) -> list[str]:
        return ["The fake model is sure."]

    @property
    def constants_(self) -> Any:
        return pandas.DataFrame({"The fake constants.": [1.0]})

    def shape_lines(self, index: int | None = None) -> list[str]:
        return ["The shape is proved."]

    def unit_lines(self, index: int | None = None) -> list[str]:
        return ["The fake model has units."]

    def uncertainties(self, index: int | None = None) -> Any:
        return self.models.uncertainties


@pytest.fixture
def models() -> FakeModels:
    return FakeModels()


@pytest.fixture
def symenum(models):
    """Runs the command line on the fake models: symenum("fit", path, ...) gives click's Result."""

    def run(*arguments: object) -> Result:
        result = CliRunner().invoke(main, [str(argument) for argument in arguments], obj=models)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


@pytest.fixture
def table(tmp_path):
    """Writes a file and gives its path."""

    def write(text: str | bytes, name: str = "data.csv"):
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return write
