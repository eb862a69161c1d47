"""Search: PSE whole (the paper's Algorithm 2) as a state and a `step`; whoever drives it adds clock and display."""

from symenum.search.moves import NETWORK
from symenum.search.problem import Plan, Settings, Task, make_plan, make_task
from symenum.search.run import Outcome, run
from symenum.search.state import State, StepReport
from symenum.search.step import start, step, stop_reason

__all__ = [
    "NETWORK",
    "Outcome",
    "Plan",
    "Settings",
    "State",
    "StepReport",
    "Task",
    "make_plan",
    "make_task",
    "run",
    "start",
    "step",
    "stop_reason",
]
