"""symenum itself, with its defaults, or with parts of it changed or left out for ablations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, cast

from symenum.bench.problems.problem import Array
from symenum.bench.systems.base import Found, Law, Sighting
from symenum.bench.systems.fit_other_tree import FrontWatch
from symenum.core.devices import choose_devices
from symenum.dynamics import ODERegressor
from symenum.estimator import PSERegressor
from symenum.estimator.parameters import PARAMETERS
from symenum.heads.stages import STAGE_NAMES
from symenum.run_directory.layout import RunPlace
from symenum.search import NETWORK, Settings
from symenum.tokens import get_generator

__all__ = ["Symenum"]

_NO_TOKENS = "none"  # the generator that stands for a search without passes of the network
_OTHER_NAMES = {"token_generator": "generator"}


@dataclass(frozen=True)
class Symenum:
    """A configuration of symenum: `generator` is "gp", "mcts", "random" or "none" (no passes of the network).

    `constant_range` is that of token constants, `without` the stage of the heads that is left out everywhere ("" for
    none), `selection` the rule by which a law of the front is chosen. `device` is that of the network and of the heads
    that can use a GPU, `threads` the number of threads where it is not that of the cores. `run_dir`: a folder for the
    whole run, of which no option speaks; the seconds of the run then hold those of writing it.
    """

    generator: str = "gp"
    constant_range: tuple[float, float] = (-3.0, 3.0)
    without: str = ""
    selection: str = str(PARAMETERS["model_selection"].default)
    device: str = "auto"
    threads: int | None = None
    run_dir: RunPlace | None = None

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Symenum:
        """The configuration of options such as generator=mcts, range=-1..1, without=two terms, device=cpu.

        token_generator is another name of generator: that of PSERegressor's parameter.
        """
        options = {_OTHER_NAMES.get(name, name): value for name, value in options.items()}
        known = {"generator", "range", "without", "selection", "device", "threads"}
        unknown = sorted(set(options) - known)
        if unknown:
            raise ValueError(f"symenum has no option {unknown[0]!r}; known: {', '.join(sorted(known))}")
        span = options.get("range", "-3..3").split("..")
        if len(span) != 2:
            raise ValueError(f"range must be two numbers such as -3..3, not {options['range']!r}")
        without = options.get("without", "")
        if without and without not in STAGE_NAMES:
            names = ", ".join(STAGE_NAMES)
            raise ValueError(f"without must be a stage of the heads, one of {names}; not {without!r}")
        generator, device = options.get("generator", cls.generator), options.get("device", cls.device)
        if generator != _NO_TOKENS:
            get_generator(generator)  # refuses a name that is none; the next line does so for devices
        choose_devices(device, work=0)
        threads = options.get("threads")
        if threads is not None and not (threads.isdecimal() and int(threads) > 0):
            raise ValueError(f"threads must be a whole number above 0, not {threads!r}")
        return cls(
            generator,
            (float(span[0]), float(span[1])),
            without,
            options.get("selection", cls.selection),
            device,
            None if threads is None else int(threads),
        )

    def fit(self, X: Array, y: Array, *, operators: Sequence[str], seed: int, max_time: float, cores: int) -> Found:
        """See `System`; the search and the choice of the law are those of `PSERegressor`."""
        watch = FrontWatch()
        without_network = self.generator == _NO_TOKENS
        model = _Configured(
            operators=list(operators),
            max_time=max_time,
            token_generator="random" if without_network else self.generator,
            constant_range=self.constant_range,
            device=self.device,
            shares={NETWORK: 0.0} if without_network else None,
            random_state=seed,
            callbacks=watch,
            model_selection=self.selection,
            run_dir=self.run_dir,
        )
        model.changes = {"threads": self.threads or cores, "leave_out": (self.without,) if self.without else ()}
        model.fit(X, y)
        laws = tuple(Law(str(entry.expression), entry.complexity, entry.loss) for entry in model.front_)
        sightings = tuple(Sighting(*sighting) for sighting in watch.sightings())
        return Found(laws, model.selected_index_, model.stop_reason_, sightings)

    def fit_motion(
        self, t: Array, X: Array, *, operators: Sequence[str], seed: int, max_time: float, cores: int
    ) -> Found:
        """See `MotionSystem`; no option of this configuration but the generator changes anything here."""
        model = ODERegressor(
            list(operators),
            max_time=max_time,
            token_generator="random" if self.generator == _NO_TOKENS else self.generator,
            random_state=seed,
            run_dir=self.run_dir,
        ).fit(X, t)
        chosen = [model.fronts_[state][row] for state, row in model.selected_.items()]
        laws = tuple(Law(str(entry.expression), entry.complexity, entry.loss) for entry in chosen)
        return Found(laws, 0, "; ".join(dict.fromkeys(model.stop_reason_.values())))


class _Configured(PSERegressor):
    """PSERegressor with settings of the search that are no parameters (`changes`, by their names in `Settings`)."""

    changes: Mapping[str, Any] = MappingProxyType({})

    def _seed(self) -> int:
        return cast(int, self.random_state)  # the seed itself, and not a number drawn from it

    def _settings(self, *arguments: Any, **options: Any) -> Settings:
        return replace(super()._settings(*arguments, **options), **self.changes)
