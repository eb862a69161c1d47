"""symenum itself, with its defaults, or with parts of it changed or left out for ablations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from symenum.bench.problems.problem import Array
from symenum.bench.systems.base import Found, Law, Sighting, variable_names
from symenum.bench.systems.fit_other_tree import FrontWatch
from symenum.core.devices import choose_devices
from symenum.core.target import Training, check_target
from symenum.heads.stages import STAGE_NAMES
from symenum.operators import get_operators
from symenum.search import NETWORK, Settings, make_task, run
from symenum.selection import DEFAULT_RULE, choose_law
from symenum.tokens import get_generator

__all__ = ["Symenum"]

_NO_TOKENS = "none"  # the generator that stands for a search without passes of the network
_OTHER_NAMES = {"token_generator": "generator"}


@dataclass(frozen=True)
class Symenum:
    """A configuration of symenum: `generator` is "gp", "mcts", "random" or "none" (no passes of the network).

    `constant_range` is that of token constants, `without` the stage of the heads that is left out everywhere ("" for
    none), `selection` the rule by which a law of the front is chosen. `device` is that of the network and of the heads
    that can use a GPU, `threads` the number of threads where it is not that of the cores.
    """

    generator: str = "gp"
    constant_range: tuple[float, float] = (-3.0, 3.0)
    without: str = ""
    selection: str = DEFAULT_RULE
    device: str = "auto"
    threads: int | None = None

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
        """See `System`; the search is that of `PSERegressor`."""
        watch = FrontWatch()
        settings = Settings(
            operators=get_operators(operators),
            token_generator=self.generator if self.generator != _NO_TOKENS else "random",
            constant_range=self.constant_range,
            threads=self.threads or cores,
            device=self.device,
            leave_out=(self.without,) if self.without else (),
            shares={NETWORK: 0.0} if self.generator == _NO_TOKENS else {},
            planned_time=max_time,
        )
        target, rows = check_target(np.asarray(y, dtype=np.float64), None, len(X))
        task = make_task(variable_names(X.shape[1]), torch.tensor(X)[rows], target, settings)
        outcome = run(task, seed, max_time=max_time, callbacks=[watch])
        front = outcome.front
        laws = tuple(Law(str(entry.expression), entry.complexity, entry.loss) for entry in front)
        sightings = tuple(Sighting(*sighting) for sighting in watch.sightings())
        selected = choose_law(front, self.selection, None, Training(task.columns, target), settings.loss)
        return Found(laws, selected, outcome.reason, sightings)
